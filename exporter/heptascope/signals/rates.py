"""Growth, means and extremes of series over the last seconds: what derivation is made of."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from math import inf
from typing import NamedTuple

from heptascope.signals.window import Series

_EDGE = 1e-6


class Growth(NamedTuple):
    """How much a counter grew, over how many seconds."""

    amount: float
    seconds: float

    @property
    def per_second(self) -> float:
        """The rate."""
        return self.amount / self.seconds


def points(series: Series | None, now: float, span: float) -> tuple[list[float], list[float]]:
    """Return times and values within [now - span, now]; empty if the series has ended."""
    if series is None or not series.live:
        return [], []
    start = bisect_left(series.t, now - span - _EDGE)
    return list(series.t[start:]), list(series.v[start:])


def growth(series: Series | None, now: float, span: float) -> Growth | None:
    """Return a counter's growth; a fall counts as a restart from 0. None with fewer than two points."""
    times, values = points(series, now, span)
    amount, last, first_t = 0.0, None, 0.0
    for t, value in zip(times, values, strict=True):
        if value != value:
            continue
        if last is None:
            first_t = t
        else:
            amount += value - last if value >= last else value
        last = value
    if last is None or times[-1] <= first_t:
        return None
    return Growth(amount, times[-1] - first_t)


def mean(series: Series | None, now: float, span: float) -> float | None:
    """Return the mean of a gauge's points, or None without any."""
    values = [v for v in points(series, now, span)[1] if v == v]
    return sum(values) / len(values) if values else None


class Share(NamedTuple):
    """For what share of the time covered a gauge was above 0.

    `likely` counts half of the time between a 0 and a positive point, `least` none of it.
    """

    likely: float
    least: float


def share_positive(series: Series | None, now: float, span: float) -> Share | None:
    """Return the share of time for which a gauge was above 0; None with fewer than two points."""
    times, values = points(series, now, span)
    likely = least = covered = 0.0
    for i in range(1, len(times)):
        if values[i] != values[i] or values[i - 1] != values[i - 1]:
            continue
        step = times[i] - times[i - 1]
        ends = (values[i] > 0) + (values[i - 1] > 0)
        covered, likely, least = covered + step, likely + step * ends / 2, least + step * (ends == 2)
    return Share(likely / covered, least / covered) if covered > 0 else None


def quantile(q: float, counts: Mapping[float, float]) -> float | None:
    """Return a quantile of cumulative counts by upper bound, as Prometheus estimates it.

    Linear within a bucket; the last finite bound where the rank lies above it; None without counts or without an infinite bound.
    """
    bounds = sorted(counts)
    if len(bounds) < 2 or bounds[-1] != inf or counts[inf] <= 0:
        return None
    rank = q * counts[inf]
    at = next(i for i, bound in enumerate(bounds) if counts[bound] >= rank)
    if bounds[at] == inf:
        return bounds[-2]
    low, below = (bounds[at - 1], counts[bounds[at - 1]]) if at else (min(bounds[0], 0.0), 0.0)
    inside = counts[bounds[at]] - below
    return low + (bounds[at] - low) * ((rank - below) / inside if inside > 0 else 1.0)
