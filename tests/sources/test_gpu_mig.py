"""MIG through NVML: instances of their own, apart from the board, over a repartition."""

from __future__ import annotations

import json

import pytest

from heptascope.model import Reason, labels
from heptascope.sources.gpu.rows import GpuRows
from support.fake_nvml import NOT_SUPPORTED, FakeGpu, h200
from support.gpu_bench import Bench
from support.gpu_rows import reasons, values


def cut(*parts: tuple[int, int]) -> FakeGpu:
    """Return an H200 cut into GPU and compute instances; the list of MIG devices has a hole after each."""
    card = h200("GPU-a")
    card.values["nvmlDeviceGetMigMode"] = [1, 1]
    card.values["nvmlDeviceGetMaxMigDeviceCount"] = 7
    card.errors["nvmlDeviceGetUtilizationRates"] = NOT_SUPPORTED
    card.mig = {2 * n: part for n, part in enumerate(parts)}
    card.rates.update({2: 80.0, 10: 40.0, 20: 100.0})
    return card


def test_instances_have_their_own_activity_and_memory() -> None:
    """Each GPU instance is sampled for itself; power, clocks and links stay the board's, and are not repeated."""
    bench = Bench(cut((1, 0), (2, 0), (2, 1)))
    slow = bench.read_slow()
    bench.read()
    reading = bench.read()
    found = {dict(pairs)["instance"]: v for pairs, v in values(reading, "instance_dram_active_ratio").items()}
    assert {"1": 0.2, "2": 0.2} == pytest.approx(found)
    assert [0.4] == pytest.approx(list(values(reading, "dram_active_ratio").values()))
    assert {labels(gpu="0", uuid="GPU-a")} == set(values(reading, "power_watts")) == set(values(reading, "pcie_transmit_bytes_total"))
    used = {dict(pairs)["instance"]: v for pairs, v in values(slow, "instance_memory_used_bytes").items()}
    assert {"1": 2.0 * 2**30, "2": 3.0 * 2**30} == used
    infos = [dict(pairs) for pairs in values(slow, "instance_info")]
    assert {("1", None), ("1", "0"), ("2", None), ("2", "0"), ("2", "1")} == {(i["instance"], i.get("compute_instance")) for i in infos}
    assert {"MIG-1-0", "MIG-2-0", "MIG-2-1"} == {i["mig_uuid"] for i in infos if "mig_uuid" in i}
    assert {("3g.71gb", "3")} == {(i["profile"], i["slices"]) for i in infos}


def test_a_repartition() -> None:
    """A card that is cut anew: the old samples are given back, and the new instance is read after the next listing."""
    card = cut((1, 0), (2, 0))
    bench = Bench(card)
    bench.read_slow()
    bench.read()
    card.mig = {0: (0, 0)}
    reading = bench.read()
    assert 2 == len(reasons(reading, "instance_sm_active_ratio")) + len(values(reading, "instance_sm_active_ratio"))
    bench.read_slow()
    bench.read()
    assert {"0"} == {dict(pairs)["instance"] for pairs in values(bench.read(), "instance_sm_active_ratio")}
    bench.close()
    assert set() == bench.nvml.samples


def test_an_instance_that_cannot_be_sampled() -> None:
    """Without the right to read other instances, theirs have the reason, and the board goes on."""
    card = cut((1, 0))
    card.errors["nvmlGpmMigSampleGet"] = 4
    bench = Bench(card)
    bench.read_slow()
    reading = bench.read()
    assert [Reason.NO_PERMISSION] == [m.reason for m in reasons(reading, "instance_sm_active_ratio")]
    assert 1 == len(values(reading, "sm_active_ratio"))


def test_replay_is_the_same() -> None:
    """The rows of a cut card replay to the same samples."""
    bench = Bench(cut((1, 0)))
    live = [bench.read_slow(), bench.read(), bench.read()]
    rows = GpuRows(json.loads(json.dumps(bench.fast.header)))
    for reading in live:
        assert reading.raw is not None
        stored = json.loads(json.dumps(reading.raw["rows"]))
        again = (rows.slow if reading.source == "nvml_slow" else rows.fast)(stored)
        assert (reading.samples, reading.missing) == (again.samples, again.missing)
