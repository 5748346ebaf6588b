"""Reading the history beside its writer."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator

import pytest

from heptascope.model import labels
from heptascope.signals.window import Series, Window
from heptascope.surfaces import history

NAME = "heptascope_engine_steps_total"
PAIRS = labels(engine="vllm", rank="0")


def window_of(*points: tuple[float, float]) -> Window:
    """Return a window with one series."""
    window = Window()
    for t, value in points:
        window.append(NAME, PAIRS, t, value)
    return window


def test_rate_over_the_last_ten_seconds() -> None:
    """Points outside the range do not count; the rate is over the time between the first and the last point inside."""
    window = window_of(*((float(t), 100.0 if t < 90 else 100.0 + 5 * (t - 90)) for t in range(70, 101)))
    assert 5.0 == history.rate(window, NAME, PAIRS, 100.0)


@pytest.mark.parametrize("points", [[], [(99.0, 1.0)], [(50.0, 1.0), (60.0, 2.0)], [(50.0, 1.0), (99.0, 2.0)]])
def test_no_rate_from_fewer_than_two_points(points: list[tuple[float, float]]) -> None:
    """What cannot be told is None."""
    assert history.rate(window_of(*points), NAME, PAIRS, 100.0) is None


def test_rate_across_a_reset() -> None:
    """After a restart of the engine the counter starts anew; its value then is the increase."""
    window = window_of((96.0, 1000.0), (97.0, 1010.0), (98.0, 4.0), (100.0, 10.0))
    assert (10 + 4 + 6) / 4 == history.rate(window, NAME, PAIRS, 100.0)


def test_rate_after_a_gap() -> None:
    """A series that ended and came back is counted from its return."""
    window = window_of((95.0, 10.0), (96.0, 20.0))
    window.mark_stale(NAME, PAIRS, 97.0)
    for t, value in ((98.0, 500.0), (100.0, 504.0)):
        window.append(NAME, PAIRS, t, value)
    assert 2.0 == history.rate(window, NAME, PAIRS, 100.0)


def test_last_points() -> None:
    """The copy holds the newest points, and does not change with the series."""
    window = window_of(*((float(t), t * 2.0) for t in range(10)))
    series = window.get(NAME, PAIRS)
    assert isinstance(series, Series)
    times, values = history.points(series, 3)
    window.append(NAME, PAIRS, 10.0, 20.0)
    assert ([7.0, 8.0, 9.0], [14.0, 16.0, 18.0]) == (list(times), list(values))


def test_the_past_ends_at_its_instant() -> None:
    """Nothing later is seen: a series that began later is empty, one that ended later still lives, and what it copied stands."""
    window = window_of(*((float(t), t * 2.0) for t in range(10)))
    window.mark_stale(NAME, PAIRS, 10.0)
    other = labels(engine="later", rank="0")
    window.append(NAME, other, 8.0, 1.0)
    past = history.Past(window, 5.5)
    series = past.get(NAME, PAIRS)
    assert series is not None
    window.append(NAME, PAIRS, 11.0, 1.0)
    assert ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], 10.0, True) == (list(series.t), series.v[-1], series.live)
    assert [(PAIRS, True), (other, False)] == [(one.pairs, one.live) for one in past.series(NAME)]
    assert past.get("heptascope_unknown", PAIRS) is None


class BusySeries(Series):
    """A series that the writer touches in the middle of a reader's copy: `steps` run one by one, before each look at the values."""

    def __init__(self, steps: list[Callable[[Series], object]]) -> None:
        """Start with ten points."""
        super().__init__(NAME, PAIRS)
        self._steps = steps
        for t in range(10):
            self.t.append(float(t))
            self._values.append(float(t))

    @property
    def v(self) -> array[float]:
        """Let the writer do its next step, then return the values."""
        if self._steps:
            self._steps.pop(0)(self)
        return self._values

    @v.setter
    def v(self, values: array[float]) -> None:
        self._values = values


def only_time(series: Series) -> None:
    """Do the first half of an append."""
    series.t.append(10.0)


def only_value(series: Series) -> None:
    """Do the second half of an append."""
    assert isinstance(series, BusySeries)
    series._values.append(10.0)


def whole_point(series: Series) -> None:
    """Append a point."""
    only_time(series)
    only_value(series)


def nothing(series: Series) -> None:
    """Leave the series alone."""


@pytest.mark.parametrize(
    "steps",
    [[only_time, only_value], [nothing, whole_point], [nothing, only_time, only_value], [nothing, nothing, whole_point]],
    ids=["half a point stands", "point during the copy", "half a point during the copy", "point after the copy"],
)
@pytest.mark.parametrize("most", [None, 3])
def test_a_copy_is_whole(steps: list[Callable[[Series], object]], most: int | None) -> None:
    """Whatever the writer does meanwhile, each time stands beside its own value."""
    times, values = history.points(BusySeries(list(steps)), most)
    assert list(times) == list(values)
    assert (most or 11) == len(times)


@pytest.mark.parametrize("most", [None, 3])
def test_a_time_without_its_value_is_left_out(most: int | None) -> None:
    """While the writer is between a group's time and the values of its last series, the points before it are shown."""
    series = BusySeries([])
    only_time(series)
    times, values = history.points(series, most)
    assert (list(times), 9.0, most or 10) == (list(values), times[-1], len(times))


def test_a_cut_that_is_not_over_gives_nothing() -> None:
    """With the times cut and the values not, nobody knows which belong together."""
    series = BusySeries([])
    del series.t[:4]
    assert ((), ()) == history.points(series)


def test_a_copy_that_never_succeeds_is_empty() -> None:
    """A series that moves at every look gives nothing rather than something wrong."""
    assert ((), ()) == history.points(BusySeries([nothing, whole_point] * 100))


class BusyWindow(Window):
    """A window that gains a series while its series are listed."""

    gains = 1

    def series(self, name: str) -> Iterator[Series]:
        """Yield the series; the first listings are disturbed after the first one."""
        for series in super().series(name):
            yield series
            if self.gains:
                self.gains -= 1
                self.append(name, labels(engine=f"vllm-{self.gains}"), 1.0, 1.0)


@pytest.mark.parametrize(("gains", "expected"), [(0, 1), (1, 2), (1000, 0)])
def test_series_are_listed_beside_the_writer(gains: int, expected: int) -> None:
    """A listing that was disturbed is repeated; one that always is gives nothing."""
    window = BusyWindow()
    window.append(NAME, PAIRS, 1.0, 1.0)
    window.gains = gains
    assert expected == len(history.series_of(window, NAME))
