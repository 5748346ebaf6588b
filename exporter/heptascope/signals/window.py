"""The in-memory history: every series of the last ten minutes, for the rules room and the page.

A NaN in a series is a staleness marker, as in Prometheus: the series had ended at that time.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Iterator

from heptascope.model import Labels

RETENTION_SECONDS = 600.0
STALE = math.nan
_TRIM_SLACK = 64  # points past the horizon before the front of a series is cut


class Series:
    """One series: its name, labels, and two parallel arrays of times (Unix seconds) and values."""

    __slots__ = ("labels", "name", "pairs", "t", "v")

    def __init__(self, name: str, pairs: Labels) -> None:
        """Start an empty series; `pairs` are its labels, sorted."""
        self.name = name
        self.pairs = pairs
        self.labels: dict[str, str] = dict(pairs)
        self.t = array("d")
        self.v = array("d")

    @property
    def live(self) -> bool:
        """Whether the last point is a value (not a staleness marker)."""
        return bool(self.v) and self.v[-1] == self.v[-1]

    def at(self, t: float, lookback: float) -> float | None:
        """Return the value that an instant query at `t` sees: the last point in (t - lookback, t], unless stale."""
        i = len(self.t) if self.t and self.t[-1] <= t else bisect_right(self.t, t)
        if i == 0 or self.t[i - 1] <= t - lookback:
            return None
        value = self.v[i - 1]
        return None if value != value else value


class Window:
    """All series, by name. Written by one thread; bounded by `retention` seconds and `max_series`.

    `shape` grows whenever a series begins, ends or is forgotten, so that readers can keep what depends on that alone.
    """

    def __init__(self, retention: float = RETENTION_SECONDS, max_series: int = 20_000) -> None:
        """Keep `retention` seconds of at most `max_series` series."""
        self.retention = retention
        self.max_series = max_series
        self.refused = 0
        self.shape = 0
        self._by_name: dict[str, dict[Labels, Series]] = {}
        self._count = 0

    def append(self, name: str, pairs: Labels, t: float, value: float) -> None:
        """Add a point; one that is not newer than the series' last point replaces nothing and is dropped."""
        family = self._by_name.setdefault(name, {})
        series = family.get(pairs)
        if series is None:
            if self._count >= self.max_series:
                self.refused += 1
                return
            series = family[pairs] = Series(name, pairs)
            self._count += 1
        times = series.t
        if times and t <= times[-1]:
            return
        if (value == value) is not series.live:
            self.shape += 1
        times.append(t)
        series.v.append(value)
        if times[0] < t - self.retention:
            self._trim(series, t - self.retention)

    def mark_stale(self, name: str, pairs: Labels, t: float) -> None:
        """End a series at `t`; nothing happens if it is unknown or ended already."""
        series = self._by_name.get(name, {}).get(pairs)
        if series is not None and series.live:
            self.append(name, pairs, max(t, math.nextafter(series.t[-1], math.inf)), STALE)

    def series(self, name: str) -> Iterator[Series]:
        """Yield the series of one name, ended ones included."""
        yield from self._by_name.get(name, {}).values()

    def get(self, name: str, pairs: Labels) -> Series | None:
        """Return one series, or None."""
        return self._by_name.get(name, {}).get(pairs)

    def names(self) -> list[str]:
        """Return the names that have series."""
        return list(self._by_name)

    def drop_ended(self, now: float) -> None:
        """Forget series that ended longer ago than the retention."""
        horizon = now - self.retention
        for family in self._by_name.values():
            for pairs in [p for p, s in family.items() if not s.t or s.t[-1] < horizon]:
                del family[pairs]
                self._count -= 1
                self.shape += 1

    def nbytes(self) -> int:
        """Return the memory of the stored points, in bytes."""
        return sum(s.t.buffer_info()[1] * 16 for f in self._by_name.values() for s in f.values())

    def _trim(self, series: Series, horizon: float) -> None:
        cut = bisect_right(series.t, horizon)
        if cut >= _TRIM_SLACK:
            del series.t[:cut]
            del series.v[:cut]
