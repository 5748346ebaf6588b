"""Selectors: from the series of the window to instant and range vectors at one time."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from heptascope.model import Labels
from heptascope.rules.promql_model import Pass, SelectorInfo, Vector, VectorRun, label_test
from heptascope.signals.window import Series

LOOKBACK_SECONDS = 300.0  # Prometheus' default for --query.lookback-delta


class Points(NamedTuple):
    """The points of one series inside a range, staleness markers left out; there is at least one."""

    pairs: Labels
    times: Sequence[float]
    values: list[float]


class Span(NamedTuple):
    """The two ends of a range (Unix seconds) and its length as written (seconds)."""

    start: float
    end: float
    seconds: float


RangeRun = Callable[[Pass], tuple[Span, list[Points]]]


def _matching(run: Pass, info: SelectorInfo) -> Iterator[Series]:
    test = label_test(info.matchers)
    if test is None:
        return run.window.series(info.metric)
    return (series for series in run.window.series(info.metric) if test(series.labels))


def _before(t: float, seconds: float) -> float:
    """Return t - seconds; exact if `t` is in whole milliseconds."""
    # Unix times are multiples of 2**-22 as floats, so eighths of a second subtract without rounding.
    return t - seconds if seconds % 0.125 == 0 else round(t - seconds, 6)


def _newest(run: Pass, info: SelectorInfo) -> Iterator[tuple[Series, int]]:
    """Yield the selected series that have a value at the time, with the index of that value."""
    offset = info.offset or 0.0
    end, start = _before(run.t, offset), _before(run.t, offset + LOOKBACK_SECONDS)
    left_open = run.left_open
    for series in _matching(run, info):
        times = series.t
        last = len(times) - 1
        index = last if last >= 0 and times[last] <= end else bisect_right(times, end) - 1
        if index < 0 or times[index] < start or (left_open and times[index] == start):
            continue
        value = series.v[index]
        if value == value:
            yield series, index


def instant_selector(info: SelectorInfo) -> VectorRun:
    """Return the run of an instant selector: per series the newest value of the last five minutes, unless it has ended."""
    name = info.metric

    def run(this: Pass) -> Vector:
        return [(series.pairs, name, series.v[index]) for series, index in _newest(this, info)]

    return run


def timestamp_selector(info: SelectorInfo) -> VectorRun:
    """Return the run of `timestamp(selector)`: the times of the selected points, Unix seconds."""

    def run(this: Pass) -> Vector:
        return [(series.pairs, "", series.t[index]) for series, index in _newest(this, info)]

    return run


def range_selector(info: SelectorInfo) -> RangeRun:
    """Return the run of a range selector: the points in (t - range, t], in 2.x [t - range, t], of every series that has any."""
    seconds = info.range or 0.0
    offset = info.offset or 0.0

    def run(this: Pass) -> tuple[Span, list[Points]]:
        end, start = _before(this.t, offset), _before(this.t, offset + seconds)
        first = bisect_right if this.left_open else bisect_left
        found = []
        for series in _matching(this, info):
            times = series.t
            last = len(times)
            if last and times[last - 1] > end:
                last = bisect_right(times, end)
            if not last or times[last - 1] < start:
                continue
            points = _points(series, first(times, start, 0, last), last)
            if points is not None:
                found.append(points)
        return Span(start, end, seconds), found

    return run


def _points(series: Series, first: int, last: int) -> Points | None:
    times, values = series.t[first:last], series.v[first:last].tolist()
    total = sum(values)
    if total != total:
        # A sum is NaN through a staleness marker, or through opposite infinities, which the filter keeps.
        kept = [(t, v) for t, v in zip(times, values, strict=True) if v == v]
        times, values = array("d", [t for t, _ in kept]), [v for _, v in kept]
    return Points(series.pairs, times, values) if values else None
