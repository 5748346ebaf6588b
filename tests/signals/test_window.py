"""The history: bounded in time and number, with staleness as Prometheus has it."""

from __future__ import annotations

import math

import pytest

from heptascope.model import labels
from heptascope.signals.window import STALE, Series, Window
from support.feeding import RANK, START

NAME = "heptascope_engine_requests_running"
OTHER = labels(engine="vllm", rank="1")


def filled(window: Window, *points: tuple[float, float]) -> Series:
    """Return the series after these points, seconds after START."""
    for second, value in points:
        window.append(NAME, RANK, START + second, value)
    found = window.get(NAME, RANK)
    assert found is not None
    return found


def test_points_are_kept_in_order() -> None:
    """A series is its times and values."""
    found = filled(Window(), (0, 1.0), (1, 2.0))
    assert ([START, START + 1], [1.0, 2.0]) == (list(found.t), list(found.v))


@pytest.mark.parametrize("second", [1.0, 0.5])
def test_a_point_that_is_not_newer_is_dropped(second: float) -> None:
    """Time does not stand still and does not go back; the first value of a moment stays."""
    found = filled(Window(), (0, 1.0), (1, 2.0), (second, 9.0))
    assert [1.0, 2.0] == list(found.v)


def test_history_is_bounded_in_time() -> None:
    """Points older than the retention go, in batches."""
    found = filled(Window(retention=60), *((float(second), 0.0) for second in range(300)))
    assert 60 <= len(found.t) <= 60 + 64
    assert START + 299 == found.t[-1]


def test_series_are_bounded_in_number() -> None:
    """A new series beyond the bound is refused and counted; the others go on."""
    window = Window(max_series=1)
    filled(window, (0, 1.0))
    window.append(NAME, OTHER, START, 5.0)
    assert (None, 1) == (window.get(NAME, OTHER), window.refused)
    assert 2 == len(filled(window, (1, 2.0)).t)


def test_a_forgotten_series_makes_room() -> None:
    """Series that ended longer ago than the retention are forgotten, and others may come."""
    window = Window(retention=60, max_series=1)
    filled(window, (0, 1.0))
    window.mark_stale(NAME, RANK, START + 1)
    window.drop_ended(START + 50)
    assert None is not window.get(NAME, RANK)
    window.drop_ended(START + 62)
    window.append(NAME, OTHER, START + 62, 5.0)
    assert (None, 0) == (window.get(NAME, RANK), window.refused)
    assert [OTHER] == [s.pairs for s in window.series(NAME)]


def test_a_marker_ends_a_series() -> None:
    """An ended series is not live, and an instant query after its end sees nothing."""
    window = Window()
    found = filled(window, (0, 1.0))
    assert found.live
    window.mark_stale(NAME, RANK, START + 5)
    assert (False, 1.0, None) == (found.live, found.at(START + 4.9, 300), found.at(START + 5, 300))


def test_a_marker_never_replaces_a_value() -> None:
    """A series that ends at the time of its last value keeps it: the marker comes just after."""
    window = Window()
    found = filled(window, (0, 1.0))
    window.mark_stale(NAME, RANK, START)
    assert (2, 1.0) == (len(found.v), found.v[0])
    assert START < found.t[1] < START + 1e-3


def test_what_has_ended_or_never_was_needs_no_marker() -> None:
    """A second marker, and one for an unknown series, add nothing."""
    window = Window()
    found = filled(window, (0, 1.0), (1, STALE))
    window.mark_stale(NAME, RANK, START + 2)
    window.mark_stale(NAME, OTHER, START + 2)
    assert (2, None) == (len(found.t), window.get(NAME, OTHER))


@pytest.mark.parametrize(
    ("t", "lookback", "value"),
    [(0.0, 300, 1.0), (0.9, 300, 1.0), (1.0, 300, 2.0), (-0.1, 300, None), (301.0, 300, None), (300.9, 300, 2.0)],
)
def test_what_an_instant_query_sees(t: float, lookback: float, value: float | None) -> None:
    """The last point in the look-back, which is open on the left."""
    assert value == filled(Window(), (0, 1.0), (1, 2.0)).at(START + t, lookback)


def test_the_shape_changes_with_the_set_of_live_series() -> None:
    """`shape` grows when a series begins, ends, comes back or is forgotten, and not with a new value."""
    window = Window(retention=60)
    shapes = [window.shape]
    filled(window, (0, 1.0))
    shapes.append(window.shape)
    filled(window, (1, 2.0))
    assert shapes[-1] == window.shape
    for second, value in ((2, STALE), (3, 1.0), (4, STALE)):
        filled(window, (second, value))
        shapes.append(window.shape)
    window.drop_ended(START + 100)
    shapes.append(window.shape)
    assert sorted(set(shapes)) == shapes


def test_memory_is_counted() -> None:
    """Two doubles a point."""
    window = Window()
    filled(window, *((float(second), 0.0) for second in range(10)))
    assert (160, [NAME]) == (window.nbytes(), window.names())


def test_an_empty_series_is_not_live() -> None:
    """Nothing in it is no value."""
    assert not Series(NAME, RANK).live
    assert math.isnan(STALE)
