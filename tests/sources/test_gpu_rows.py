"""Rows of real recordings become the right samples."""

from __future__ import annotations

import pytest

from heptascope.model import Quality, Reason
from heptascope.signals.schema import SCHEMA
from heptascope.sources.gpu.layout import GPM_RATIOS
from heptascope.sources.gpu.rows import GpuRows
from support.gpu_rows import header, instants, lines, reasons, replay, value, values

GPU0 = (("gpu", "0"),)


def test_fast_values_of_one_row() -> None:
    """One `gpu` row of decode-c64 gives its values in base units, checked by hand against the file."""
    reading = GpuRows(header("decode-c64")).fast(instants("decode-c64", "gpu")[100])
    assert {
        "up": 1.0,
        "power_watts": 532.287,
        "energy_joules_total": 77195.241,
        "sm_clock_hertz": 1.98e9,
        "memory_clock_hertz": 3.201e9,
        "utilization_ratio": 0.70,
        "memory_used_bytes": 123879424000.0,
        "temperature_celsius": 53.0,
        "graphics_engine_active_ratio": 0.69753,
        "sm_active_ratio": 0.54113,
        "sm_occupancy_ratio": 0.09159,
        "tensor_active_ratio": 0.21513,
        "dram_active_ratio": 0.39138,
        "int_active_ratio": 0.03719,
        "fp64_active_ratio": 0.0,
        "fp32_active_ratio": 0.01102,
        "fp16_active_ratio": 0.0,
        "pcie_receive_bytes_total": 67.235 * 2**20 * 0.2,
        "pcie_transmit_bytes_total": 20.264 * 2**20 * 0.2,
    } == pytest.approx(
        {s.name.removeprefix("heptascope_gpu_"): s.value for s in reading.samples if not s.name.endswith("throttle_seconds_total")}
    )


def test_slow_values_of_one_row() -> None:
    """The last `slow` row of decode-c64, with the constants of the header, checked by hand against the file."""
    reading = GpuRows(header("decode-c64")).slow(instants("decode-c64", "slow")[-1])
    plain = {s.name.removeprefix("heptascope_gpu_"): s.value for s in reading.samples if s.labels == GPU0}
    assert {
        "sm_clock_max_hertz": 1.98e9,
        "memory_clock_max_hertz": 3.201e9,
        "power_limit_watts": 700.0,
        "memory_total_bytes": 150754820096.0,
        "pcie_link_generation_max": 5.0,
        "pcie_link_width_max": 16.0,
        "memory_temperature_celsius": 48.0,
        "pcie_link_generation": 5.0,
        "pcie_link_width": 16.0,
        "pcie_replays_total": 0.0,
    } == plain
    assert value(reading, "process_memory_bytes", pid="1767") == 60767076352.0
    assert value(reading, "process_sm_utilization_ratio", pid="1767") == 0.37


def test_a_header_without_gpus_takes_nothing_back() -> None:
    """A recorder that starts before the GPUs are known writes an empty header, which may come after the real one in order of time."""
    rows = GpuRows(header("decode-c64"))
    rows.begin({"kind": "header", "gpus": []})
    reading = rows.slow(instants("decode-c64", "slow")[3])
    assert 1.98e9 == value(reading, "sm_clock_max_hertz")


def test_info_without_uuid() -> None:
    """A recording without uuid has no uuid label; the SM count is cores / 128."""
    reading = GpuRows(header("decode-c64")).slow(instants("decode-c64", "slow")[0])
    (pairs,) = values(reading, "info")
    assert dict(pairs) == {
        "gpu": "0", "model": "NVIDIA H200", "driver": "580.159.04", "sm_count": "132", "memory_bus_bits": "6016", "mig": "disabled",
    }  # fmt: skip


def test_info_with_everything() -> None:
    """Every identity key of a header becomes a label; 8.0 has 64 cores an SM."""
    entry = {
        "gpu": 3, "uuid": "GPU-x", "name": "NVIDIA A100", "bus_width_bits": 5120, "num_cores": 6912, "mig_mode": 1,
        "pci_bus_id": "0000:4b:00.0", "serial": "42", "vbios": "92.00", "cpus": "0-15,32", "numa_node": 0, "compute_capability": [8, 0],
    }  # fmt: skip
    reading = GpuRows({"driver": "1.2", "gpus": [entry]}).slow([{"kind": "slow", "t": 1.0, "gpu": 3, "uuid": "GPU-x"}])
    (pairs,) = values(reading, "info")
    assert dict(pairs) == {
        "gpu": "3", "uuid": "GPU-x", "model": "NVIDIA A100", "driver": "1.2", "compute_capability": "8.0", "pci_bus_id": "0000:4b:00.0",
        "serial": "42", "vbios": "92.00", "sm_count": "108", "memory_bus_bits": "5120", "cpus": "0-15,32", "numa_node": "0",
        "mig": "enabled",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["decode-c64", "tp2-prefill", "idle"])
def test_every_name_is_in_the_schema(name: str) -> None:
    """Every sample and reason names a signal of the table, with labels that the table allows."""
    _, fast, slow = replay(name)
    for reading in (*fast, *slow):
        for sample in reading.samples:
            assert sample.name in SCHEMA
            assert {key for key, _ in sample.labels} <= set(SCHEMA[sample.name].labels)
        assert {m.signal for m in reading.missing} <= set(SCHEMA)


@pytest.mark.parametrize("name", ["decode-c64", "tp2-prefill"])
def test_nothing_is_silently_absent(name: str) -> None:
    """Each GPU signal that NVML can supply has a value or a reason, on every GPU of a recording."""
    _, fast, slow = replay(name)
    made_of_ratios = {row.integral for row in SCHEMA.values()} | {
        row.integral.replace("_seconds_total", "_sampled_seconds_total") for row in SCHEMA.values()
    }
    wanted = {n for n, row in SCHEMA.items() if n.startswith("heptascope_gpu_") and {"nvml", "gpm"} & set(row.suppliers)} - made_of_ratios
    wanted = {name for name in wanted if "instance" not in name}  # these cards are not cut
    for index in range(len(header(name)["gpus"])):
        pair = ("gpu", str(index))
        told = {x.name for r in (fast[-1], slow[-1]) for x in r.samples if pair in x.labels}
        told |= {m.signal for r in (fast[-1], slow[-1]) for m in r.missing if pair in m.labels}
        assert wanted - told == set()


@pytest.mark.parametrize("name", ["decode-c64", "tp2-prefill"])
def test_ratio_times_window_is_the_integral(name: str) -> None:
    """The sum of ratio x window over all readings equals the sum over the rows of the file."""
    _, fast, _ = replay(name)
    for index in range(len(header(name)["gpus"])):
        rows = [line for line in lines(name) if line["kind"] == "gpu" and line["gpu"] == index]
        for key, what in GPM_RATIOS.items():
            expected = sum(row["gpm"][key] * row["gpm"]["win"] for row in rows) / 100
            found = [s for r in fast for s in r.samples if s.name == f"heptascope_gpu_{what}_ratio" and ("gpu", str(index)) in s.labels]
            assert sum(s.value * s.window for s in found) == pytest.approx(expected, rel=1e-12)


def test_windows_cover_the_recording() -> None:
    """The windows of decode-c64 join without gaps: together they are as long as the recording (37.0005 s by the file)."""
    _, fast, _ = replay("decode-c64")
    windows = [s.window for r in fast for s in r.samples if s.name == "heptascope_gpu_dram_active_ratio"]
    assert sum(windows) == pytest.approx(37.0005, abs=1e-9)


def test_byte_counters_of_two_gpus() -> None:
    """NVLink and PCIe rates integrate to the totals worked out from the file; NVLink has receive before transmit."""
    _, fast, _ = replay("tp2-prefill")
    assert value(fast[-1], "nvlink_receive_bytes_total", gpu="0") == pytest.approx(914764136916.3986)
    assert value(fast[-1], "nvlink_transmit_bytes_total", gpu="1") == pytest.approx(914696092749.5553)
    assert value(fast[-1], "pcie_receive_bytes_total", gpu="0") == pytest.approx(683495005.6706052)
    assert value(fast[-1], "pcie_transmit_bytes_total", gpu="1") == pytest.approx(217643066.9561856)


@pytest.mark.parametrize("name", ["decode-c64", "tp2-prefill"])
def test_counters_never_go_backwards(name: str) -> None:
    """Every counter of a recording only grows."""
    _, fast, slow = replay(name)
    last: dict[object, float] = {}
    for sample in (s for reading in (*fast, *slow) for s in reading.samples if s.name.endswith("_total")):
        assert last.get((sample.name, sample.labels), 0.0) <= sample.value
        last[sample.name, sample.labels] = sample.value


def test_no_nvlink_on_one_gpu() -> None:
    """A card without NVLink reads 0 from GPM and null in slow rows: no series, but a reason."""
    _, fast, slow = replay("decode-c64")
    assert values(fast[-1], "nvlink_receive_bytes_total") == {}
    assert [m.reason for m in reasons(fast[-1], "nvlink_receive_bytes_total")] == [Reason.NOT_SUPPORTED]
    assert [m.reason for m in reasons(slow[-1], "nvlink_bandwidth_bytes_per_second")] == [Reason.NOT_SUPPORTED]


def test_nvlink_is_not_guessed_before_it_is_known() -> None:
    """Before the first slow row an older recording does not say whether there is NVLink: neither series nor reason."""
    _, fast, _ = replay("decode-c64")
    assert values(fast[0], "nvlink_receive_bytes_total") == {}
    assert reasons(fast[0], "nvlink_receive_bytes_total") == []


def test_throttle_time_from_the_mask() -> None:
    """Power-cap time of decode-c64 is the mask integrated over time (9.4 s; the driver counted 9.34); other reasons stand at 0."""
    _, fast, _ = replay("decode-c64")
    found = {dict(pairs)["reason"]: v for pairs, v in values(fast[-1], "throttle_seconds_total").items()}
    others = dict.fromkeys(("hardware_slowdown", "sync_boost", "software_thermal", "hardware_thermal", "power_brake"), 0.0)
    assert found == {"power_cap": pytest.approx(9.4, abs=0.001), **others}
    assert set(fast[-1].quality.values()) == {Quality.APPROXIMATE}


def test_reading_time_is_the_last_rows() -> None:
    """The two rows of one instant make one reading with the later time; a given time goes before it."""
    rows = GpuRows(header("tp2-prefill"))
    group = instants("tp2-prefill", "gpu")[0]
    assert rows.fast(group).t == 1795970851.1761
    assert rows.fast(group, 5.0).t == 5.0
    assert rows.fast(group).raw == {"rows": group}


def test_process_lists() -> None:
    """An empty process list is idle, or hidden where memory is in use; a process without memory figure has a reason."""
    rows = GpuRows({"gpus": [{}]})
    base = {"kind": "slow", "t": 1.0, "gpu": 0, "proc_util": []}
    idle = rows.slow([{**base, "procs": [], "mem_used": 2**29}])
    hidden = rows.slow([{**base, "procs": [], "mem_used": 2**34}])
    blind = rows.slow([{**base, "procs": [[7, None]], "mem_used": 2**34}])
    found = [[m.reason for m in reasons(r, "process_memory_bytes")] for r in (idle, hidden, blind)]
    assert found == [[Reason.IDLE], [Reason.NO_PERMISSION], [Reason.NO_PERMISSION]]


def test_newest_process_sample_counts() -> None:
    """Of several samples of one process the newest counts; an impossible share counts for nothing."""
    row = {
        "kind": "slow",
        "t": 1.0,
        "gpu": 0,
        "procs": [],
        "proc_util": [[7, 10, 0, 5], [7, 30, 0, 9], [7, 20, 0, 8], [8, 4294967295, 0, 9]],
    }
    reading = GpuRows({"gpus": [{}]}).slow([row])
    assert values(reading, "process_sm_utilization_ratio") == {(("gpu", "0"), ("pid", "7")): 0.3}


@pytest.mark.parametrize(
    ("key", "bad", "signal"),
    [
        ("util_gpu", 4294967295, "utilization_ratio"),
        ("power_w", 1.4e14, "power_watts"),
        ("mem_used", 2**64 - 1, "memory_used_bytes"),
        ("energy_mj", 2**64 - 1, "energy_joules_total"),
        ("temp_c", float("nan"), "temperature_celsius"),
        ("power_w", -1, "power_watts"),
    ],
)
def test_sentinels_are_no_values(key: str, bad: float, signal: str) -> None:
    """Garbage, blanks and NaN become the reason "invalid" before any scaling, never a number."""
    row = {**instants("decode-c64", "gpu")[0][0], key: bad}
    reading = GpuRows(header("decode-c64")).fast([row])
    assert values(reading, signal) == {}
    assert [m.reason for m in reasons(reading, signal)] == [Reason.INVALID]


def test_a_power_limit_of_zero_is_no_limit() -> None:
    """The first recorder wrote 0 W where the card gave no limit."""
    reading = GpuRows({"gpus": [{"power_limit_w": 0.0}]}).slow([{"kind": "slow", "t": 1.0, "gpu": 0}])
    assert values(reading, "power_limit_watts") == {}


def test_null_and_absent_keys_differ() -> None:
    """A null is something that NVML does not give, an absent key something that the recording does not hold."""
    rows = GpuRows({"gpus": [{}]})
    reading = rows.fast([{"kind": "gpu", "t": 1.0, "gpu": 0, "power_w": None}])
    assert reasons(reading, "power_watts")[0].reason == Reason.NOT_SUPPORTED
    assert reasons(reading, "temperature_celsius")[0].reason == Reason.NO_SOURCE


def test_reasons_in_a_row_are_passed_on() -> None:
    """What the live source wrote beside a null is the reason that replay shows."""
    row = {"kind": "gpu", "t": 1.0, "gpu": 0, "power_w": None, "missing": {"power_w": ["no_permission", "insufficient permissions"]}}
    reading = GpuRows({"gpus": [{}]}).fast([row])
    assert [m[1:3] for m in reasons(reading, "power_watts")] == [(Reason.NO_PERMISSION, "insufficient permissions")]


def test_a_new_header_keeps_counters() -> None:
    """After a new header (NVML was opened again) counters go on from where they were, by uuid."""
    entry = {"gpu": 0, "uuid": "GPU-a", "nvlinks": 0}
    rows = GpuRows({"gpus": [entry]})
    row = {"kind": "gpu", "gpu": 0, "uuid": "GPU-a", "throttle": 4, "gpm": {"win": 1.0, "pcie_rx_mib_s": 1.0}}
    rows.fast([{**row, "t": 1.0}])
    before = rows.fast([{**row, "t": 2.0}])
    rows.begin({"gpus": [{**entry, "gpu": 1}]})
    after = rows.fast([{**row, "gpu": 1, "t": 3.0}])
    assert [value(r, "pcie_receive_bytes_total") for r in (before, after)] == [2.0 * 2**20, 3.0 * 2**20]
    assert [value(r, "throttle_seconds_total", reason="power_cap") for r in (before, after)] == [1.0, 2.0]
    assert dict(next(iter(values(after, "up"))))["gpu"] == "1"


def test_rows_of_a_gpu_that_the_header_lacks() -> None:
    """A row of an unknown GPU still gives its values, under its own labels."""
    reading = GpuRows({}).fast([{"kind": "gpu", "t": 1.0, "gpu": 2, "uuid": "GPU-z", "power_w": 5.0}])
    assert values(reading, "power_watts") == {(("gpu", "2"), ("uuid", "GPU-z")): 5.0}


def test_rows_without_the_uuid_of_the_header() -> None:
    """A row that has only the index belongs to the header's GPU of that index."""
    rows = GpuRows({"gpus": [{"gpu": 4, "uuid": "GPU-x"}, {"gpu": 5, "uuid": "GPU-y"}]})
    reading = rows.fast([{"kind": "gpu", "t": 1.0, "gpu": 5, "power_w": 5.0}])
    assert values(reading, "power_watts") == {(("gpu", "5"), ("uuid", "GPU-y")): 5.0}


def test_an_unknown_xid_code_begins_at_zero() -> None:
    """Known codes stand at 0 from the start; another code is shown as 0 once, so that `increase()` sees its first error."""
    rows = GpuRows({"gpus": [{}]})
    first = rows.fast([{"kind": "gpu", "t": 1.0, "gpu": 0, "xid": {}}])
    second = rows.fast([{"kind": "gpu", "t": 2.0, "gpu": 0, "xid": {"31": 2, "999": 1}}])
    third = rows.fast([{"kind": "gpu", "t": 3.0, "gpu": 0, "xid": {"31": 2, "999": 1}}])
    assert [value(r, "xid_errors_total", xid="31") for r in (first, second, third)] == [0.0, 2.0, 2.0]
    assert [value(r, "xid_errors_total", xid="999") for r in (second, third)] == [0.0, 1.0]
    assert value(first, "xid_errors_total", xid="79") == 0.0


def test_a_lost_gpu_keeps_its_identity() -> None:
    """Of a lost GPU `up` is 0, its XID errors and its info remain, and everything else says why it is missing."""
    rows = GpuRows({"gpus": [{"uuid": "GPU-a", "name": "NVIDIA H200"}]})
    fast = rows.fast([{"kind": "gpu", "t": 1.0, "gpu": 0, "uuid": "GPU-a", "lost": "GPU is lost", "xid": {"79": 1}}])
    slow = rows.slow([{"kind": "slow", "t": 1.0, "gpu": 0, "uuid": "GPU-a", "lost": "GPU is lost"}])
    assert value(fast, "up") == 0.0
    assert value(fast, "xid_errors_total", xid="79") == 1.0
    assert {s.name for s in slow.samples} == {"heptascope_gpu_info"}
    assert {m[1:3] for m in (*fast.missing, *slow.missing)} == {(Reason.SOURCE_DOWN, "GPU is lost")}
