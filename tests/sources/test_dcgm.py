"""The DCGM sources on host engines that follow a scenario; the values of the base scenario are recorded ones."""

from __future__ import annotations

import json

import pytest

from heptascope.errors import UserError
from heptascope.model import Quality, Reason, SourceStatus, labels
from heptascope.pipeline import Pipeline
from heptascope.signals.schema import SCHEMA
from heptascope.sources.base import SourceError
from heptascope.sources.gpu.dcgm import DcgmOptions, dcgm_sources
from heptascope.sources.gpu.rows import GpuRows
from heptascope.surfaces.own import own_values
from support.dcgm_bench import DcgmBench
from support.gpu_rows import reasons, value, values


def test_a_working_card_gives_what_was_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain and profiling values of a recorded device copy come out in base units, under the GPU's index and uuid."""
    bench = DcgmBench(monkeypatch, phase="copy")
    reading = bench.warm()
    assert {(("gpu", "0"), ("uuid", "GPU-0"))} == set(values(reading, "up"))
    assert (474.052, 1.98e9, 0.99) == tuple(value(reading, name) for name in ("power_watts", "sm_clock_hertz", "utilization_ratio"))
    assert (8718 * 2**20, 615 * 2**20) == (value(reading, "memory_used_bytes"), value(reading, "memory_reserved_bytes"))
    assert 5323.258 == pytest.approx(value(reading, "energy_joules_total"))
    found = (value(reading, "dram_active_ratio"), value(reading, "sm_occupancy_ratio"), value(reading, "graphics_engine_active_ratio"))
    assert (0.890225, 0.802743, 0.997108) == pytest.approx(found, abs=1e-6)


def test_profiling_is_approximate_and_its_windows_join(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each new value stands for the time since the one before; one that is read twice is shown but not counted twice."""
    bench = DcgmBench(monkeypatch, phase="copy")
    bench.warm()
    windows = [s.window for _ in range(8) for s in bench.read(0.5).samples if s.name == "heptascope_gpu_dram_active_ratio"]
    assert 4.0 == pytest.approx(sum(windows), abs=1e-6)
    assert 4 == sum(window < 1e-6 for window in windows)
    reading = bench.read()
    pairs = labels(gpu="0", uuid="GPU-0")
    for name in ("dram_active_ratio", "pcie_receive_bytes_total"):
        assert Quality.APPROXIMATE == reading.quality[f"heptascope_gpu_{name}", pairs]


def test_the_counters_integrate_the_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the pipeline the busy time over the sampled time is the ratio, and the source is called approximate."""
    bench, pipeline = DcgmBench(monkeypatch, phase="copy"), Pipeline()
    for _ in range(12):
        pipeline.ingest(bench.read())
        pipeline.ingest(bench.read_slow())
        snapshot = pipeline.step(bench.clock(), (SourceStatus("dcgm", "gpu", True, bench.clock(), 0.0),))
    pairs = labels(gpu="0", uuid="GPU-0")
    busy, sampled = (snapshot.value(f"heptascope_gpu_dram_active_{what}", pairs) for what in ("seconds_total", "sampled_seconds_total"))
    assert busy is not None
    assert sampled is not None
    assert 0.890225 == pytest.approx(busy / sampled, abs=1e-5)
    assert 9.0 <= sampled <= 11.0
    assert 1.0 == snapshot.value("heptascope_gpu_has_work", pairs)
    assert [{"kind": "gpu", "quality": "approximate", "source": "dcgm"}] == [
        dict(found) for found, _ in own_values(snapshot, bench.clock())["heptascope_source_info"]
    ]


def test_byte_rates_become_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    """DCGM's byte fields are rates despite their names: they are integrated, receive and transmit in their places."""
    bench = DcgmBench(monkeypatch, phase="copy")
    first = bench.warm()
    later = bench.read(2.0)
    for name, rate in (("pcie_receive_bytes_total", 29185889), ("pcie_transmit_bytes_total", 10909868)):
        assert 2.0 * rate == pytest.approx(value(later, name) - value(first, name), rel=1e-3)


def test_no_nvlink_is_no_series(monkeypatch: pytest.MonkeyPatch) -> None:
    """A card without NVLink reads 0 on the throughput fields, which must not look like an idle link."""
    reading = DcgmBench(monkeypatch, phase="copy").warm()
    assert {} == values(reading, "nvlink_receive_bytes_total")
    assert [Reason.NOT_SUPPORTED] == [m.reason for m in reasons(reading, "nvlink_receive_bytes_total")]


def test_nvlink_traffic_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a link carries something it has series from then on, through silence too."""
    bench = DcgmBench(monkeypatch, set={"1011": 5 * 2**20, "1012": 3 * 2**20})
    first = bench.warm()
    bench.engine.gpus[0].fields |= {"1011": 0, "1012": 0}
    later = bench.read(2.0)
    assert value(first, "nvlink_transmit_bytes_total") == value(later, "nvlink_transmit_bytes_total") > 0


def test_slow_values_constants_and_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Links, errors, limits and the info of the recorded card; what DCGM does not tell has its reason."""
    bench = DcgmBench(monkeypatch, phase="matmul")
    reading = bench.read_slow()
    expected = {"pcie_link_generation": 5.0, "pcie_replays_total": 1.0, "power_limit_watts": 700.0, "memory_total_bytes": 143771.0 * 2**20}
    assert expected == {name: value(reading, name) for name in expected}
    assert 1.98e9 == value(reading, "sm_clock_max_hertz")
    info = dict(next(iter(values(reading, "info"))))
    assert ("NVIDIA H200", "9.0", "0000:06:00.0", "580.159.04") == tuple(
        info[k] for k in ("model", "compute_capability", "pci_bus_id", "driver")
    )
    assert {Reason.NOT_SUPPORTED} == {m.reason for m in reasons(reading, "process_memory_bytes")}


def test_throttle_time_is_the_drivers_where_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Field 1420 counts nanoseconds: it grows by the time at the power cap."""
    bench = DcgmBench(monkeypatch, phase="matmul", rates={"1420": 1_000_000_000})
    bench.warm()
    before = value(bench.read(), "throttle_seconds_total", reason="power_cap")
    assert 5.0 == pytest.approx(value(bench.read(5.0), "throttle_seconds_total", reason="power_cap") - before)


def test_every_signal_has_a_value_or_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """What DCGM can supply is there, or the reading says why not; MIG series belong to cards that are cut."""
    bench = DcgmBench(monkeypatch, phase="copy")
    told = {x.name for r in (bench.warm(), bench.read_slow()) for x in r.samples}
    told |= {m.signal for r in (bench.read(), bench.read_slow()) for m in r.missing}
    integrals = {row.integral for row in SCHEMA.values()}
    integrals |= {name.replace("_seconds_total", "_sampled_seconds_total") for name in integrals}
    wanted = {n for n, row in SCHEMA.items() if "dcgm" in row.suppliers and n.startswith("heptascope_gpu_") and "instance" not in n}
    assert set() == wanted - integrals - told


def test_blanks_are_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    """A blank of each type is absent with its reason, never a number; a 0 stays a 0."""
    blank = {"155": None, "203": None, "252": None, "1005": None, "53": None}
    bench = DcgmBench(monkeypatch, phase="copy", set=blank)
    reading = bench.warm()
    for name in ("power_watts", "utilization_ratio", "memory_used_bytes", "dram_active_ratio"):
        assert {} == values(reading, name)
        assert [True] == ["DCGM has no value" in m.detail for m in reasons(reading, name)]
    assert 0.0 == value(reading, "tensor_active_ratio")
    assert "serial" not in dict(next(iter(values(bench.read_slow(), "info"))))


def test_replay_of_the_live_rows_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows that a recording keeps give the very same reading when they are replayed through JSON."""
    bench = DcgmBench(monkeypatch, "mig")
    live = [bench.read(), bench.read_slow(), bench.read(), bench.read(), bench.read()]
    rows = GpuRows(json.loads(json.dumps(bench.fast.header)))
    again = []
    for reading in live:
        assert reading.raw is not None
        stored = json.loads(json.dumps(reading.raw["rows"]))
        again.append((rows.slow if reading.source == "dcgm_slow" else rows.fast)(stored))
    assert [(r.source, r.samples, r.missing, r.quality) for r in live] == [(r.source, r.samples, r.missing, r.quality) for r in again]


def test_raw_cycle_counters_are_preferred_where_they_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares of elapsed cycles are exact means; ratios without such a counter stay approximate."""
    bench = DcgmBench(monkeypatch, "cycles")
    bench.warm()
    reading = bench.read(3.0)
    assert (0.95, 0.9, 0.05) == tuple(value(reading, f"{what}_active_ratio") for what in ("sm", "tensor", "fp32"))
    assert [3.0] == [s.window for s in reading.samples if s.name == "heptascope_gpu_sm_active_ratio"]
    approximate = {name.removeprefix("heptascope_gpu_") for name, _ in reading.quality}
    assert {"sm_active_ratio", "tensor_active_ratio", "pcie_receive_bytes_total"}.isdisjoint(approximate)
    assert "dram_active_ratio" in approximate


def test_watches_are_bounded_named_and_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain fields share a group, each GPU has one for profiling, names are unique, and closing leaves nothing behind."""
    bench = DcgmBench(monkeypatch, "one_sick")
    bench.read()
    engine = bench.engine
    profiling = [ids for ids in engine.field_groups.values() if 1001 in ids]
    assert (8, 2) == (len(profiling), len(engine.field_groups) - len(profiling))
    assert all(name.startswith("heptascope-") for name in engine.names.values())
    bench.read_slow()
    bench.fast.close()
    assert engine.connections
    bench.slow.close()
    assert (set(), {}, {}, {}) == (engine.connections, engine.field_groups, engine.entity_groups, engine.watches)
    assert 10 == engine.calls.count("dcgmUnwatchFields")


def test_a_name_that_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another client has a group of our name: another name is taken."""
    bench = DcgmBench(monkeypatch)
    real, first = bench.engine.number, []

    def number(name: str) -> int:
        if not first:
            first.append(name)
            bench.engine.names[999] = name
        return real(name)

    monkeypatch.setattr(bench.engine, "number", number)
    assert 1.0 == value(bench.read(), "up")
    assert all(name.split("-")[1] != first[0].split("-")[1] for key, name in bench.engine.names.items() if key != 999)


@pytest.mark.parametrize("devices", [("1",), ("GPU-1",)])
def test_only_the_gpus_asked_for(monkeypatch: pytest.MonkeyPatch, devices: tuple[str, ...]) -> None:
    """`gpu.devices` takes indexes and UUIDs."""
    reading = DcgmBench(monkeypatch, gpus=3, devices=devices).read()
    assert {labels(gpu="1", uuid="GPU-1")} == set(values(reading, "up"))


def test_a_gpu_asked_for_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """One unknown device is a reason beside the others; only unknown ones are an error that names what is there."""
    reading = DcgmBench(monkeypatch, devices=("0", "GPU-x")).read()
    assert [(Reason.NO_SOURCE, labels(uuid="GPU-x"))] == [(m.reason, m.labels) for m in reasons(reading, "up")]
    with pytest.raises(SourceError, match=r"none of the GPUs asked for \(7\) is there; the host engine shows: 0 \(GPU-0\)"):
        DcgmBench(monkeypatch, devices=("7",)).read()


def test_profiling_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some boards hang when profiling starts: with `gpu.dcgm.profiling: false` no such field is ever watched."""
    bench = DcgmBench(monkeypatch, options=DcgmOptions(profiling=False))
    reading = bench.warm()
    assert [Reason.NOT_CONFIGURED] == [m.reason for m in reasons(reading, "sm_active_ratio")]
    assert not any(1001 in ids for ids in bench.engine.field_groups.values())


def test_an_interval_below_100_ms_is_refused() -> None:
    """DCGM accepts less on Hopper and gives invalid values: one clear line instead."""
    with pytest.raises(UserError, match=r"gpu\.interval: .* 0\.1 s between two profiling samples; set it to 100ms or more"):
        dcgm_sources(DcgmOptions(), interval=0.05)


def test_mig_instances_have_their_own_series(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each GPU instance has its own activity and memory; the board's power, clocks and links are never repeated on it."""
    bench = DcgmBench(monkeypatch, "mig")
    reading, slow = bench.warm(), bench.read_slow()
    found = {dict(pairs)["instance"]: v for pairs, v in values(reading, "instance_dram_active_ratio").items()}
    assert {"1": 0.8902, "2": 0.4451} == pytest.approx(found, abs=1e-4)
    assert {"GPU-0"} == {dict(pairs)["uuid"] for pairs in values(reading, "instance_sm_active_ratio")}
    assert {8718.0 * 2**20, 4359.0 * 2**20} == set(values(slow, "instance_memory_used_bytes").values())
    assert {labels(gpu="0", uuid="GPU-0")} == set(values(reading, "power_watts"))
    parts = [dict(pairs) for pairs in values(slow, "instance_info")]
    assert {"MIG-5-210", "MIG-5-220"} == {p["mig_uuid"] for p in parts if "compute_instance" in p}
    assert "enabled" == dict(next(iter(values(slow, "info"))))["mig"]


def test_a_card_that_is_cut_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a repartition the old instances are gone and the new ones are there, without a restart."""
    bench = DcgmBench(monkeypatch, "mig")
    bench.warm()
    bench.read_slow(10.0)
    bench.warm()
    assert {"0"} == {dict(pairs)["instance"] for pairs in values(bench.warm(), "instance_sm_active_ratio")}
