"""Reads the rows of a table off a page: labels mapped, parts told apart, impossible values refused one by one."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite

from heptascope.model import Histogram
from heptascope.sources.engine.adapter import Absence, Collector, Context
from heptascope.sources.engine.histograms import Place, Plan
from heptascope.sources.engine.page import MAX_KNOWN_SERIES, Document, PageReader, Series
from heptascope.sources.engine.table import Facts, Read, Row, Table, Take

_TYPES = {
    Read.GAUGE: ("gauge",),
    Read.RATIO: ("gauge",),
    Read.COUNTER: ("counter",),
    Read.CUMULATIVE: ("gauge",),
    Read.RISES: ("gauge",),
    Read.HISTOGRAM: ("histogram",),
    Read.COUNT: ("histogram", "summary"),
    Read.SUM: ("histogram", "summary"),
}
_UNDECLARED = ("", "unknown", "untyped")
_ONLY_SUFFIX = {Read.COUNT: "_count", Read.SUM: "_sum"}
_RATIO_LIMIT = 1 + 1e-6  # rounding in the engine's own division
_LINE_SHOWN = 120


class _Rises:
    """Sums by how much a level rose."""

    def __init__(self) -> None:
        self._last: float | None = None
        self._total = 0.0

    def add(self, value: float) -> float:
        self._total += 0.0 if self._last is None else max(0.0, value - self._last)
        self._last = value
        return self._total


class TableReader:
    """Reads the pages of one engine by its table."""

    def __init__(self, table: Table) -> None:
        """Prepare to read the families that the table needs."""
        self._table = table
        self._reader = PageReader(table.wanted())
        self._places: dict[tuple[str, Series], Place] = {}
        self._plans: dict[tuple[str, tuple[str, ...]], Plan] = {}
        self._shape: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        self._rises: dict[tuple[str, Place], _Rises] = {}

    def read(self, document: Document, context: Context) -> Facts:
        """Parse the page. Raises SourceError if it is none."""
        document.check_metrics()
        return self._table.facts(self._reader.read(document.text, document.openmetrics), context)

    def fill(self, facts: Facts, out: Collector, rows: Iterable[Row] | None = None) -> None:
        """Put every row (or only `rows`) into `out`: values, or why there are none."""
        if (facts.ranks, facts.models) != self._shape or len(self._places) > MAX_KNOWN_SERIES:
            self._places.clear()
            self._plans.clear()
            self._shape = (facts.ranks, facts.models)
        for row in self._table.rows if rows is None else rows:
            off = row.off(facts)
            take = None if off is not None else self._choose(row, facts, out)
            if off is not None:
                out.lack(row.signal, off)
            elif take is None:
                out.lack(row.signal, row.why_absent(self._table.engine, facts.version))
            else:
                self._take(row, take, facts, out)

    def _take(self, row: Row, take: Take, facts: Facts, out: Collector) -> None:
        scale = take.scale(facts) if callable(take.scale) else take.scale
        if isinstance(scale, Absence):
            out.lack(row.signal, scale)
        elif (take.read or row.read) is Read.HISTOGRAM:
            self._histograms(row, take, scale, facts, out)
        else:
            self._scalars(row, take, scale, facts, out)

    def _choose(self, row: Row, facts: Facts, out: Collector) -> Take | None:
        """Return the first place that the page holds; name lines that cannot be read and families of another type."""
        for take in row.takes:
            expected = _TYPES[take.read or row.read]
            for key in take.keys:
                for line in facts.page.lines(key):
                    out.refuse(row.signal, f"a line cannot be read: {line[:_LINE_SHOWN]}")
            if not all(facts.page.of(key) for key in take.keys):
                continue
            wrong = [key for key in take.keys if facts.page.types.get(key, "") not in (*expected, *_UNDECLARED)]
            if not wrong:
                return take
            out.refuse(row.signal, f"{wrong[0]} is declared a {facts.page.types[wrong[0]]}, not a {expected[0]}")
        return None

    def _scalars(self, row: Row, take: Take, scale: float, facts: Facts, out: Collector) -> None:
        read = take.read or row.read
        found: dict[Place, list[float]] = {}
        for key in take.keys:
            for place, value in self._family(row, take, key, facts, out).items():
                found.setdefault(place, []).append(value)
        whole = {place: values for place, values in found.items() if take.join is sum or len(values) == len(take.keys)}
        joined = {place: take.join(values) for place, values in whole.items()}
        totals = {place: value * scale for place, value in joined.items() if value is not None}
        if found and not totals:
            out.lack(row.signal, row.absent)
        if row.born and not found:
            totals = {Place(facts.lone_rank, tuple(row.always.items()), ""): 0.0}
        if row.zero is not None and totals and not any(totals.values()):
            out.lack(row.signal, row.zero)
            return
        if read in (Read.GAUGE, Read.RATIO, Read.RISES):
            totals = _fold(row, totals)
        if read is Read.RISES:
            totals = {place: self._rises.setdefault((row.signal, place), _Rises()).add(value) for place, value in totals.items()}
        for place, value in totals.items():
            out.sample(row.signal, out.pairs(place.rank, dict(place.extra)), value, place.part)
        for rank in {place.rank for place in totals}:
            out.mark(row.signal, rank, row.quality(facts))

    def _family(self, row: Row, take: Take, key: str, facts: Facts, out: Collector) -> dict[Place, float]:
        """Return the good values of one family; of two with the same labels the first counts."""
        found: dict[Place, float] = {}
        read = take.read or row.read
        suffix = _ONLY_SUFFIX.get(read)
        for series, value in facts.page.of(key):
            if (suffix is not None and series.suffix != suffix) or not self._is_wanted(series, take):
                continue
            place = self._place(series, row, take, facts)
            wrong = _wrong(read, value)
            if wrong:
                out.refuse(row.signal, f"{key} is {wrong}", place.rank)
            elif place in found:
                out.refused += 1
            else:
                found[place] = value
        return found

    def _histograms(self, row: Row, take: Take, scale: float, facts: Facts, out: Collector) -> None:
        key = take.keys[0]
        samples = facts.page.of(key)
        plan = self._plan(row, take, [series for series, _ in samples], facts)
        out.refused += plan.repeats
        for place, bounds, counts, total, wrong in plan.read([value for _, value in samples]):
            if wrong:
                out.refuse(row.signal, f"{key} {wrong}", place.rank)
                continue
            pairs = out.pairs(place.rank, dict(place.extra))
            scaled = bounds if scale == 1 else tuple(bound * scale for bound in bounds)
            out.histogram(row.signal, Histogram("", pairs, scaled, counts, total * scale, place.part))
            out.mark(row.signal, place.rank, row.quality(facts))

    def _plan(self, row: Row, take: Take, series: list[Series], facts: Facts) -> Plan:
        """Return how a family's samples become histograms; it is the same on every page until series, ranks or models change."""
        key = (row.signal, take.families)
        plan = self._plans.get(key)
        if plan is None or not plan.fits(series):
            plan = self._plans[key] = Plan(series, lambda one: self._place(one, row, take, facts) if self._is_wanted(one, take) else None)
        return plan

    def _is_wanted(self, series: Series, take: Take) -> bool:
        repeat = self._table.repeat
        if any(series.labels.get(name, first) != first for name, first in repeat.items()):
            return False
        return all(_is(series.labels.get(name, ""), wanted) for name, wanted in take.only.items())

    def _place(self, series: Series, row: Row, take: Take, facts: Facts) -> Place:
        """Return where a series' values belong; it is the same on every page until ranks or models change."""
        place = self._places.get((row.signal, series))
        if place is None:
            place = self._places[row.signal, series] = self._find_place(series, row, take, facts)
        return place

    def _find_place(self, series: Series, row: Row, take: Take, facts: Facts) -> Place:
        table = self._table
        rank, extra, part = facts.lone_rank, list(row.always.items()), []
        for name, value in series.labels.items():
            if name == table.rank_label:
                rank = value
            elif name in row.keep:
                spelt = row.spell(value)
                extra.append((row.keep[name], spelt))
                if spelt != value:  # several of the engine's may be one of ours, such as 404 and 429
                    part.append(f"{name}={value}")
            elif name in table.ignore or name in table.repeat:
                continue
            elif not isinstance(take.only.get(name), str) and name != "le" and (name != table.model_label or len(facts.models) > 1):
                part.append(f"{name}={value}")
        return Place(rank, tuple(extra), ",".join(sorted(part)))


def _is(value: str, wanted: str | tuple[str, ...]) -> bool:
    return value == wanted if isinstance(wanted, str) else value in wanted


def _fold(row: Row, totals: dict[Place, float]) -> dict[Place, float]:
    """Join the parts of a gauge; an instant value needs no history for that."""
    groups: dict[Place, list[float]] = {}
    for place, value in totals.items():
        groups.setdefault(place._replace(part=""), []).append(value)
    return {place: row.fold(values) for place, values in groups.items()}


def _wrong(read: Read, value: float) -> str:
    """Return what is wrong with a value; nothing that engines report can be negative or infinite."""
    if not isfinite(value):
        return f"{value}"
    if value < 0:
        return f"negative ({value:g})"
    return f"{value:g}, more than the whole" if read is Read.RATIO and value > _RATIO_LIMIT else ""
