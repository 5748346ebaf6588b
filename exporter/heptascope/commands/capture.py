"""Record a trace from a running engine's own profiler, and analyse it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from heptascope.errors import UserError

DEFAULT_STEPS = 20
WAIT_FOR_STEPS = 10.0
"""Seconds in which the wanted steps must have run."""


@click.command()
@click.option("--engine", "url", metavar="URL", required=True, help="The engine's address.")
@click.option("--steps", type=click.IntRange(min=1), help=f"Record this many engine steps. Default: {DEFAULT_STEPS}.")
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), help="Record for this long.")
@click.option("--trace-dir", type=click.Path(path_type=Path), help="Folder into which the engine writes its traces, as seen from here.")
@click.option(
    "--format", "form", type=click.Choice(("text", "json", "markdown", "html")), default="text", show_default=True, help="How to report."
)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file instead of standard output.")
def command(url: str, steps: int | None, seconds: float | None, trace_dir: Path | None, form: str, output: Path | None) -> None:
    """Record a trace from a running vLLM or SGLang through its profiler endpoints, and analyse it.

    The engine is slower while its profiler runs. The profiler is stopped in the end whatever happens, even if this command is killed.
    """
    if steps and seconds:
        raise UserError("--steps and --seconds exclude each other", hint="give one of them")
    try:
        from heptascope.surfaces import capture_command, trace_command
    except ModuleNotFoundError as error:
        raise UserError(
            f"reading traces needs the package {error.name}", hint="install it with: pip install 'heptascope[trace]'"
        ) from error
    wanted = capture_command.wanted(None if seconds else steps or DEFAULT_STEPS, seconds or WAIT_FOR_STEPS)
    report = capture_command.run(url, wanted, trace_dir)
    trace_command.write(report, form, output, sys.stdout)
