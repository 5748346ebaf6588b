"""Aggregations over the elements of an instant vector."""

from __future__ import annotations

import math
from collections.abc import Sequence

from heptascope.model import Labels
from heptascope.rules.promql_floats import NAN, compensated_sum, mean, quantile, running_mean, square_root
from heptascope.rules.promql_model import ByMode, EvaluationError, Pass, Projection, Reduction, ScalarRun, Vector, VectorRun

_INT64 = 2.0**63


def _plain_sum(values: Sequence[float]) -> float:
    # Not the built-in `sum`, which compensates from Python 3.12 on.
    total = 0.0
    for value in values:
        total += value
    return total


def _sum(values: Sequence[float]) -> float:
    total, error = compensated_sum(values)
    return total + error


def _minimum(values: Sequence[float]) -> float:
    return min((value for value in values if value == value), default=NAN)


def _maximum(values: Sequence[float]) -> float:
    return max((value for value in values if value == value), default=NAN)


def _plain_deviation(values: Sequence[float]) -> float:
    """Return the population standard deviation by Welford's method; a single value, even an infinity, gives 0."""
    centre, squares = values[0], 0.0
    for count, value in enumerate(values[1:], 2):
        delta = value - centre
        centre += delta / count
        squares += delta * (value - centre)
    return square_root(squares / len(values))


def _deviation(values: Sequence[float]) -> float:
    return _plain_deviation(values) if math.isfinite(values[0]) else NAN


AGGREGATIONS: dict[str, Reduction | ByMode] = {
    "sum": ByMode(_plain_sum, _sum),
    "avg": ByMode(running_mean, mean),
    "min": _minimum,
    "max": _maximum,
    "count": lambda values: float(len(values)),
    "group": lambda _: 1.0,
    "stddev": ByMode(_plain_deviation, _deviation),
}


def aggregate(vector: VectorRun, function: Reduction | ByMode, group: Projection) -> VectorRun:
    """Return the run of an aggregation whose groups are what `group` keeps of the labels."""
    before, now = function if isinstance(function, ByMode) else (function, function)

    def run(this: Pass) -> Vector:
        reduce = now if this.left_open else before
        return [(labels, "", reduce(values)) for labels, values in _groups(vector(this), group).items()]

    return run


def aggregate_quantile(vector: VectorRun, q: ScalarRun, group: Projection) -> VectorRun:
    """Return the run of `quantile`."""

    def run(this: Pass) -> Vector:
        level = q(this)
        return [(labels, "", quantile(level, values)) for labels, values in _groups(vector(this), group).items()]

    return run


def _groups(vector: Vector, group: Projection) -> dict[Labels, list[float]]:
    groups: dict[Labels, list[float]] = {}
    for pairs, _, value in vector:
        key = group[pairs]
        if key in groups:
            groups[key].append(value)
        else:
            groups[key] = [value]
    return groups


def select_extremes(vector: VectorRun, count: ScalarRun, group: Projection, *, largest: bool) -> VectorRun:
    """Return the run of `topk` (largest) or `bottomk`: elements with all their labels, best first, NaN last.

    Of equal values the first ones in the window's order win; Prometheus promises no order.
    """
    sign = -1.0 if largest else 1.0

    def run(this: Pass) -> Vector:
        wanted = count(this)
        elements = vector(this)
        if not -_INT64 <= wanted < _INT64:
            raise EvaluationError(f"the number of elements to select is {wanted}")
        groups: dict[Labels, Vector] = {}
        for element in elements:
            groups.setdefault(group[element[0]], []).append(element)
        result: Vector = []
        for members in groups.values():
            members.sort(key=lambda element: (element[2] != element[2], sign * element[2]))
            result += members[: max(0, int(wanted))]
        return result

    return run
