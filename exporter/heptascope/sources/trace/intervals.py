"""Sets of time intervals as arrays: unions, how much of a range they cover, what they have in common."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heptascope.sources.trace.events import Int


@dataclass(frozen=True, slots=True)
class Union:
    """Disjoint, sorted intervals; `before` is the covered length to the left of each of them."""

    start: Int
    end: Int
    before: Int

    @property
    def length(self) -> int:
        """The covered length, in the unit of the times."""
        return int((self.end - self.start).sum())

    def covered(self, until: Int) -> Int:
        """Return for each time how much is covered to its left."""
        if not len(self.start):
            return np.zeros_like(until)
        at = np.searchsorted(self.start, until, side="right") - 1
        inside = np.minimum(until, self.end[at]) - self.start[at]
        covered: Int = np.where(at < 0, 0, self.before[at] + inside)
        return covered

    def within(self, start: Int, end: Int) -> Int:
        """Return for each range [start, end) how much of it is covered; 0 for a range that ends before it starts."""
        length: Int = np.maximum(self.covered(end) - self.covered(start), 0)
        return length

    def common(self, other: Union) -> int:
        """Return the length that both cover."""
        return int(self.within(other.start, other.end).sum())

    def holes(self) -> tuple[Int, Int]:
        """Return the starts and ends of the gaps between the intervals."""
        return self.end[:-1], self.start[1:]


def union(start: Int, end: Int, bridge: int = 0) -> Union:
    """Merge intervals that touch, overlap, or lie at most `bridge` apart. Empty intervals vanish."""
    some = end > start
    start, end = start[some], end[some]
    if not len(start):
        return _disjoint(start, end)
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    first = np.concatenate(([True], start[1:] > end[:-1] + bridge))
    last = np.concatenate((first[1:], [True]))
    return _disjoint(start[first], end[last])


def _disjoint(start: Int, end: Int) -> Union:
    length = end - start
    return Union(start, end, np.cumsum(length) - length)


def percentile(values: Int, q: float) -> int:
    """Return the nearest-rank percentile of unsorted `values`: the smallest one that at least `q` of them do not exceed."""
    rank = max(int(np.ceil(q * len(values))) - 1, 0)
    return int(np.partition(values, rank)[rank])
