"""The counter contract: what happens when several pieces (API servers, processes) make one series.

A one-to-one series passes through with its resets visible. A folded counter sums the non-negative deltas of
its pieces, so that a restarted piece neither lowers it nor is lost; histograms do so per bucket, and start again where their bounds change.
"""

from __future__ import annotations

from collections.abc import Iterable

from heptascope.model import Histogram, Labels, Sample
from heptascope.signals.schema_row import Fold, Kind, Signal

Key = tuple[str, Labels]


class CounterFold:
    """Totals of folded counters. A piece that vanished and comes back continues from its last value."""

    def __init__(self) -> None:
        self._last: dict[tuple[Key, str, int], float] = {}
        self._totals: dict[tuple[Key, int], float] = {}

    def add(self, key: Key, part: str, value: float, slot: int = 0) -> float:
        """Take a piece's new value and return the series' total; a fall of the piece counts as a restart from 0."""
        last = self._last.get((key, part, slot), 0.0)
        self._last[key, part, slot] = value
        total = self._totals.get((key, slot), 0.0) + (value - last if value >= last else value)
        self._totals[key, slot] = total
        return total

    def forget(self, key: Key) -> None:
        """Let a series start again from 0."""
        for kept in [kept for kept in self._last if kept[0] == key]:
            del self._last[kept]
        for slot in [kept for kept in self._totals if kept[0] == key]:
            del self._totals[slot]


def _combine(how: Fold, values: list[float]) -> float:
    if how is Fold.SUM:
        return sum(values)
    return max(values) if how is Fold.MAX else values[-1]


class Folder:
    """Turns a reading's samples and histograms into one value per series."""

    def __init__(self) -> None:
        self._counters = CounterFold()
        self._folded: dict[Key, tuple[float, ...]] = {}
        """The series that were folded last, each with the bounds of its histogram."""

    def samples(self, samples: Iterable[Sample], schema: dict[str, Signal]) -> dict[Key, float]:
        """Return the value of each series; samples of unknown signals are left out."""
        out: dict[Key, float] = {}
        pieces: dict[Key, list[float]] = {}
        for name, pairs, value, _window, part in samples:
            row = schema.get(name)
            if row is None:
                continue
            key = (name, pairs)
            if not part:
                self._unfold(key)
                out[key] = value
            elif row.kind is Kind.COUNTER:
                self._folded[key] = ()
                out[key] = self._counters.add(key, part, value)
            else:
                pieces.setdefault(key, []).append(value)
        for key, values in pieces.items():
            out[key] = _combine(schema[key[0]].fold, values)
        return out

    def histograms(self, histograms: Iterable[Histogram]) -> list[Histogram]:
        """Return one histogram per series; pieces with other bounds than the first are left out."""
        out: dict[Key, Histogram] = {}
        for h in histograms:
            key = (h.name, h.labels)
            if not h.part:
                self._unfold(key)
                out[key] = h
                continue
            known = out.get(key)
            if known is not None and known.bounds != h.bounds:
                continue
            if self._folded.get(key, h.bounds) != h.bounds:  # the engine started again with others: what was counted fits in none of these
                self._unfold(key)
            self._folded[key] = h.bounds
            counts = tuple(self._counters.add(key, h.part, c, i) for i, c in enumerate(h.counts))
            total = self._counters.add(key, h.part, h.sum, -1)
            out[key] = Histogram(h.name, h.labels, h.bounds, counts, total)
        return list(out.values())

    def _unfold(self, key: Key) -> None:
        """Forget what the pieces of a series added, now that it has none: should it have some again, they are another process's."""
        if key in self._folded:
            del self._folded[key]
            self._counters.forget(key)
