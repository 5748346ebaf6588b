"""Reading the in-memory history from another thread than the one that writes it.

The writer appends a time and then its value, and now and then cuts both at the front. A reader copies, and copies again
if anything moved meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

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


def points(series: Series, most: int | None = None) -> tuple[Sequence[float], Sequence[float]]:
    """Return copies of the last `most` times and values (all by default), which belong together; empty if that fails."""
    first = -most if most else 0
    for _ in range(_TRIES):
        size = len(series.t)
        if len(series.v) != size:
            continue
        times, values = series.t[first:], series.v[first:]
        if len(series.t) == size == len(series.v):
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
