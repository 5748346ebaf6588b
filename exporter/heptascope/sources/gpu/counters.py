"""Counters that heptascope keeps for a GPU: they never go backwards and outlive a re-initialisation of NVML."""

from __future__ import annotations

from collections.abc import Iterable

from heptascope.sources.gpu.layout import THROTTLE, ThrottleReason

LONGEST_GAP_SECONDS = 60.0
"""A clocks-event mask says nothing about a gap longer than this: it is left out of the throttle time."""


class MaskSeconds:
    """Throttle time from the clocks-event mask: a bit that is set stands for the time since the mask before it."""

    def __init__(self) -> None:
        """Start every reason at 0."""
        self.totals: dict[str, float] = {row.reason: 0.0 for row in THROTTLE}
        self._t: float | None = None

    def add(self, mask: int, t: float) -> None:
        """Take the mask read at `t` (Unix seconds)."""
        gap = 0.0 if self._t is None else t - self._t
        self._t = t
        if not 0.0 < gap <= LONGEST_GAP_SECONDS:
            return
        for row in THROTTLE:
            if mask & row.bit:
                self.totals[row.reason] += gap

    def pause(self) -> None:
        """Forget the last mask: the time until the next one is unknown."""
        self._t = None


class DriverSeconds:
    """Throttle time from one of the driver's own nanosecond counters, which starts anew when the driver is loaded."""

    def __init__(self) -> None:
        """Start at 0, whatever the driver has counted before."""
        self.total = 0.0
        self._last: int | None = None

    def add(self, nanoseconds: int) -> None:
        """Take the driver's counter; a fall means that it began again at 0."""
        if self._last is not None:
            grown = nanoseconds - self._last
            self.total += (grown if grown >= 0 else nanoseconds) / 1e9
        self._last = nanoseconds


class GpuCounters:
    """Everything that is counted for one GPU, kept by its uuid."""

    def __init__(self) -> None:
        """Start everything at 0."""
        self.mask = MaskSeconds()
        self.driver: dict[str, DriverSeconds] = {row.reason: DriverSeconds() for row in THROTTLE if row.counter}
        self.bytes: dict[str, float] = {}
        self.xids: set[str] = set()  # codes that were shown before
        self._by_driver: frozenset[str] | None = None

    def decide(self, reasons: Iterable[str]) -> None:
        """Take the reasons that the driver's counters supply; only the first call counts, so that no counter changes its supplier."""
        if self._by_driver is None:
            self._by_driver = frozenset(reasons)

    def by_driver(self, cause: ThrottleReason) -> bool:
        """Return whether the driver's own counter supplies this reason."""
        return cause.reason in (self._by_driver or ())
