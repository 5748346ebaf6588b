"""Growth, means and extremes of series over the last seconds: what derivation is made of."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import isinf
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
    return series.t[start:].tolist(), series.v[start:].tolist()


def change(series: Series | None, now: float, span: float) -> float:
    """Return by how much a series is higher at the end of [now - span, now] than at its start; 0 if it has ended."""
    if series is None or not series.live:
        return 0.0
    start = bisect_left(series.t, now - span - _EDGE)
    return series.v[-1] - series.v[start] if start < len(series.v) else 0.0


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


def quantile(q: float, bounds: Sequence[float], counts: Sequence[float]) -> float | None:
    """Return the `q` quantile of cumulative buckets as Prometheus estimates it; None without observations.

    Linear inside the bucket; the highest finite bound where the quantile lies beyond it.
    """
    total = counts[-1] if counts else 0.0
    if total <= 0:
        return None
    rank = q * total
    at = next(i for i, count in enumerate(counts) if count >= rank)
    if isinf(bounds[at]):
        return bounds[at - 1] if at else None
    low, below = (bounds[at - 1], counts[at - 1]) if at else (min(0.0, bounds[0]), 0.0)
    inside = counts[at] - below
    return bounds[at] if inside <= 0 else low + (bounds[at] - low) * (rank - below) / inside
