"""GPM values: windows, missing numbers, byte counters."""

from __future__ import annotations

from typing import Any

import pytest

from heptascope.model import Reading, Reason
from heptascope.sources.gpu.layout import GPM_BYTES, GPM_RATIOS
from heptascope.sources.gpu.rows import GpuRows
from support.gpu_rows import reasons, value, values


def _rows() -> GpuRows:
    return GpuRows({"gpus": [{"nvlinks": 18}]})


def _read(rows: GpuRows, t: float, gpm: Any, **extra: Any) -> Reading:
    return rows.fast([{"kind": "gpu", "t": t, "gpu": 0, "gpm": gpm, **extra}])


def test_a_window_without_number() -> None:
    """A null leaves the ratio out with the reason "invalid"; its counters are not called missing, since the next window covers the time."""
    full = dict.fromkeys((*GPM_RATIOS, *GPM_BYTES), 10.0)
    reading = _read(_rows(), 1.0, {"win": 1.0, **full, "dram_util": None})
    assert values(reading, "dram_active_ratio") == {}
    assert [m.reason for m in reasons(reading, "dram_active_ratio")] == [Reason.INVALID]
    assert reasons(reading, "dram_active_seconds_total") == []
    assert value(reading, "sm_active_ratio") == 0.1


def test_a_longer_window_of_one_metric() -> None:
    """After a NaN the metric's own window is longer than the row's, and the sample says so."""
    reading = _read(_rows(), 1.0, {"win": 1.0, "sm_util": 50.0, "dram_util": 20.0, "win_of": {"dram_util": 3.0}})
    found = {s.name.removeprefix("heptascope_gpu_"): (s.value, s.window) for s in reading.samples}
    assert found["sm_active_ratio"] == (0.5, 1.0)
    assert found["dram_active_ratio"] == (0.2, 3.0)


def test_byte_counters_over_a_gap() -> None:
    """A null rate leaves the counter where it is; the longer window that follows adds what was moved in both."""
    rows = _rows()
    totals = [
        value(_read(rows, t, gpm), "nvlink_receive_bytes_total")
        for t, gpm in (
            (1.0, {"win": 1.0, "nvlink_rx_mib_s": 4.0}),
            (2.0, {"win": 1.0, "nvlink_rx_mib_s": None}),
            (3.0, {"win": 1.0, "nvlink_rx_mib_s": 2.0, "win_of": {"nvlink_rx_mib_s": 2.0}}),
        )
    ]
    assert totals == [4.0 * 2**20, 4.0 * 2**20, 8.0 * 2**20]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1.0, 1e12])
def test_impossible_numbers(bad: float) -> None:
    """NaN, infinity, negative and absurd numbers are no ratios and move no counter."""
    rows = _rows()
    _read(rows, 1.0, {"win": 1.0, "sm_util": 1.0, "pcie_rx_mib_s": 1.0})
    reading = _read(rows, 2.0, {"win": 1.0, "sm_util": bad, "pcie_rx_mib_s": bad})
    assert values(reading, "sm_active_ratio") == {}
    assert [m.reason for m in reasons(reading, "sm_active_ratio")] == [Reason.INVALID]
    assert value(reading, "pcie_receive_bytes_total") == 2.0**20


def test_a_little_above_one_is_one() -> None:
    """Rounding above 100 % is cut to 1."""
    assert value(_read(_rows(), 1.0, {"win": 1.0, "sm_util": 100.04}), "sm_active_ratio") == 1.0


def test_a_window_of_no_length_says_nothing() -> None:
    """Without a window there is no mean: no sample, since the pipeline would take it for an instant value."""
    assert values(_read(_rows(), 1.0, {"win": 0.0, "sm_util": 50.0}), "sm_active_ratio") == {}


def test_no_gpm_at_all() -> None:
    """Before Hopper every GPM signal is missing with the remedy, the counters too."""
    reading = _read(_rows(), 1.0, {})
    signals = [f"{what}{end}" for what in GPM_RATIOS.values() for end in ("_ratio", "_seconds_total", "_sampled_seconds_total")]
    found = {signal: [m[1:3] for m in reasons(reading, signal)] for signal in (*signals, *GPM_BYTES.values())}
    remedy = [(Reason.NOT_SUPPORTED, "GPM needs Hopper or later; use a DCGM host engine")]
    assert found == dict.fromkeys(found, remedy)


def test_one_reason_for_all_of_gpm() -> None:
    """A row's reason under "gpm" stands for every GPM signal."""
    reading = _read(_rows(), 1.0, {}, missing={"gpm": ["no_permission", "ask for access"]})
    assert {m[1:3] for m in reading.missing if m.signal.endswith("_active_ratio")} == {(Reason.NO_PERMISSION, "ask for access")}


def test_a_recording_without_gpm() -> None:
    """Without the key "gpm" the recording does not hold it."""
    reading = GpuRows({"gpus": [{}]}).fast([{"kind": "gpu", "t": 1.0, "gpu": 0}])
    assert [m.reason for m in reasons(reading, "sm_active_ratio")] == [Reason.NO_SOURCE]


def test_nvlink_shows_itself_by_traffic() -> None:
    """A recording that does not say whether there is NVLink shows the series once bytes have moved."""
    rows = GpuRows({"gpus": [{}]})
    silent = _read(rows, 1.0, {"win": 1.0, "nvlink_rx_mib_s": 0.0, "nvlink_tx_mib_s": 0.0})
    busy = _read(rows, 2.0, {"win": 1.0, "nvlink_rx_mib_s": 0.0, "nvlink_tx_mib_s": 3.0})
    assert values(silent, "nvlink_transmit_bytes_total") == {}
    assert value(busy, "nvlink_transmit_bytes_total") == 3.0 * 2**20


def test_no_nvlink_by_the_header() -> None:
    """A header that says 0 NVLinks makes both counters missing from the first reading on."""
    reading = GpuRows({"gpus": [{"nvlinks": 0}]}).fast([{"kind": "gpu", "t": 1.0, "gpu": 0, "gpm": {"win": 1.0}}])
    assert [m.reason for m in reasons(reading, "nvlink_transmit_bytes_total")] == [Reason.NOT_SUPPORTED]
