"""Reports of traces for people and programs: terminal, Markdown, JSON; the page is in `trace_html`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from heptascope.sources.trace.compare import Comparison
from heptascope.sources.trace.measures import Run, SampleRow
from heptascope.sources.trace.ncu import KernelTable
from heptascope.sources.trace.overall import overall
from heptascope.surfaces.trace_judgement import Judgement, judge, judgement_json, judgement_sections
from heptascope.surfaces.trace_sections import RANKS_SHOWN, Section, comparison_sections, counter_sections, headline, plain, sections

SCHEMA_VERSION = 1
"""Grows when a field of the JSON document changes its meaning or goes."""


@dataclass(slots=True)
class Report:
    """Everything that one call of the command found: a run, hardware counters, or two runs compared."""

    files: list[str]
    run: Run | None = None
    tables: list[KernelTable] = field(default_factory=list)
    comparison: Comparison | None = None
    lead: list[str] = field(default_factory=list)  # notes on how the files were made

    @property
    def headline(self) -> str:
        """One sentence for the top."""
        if self.comparison is not None:
            total = self.comparison.total
            return f"one {self.comparison.unit} took {(total.before or 0) * 1e3:.3g} ms and takes {(total.after or 0) * 1e3:.3g} ms"
        if self.run is not None:
            return plain(headline(self.run))
        return f"{sum(len(table.kernels) for table in self.tables)} kernels with hardware counters"

    @property
    def notes(self) -> list[str]:
        """What was left out or is doubtful."""
        found = [
            *self.lead,
            *self._rank_notes(),
            *(self.run.notes if self.run is not None else []),
            *(note for table in self.tables for note in table.notes),
            *self._comparison_notes(),
        ]
        return [plain(note) for note in found]

    def _rank_notes(self) -> list[str]:
        """Name the rank with its note, unless all ranks have the same."""
        ranks = self.run.ranks if self.run is not None else []
        of_note: dict[str, list[str]] = {}
        for rank in ranks[:RANKS_SHOWN]:
            for note in rank.notes:
                of_note.setdefault(note, []).append(rank.rank)
        shown = min(len(ranks), RANKS_SHOWN)
        named = [note if len(who) == shown else f"rank {', '.join(who)}: {note}" for note, who in of_note.items()]
        rest = [f"only {shown} of {len(ranks)} ranks are shown; --format json has all"] if shown < len(ranks) else []
        return rest + named

    def _comparison_notes(self) -> list[str]:
        return self.comparison.notes if self.comparison is not None else []

    def sections(self) -> list[Section]:
        """All tables, in the order to read them in."""
        return [*self.answers(), *self.details()]

    def answers(self) -> list[Section]:
        """Return what the rules say, or what changed."""
        return comparison_sections(self.comparison) if self.comparison is not None else judgement_sections(self.judgement())

    def details(self) -> list[Section]:
        """Return what was measured."""
        found = sections(self.run) if self.run is not None else []
        return found + [section for table in self.tables for section in counter_sections(table)]

    def samples(self) -> list[SampleRow]:
        """All measures as (signal, labels, value); those of several tables of counters are taken together."""
        counters = KernelTable("", [kernel for table in self.tables for kernel in table.kernels])
        return [*(self.run.to_samples() if self.run is not None else []), *counters.to_samples()]

    def judgement(self) -> list[Judgement]:
        """Return what the rules of the catalogue say of what was measured; nothing of a comparison."""
        return judge(self.samples()) if self.comparison is None else []


def text(report: Report, console: Console) -> None:
    """Print a report."""
    console.print(f"[bold]{escape(report.headline)}[/bold]", highlight=False)
    for note in report.notes:
        console.print(f"[yellow]note:[/yellow] {escape(note)}", highlight=False)
    for section in report.sections():
        console.print()
        console.print(_table(section))


def _table(section: Section) -> Table:
    table = Table(
        title=escape(section.title),
        title_justify="left",
        title_style="bold",
        caption=escape(section.note) or None,
        caption_justify="left",
        box=None,
    )
    for i, column in enumerate(section.columns):
        is_text = i == 0 or column in section.words
        table.add_column(
            escape(column),
            justify="left" if is_text else "right",
            overflow="ellipsis" if is_text and not section.wrapped else "fold",
            no_wrap=is_text and (i == 0 or not section.wrapped),
            max_width=None if section.wrapped else 56,
        )
    for i, row in enumerate(section.rows):
        table.add_row(*(escape(cell) for cell in row), style="bold" if i in section.strong else None)
    return table


def markdown(report: Report) -> str:
    """Write a report as Markdown."""
    lines = ["# Trace", "", report.headline, "", *(f"- {_inline(path)}" for path in report.files), ""]
    lines += [f"> {note}" for note in report.notes]
    for section in report.sections():
        lines += ["", f"## {section.title}", "", *_markdown_table(section)]
        lines += ["", section.note] if section.note else []
    return "\n".join(lines).rstrip() + "\n"


def _markdown_table(section: Section) -> list[str]:
    rules = [":--" if i == 0 or column in section.words else "--:" for i, column in enumerate(section.columns)]
    return [_row([_cell(c) for c in section.columns]), _row(rules), *(_row([_cell(c) for c in row]) for row in section.rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: str) -> str:
    return value.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _inline(value: str) -> str:
    return f"`{plain(value).replace('`', chr(39))}`"


def document(report: Report) -> dict[str, Any]:
    """Return a report as the JSON document: the numbers behind all tables, and the signals."""
    found: dict[str, Any] = {"schema": SCHEMA_VERSION, "files": report.files, "headline": report.headline, "notes": report.notes}
    if report.run is not None:
        found["run"] = asdict(report.run)
        for rank, measures in zip(found["run"]["ranks"], report.run.ranks, strict=True):
            rank["busy_ratio"] = measures.busy_ratio
        found["run"]["overall"] = [whole._asdict() for whole in overall(report.run)]
    if report.tables:
        found["counters"] = [_counters(table) for table in report.tables]
    if report.comparison is not None:
        found["comparison"] = asdict(report.comparison)
    if report.comparison is None:
        found["judgement"] = judgement_json(report.judgement())
    found["signals"] = [{"name": name, "labels": dict(pairs), "value": value} for name, pairs, value in report.samples()]
    return found


def _counters(table: KernelTable) -> Mapping[str, Any]:
    kernels = [{**asdict(kernel), "bound": kernel.bound} for kernel in table.kernels]
    return {"file": table.path, "kernels": kernels, "stalls": table.stalls(), "bounds": table.bounds()}


def as_json(report: Report) -> str:
    """Write a report as JSON."""
    return json.dumps(document(report), ensure_ascii=False, allow_nan=False, indent=2) + "\n"
