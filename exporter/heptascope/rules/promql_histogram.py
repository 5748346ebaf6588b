"""`histogram_quantile` over classic histograms: series that share all labels but `le`."""

from __future__ import annotations

import re

from heptascope.model import Labels
from heptascope.rules.promql_floats import INFINITY, NAN
from heptascope.rules.promql_model import Pass, ScalarRun, Vector, VectorRun, distinct

_TOLERANCE = 1e-12  # of the sum of two counts; Prometheus 3 takes smaller differences between buckets for rounding
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)
_KEEP = 4096  # label sets that are remembered before the memory starts anew

Buckets = list[tuple[float, float]]
"""Upper bound and cumulative count."""


class _Bounds(dict[Labels, tuple[Labels, float | None]]):
    """Labels of a bucket to the labels of its histogram and the upper bound (None: no number)."""

    def __missing__(self, pairs: Labels) -> tuple[Labels, float | None]:
        if len(self) >= _KEEP:
            self.clear()
        text = next((value for label, value in pairs if label == "le"), "")
        bound = float(text) if _NUMBER.fullmatch(text) else None
        self[pairs] = found = tuple(pair for pair in pairs if pair[0] != "le"), bound
        return found


def histogram_quantile(q: ScalarRun, buckets: VectorRun, mixed: bool) -> VectorRun:
    """Return the run of `histogram_quantile`; series whose `le` is no number are left out."""
    bounds = _Bounds()

    def run(this: Pass) -> Vector:
        level = q(this)
        histograms: dict[tuple[Labels, str], Buckets] = {}
        for pairs, name, count in buckets(this):
            rest, bound = bounds[pairs]
            if bound is not None:
                histograms.setdefault((rest, name), []).append((bound, count))
        tolerance = _TOLERANCE if this.left_open else 0.0
        result: Vector = [(rest, "", bucket_quantile(level, found, tolerance)) for (rest, _), found in histograms.items()]
        return distinct(result) if mixed else result

    return run


def bucket_quantile(q: float, buckets: Buckets, tolerance: float) -> float:
    """Return the `q` quantile of one histogram, linear inside a bucket.

    NaN without a +Inf bucket, without a second one, or without observations; -Inf for q below 0, +Inf for q
    above 1. The first bucket starts at 0 if its bound is positive, else its bound is the answer; a quantile in
    the +Inf bucket is the bound below it. Counts that decrease are lifted to the count before.
    """
    if q != q:
        return NAN
    if not 0 <= q <= 1:
        return -INFINITY if q < 0 else INFINITY
    bounds, counts = _merged(buckets)
    if bounds[-1] != INFINITY or len(bounds) < 2:
        return NAN
    _lift(counts, tolerance)
    if counts[-1] == 0:
        return NAN
    return _interpolate(q * counts[-1], bounds, counts)


def _merged(buckets: Buckets) -> tuple[list[float], list[float]]:
    """Return bounds and counts in order; buckets with the same bound are added up."""
    bounds: list[float] = []
    counts: list[float] = []
    for bound, count in sorted(buckets, key=lambda bucket: bucket[0]):
        if bounds and bounds[-1] == bound:
            counts[-1] += count
        else:
            bounds.append(bound)
            counts.append(count)
    return bounds, counts


def _lift(counts: list[float], tolerance: float) -> None:
    previous = counts[0]
    for index, count in enumerate(counts):
        if count < previous or abs(count - previous) < tolerance * (abs(count) + abs(previous)):
            counts[index] = previous
        else:
            previous = count


def _interpolate(rank: float, bounds: list[float], counts: list[float]) -> float:
    index = next((i for i, count in enumerate(counts[:-1]) if count >= rank), len(counts) - 1)
    if index == len(counts) - 1:
        return bounds[-2]
    if index == 0:
        if bounds[0] <= 0:
            return bounds[0]
        return bounds[0] * (rank / counts[0]) if counts[0] else NAN
    start, below = bounds[index - 1], counts[index - 1]
    return start + (bounds[index] - start) * ((rank - below) / (counts[index] - below))
