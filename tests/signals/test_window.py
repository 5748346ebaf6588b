"""The history: bounded in time and number, with staleness as Prometheus has it."""

from __future__ import annotations

import math

import pytest

from heptascope.model import labels
from heptascope.signals.window import STALE, Group, Series, Window
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


PAIR = (("b_bucket", RANK), ("b_sum", RANK))


def grouped(window: Window, *points: tuple[float, tuple[float, float]]) -> Group:
    """Return the group of two series after these points, seconds after START."""
    group = window.group(PAIR)
    assert group is not None
    for second, values in points:
        window.append_group(group, START + second, values)
    return group


def stored(window: Window, name: str) -> tuple[list[float], list[float]]:
    """Return the times, in seconds after START, and the values of one of the group's series."""
    found = window.get(name, RANK)
    assert found is not None
    return [t - START for t in found.t], list(found.v)


def test_a_group_is_series_that_share_their_times() -> None:
    """They read as any others; a moment that is not newer is dropped; memory counts the times once."""
    window = Window()
    group = grouped(window, (0, (1.0, 2.0)), (1, (3.0, 4.0)), (1, (9.0, 9.0)))
    assert (([0, 1], [1.0, 3.0]), ([0, 1], [2.0, 4.0])) == (stored(window, "b_bucket"), stored(window, "b_sum"))
    assert (8 * 6, True) == (window.nbytes(), all(one.t is group.t for one in group.series))


def test_a_group_is_bounded_in_time() -> None:
    """Its times are cut once, and its values with them."""
    window = Window(retention=60)
    grouped(window, *((float(second), (second, -second)) for second in range(300)))
    times, values = stored(window, "b_sum")
    assert 60 <= len(times) <= 60 + 64
    assert times == [-value for value in values]


def test_a_group_ends_and_goes_on_as_one() -> None:
    """A marker ends all of its series, once; later values revive them; the shape tells of both."""
    window = Window()
    group = grouped(window, (0, (1.0, 2.0)))
    shapes = [window.shape]
    for act in (lambda: window.mark_group_stale(group, START), lambda: window.append_group(group, START + 2, (5.0, 6.0))):
        act()
        shapes.append(window.shape)
    assert [1.0, 5.0] == [v for v in stored(window, "b_bucket")[1] if v == v]
    assert (3, sorted(set(shapes))) == (len(group.t), shapes)
    for _ in range(2):
        window.mark_group_stale(group, START + 3)
    assert (4, False) == (len(group.t), any(one.live for one in group.series))


def test_a_group_of_known_or_too_many_series_is_none() -> None:
    """What is there already has its own past, and the bound holds for all."""
    window = Window(max_series=2)
    window.append(*PAIR[0], START, 1.0)
    assert (None, None) == (window.group(PAIR), window.group((("c", RANK), ("d", RANK))))
    assert ["b_bucket"] == window.names()


def test_a_point_for_one_takes_a_group_apart() -> None:
    """The others keep their past, and the group takes nothing any more."""
    window = Window()
    group = grouped(window, (0, (1.0, 2.0)))
    window.append(*PAIR[0], START + 1, 7.0)
    window.append_group(group, START + 2, (8.0, 9.0))
    assert (([0, 1], [1.0, 7.0]), ([0], [2.0])) == (stored(window, "b_bucket"), stored(window, "b_sum"))
    assert () == group.series


def test_a_group_that_ended_long_ago_is_forgotten() -> None:
    """It makes room for others, and may come back as another group."""
    window = Window(retention=60, max_series=2)
    group = grouped(window, (0, (1.0, 2.0)))
    window.mark_group_stale(group, START + 1)
    window.drop_ended(START + 62)
    assert (None, ()) == (window.get(*PAIR[0]), group.series)
    assert window.group(PAIR) is not None
