"""GPUs that are lost and come back, and the XID errors that tell why."""

from __future__ import annotations

import pytest

from heptascope.model import Reason
from support.fake_nvml import GPU_IS_LOST, NO_PERMISSION, UNKNOWN, h200
from support.gpu_bench import Bench
from support.gpu_rows import reasons, value, values


def test_a_gpu_that_vanishes_and_comes_back() -> None:
    """A lost GPU is `up` 0 with reasons while the other goes on; when it answers again its counters continue."""
    good, bad = h200("GPU-a"), h200("GPU-b")
    bench = Bench(good, bad)
    bad.rates[21] = 10.0
    bench.read()
    before = value(bench.read(), "pcie_receive_bytes_total", gpu="1")
    bad.lost = True
    lost = bench.read()
    slow = bench.read_slow()
    assert (value(lost, "up", gpu="0"), value(lost, "up", gpu="1")) == (1.0, 0.0)
    assert value(lost, "sm_active_ratio", gpu="0") == 0.0
    assert {m.reason for m in lost.missing if ("gpu", "1") in m.labels} == {Reason.SOURCE_DOWN}
    assert {m.reason for m in slow.missing if ("gpu", "1") in m.labels} == {Reason.SOURCE_DOWN}
    bad.lost = False
    back = bench.read(2.0)
    assert value(back, "up", gpu="1") == 1.0
    assert value(back, "pcie_receive_bytes_total", gpu="1") >= before
    assert bench.nvml.calls.count("nvmlInit") == 1


def test_a_lost_gpu_is_tried_ever_less_often() -> None:
    """Tries to open a lost GPU again double their distance, from 1 s to a minute."""
    bench = Bench(h200("GPU-a"), h200("GPU-b"))
    bench.read()
    bench.cards[1].lost = True
    for _ in range(100):
        bench.read()
    assert bench.nvml.calls.count("nvmlDeviceGetHandleByUUID") == 6


def test_a_gpu_that_answers_nothing() -> None:
    """A GPU whose every call fails with an unknown error counts as lost."""
    card = h200("GPU-b")
    bench = Bench(h200("GPU-a"), card)
    bench.read()
    card.errors.update(dict.fromkeys([k if isinstance(k, str) else k[0] for k in card.values], UNKNOWN))
    card.errors.update({"nvmlGpmSampleGet": UNKNOWN, "nvmlDeviceGetFieldValues": UNKNOWN})
    reading = bench.read()
    assert (value(reading, "up", gpu="0"), value(reading, "up", gpu="1")) == (1.0, 0.0)


def test_a_gpu_lost_before_its_first_sample() -> None:
    """A GPU that is lost between its facts and its first GPM sample is `up` 0; its XID errors cannot be told."""
    card = h200()
    card.errors["nvmlGpmQueryDeviceSupport"] = GPU_IS_LOST
    reading = Bench(card).read()
    assert value(reading, "up") == 0.0
    assert [m.reason for m in reasons(reading, "xid_errors_total")] == [Reason.SOURCE_DOWN]


def test_the_slow_source_sees_a_loss_first() -> None:
    """A GPU that is lost in a slow read is lost for the fast source as well."""
    card = h200()
    bench = Bench(card)
    bench.read()
    card.errors["nvmlDeviceGetTotalEnergyConsumption"] = GPU_IS_LOST
    assert {s.name for s in bench.read_slow().samples} == {"heptascope_gpu_info"}
    assert value(bench.read(0.5), "up") == 0.0


def test_xid_errors_are_counted() -> None:
    """XID events since the start are counted by code, other events are not; known codes stand at 0 before."""
    card = h200()
    bench = Bench(card)
    assert value(bench.read(), "xid_errors_total", xid="79") == 0.0
    card.events += [(8, 31), (8, 31), (0x10, 5), (8, 79)]
    reading = bench.read()
    assert [value(reading, "xid_errors_total", xid=code) for code in ("31", "79", "48")] == [2.0, 1.0, 0.0]


def test_a_storm_of_xids() -> None:
    """More events than one read takes are counted in the reads that follow."""
    card = h200()
    bench = Bench(card)
    bench.read()
    card.events += [(8, 31)] * 300
    assert [value(bench.read(), "xid_errors_total", xid="31") for _ in range(2)] == [256.0, 300.0]


def test_the_xid_of_a_lost_gpu_is_seen() -> None:
    """The error that tells why a GPU fell off the bus (79) is counted although the GPU is lost."""
    card = h200()
    bench = Bench(card)
    bench.read()
    card.events.append((8, 79))
    card.lost = True
    reading = bench.read()
    assert (value(reading, "up"), value(reading, "xid_errors_total", xid="79")) == (0.0, 1.0)


@pytest.mark.parametrize(("types", "code"), [(0, 0), (8, NO_PERMISSION)])
def test_no_xid_events(types: int, code: int) -> None:
    """A card without XID events, or a forbidden registration, is a reason and no series."""
    card = h200()
    card.values["nvmlDeviceGetSupportedEventTypes"] = types
    if code:
        card.errors["nvmlDeviceRegisterEvents"] = code
    bench = Bench(card)
    reading = bench.read()
    assert values(reading, "xid_errors_total") == {}
    assert [m.reason for m in reasons(reading, "xid_errors_total")] == [Reason.NO_PERMISSION if code else Reason.NOT_SUPPORTED]
    bench.close()
    assert bench.nvml.event_sets == set()
