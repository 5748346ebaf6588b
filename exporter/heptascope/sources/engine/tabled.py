"""An adapter that is nothing but a table, and the helpers that such tables share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from heptascope.model import Quality, Reason
from heptascope.sources.base import SourceError
from heptascope.sources.engine.adapter import Absence, Beside, Collector, Context, Question
from heptascope.sources.engine.cmdline import CommandTable
from heptascope.sources.engine.extract import TableReader
from heptascope.sources.engine.page import Document, Page
from heptascope.sources.engine.table import Facts, Read, Row, Table, Take
from heptascope.sources.engine.version import Span, Version, version

Complete = Callable[[Facts, Collector], None]
"""Adds what rows cannot say."""

_MOST_TEXT = 64
_NO_MODEL = "undefined"  # what TensorRT-LLM 1.0 writes for a model that it was not told


def nothing() -> Complete:
    """Return a completion that adds nothing."""
    return lambda _facts, _out: None


@dataclass(frozen=True)
class TableAdapter:
    """One kind of engine, told by families whose keys begin with one of `prefixes` while none begins with one of `foreign`.

    `complete` makes what adds to a session's readings, with a state of its own if it needs one. `lacks` gives reasons for signals that
    no row names.
    """

    kind: str
    table: Table
    prefixes: tuple[str, ...]
    foreign: tuple[str, ...] = ()
    paths: tuple[str, ...] = ("/metrics",)
    ports: tuple[int, ...] = ()
    version_path: str = ""
    questions: tuple[Question, ...] = ()
    beside: tuple[Beside, ...] = ()
    command: CommandTable | None = None
    complete: Callable[[], Complete] = nothing
    lacks: Mapping[str, Absence] = field(default_factory=dict)

    def fingerprint(self, document: Document) -> bool:
        """Whether the page holds this engine's families."""
        own = any(name.startswith(self.prefixes) for name in document.names)
        return own and not any(self.foreign and name.startswith(self.foreign) for name in document.names)

    def bare(self, document: Document) -> bool:  # noqa: ARG002  # the protocol's argument
        """Say no: without families of its own nothing tells it."""
        return False

    def open(self) -> TableSession:
        """Return a reader for one engine."""
        return TableSession(self)


class TableSession:
    """Reads the pages of one engine by its table."""

    def __init__(self, adapter: TableAdapter) -> None:
        """Start without a page."""
        self._adapter = adapter
        self._rows = TableReader(adapter.table)
        self._complete = adapter.complete()

    def parse(self, document: Document, context: Context, out: Collector) -> None:
        """Put the page into `out`. Raises SourceError if it is not this engine's."""
        adapter = self._adapter
        facts = self._rows.read(document, context)
        if not any(name.startswith(adapter.prefixes) for name in facts.page.names):
            text = f"{document.url}: no {adapter.table.engine} metrics on this page; check the port and engines[].kind"
            raise SourceError(Reason.NOT_SUPPORTED, text)
        release = context.stated_version or str(facts.version)
        model = ",".join(name for name in facts.models if name != _NO_MODEL) or context.told.model
        for rank in facts.ranks:
            out.sample("info", out.pairs(rank, {"kind": adapter.kind, "version": release, "model": model}), 1.0)
        self._rows.fill(facts, out)
        self._complete(facts, out)
        for signal, value in context.told.signals.items():
            if signal not in out.given:
                for rank in facts.ranks:
                    out.sample(signal, out.pairs(rank), value)
        for signal, absence in adapter.lacks.items():
            out.lack(signal, absence)
        out.settings(context, facts.ranks)


# rows


def take(*families: str, **only: str | tuple[str, ...]) -> Take:
    """Return a place: these families, of which `only` keeps the series with these label values."""
    return Take(families, only=only)


def latency(signal: str, *families: str, **more: Any) -> Row:
    """Return the row of a histogram that may stand under several names."""
    return Row(signal, Read.HISTOGRAM, tuple(take(name) for name in families), **more)


def exact(_facts: Facts) -> Quality:
    """Return the quality of what an engine counts itself."""
    return Quality.EXACT


def approximate(_facts: Facts) -> Quality:
    """Return the quality of what stands for something else, or is counted late."""
    return Quality.APPROXIMATE


def derived(_facts: Facts) -> Quality:
    """Return the quality of what is computed from exact values."""
    return Quality.DERIVED


def since(release: str) -> Callable[[Facts], Quality]:
    """Return a quality: exact from that release on."""
    first = version(release)
    return lambda facts: Quality.EXACT if facts.version.surely_from(first) else Quality.APPROXIMATE


def has(family: str) -> Callable[[Facts], Quality]:
    """Return a quality: exact where the page holds that family (a key), approximate where something else stands in."""
    return lambda facts: Quality.EXACT if facts.page.of(family) else Quality.APPROXIMATE


def declared(family: str, *types: str) -> Callable[[Facts], Absence | None]:
    """Return when a row means something: while the page declares that family (a key) as one of `types`, or not at all."""
    other = Absence(Reason.ENGINE, f"this release declares {family} as another type")
    return lambda facts: None if facts.page.types.get(family, types[0]) in (*types, "", "unknown", "untyped") else other


def without(family: str) -> Callable[[Facts], Absence | None]:
    """Return when a stand-in means something: while the page lacks that family (a key), which says it better."""
    better = Absence(Reason.ENGINE, f"{family} says it better")
    return lambda facts: better if facts.page.of(family) else None


def status_class(code: str) -> str:
    """Return the class of an HTTP status, such as `5xx`."""
    return f"{code[0]}xx" if len(code) == 3 and code.isdigit() else code


# versions


def span_by(marks: Mapping[str, Version], gone: Mapping[str, Version] | None = None) -> Callable[[Page, str], Span]:
    """Return a version rule: the stated one, else what the page's families allow.

    `marks` are families (keys) that came with a release, `gone` those that a release dropped.
    """

    def rule(page: Page, stated: str) -> Span:
        try:
            return Span.exactly(version(stated))
        except ValueError:
            low = max((release for family, release in marks.items() if family in page.names), default=())
            highs = [release for family, release in (gone or {}).items() if family in page.names and release > low]
            return Span(low, min(highs, default=None))

    return rule


# information pages


def number(value: object) -> float | None:
    """Return a positive number, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except ValueError:
        return None
    return found if isfinite(found) and found > 0 else None


def numbers(answer: Mapping[str, Any], keys: Mapping[str, str]) -> dict[str, float]:
    """Return the positive numbers among the fields of an answer, renamed by `keys` (field to ours)."""
    found = {ours: number(answer.get(field)) for field, ours in keys.items()}
    return {ours: value for ours, value in found.items() if value is not None}


def texts(answer: Mapping[str, Any], keys: Mapping[str, str]) -> dict[str, str]:
    """Return the short texts and numbers among the fields of an answer, renamed by `keys`; what is null or empty is left out."""
    found = {ours: answer.get(field) for field, ours in keys.items()}
    return {ours: str(value)[:_MOST_TEXT] for ours, value in found.items() if isinstance(value, str | int | float) and value != ""}


def config_labels(facts: Facts, out: Collector, family: str, chosen: Mapping[str, str]) -> dict[str, float]:
    """Show the labels of an info family as settings, renamed by `chosen`; return those that are positive numbers."""
    found: dict[str, float] = {}
    for series, _ in facts.page.of(family):
        for name, ours in chosen.items():
            value = series.labels.get(name, "")
            if value not in ("", "None"):
                for rank in facts.ranks:
                    out.sample("config_info", out.pairs(rank, {"setting": ours, "value": value[:_MOST_TEXT]}), 1.0)
                known = number(value)
                found |= {ours: known} if known is not None else {}
        break
    return found
