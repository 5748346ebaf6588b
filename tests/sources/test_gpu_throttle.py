"""Throttle time: one supplier per reason, never backwards."""

from __future__ import annotations

from typing import Any

import pytest

from heptascope.model import Quality, Reading, Reason
from heptascope.sources.gpu.counters import DriverSeconds, MaskSeconds
from heptascope.sources.gpu.rows import GpuRows
from support.gpu_rows import reasons, value

SIGNAL = "throttle_seconds_total"


def _fast(rows: GpuRows, t: float, **row: Any) -> Reading:
    return rows.fast([{"kind": "gpu", "t": t, "gpu": 0, **row}])


def test_a_set_bit_stands_for_the_time_before_it() -> None:
    """The mask of a row stands for the time since the row before it; several bits count at once."""
    seconds = MaskSeconds()
    for mask, t in ((0x04, 10.0), (0x04, 11.0), (0x0C, 13.0), (0x00, 14.0)):
        seconds.add(mask, t)
    assert seconds.totals["power_cap"] == 3.0
    assert seconds.totals["hardware_slowdown"] == 2.0


def test_settings_are_no_throttling() -> None:
    """Idle, application clocks and display clocks (0x1, 0x2, 0x100) count for nothing."""
    seconds = MaskSeconds()
    seconds.add(0x103, 1.0)
    seconds.add(0x103, 2.0)
    assert set(seconds.totals.values()) == {0.0}


@pytest.mark.parametrize("gap", [0.0, -5.0, 61.0])
def test_gaps_that_say_nothing(gap: float) -> None:
    """No time, time that ran backwards and a gap of over a minute add nothing."""
    seconds = MaskSeconds()
    seconds.add(0x04, 100.0)
    seconds.add(0x04, 100.0 + gap)
    assert seconds.totals["power_cap"] == 0.0


def test_the_drivers_counter_restarts() -> None:
    """The driver's history before us does not count; a fall is a driver that began again at 0."""
    seconds = DriverSeconds()
    totals = []
    for nanoseconds in (5_000_000_000, 7_000_000_000, 1_000_000_000, 1_500_000_000):
        seconds.add(nanoseconds)
        totals.append(seconds.total)
    assert totals == [0.0, 2.0, 3.0, 3.5]


def test_the_header_chooses_the_supplier() -> None:
    """Where the header names a reason its driver's counter counts alone and exactly; the mask supplies the others, approximately."""
    rows = GpuRows({"gpus": [{"throttle_ns": ["power_cap", "hardware_thermal"]}]})
    _fast(rows, 1.0, throttle=0x44, power_cap_ns=0)
    reading = _fast(rows, 2.0, throttle=0x6C, power_cap_ns=250_000_000)
    assert value(reading, SIGNAL, reason="power_cap") == 0.25
    assert value(reading, SIGNAL, reason="software_thermal") == 1.0
    assert [dict(pairs)["reason"] for (_, pairs), q in reading.quality.items() if q is Quality.APPROXIMATE] == [
        "hardware_slowdown", "sync_boost", "software_thermal", "power_brake",
    ]  # fmt: skip
    assert "hardware_thermal" not in {dict(s.labels).get("reason") for s in reading.samples}


def test_slow_rows_supply_the_dear_counters() -> None:
    """The hardware reasons' counters (0.6 ms a call) are in slow rows; a first row starts at 0."""
    rows = GpuRows({"gpus": [{"throttle_ns": ["hardware_thermal", "power_brake"]}]})
    first = rows.slow([{"kind": "slow", "t": 1.0, "gpu": 0, "hw_thermal_ns": 9_000_000_000, "power_brake_ns": 0}])
    second = rows.slow([{"kind": "slow", "t": 6.0, "gpu": 0, "hw_thermal_ns": 9_500_000_000, "power_brake_ns": 0}])
    assert [value(r, SIGNAL, reason="hardware_thermal") for r in (first, second)] == [0.0, 0.5]
    assert value(second, SIGNAL, reason="power_brake") == 0.0


def test_a_supplier_stays() -> None:
    """A later header that says otherwise changes no supplier: a counter never mixes two."""
    rows = GpuRows({"gpus": [{"uuid": "GPU-a", "throttle_ns": ["power_cap"]}]})
    _fast(rows, 1.0, uuid="GPU-a", throttle=4, power_cap_ns=0)
    rows.begin({"gpus": [{"uuid": "GPU-a", "throttle_ns": []}]})
    reading = _fast(rows, 2.0, uuid="GPU-a", throttle=4)
    assert [dict(m.labels)["reason"] for m in reasons(reading, SIGNAL)] == ["power_cap"]


def test_no_mask_is_a_reason() -> None:
    """Without a mask each reason is missing; the time until the next mask is unknown and not counted."""
    rows = GpuRows({"gpus": [{}]})
    _fast(rows, 1.0, throttle=4)
    blind = _fast(rows, 2.0, throttle=None)
    seeing = _fast(rows, 3.0, throttle=4)
    assert {m.reason for m in reasons(blind, SIGNAL)} == {Reason.NOT_SUPPORTED}
    assert value(seeing, SIGNAL, reason="power_cap") == 0.0


def test_time_lost_is_not_throttled() -> None:
    """The time for which a GPU did not answer is not counted."""
    rows = GpuRows({"gpus": [{}]})
    _fast(rows, 1.0, throttle=4)
    _fast(rows, 2.0, lost="GPU is lost")
    assert value(_fast(rows, 3.0, throttle=4), SIGNAL, reason="power_cap") == 0.0
