"""Throttle time by reason: one supplier per reason, for good.

The driver counts nanoseconds for some reasons (NVML fields 74, 269, 270, 271); the header's `throttle_ns` says which of them this
card answers. Those reasons come from the driver's counter alone; every other one is the clocks-event mask, integrated over the time
between two `gpu` rows (under a second-wise mask a short event is missed or counts in full, so these are marked approximate).
On an H200 both agree within one sampling interval.
"""

from __future__ import annotations

from heptascope.model import Labels, Quality
from heptascope.sources.gpu.counters import GpuCounters
from heptascope.sources.gpu.layout import THROTTLE, Row, ThrottleReason
from heptascope.sources.gpu.page import Page, possible, reason_of

SIGNAL = "throttle_seconds_total"
_TOP = 2.0**62
_LABELS: dict[str, Labels] = {row.reason: (("reason", row.reason),) for row in THROTTLE}


def fast(row: Row, counters: GpuCounters, page: Page) -> None:
    """Add the reasons that a `gpu` row supplies."""
    mask = row.get("throttle")
    if possible(mask, _TOP):
        counters.mask.add(int(row["throttle"]), row["t"])
    else:
        counters.mask.pause()
    for cause in THROTTLE:
        if counters.by_driver(cause):
            if not cause.slow:
                _from_driver(cause, row, counters, page)
        elif possible(mask, _TOP):
            page.put(SIGNAL, counters.mask.totals[cause.reason], extra=_LABELS[cause.reason], quality=Quality.APPROXIMATE)
        else:
            page.miss(SIGNAL, reason_of(row, "throttle"), _LABELS[cause.reason])


def slow(row: Row, counters: GpuCounters, page: Page) -> None:
    """Add the reasons whose driver's counter is in `slow` rows."""
    for cause in THROTTLE:
        if cause.slow and counters.by_driver(cause):
            _from_driver(cause, row, counters, page)


def _from_driver(cause: ThrottleReason, row: Row, counters: GpuCounters, page: Page) -> None:
    value = row.get(cause.counter)
    if possible(value, _TOP):
        counters.driver[cause.reason].add(int(row[cause.counter]))
        page.put(SIGNAL, counters.driver[cause.reason].total, extra=_LABELS[cause.reason])
    else:
        page.miss(SIGNAL, reason_of(row, cause.counter), _LABELS[cause.reason])
