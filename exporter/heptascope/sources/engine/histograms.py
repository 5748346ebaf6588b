"""From a family's samples to histograms. What its series mean is worked out once; from page to page only the values change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import inf, isfinite
from typing import NamedTuple

from heptascope.sources.engine.page import Series


class Place(NamedTuple):
    """Where a value belongs: rank, our other labels, and which part of the series it is."""

    rank: str
    extra: tuple[tuple[str, str], ...]
    part: str


class Found(NamedTuple):
    """One histogram of a page as it stands there, or what is `wrong` with it."""

    place: Place
    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    sum: float
    wrong: str


class _Shape(NamedTuple):
    """Which of a family's values make one histogram."""

    place: Place
    bounds: tuple[float, ...]
    at: tuple[int, ...]
    sum_at: int | None
    wrong: str


class Plan:
    """How the samples of one family become histograms, for as long as the page shows the same series in the same order."""

    def __init__(self, series: Sequence[Series], place: Callable[[Series], Place | None]) -> None:
        """`place` says where a series belongs, None if it is not wanted."""
        self._series = list(series)
        self.repeats = 0
        buckets: dict[Place, dict[float, int]] = {}
        sums: dict[Place, int] = {}
        for index, one in enumerate(series):
            where = place(one)
            if where is not None and one.suffix == "_bucket":
                slots, bound = buckets.setdefault(where, {}), _bound(one)
                self.repeats += bound in slots  # of two with the same labels the first counts
                slots.setdefault(bound, index)
            elif where is not None and one.suffix == "_sum":
                self.repeats += where in sums
                sums.setdefault(where, index)
        self._shapes = [_shape(where, buckets.get(where, {}), sums.get(where)) for where in buckets | sums]

    def fits(self, series: Sequence[Series]) -> bool:
        """Return whether these are the series that the plan was made for."""
        return self._series == series

    def read(self, values: Sequence[float]) -> Iterator[Found]:
        """Yield the histograms of a page; `values` are those of the series, in their order."""
        for place, bounds, at, sum_at, wrong in self._shapes:
            counts = tuple([values[index] for index in at])
            total = values[sum_at] if sum_at is not None else None
            found = wrong or _wrong_sum(total) or _wrong_counts(counts)
            yield Found(place, bounds, counts, total or 0.0, found)


def _shape(place: Place, slots: dict[float, int], sum_at: int | None) -> _Shape:
    bounds = tuple(sorted(slots))
    whole = bool(bounds) and bounds[-1] == inf and all(b == b for b in bounds)
    return _Shape(
        place, bounds, tuple(slots[b] for b in bounds), sum_at, "" if whole else "has no +Inf bucket, or bounds that are no numbers"
    )


def _bound(series: Series) -> float:
    try:
        return float(series.labels.get("le", "nan"))
    except ValueError:
        return float("nan")


def _wrong_sum(total: float | None) -> str:
    return f"has the sum {total}" if total is None or not isfinite(total) or total < 0 else ""


def _wrong_counts(counts: Sequence[float]) -> str:
    if isfinite(sum(counts)) and counts[0] >= 0 and sorted(counts) == list(counts):
        return ""
    if not all(isfinite(c) and c >= 0 for c in counts):
        return "has a bucket that is no count"
    return "has buckets that fall" if any(later < earlier for earlier, later in pairwise(counts)) else ""
