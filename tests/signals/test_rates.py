"""Growth, means and shares over the last seconds of a series."""

from __future__ import annotations

import math

import pytest

from heptascope.signals.rates import Growth, Share, growth, mean, points, quantile, share_positive
from heptascope.signals.window import Series
from support.feeding import RANK, START

NAN = math.nan


def made(*values: float, every: float = 1.0) -> Series:
    """Return a series with a point every so many seconds from START on."""
    found = Series("x", RANK)
    for i, value in enumerate(values):
        found.t.append(START + i * every)
        found.v.append(value)
    return found


def at(second: float) -> float:
    """Return the time of a second."""
    return START + second


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((0.0, 10.0, 30.0), Growth(30.0, 2.0)),
        ((100.0, 130.0, 20.0), Growth(50.0, 2.0)),
        ((5.0, NAN, 9.0), Growth(4.0, 2.0)),
        ((5.0, NAN, 2.0), Growth(2.0, 2.0)),
        ((NAN, 5.0, 9.0), Growth(4.0, 1.0)),
        ((5.0, 5.0), Growth(0.0, 1.0)),
        ((5.0,), None),
        ((NAN, 5.0), None),
        ((5.0, 6.0, NAN), None),
        ((), None),
    ],
)
def test_growth(values: tuple[float, ...], expected: Growth | None) -> None:
    """A counter's growth: a fall counts as a restart from 0, an ended series has none, nor has a single point."""
    assert expected == growth(made(*values), at(len(values) - 1), 10.0)


def test_growth_is_over_the_window_alone() -> None:
    """Points before the window do not count; its left edge does."""
    assert Growth(20.0, 2.0) == growth(made(0.0, 10.0, 20.0, 30.0, 40.0), at(4), 2.0)
    assert 10.0 == Growth(20.0, 2.0).per_second


def test_nothing_has_no_growth() -> None:
    """A series that there is not has no growth, no mean, no share and no points."""
    assert (None, None, None, ([], [])) == (
        growth(None, at(0), 1.0),
        mean(None, at(0), 1.0),
        share_positive(None, at(0), 1.0),
        points(None, at(0), 1.0),
    )


def test_a_restart_between_two_polls() -> None:
    """What a counter shows after a restart was added since, whatever was lost before it."""
    assert Growth(10.0, 2.0) == growth(made(1000.0, 1000.0, 10.0), at(2), 10.0)


@pytest.mark.parametrize(("values", "expected"), [((1.0, 2.0, 3.0), 2.0), ((1.0, NAN, 3.0), 2.0), ((1.0, NAN), None), ((), None)])
def test_mean(values: tuple[float, ...], expected: float | None) -> None:
    """A gauge's mean over its points; an ended series has none."""
    assert expected == mean(made(*values), at(len(values) - 1), 10.0)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((1.0, 1.0, 1.0), Share(1.0, 1.0)),
        ((0.0, 0.0, 0.0), Share(0.0, 0.0)),
        ((1.0, 0.0, 1.0), Share(0.5, 0.0)),
        ((0.0, 3.0, 2.0, 0.0, 0.0), Share(0.5, 0.25)),
        ((1.0,), None),
        ((1.0, NAN, 1.0, 1.0), Share(1.0, 1.0)),
    ],
)
def test_share_positive(values: tuple[float, ...], expected: Share | None) -> None:
    """Between a 0 and a positive poll half of the time is likely, and none of it is sure; gaps are not covered."""
    assert expected == share_positive(made(*values), at(len(values) - 1), 10.0)


def test_the_share_weighs_time_not_polls() -> None:
    """Polls that come late weigh as long as they stand for."""
    found = made(1.0, 1.0, 0.0)
    found.t[2] = at(4)
    assert Share(2.5 / 4, 0.25) == share_positive(found, at(4), 10.0)


@pytest.mark.parametrize(
    ("q", "counts", "expected"),
    [
        (0.5, {1.0: 10, 2.0: 20, math.inf: 20}, 1.0),
        (0.75, {1.0: 10, 2.0: 20, math.inf: 20}, 1.5),
        (0.95, {1.0: 0, 2.0: 90, math.inf: 100}, 2.0),
        (0.25, {1.0: 10, math.inf: 10}, 0.25),
        (0.5, {1.0: 0, 2.0: 0, math.inf: 0}, None),
        (0.5, {math.inf: 4}, None),
        (0.75, {0.1: 40, 0.2: 60, math.inf: 60}, 0.125),
        (0.99, {0.1: 1, math.inf: 100}, 0.1),
        (0.5, {}, None),
    ],
)
def test_quantile_is_the_one_of_prometheus(q: float, counts: dict[float, float], expected: float | None) -> None:
    """Linear within a bucket; the last finite bound where the rank lies above it; None without counts or where only +Inf has any."""
    assert (None if expected is None else pytest.approx(expected)) == quantile(q, list(counts), list(counts.values()))
