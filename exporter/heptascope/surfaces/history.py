"""Reading the in-memory history from another thread than the one that writes it.

The writer appends a time and then its value (a group's time once, then a value for each series), and now and then cuts both
at the front. A reader copies what is whole, and copies again if anything moved meanwhile.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from heptascope.model import Labels
from heptascope.signals.window import Series, Window

RATE_SECONDS = 10.0
_TRIES = 20
_RATE_POINTS = 256  # two a second would do; 100 ms sampling needs 100


def series_of(window: Window, name: str) -> list[Series]:
    """Return the series of one name, ended ones included."""
    for _ in range(_TRIES):
        try:
            return list(window.series(name))
        except RuntimeError:  # a series was added during the copy
            continue
    return []


class Past(Window):
    """A window as it stood at an instant: nothing that came later is in it. Reads only."""

    def __init__(self, window: Window, t: float) -> None:
        """Show `window` as it was at `t` (Unix seconds)."""
        super().__init__(window.retention)
        self._whole, self._t = window, t
        self._copies: dict[str, dict[Labels, Series]] = {}

    def series(self, name: str) -> Iterator[Series]:
        """Yield copies of the series of one name, each up to the instant; made once."""
        yield from self._family(name).values()

    def get(self, name: str, pairs: Labels) -> Series | None:
        """Return a copy of one series up to the instant, or None."""
        return self._family(name).get(pairs)

    def _family(self, name: str) -> dict[Labels, Series]:
        if name not in self._copies:
            self._copies[name] = {series.pairs: self._until(series) for series in series_of(self._whole, name)}
        return self._copies[name]

    def _until(self, series: Series) -> Series:
        cut = Series(series.name, series.pairs)
        times, values = points(series)
        end = bisect_right(times, self._t)
        cut.t, cut.v = array("d", times[:end]), array("d", values[:end])
        return cut


def points(series: Series, most: int | None = None) -> tuple[Sequence[float], Sequence[float]]:
    """Return copies of the last `most` times and values (all by default), which belong together; empty if that fails.

    A time whose value is not there yet is left out: the series of a group get their time first, and then a value each.
    """
    for _ in range(_TRIES):
        begun, whole = len(series.t), len(series.v)
        if begun - whole not in (0, 1):
            continue
        first = max(whole - most, 0) if most else 0
        times, values = series.t[first:whole], series.v[first:whole]
        if (begun, whole) == (len(series.t), len(series.v)):
            return times, values
    return (), ()


def rate(window: Window, name: str, pairs: Labels, now: float) -> float | None:
    """Return the increase per second of a counter over the last RATE_SECONDS before `now`; None with fewer than two points.

    A fall is a reset: what stands after it is the increase, as in Prometheus. A staleness marker starts afresh.
    """
    series = window.get(name, pairs)
    if series is None:
        return None
    times, values = points(series, _RATE_POINTS)
    begin: float | None = None
    increase = previous = last = 0.0
    for t, value in zip(times, values, strict=True):
        if t <= now - RATE_SECONDS:
            continue
        if value != value:
            begin = None
            continue
        if begin is None:
            begin, increase = t, 0.0
        else:
            increase += value - previous if value >= previous else value
        previous, last = value, t
    return increase / (last - begin) if begin is not None and last > begin else None
