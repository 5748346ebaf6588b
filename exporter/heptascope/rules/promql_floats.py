"""Floating-point arithmetic with the results that Go gives: IEEE 754 throughout, no exceptions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

NAN, INFINITY = math.nan, math.inf


def divide(x: float, y: float) -> float:
    """Return x / y; a zero divisor gives an infinity, or NaN for 0 / 0."""
    if y != 0:
        return x / y
    if x == 0 or x != x:
        return NAN
    return math.copysign(INFINITY, x) * math.copysign(1.0, y)


def modulo(x: float, y: float) -> float:
    """Return the remainder with the sign of `x`; NaN for a zero divisor or an infinite dividend."""
    try:
        return math.fmod(x, y)
    except ValueError:
        return NAN


def power(x: float, y: float) -> float:
    """Return x ** y with IEEE results for overflow, zero to a negative power, and negative bases."""
    odd = abs(y) < 2.0**53 and y % 2 == 1
    try:
        return math.pow(x, y)
    except OverflowError:
        return -INFINITY if x < 0 and odd else INFINITY
    except ValueError:
        if x != 0:
            return NAN
        return math.copysign(INFINITY, x) if odd else INFINITY


def floor(x: float) -> float:
    """Return the largest integer value that is not above `x`."""
    return math.copysign(float(math.floor(x)), x) if math.isfinite(x) else x


def ceil(x: float) -> float:
    """Return the smallest integer value that is not below `x`."""
    return math.copysign(float(math.ceil(x)), x) if math.isfinite(x) else x


def sign(x: float) -> float:
    """Return -1 or 1, or `x` itself for zeros and NaN."""
    return -1.0 if x < 0 else 1.0 if x > 0 else x


def square_root(x: float) -> float:
    """Return the square root; NaN below zero."""
    return math.sqrt(x) if x >= 0 else NAN


def exponential(x: float) -> float:
    """Return e ** x; +Inf on overflow."""
    try:
        return math.exp(x)
    except OverflowError:
        return INFINITY


def logarithm(function: Callable[[float], float]) -> Callable[[float], float]:
    """Return math.log, log2 or log10 (`function`) with -Inf at zero and NaN below."""

    def run(x: float) -> float:
        if x > 0:
            return function(x)
        return -INFINITY if x == 0 else NAN

    return run


def minimum(x: float, y: float) -> float:
    """Return the smaller one; NaN if either is, unless the other is -Inf."""
    if -INFINITY in (x, y):
        return -INFINITY
    return NAN if x != x or y != y else min(x, y)


def maximum(x: float, y: float) -> float:
    """Return the larger one; NaN if either is, unless the other is +Inf."""
    if INFINITY in (x, y):
        return INFINITY
    return NAN if x != x or y != y else max(x, y)


def compensated_sum(values: Sequence[float]) -> tuple[float, float]:
    """Return the sum and its rounding error: what Kahan's method in Neumaier's variant gives (as in Prometheus 3).

    Each step's error is taken by Knuth's two-sum, which finds the same value without a branch.
    """
    total = error = 0.0
    for value in values:
        new = total + value
        shift = new - total
        error += (total - (new - shift)) + (value - shift)
        total = new
    return (total, error) if error == error else _sum_with_infinities(values)


def _sum_with_infinities(values: Iterable[float]) -> tuple[float, float]:
    total = error = 0.0
    for value in values:
        new = total + value
        if math.isinf(new):
            error = 0.0
        else:
            larger, smaller = (total, value) if abs(total) >= abs(value) else (value, total)
            error += (larger - new) + smaller
        total = new
    return total, error


def running_mean(values: Iterable[float]) -> float:
    """Return the mean, updated value by value so that no sum can overflow (as in Prometheus 2)."""
    mean = 0.0
    for count, value in enumerate(values, 1):
        # An infinite mean stays what it is, except that NaN and the opposite infinity turn it into NaN.
        if math.isinf(mean) and (value == mean or math.isfinite(value)):
            continue
        mean += value / count - mean / count
    return mean


def mean(values: Sequence[float]) -> float:
    """Return the mean from the compensated sum; the running mean if that sum overflows (as in Prometheus 3)."""
    total, error = compensated_sum(values)
    if math.isinf(total):
        return running_mean(values)
    return total / len(values) + error / len(values)


def quantile(q: float, values: Iterable[float]) -> float:
    """Return the `q` quantile, linear between neighbours; NaN counts as the smallest value.

    NaN for no values or q NaN, -Inf for q below 0, +Inf for q above 1.
    """
    ordered = sorted(values, key=lambda value: (value == value, value))
    if not ordered or q != q:
        return NAN
    if not 0 <= q <= 1:
        return -INFINITY if q < 0 else INFINITY
    rank = q * (len(ordered) - 1)
    lower = math.floor(rank)
    weight = rank - lower
    return ordered[lower] * (1 - weight) + ordered[min(lower + 1, len(ordered) - 1)] * weight


def round_microseconds(seconds: float) -> float:
    """Return a difference of two Unix times rounded to microseconds.

    Such times are good to a quarter of a microsecond as floats. For times in whole milliseconds the rounding
    gives back the exact difference, which is what Prometheus computes with.
    """
    return round(seconds * 1e6) / 1e6
