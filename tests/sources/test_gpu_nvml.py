"""The live NVML sources on cards that follow a scenario."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from heptascope.errors import UserError
from heptascope.model import Quality, Reading, Reason
from heptascope.signals.schema import SCHEMA
from heptascope.sources.gpu.nvml import nvml_sources
from heptascope.sources.gpu.rows import GpuRows
from support.fake_nvml import NO_PERMISSION, NOT_SUPPORTED, FakeClock, FakeNvml, h200
from support.gpu_bench import Bench
from support.gpu_rows import reasons, value, values


def _told(*readings: Reading) -> set[str]:
    return {x.name for r in readings for x in r.samples} | {m.signal for r in readings for m in r.missing}


def test_a_first_reading_tells_everything() -> None:
    """The first two readings have a value or a reason for every GPU signal of the table that NVML supplies."""
    bench = Bench(h200(links=18))
    fast, slow = bench.read(), bench.read_slow()
    made = {row.integral for row in SCHEMA.values()}
    made |= {name.replace("_seconds_total", "_sampled_seconds_total") for name in made}
    wanted = {n for n, row in SCHEMA.items() if n.startswith("heptascope_gpu_") and {"nvml", "gpm"} & set(row.suppliers)} - made
    wanted = {name for name in wanted if "instance" not in name}  # the card is not cut
    assert wanted - _told(fast, slow) == set()
    assert {m.signal for m in (*fast.missing, *slow.missing)} == {
        "heptascope_gpu_nvlink_errors_total",  # of one kind
        "heptascope_gpu_process_memory_bytes",
        "heptascope_gpu_process_sm_utilization_ratio",
        "heptascope_gpu_xid_error_last_timestamp_seconds",
    }


def test_values_of_a_working_card() -> None:
    """Power, clocks, memory, GPM and NVLink of a card under load, in base units and with both labels."""
    card = h200("GPU-b", links=18)
    bench = Bench(card)
    bench.read()
    card.values.update(
        {
            "nvmlDeviceGetPowerUsage": 691500,
            ("nvmlDeviceGetClockInfo", 1): 1485,
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=99, memory=20),
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=150754820096, reserved=644939776, used=2**36, free=0),
        }
    )
    card.fields[74] += 1_000_000_000
    card.rates.update({5: 92.5, 10: 17.5, 60: 1000.0})
    reading = bench.read()
    assert set(values(reading, "up")) == {(("gpu", "0"), ("uuid", "GPU-b"))}
    assert value(reading, "power_watts") == 691.5
    assert value(reading, "sm_clock_hertz") == 1.485e9
    assert value(reading, "utilization_ratio") == 0.99
    assert (value(reading, "memory_used_bytes"), value(reading, "memory_reserved_bytes")) == (2.0**36, 644939776.0)
    assert (value(reading, "tensor_active_ratio"), value(reading, "dram_active_ratio")) == pytest.approx((0.925, 0.175))
    assert value(reading, "nvlink_receive_bytes_total") == pytest.approx(1000 * 2**20)
    assert value(reading, "throttle_seconds_total", reason="power_cap") == 1.0


def test_slow_values_of_a_working_card() -> None:
    """Energy, health, links and processes, and the constants of the card."""
    card = h200(links=18)
    card.values.update(
        {
            "nvmlDeviceGetComputeRunningProcesses": [SimpleNamespace(pid=7, usedGpuMemory=2**34)],
            "nvmlDeviceGetProcessUtilization": [SimpleNamespace(pid=7, smUtil=49, memUtil=40, timeStamp=999)],
            "nvmlDeviceGetRemappedRows": (1, 2, True, False),
            ("nvmlDeviceGetTotalEccErrors", 0, 0): 5,
            ("nvmlDeviceGetTotalEccErrors", 1, 0): 1,
        }
    )
    bench = Bench(card)
    bench.read()
    reading = bench.read_slow()
    assert value(reading, "energy_joules_total") == 2430.146
    assert value(reading, "nvlink_bandwidth_bytes_per_second") == pytest.approx(18 * 26562e6)
    assert (value(reading, "process_memory_bytes", pid="7"), value(reading, "process_sm_utilization_ratio", pid="7")) == (2.0**34, 0.49)
    assert [value(reading, "remapped_rows_total", kind=kind) for kind in ("corrected", "uncorrected")] == [1.0, 2.0]
    assert (value(reading, "row_remap_pending"), value(reading, "row_remap_failure")) == (1.0, 0.0)
    assert [value(reading, "ecc_errors_total", kind=kind) for kind in ("corrected", "uncorrected")] == [5.0, 1.0]
    assert (value(reading, "sm_clock_max_hertz"), value(reading, "temperature_slowdown_celsius")) == (1.98e9, 89.0)


@pytest.mark.parametrize(("fields", "speed"), [({90: 25000}, 18 * 25000e6), ({}, None)])
def test_nvlink_speed_of_older_drivers(fields: dict[int, float], speed: float | None) -> None:
    """Where the links' own speeds are not supported the common one counts; without either there is a reason."""
    card = h200(links=18)
    for link in range(18):
        del card.fields[164, link]
    card.fields.update(fields)
    bench = Bench(card)
    bench.read()
    reading = bench.read_slow()
    assert list(values(reading, "nvlink_bandwidth_bytes_per_second").values()) == ([] if speed is None else [speed])
    assert [m.reason for m in reasons(reading, "nvlink_bandwidth_bytes_per_second")] == ([Reason.NOT_SUPPORTED] if speed is None else [])


def test_nvlink_errors_of_each_link() -> None:
    """Where the card has no totals the links' own counters are added up; it then knows one kind of CRC error."""
    card = h200(links=18)
    card.fields.update({(161, 3): 2, (161, 4): 5, (163, 0): 7})
    bench = Bench(card)
    bench.read()
    reading = bench.read_slow()
    found = {dict(pairs)["kind"]: count for pairs, count in values(reading, "nvlink_errors_total").items()}
    assert {"replay": 7.0, "recovery": 0.0, "crc_flit": 7.0} == found
    assert [("crc_data", Reason.NOT_SUPPORTED)] == [(dict(m.labels)["kind"], m.reason) for m in reasons(reading, "nvlink_errors_total")]


def test_nvlink_totals_go_first() -> None:
    """Where the card has totals no link is asked."""
    card = h200(links=18)
    card.fields.update({38: 1, 45: 2, 52: 3, 59: 4, (161, 0): 99})
    bench = Bench(card)
    bench.read()
    found = {dict(pairs)["kind"]: count for pairs, count in values(bench.read_slow(), "nvlink_errors_total").items()}
    assert {"crc_flit": 1.0, "crc_data": 2.0, "replay": 3.0, "recovery": 4.0} == found


def test_constants_are_read_once() -> None:
    """Identity and maxima (1 ms a call) are not asked for again."""
    bench = Bench()
    for _ in range(3):
        bench.read()
        bench.read_slow()
    assert [bench.nvml.calls.count(name) for name in ("nvmlDeviceGetName", "nvmlDeviceGetSerial", "nvmlInit")] == [1, 1, 1]
    assert bench.nvml.calls.count("nvmlDeviceGetMaxClockInfo") == 2


def test_dear_calls_are_not_on_the_fast_schedule() -> None:
    """Energy, process use, PCIe replays and the 0.6 ms fields are the slow source's; PCIe throughput (21 ms) is nobody's."""
    bench = Bench()
    bench.read()
    before = len(bench.nvml.calls)
    bench.read()
    asked = set(bench.nvml.calls[before:])
    assert asked & {"nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetProcessUtilization", "nvmlDeviceGetPcieReplayCounter"} == set()
    bench.read_slow()
    assert "nvmlDeviceGetPcieThroughput" not in bench.nvml.calls


def test_a_changed_power_limit_shows() -> None:
    """The power limit of the slow row goes before the header's."""
    bench = Bench()
    bench.read()
    bench.cards[0].values["nvmlDeviceGetEnforcedPowerLimit"] = 500000
    assert value(bench.read_slow(), "power_limit_watts") == 500.0


def test_replay_of_the_live_rows_is_the_same() -> None:
    """The rows that a recording keeps give the very same reading when they are replayed through JSON."""
    card = h200(links=18)
    bench = Bench(card)
    card.rates.update(dict.fromkeys(card.rates, 33.333))
    card.nan = {10}
    live = [bench.read(), bench.read_slow(), bench.read()]
    rows = GpuRows(json.loads(json.dumps(bench.fast.header)))
    again = []
    for reading in live:
        assert reading.raw is not None
        stored = json.loads(json.dumps(reading.raw["rows"]))
        again.append((rows.slow if reading.source == "nvml_slow" else rows.fast)(stored))
    assert [(r.samples, r.missing, r.quality) for r in again] == [(r.samples, r.missing, r.quality) for r in live]


def test_two_gpus_share_the_first_wait() -> None:
    """All GPUs take their first sample before one is read: the first reading waits 100 ms, however many there are."""
    bench = Bench(*(h200(f"GPU-{i}") for i in range(8)))
    reading = bench.read()
    assert sum(bench.clock.waits) == pytest.approx(0.1)
    assert len(values(reading, "sm_active_ratio")) == 8


def test_no_nvlink_is_never_asked() -> None:
    """On a card without NVLink the metrics are not requested and the reason is given."""
    bench = Bench()
    reading = bench.read()
    assert reading.raw is not None
    assert "nvlink_rx_mib_s" not in reading.raw["rows"][0]["gpm"]
    assert [m.reason for m in reasons(reading, "nvlink_receive_bytes_total")] == [Reason.NOT_SUPPORTED]


def test_before_hopper() -> None:
    """A card without GPM gives all the rest, and for each GPM signal the remedy."""
    card = h200()
    card.gpm = 0
    reading = Bench(card).read()
    assert value(reading, "power_watts") == 105.792
    assert reasons(reading, "dram_active_ratio")[0].detail == "GPM needs Hopper or later; use a DCGM host engine"


def test_mig_mode() -> None:
    """With MIG on, utilisation is not supported; the info says so and the rest goes on."""
    card = h200()
    card.values["nvmlDeviceGetMigMode"] = [1, 1]
    card.errors["nvmlDeviceGetUtilizationRates"] = NOT_SUPPORTED
    bench = Bench(card)
    reading = bench.read()
    assert [m.reason for m in reasons(reading, "utilization_ratio")] == [Reason.NOT_SUPPORTED]
    assert dict(next(iter(values(bench.read_slow(), "info"))))["mig"] == "enabled"


def test_no_permission() -> None:
    """Calls that are forbidden are reasons, asked once; a GPU that only refuses is not lost."""
    card = h200()
    forbidden = [name if isinstance(name, str) else name[0] for name in card.values if name != "nvmlDeviceGetUUID"]
    card.errors.update(dict.fromkeys((*forbidden, "nvmlGpmQueryDeviceSupport", "nvmlDeviceGetFieldValues"), NO_PERMISSION))
    bench = Bench(card)
    bench.read()
    reading = bench.read()
    assert value(reading, "up") == 1.0
    assert {m.reason for m in reading.missing if "nvlink" not in m.signal} == {Reason.NO_PERMISSION}
    assert bench.nvml.calls.count("nvmlDeviceGetPowerUsage") == 1


def test_a_card_without_row_remapping() -> None:
    """One refused call is the reason of all four values that it gives."""
    card = h200()
    card.errors["nvmlDeviceGetRemappedRows"] = NOT_SUPPORTED
    bench = Bench(card)
    bench.read()
    reading = bench.read_slow()
    found = [m.reason for name in ("remapped_rows_total", "row_remap_pending", "row_remap_failure") for m in reasons(reading, name)]
    assert found == [Reason.NOT_SUPPORTED] * 4


def test_driver_counters_are_exact_and_the_mask_is_not() -> None:
    """On an H200 power and thermal reasons are the driver's own time; only hardware slowdown and sync boost are from the mask."""
    reading = Bench().read()
    approximate = {dict(pairs)["reason"] for (_, pairs), q in reading.quality.items() if q is Quality.APPROXIMATE}
    assert approximate == {"hardware_slowdown", "sync_boost"}


def test_process_samples_are_asked_from_the_last_one_on() -> None:
    """The time stamp of the newest process sample is where the next request starts."""
    card = h200()
    card.values["nvmlDeviceGetProcessUtilization"] = [SimpleNamespace(pid=7, smUtil=1, memUtil=0, timeStamp=4242)]
    bench = Bench(card)
    since: list[int] = []
    real = bench.nvml.nvmlDeviceGetProcessUtilization
    bench.nvml.nvmlDeviceGetProcessUtilization = lambda handle, t: (since.append(t), real(handle, t))[1]  # type: ignore[method-assign]  # watched
    bench.read_slow()
    bench.read_slow(5.0)
    assert since == [int((1000.0 - 5.0) * 1e6), 4242]


def test_close_gives_everything_back() -> None:
    """Closing frees samples and event sets; NVML is shut down when the second source closes."""
    bench = Bench(h200("GPU-a"), h200("GPU-b"))
    bench.read()
    bench.read_slow()
    bench.fast.close()
    assert (bench.nvml.samples, bench.nvml.event_sets, bench.nvml.init_count) == (set(), set(), 1)
    bench.slow.close()
    assert bench.nvml.init_count == 0


def test_close_before_the_first_read() -> None:
    """A source that never read closes quietly."""
    bench = Bench()
    bench.close()
    assert bench.nvml.calls == []


@pytest.mark.parametrize("interval", [0.0, 0.05, 0.099])
def test_an_interval_below_100_ms_is_refused(interval: float) -> None:
    """NVML cannot serve less than 100 ms: one clear line, no silent default."""
    with pytest.raises(UserError, match=r"gpu\.interval: .* 0\.1 s between two GPM samples; set it to 100ms or more"):
        nvml_sources(interval=interval)


def test_the_pair_shares_one_session() -> None:
    """The factory gives two sources of the names that the pipeline knows, on one NVML session."""
    nvml = FakeNvml([h200()], FakeClock())
    fast, slow = nvml_sources(interval=0.1, nvml=nvml)
    slow.read(1000.0)
    assert fast.header == slow.header
    assert [(s.name, s.kind, s.interval) for s in (fast, slow)] == [("nvml", "gpu", 0.1), ("nvml_slow", "gpu", 5.0)]
