"""The profiling values of one entity, as a row's `gpm` has them: percent and MiB/s, with the time that each stands for.

DCGM's ratios are means over the engine's own sampling interval, and only the newest is read, so the sum over time is approximate.
Where the raw cycle counters answer (DCGM 4.6, GPM cards) their growth gives exact means instead.
"""

from __future__ import annotations

from collections.abc import Mapping

from heptascope.sources.gpu.dcgm_codes import Value
from heptascope.sources.gpu.dcgm_fields import CYCLE_BYTES, CYCLES, CYCLES_ELAPSED, PROFILED
from heptascope.sources.gpu.layout import MIB, SAME_VALUE_SECONDS, Row
from heptascope.sources.gpu.page import Why

MOST_INTERVALS = 2.5
"""A value stands for so many intervals at most: of a longer gap only a part is known."""
_TOP_SHARE = 1.01

Found = dict[str, tuple[float, float]]
"""Key to value and window."""


class Windows:
    """Remembers when each value was from, and how the raw counters stood."""

    def __init__(self, interval: float) -> None:
        """Take the interval at which the engine samples, in seconds."""
        self._interval = interval
        self._times: dict[str, float] = {}
        self._counts: dict[int, tuple[float, float]] = {}  # field id to time and raw count
        self._kept: Found = {}

    def row(
        self, values: Mapping[int, Value], refused: Mapping[int, Why], keys: Mapping[str, tuple[int, float]] = PROFILED
    ) -> tuple[Row, dict[str, list[str]]]:
        """Return a row's `gpm`, and for each key without a value the reason; `refused` are fields that are not asked any more."""
        cycles = self._cycles(values)
        found: Found = {}
        missing: dict[str, list[str]] = {}
        for key, (field_id, factor) in keys.items():
            value = values.get(field_id)
            if key in cycles:
                found[key] = cycles[key]
            elif value is not None and value.why is None:
                found[key] = (value.value * factor, self._window(key, value.t))
            elif why := value.why if value is not None else refused.get(field_id):
                missing[key] = refusal(why)
        return _as_row(found, [key for key in keys if key in found and key not in cycles], missing), missing

    def _window(self, key: str, t: float) -> float:
        before = self._times.get(key)
        self._times[key] = t
        if before is None:
            return self._interval
        return min(t - before, MOST_INTERVALS * self._interval) if t > before else SAME_VALUE_SECONDS

    def _cycles(self, values: Mapping[int, Value]) -> Found:
        """Return what the raw counters give: shares of the elapsed cycles in percent, links in MiB/s."""
        elapsed = self._growth(CYCLES_ELAPSED, values)
        grown = {key: self._growth(field_id, values) for key, field_id in (*CYCLES.items(), *CYCLE_BYTES.items())}
        if elapsed is None:
            return self._kept if self._same(values) else {}
        found: Found = {}
        for key in CYCLES:
            part = grown[key]
            if part is not None and elapsed[0] > 0 and part[0] <= _TOP_SHARE * elapsed[0]:
                found[key] = (100.0 * part[0] / elapsed[0], elapsed[1])
        for key in CYCLE_BYTES:
            part = grown[key]
            if part is not None:
                found[key] = (part[0] / MIB / part[1], part[1])
        self._kept = {key: (value, SAME_VALUE_SECONDS) for key, (value, _) in found.items()}
        return found

    def _same(self, values: Mapping[int, Value]) -> bool:
        """Return whether the raw counters are those that were read before."""
        value = values.get(CYCLES_ELAPSED)
        return value is not None and value.why is None and self._counts.get(CYCLES_ELAPSED, (0.0, 0.0))[0] == value.t

    def _growth(self, field_id: int, values: Mapping[int, Value]) -> tuple[float, float] | None:
        """Return growth and seconds since the value before; None at the first one, at the same one, and after a fall."""
        value = values.get(field_id)
        if value is None or value.why is not None:
            self._counts.pop(field_id, None)
            return None
        before = self._counts.get(field_id)
        self._counts[field_id] = (value.t, value.value)
        if before is None or value.t <= before[0] or value.value < before[1]:
            return None
        return value.value - before[1], value.t - before[0]


def _as_row(found: Found, approximate: list[str], missing: Mapping[str, list[str]]) -> Row:
    """Return the values in the layout of recordings: one common window, and those that differ by name; `approx` names inexact ones."""
    if not found:
        return {}
    lengths = [window for _, window in found.values()]
    common = max(set(lengths), key=lengths.count)
    row: Row = {"win": round(common, 9)}
    row.update((key, round(value, 4)) for key, (value, _) in found.items())
    row.update(dict.fromkeys(missing))
    other = {key: round(window, 9) for key, (_, window) in found.items() if window != common}
    if other:
        row["win_of"] = other
    if approximate:
        row["approx"] = approximate
    return row


def refusal(why: Why) -> list[str]:
    """Return a reason as a row's `missing` keeps it."""
    return [str(why[0]), why[1]]
