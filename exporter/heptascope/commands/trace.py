"""Analyse traces: which kernel, which gap, which copy, which collective."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from heptascope.errors import UserError

FORMATS = ("text", "json", "markdown", "html")


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="How to write the report.")
@click.option("--compare", is_flag=True, help="Compare two runs even if their files look like ranks of one.")
@click.option("--ranks", is_flag=True, help="Take all files as ranks of one run even if they do not look like it.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file instead of standard output.")
def command(files: tuple[Path, ...], form: str, compare: bool, ranks: bool, output: Path | None) -> None:
    """Analyse traces of the PyTorch profiler, Nsight Systems or Nsight Compute.

    Several files that the profiler numbered as ranks of one run, recorded at the same time, are analysed together; files of
    two runs are compared.
    """
    if compare and ranks:
        raise UserError("--compare and --ranks exclude each other", hint="give one of them")
    try:
        from heptascope.surfaces import trace_command
    except ModuleNotFoundError as error:
        raise UserError(
            f"reading traces needs the package {error.name}", hint="install it with: pip install 'heptascope[trace]'"
        ) from error
    report = trace_command.build(files, compare=compare, one_run=ranks)
    trace_command.write(report, form, output, sys.stdout)
