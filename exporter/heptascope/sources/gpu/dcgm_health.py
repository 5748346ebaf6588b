"""What DCGM's values say about a GPU's health over time: XID errors as counts, and profiling that stands still."""

from __future__ import annotations

STUCK_READS = 3
"""So many reads in a row must look stuck: utilisation and profiling are not from the same instant."""
MOST_XID = 999
"""The highest XID codes of NVIDIA's catalogue have three digits; anything else would be a series for each piece of garbage."""
BUSY_PERCENT = 99
STILL_PERCENT = 1e-6


class XidCount:
    """Counts XID errors from the last code and its time, which is all that DCGM tells: of several between two reads one is seen."""

    def __init__(self) -> None:
        """Have seen nothing; an error that is older than the first look is not counted."""
        self.counts: dict[str, int] = {}
        self.last_seen: dict[str, float] = {}
        self._before: tuple[int, float] | None = None

    def take(self, code: int | None, t: float) -> None:
        """Take the last code (None or 0: none yet) and the host engine's time of it (Unix seconds)."""
        now = (code or 0, t if code else 0.0)
        if self._before is not None and now != self._before and now[0]:
            key = str(now[0])
            self.counts[key] = self.counts.get(key, 0) + 1
            self.last_seen[key] = now[1]
        self._before = now


class StuckProfiling:
    """Tells whether profiling stands still: after some XID errors the profiling module reads 0 until it is watched anew.

    A copy between host and GPU also keeps utilisation at 100 % and the engine at 0, so without an XID error nothing is said.
    """

    def __init__(self) -> None:
        """Start well."""
        self._reads = 0

    def take(self, had_xid: bool, utilization: float | None, engine_active: float | None) -> bool:
        """Take one read (both in percent, None: no value); return whether profiling is stuck."""
        still = engine_active is None or engine_active <= STILL_PERCENT
        looks_stuck = had_xid and utilization is not None and utilization >= BUSY_PERCENT and still
        self._reads = self._reads + 1 if looks_stuck else 0
        return self._reads >= STUCK_READS
