"""Adapters that are a table: each row says where one signal stands on the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from math import prod

from heptascope.model import Quality, Reason
from heptascope.sources.engine import page as pages
from heptascope.sources.engine.adapter import Absence, Context
from heptascope.sources.engine.page import Page, family_key
from heptascope.sources.engine.version import Span, Version, dotted


class Read(StrEnum):
    """What is taken from a family. COUNT and SUM are a histogram's or a summary's totals, as counters.

    CUMULATIVE is a counter that its engine declares a gauge. RISES counts by how much a gauge rose from page to page, which falls short
    of what happened in between.
    """

    GAUGE = "gauge"
    RATIO = "ratio"
    COUNTER = "counter"
    CUMULATIVE = "cumulative"
    RISES = "rises"
    HISTOGRAM = "histogram"
    COUNT = "count"
    SUM = "sum"


_SUFFIXES = {Read.COUNTER: pages.COUNTER, Read.HISTOGRAM: pages.HISTOGRAM, Read.COUNT: pages.TOTALS, Read.SUM: pages.TOTALS}


@dataclass(frozen=True)
class Facts:
    """What the rows of one page may depend on. `ranks` and `models` are in order; a page without ranks has rank "0"."""

    page: Page
    version: Span
    context: Context
    ranks: tuple[str, ...]
    models: tuple[str, ...]

    @property
    def lone_rank(self) -> str:
        """The rank of series without a rank label: that of the only rank, or none if there are several."""
        return self.ranks[0] if len(self.ranks) == 1 else ""


def _exact(_facts: Facts) -> Quality:
    return Quality.EXACT


def _on(_facts: Facts) -> Absence | None:
    return None


def quotient(values: Sequence[float]) -> float | None:
    """Join two values by dividing, None where there is nothing to divide by."""
    over, under = values
    return over / under if under else None


def product(values: Sequence[float]) -> float | None:
    """Join values by multiplying."""
    return prod(values)


_NOT_THERE = Absence(Reason.ENGINE, "the page does not hold it")


@dataclass(frozen=True)
class Take:
    """One place where a signal may stand. All `families` must be there; `join` makes one value of theirs, in that order (None: no value).

    `only` keeps the series with these label values: one text, or several of which any will do ("" also where the label is absent).
    `scale` multiplies, or says why the value cannot be used; of a histogram it scales sum and bounds. `read` overrides the row's.
    """

    families: tuple[str, ...]
    only: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    scale: float | Callable[[Facts], float | Absence] = 1.0
    join: Callable[[Sequence[float]], float | None] = sum
    read: Read | None = None

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The keys of the families."""
        return tuple(family_key(name) for name in self.families)


@dataclass(frozen=True)
class Row:
    """One signal: the first of `takes` that the page holds is used, so the newest name comes first; two are never added.

    `keep` maps wire labels to ours; the rank is kept by itself, and every other label tells parts of one series apart. `spell` turns
    kept label values into ours; `always` are labels that every series gets. `fold` joins the parts of a gauge. `off` says why the
    signal means nothing now, `zero` why it means nothing while it is 0. `since` is the first version that has it, `absent` the reason
    if such a version does not show it. `born` says that the engine makes a series at its first event: while the family is there, and
    no series that is wanted, the value is 0.
    """

    signal: str
    read: Read
    takes: tuple[Take, ...]
    keep: Mapping[str, str] = field(default_factory=dict)
    spell: Callable[[str], str] = str
    always: Mapping[str, str] = field(default_factory=dict)
    fold: Callable[[list[float]], float] = sum
    quality: Callable[[Facts], Quality] = _exact
    off: Callable[[Facts], Absence | None] = _on
    zero: Absence | None = None
    since: Version = ()
    born: bool = False
    absent: Absence = _NOT_THERE

    def wanted(self) -> dict[str, tuple[str, ...]]:
        """Return the families that the row reads, with the suffixes it needs."""
        return {key: _SUFFIXES.get(take.read or self.read, pages.GAUGE) for take in self.takes for key in take.keys}

    def why_absent(self, engine: str, version: Span) -> Absence:
        """Return why a page of this version does not hold the signal; `engine` is its name for people."""
        if self.since and not version.surely_from(self.since):
            return Absence(Reason.ENGINE_TOO_OLD, f"needs {engine} {dotted(self.since)} or newer")
        return self.absent


@dataclass(frozen=True)
class Table:
    """The rows of one engine and what they share.

    `engine` is its name for people; `rank_label` and `model_label` are the labels that hold the rank and the model's name; `further`
    names families that code reads. `version` tells the span of versions from the page and from what the engine stated. `ignore` are
    labels that say nothing, `repeat` labels of which only the named value is read, since the others repeat it.
    """

    engine: str
    rows: tuple[Row, ...]
    rank_label: str
    model_label: str
    version: Callable[[Page, str], Span]
    further: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ignore: frozenset[str] = frozenset()
    repeat: Mapping[str, str] = field(default_factory=dict)

    def wanted(self) -> dict[str, tuple[str, ...]]:
        """Return every family that is needed, with its suffixes."""
        wanted: dict[str, tuple[str, ...]] = {family_key(name): suffixes for name, suffixes in self.further.items()}
        for row in self.rows:
            for key, suffixes in row.wanted().items():
                wanted[key] = tuple(dict.fromkeys((*wanted.get(key, ()), *suffixes)))
        return wanted

    def facts(self, page: Page, context: Context) -> Facts:
        """Collect what rows depend on."""
        version = self.version(page, context.stated_version)
        return Facts(page, version, context, page.label_values(self.rank_label) or ("0",), page.label_values(self.model_label))
