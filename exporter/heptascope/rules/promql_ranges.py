"""Functions over range vectors: rates with extrapolation, and everything `_over_time`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from heptascope.rules.promql_floats import (
    INFINITY,
    NAN,
    compensated_sum,
    mean,
    quantile,
    round_microseconds,
    running_mean,
    square_root,
)
from heptascope.rules.promql_model import ByMode, Pass, Reduction, ScalarRun, Vector, VectorRun
from heptascope.rules.promql_selectors import Points, RangeRun, Span

_NEAR = 1.1  # an end of the range within 1.1 mean sample intervals counts as covered


def extrapolated(select: RangeRun, *, counter: bool, per_second: bool) -> VectorRun:
    """Return the run of `rate`, `increase` or `delta`: the change over the range, extended to the ends it nearly reaches."""

    def run(this: Pass) -> Vector:
        span, series = select(this)
        divisor = span.seconds if per_second else 1.0
        result: Vector = []
        for points in series:
            if len(points.values) > 1:
                change, to_zero = _change(points, counter)
                sampled = round_microseconds(points.times[-1] - points.times[0])
                covered = _covered(points.times, span, sampled, sampled * to_zero, this.left_open)
                # Points closer than a microsecond do not happen in practice, and must not raise.
                factor = covered / sampled if sampled else 1.0
                result.append((points.pairs, "", change * (factor / divisor)))
        return result

    return run


def _change(points: Points, counter: bool) -> tuple[float, float]:
    """Return the change with counter resets made up for, and when the counter was 0, in such changes before the first value."""
    values = points.values
    change = values[-1] - values[0]
    if not counter:
        return change, INFINITY
    previous = values[0]
    for value in values:
        if value < previous:
            change += previous
        previous = value
    return change, values[0] / change if change > 0 and values[0] >= 0 else INFINITY


def _covered(times: Sequence[float], span: Span, sampled: float, to_zero: float, prometheus_3: bool) -> float:
    """Return the seconds that the change is taken to cover; a counter was 0 `to_zero` seconds before its first value."""
    between = sampled / (len(times) - 1)
    near = between * _NEAR
    before = round_microseconds(times[0] - span.start)
    after = round_microseconds(span.end - times[-1])
    if not prometheus_3:
        before = min(before, to_zero)
    if before >= near:
        before = between / 2
    if prometheus_3:
        before = min(before, to_zero)
    if after >= near:
        after = between / 2
    return sampled + before + after


def _last_rate(times: Sequence[float], values: Sequence[float]) -> float | None:
    seconds = round_microseconds(times[-1] - times[-2])
    if seconds == 0:
        return None
    previous, last = values[-2], values[-1]
    return (last if last < previous else last - previous) / seconds


def _slope(times: Sequence[float], values: Sequence[float]) -> float | None:
    """Return the least-squares slope per second."""
    if all(value == values[0] for value in values):
        return NAN if math.isinf(values[0]) else 0.0
    start = times[0]
    xs = [round_microseconds(t - start) for t in times]
    count = len(values)
    x, y = _sum(xs), _sum(values)
    xy = _sum([a * b for a, b in zip(xs, values, strict=True)])
    variance = _sum([a * a for a in xs]) - x * x / count
    return (xy - x * y / count) / variance if variance else NAN


STEPS: dict[str, Callable[[Sequence[float], Sequence[float]], float | None]] = {
    "irate": _last_rate,
    "idelta": lambda _, values: values[-1] - values[-2],
    "deriv": _slope,
}
"""Functions of times and values that need two points; None drops the series."""


def _sum(values: Sequence[float]) -> float:
    total, error = compensated_sum(values)
    return total + error


def _deviation(values: Sequence[float]) -> float:
    """Return the population standard deviation, by Welford's method with the rounding errors of both sums kept."""
    centre = centre_error = squares = squares_error = 0.0
    count = 0
    for value in values:
        count += 1
        delta = value - (centre + centre_error)
        step = delta / count
        new = centre + step
        shift = new - centre
        centre_error += (centre - (new - shift)) + (step - shift)
        centre = new
        step = delta * (value - (centre + centre_error))
        new = squares + step
        shift = new - squares
        squares_error += (squares - (new - shift)) + (step - shift)
        squares = new
    return square_root((squares + squares_error) / count)


REDUCTIONS: dict[str, Reduction | ByMode] = {
    "avg_over_time": ByMode(running_mean, mean),
    "changes": lambda values: float(sum(after != before for before, after in pairwise(values))),
    "count_over_time": lambda values: float(len(values)),
    "last_over_time": lambda values: values[-1],
    "max_over_time": max,
    "min_over_time": min,
    "present_over_time": lambda _: 1.0,
    "resets": lambda values: float(sum(after < before for before, after in pairwise(values))),
    "stddev_over_time": _deviation,
    "sum_over_time": _sum,
}
"""Functions of the values alone; a selected range holds no NaN."""


def reduce_range(select: RangeRun, function: Reduction | ByMode, name: str = "") -> VectorRun:
    """Return the run of one of REDUCTIONS; `name` is the name that `last_over_time` keeps."""
    before, now = function if isinstance(function, ByMode) else (function, function)

    def run(this: Pass) -> Vector:
        reduce = now if this.left_open else before
        return [(points.pairs, name, reduce(points.values)) for points in select(this)[1]]

    return run


def step_range(select: RangeRun, function: Callable[[Sequence[float], Sequence[float]], float | None]) -> VectorRun:
    """Return the run of one of STEPS."""

    def run(this: Pass) -> Vector:
        results = [(p.pairs, "", function(p.times, p.values)) for p in select(this)[1] if len(p.values) > 1]
        return [(pairs, name, value) for pairs, name, value in results if value is not None]

    return run


def quantile_over_range(select: RangeRun, q: ScalarRun) -> VectorRun:
    """Return the run of `quantile_over_time`."""

    def run(this: Pass) -> Vector:
        level = q(this)
        return [(points.pairs, "", quantile(level, points.values)) for points in select(this)[1]]

    return run
