"""The in-memory history: every series of the last ten minutes, for the rules room and the page.

A NaN in a series is a staleness marker, as in Prometheus: the series had ended at that time.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from heptascope.model import Labels

RETENTION_SECONDS = 600.0
STALE = math.nan
_TRIM_SLACK = 64  # points past the horizon before the front of a series is cut


class Series:
    """One series: its name, labels, and two parallel arrays of times (Unix seconds) and values."""

    __slots__ = ("group", "labels", "name", "pairs", "t", "v")

    def __init__(self, name: str, pairs: Labels) -> None:
        """Start an empty series; `pairs` are its labels, sorted."""
        self.name = name
        self.pairs = pairs
        self.labels: dict[str, str] = dict(pairs)
        self.t = array("d")
        self.v = array("d")
        self.group: Group | None = None

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


class Group:
    """Series that get all their points together, such as a histogram's: they share one array of times.

    It comes apart, and `series` is empty from then on, as soon as one of them gets a point by itself or is forgotten.
    """

    __slots__ = ("series", "t")

    def __init__(self, series: tuple[Series, ...]) -> None:
        """Let `series`, which are empty, share their times."""
        self.series = series
        self.t = array("d")
        for one in series:
            one.t, one.group = self.t, self


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
        family = self._by_name.get(name)
        if family is None:
            family = self._by_name[name] = {}
        series = family.get(pairs)
        if series is None:
            if self._count >= self.max_series:
                self.refused += 1
                return
            series = family[pairs] = Series(name, pairs)
            self._count += 1
        elif series.group is not None:
            _part(series.group)
        times, values = series.t, series.v
        if times and t <= times[-1]:
            return
        if (value == value) is not (bool(values) and values[-1] == values[-1]):
            self.shape += 1
        times.append(t)
        values.append(value)
        if times[0] < t - self.retention:
            _trim(times, (values,), t - self.retention)

    def group(self, keys: Sequence[tuple[str, Labels]]) -> Group | None:
        """Begin series that share their times; None if one of them is there already, or if they were too many."""
        if self._count + len(keys) > self.max_series or any(pairs in self._by_name.get(name, ()) for name, pairs in keys):
            return None
        group = Group(tuple(Series(name, pairs) for name, pairs in keys))
        for one in group.series:
            self._by_name.setdefault(one.name, {})[one.pairs] = one
        self._count += len(keys)
        return group

    def append_group(self, group: Group, t: float, values: Sequence[float]) -> None:
        """Add a point to every series of a group, all of them values or all of them staleness markers, as `append` does."""
        times = group.t
        if not group.series or (times and t <= times[-1]):
            return
        if (values[0] == values[0]) is not group.series[0].live:
            self.shape += 1
        times.append(t)
        for one, value in zip(group.series, values, strict=True):
            one.v.append(value)
        if times[0] < t - self.retention:
            _trim(times, [one.v for one in group.series], t - self.retention)

    def mark_group_stale(self, group: Group, t: float) -> None:
        """End every series of a group at `t`; nothing happens if they have ended."""
        if group.series and group.series[0].live:
            self.append_group(group, max(t, math.nextafter(group.t[-1], math.inf)), [STALE] * len(group.series))

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
                group = family.pop(pairs).group
                if group is not None:
                    _part(group)
                self._count -= 1
                self.shape += 1

    def nbytes(self) -> int:
        """Return the memory of the stored points, in bytes."""
        series = [s for f in self._by_name.values() for s in f.values()]
        times = {id(s.t): len(s.t) for s in series}
        return 8 * (sum(times.values()) + sum(len(s.v) for s in series))


def _part(group: Group) -> None:
    """Let each series of a group have times of its own."""
    for one in group.series:
        one.t, one.group = array("d", one.t), None
    group.series = ()


def _trim(times: array[float], values: Iterable[array[float]], horizon: float) -> None:
    cut = bisect_right(times, horizon)
    if cut >= _TRIM_SLACK:
        del times[:cut]
        for one in values:
            del one[:cut]
