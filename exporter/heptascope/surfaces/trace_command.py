"""From files to a written report: what `heptascope trace` and `heptascope capture` share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from rich.console import Console

from heptascope.errors import UserError
from heptascope.sources.trace import load, run
from heptascope.sources.trace.compare import compare as compare_runs
from heptascope.sources.trace.events import Trace
from heptascope.sources.trace.measures import Run
from heptascope.sources.trace.ncu import KernelTable
from heptascope.surfaces import trace_html, trace_report
from heptascope.surfaces.trace_report import Report

_PIPE_WIDTH = 160  # columns where the output is no terminal


def build(files: Sequence[Path], *, compare: bool = False, one_run: bool = False) -> Report:
    """Read and measure files. Raises UserError for what cannot be used."""
    loaded = [load.load(path) for path in files]
    traces = [item for item in loaded if isinstance(item, Trace)]
    report = Report([str(path) for path in files], tables=[item for item in loaded if isinstance(item, KernelTable)])
    if not traces:
        if compare:
            raise UserError("tables of hardware counters cannot be compared", hint="compare traces of whole runs")
        return report
    chosen = [run.measure(ranks) for ranks in run.choose(run.runs(traces), compare, one_run)]
    report.run = chosen[0] if len(chosen) == 1 else None
    if report.run is None:
        report.comparison = compare_runs(*chosen)
        report.comparison.notes += [
            f"{side}: {note}" for side, one in zip(("before", "after"), chosen, strict=True) for note in _notes(one)
        ]
    return report


def _notes(one: Run) -> list[str]:
    return [*(note for rank in one.ranks for note in rank.notes), *one.notes]


def write(report: Report, form: str, output: Path | None, stream: TextIO) -> None:
    """Write a report in the form wanted, to a file or a stream. Raises UserError if the file cannot be written."""
    if output is None:
        _write(report, form, stream)
        return
    try:
        with output.open("w", encoding="utf-8") as file:
            _write(report, form, file)
    except OSError as error:
        raise UserError(error.strerror or str(error), where=str(output), hint="choose a file that can be written") from error


def _write(report: Report, form: str, stream: TextIO) -> None:
    if form == "text":
        console = Console(file=stream)
        trace_report.text(report, console if console.is_terminal else Console(file=stream, width=_PIPE_WIDTH))
        return
    stream.write({"json": trace_report.as_json, "markdown": trace_report.markdown, "html": trace_html.page}[form](report))
