"""How near each resource is to what can be had of it; and what a source supplies itself, which is not derived again."""

from __future__ import annotations

import pytest

from heptascope.model import Labels, Missing, Quality, Reason, labels
from heptascope.signals.ceilings import ACHIEVABLE
from support.feeding import GPU, RANK, START, Derived, busy, gpu, live

GAP, STEP, HOST = "engine_step_host_gap_ratio", "engine_step_seconds", "engine_step_host_seconds"
STEPS = "engine_steps_total"
ENGINE_INFO: dict[tuple[str, Labels], float] = {("engine_info", labels(kind="vllm", **dict(RANK))): 1.0}


def pressure(room: Derived, resource: str) -> float | None:
    """Return the pressure on a resource."""
    return room.value("engine_resource_pressure_ratio", labels(resource=resource, **dict(RANK)))


def why_pressure(room: Derived, resource: str) -> tuple[Reason, str] | None:
    """Return why a pressure is absent."""
    return room.why("engine_resource_pressure_ratio", labels(resource=resource, **dict(RANK)))


# pressure


def test_pressure_is_use_over_what_can_be_had() -> None:
    """DRAM and tensor cores by what real work reaches of them, the host by its gap."""
    room = busy(12, 4.0, {}, gpu(graphics_engine_active=0.7, dram_active=0.37, tensor_active=0.37))
    assert (pytest.approx(0.37 / ACHIEVABLE.dram), pytest.approx(0.37 / ACHIEVABLE.tensor), pytest.approx(0.3)) == tuple(
        pressure(room, resource) for resource in ("dram", "tensor", "host")
    )


def test_pressure_on_links() -> None:
    """Of PCIe and NVLink the busier direction counts; of several GPUs the busiest."""
    pcie = {("gpu_pcie_receive_bytes_total", GPU): 11e9, ("gpu_pcie_transmit_bytes_total", GPU): 1e9}
    nvlink = {("gpu_nvlink_receive_bytes_total", GPU): 1e9, ("gpu_nvlink_transmit_bytes_total", GPU): 20e9}
    facts = {
        ("gpu_pcie_link_generation_max", GPU): 5.0,
        ("gpu_pcie_link_width_max", GPU): 16.0,
        ("gpu_nvlink_bandwidth_bytes_per_second", GPU): 100e9,
    }
    room = busy(12, 4.0, pcie | nvlink, gpu(graphics_engine_active=0.7), facts)
    assert (pytest.approx(11 / 55), pytest.approx(20 / (100 * ACHIEVABLE.nvlink))) == (pressure(room, "pcie"), pressure(room, "link"))


def test_each_absent_pressure_has_its_own_reason() -> None:
    """One GPU has no link to others; what is not measured has the reason of its own counter."""
    room = Derived()
    lacking = (
        Missing("heptascope_gpu_dram_active_ratio", Reason.PROFILER_LOCKED, "nsys holds them", GPU),
        Missing("heptascope_gpu_pcie_receive_bytes_total", Reason.NOT_SUPPORTED, "", GPU),
    )
    for _ in range(12):
        room.second({("engine_requests_running", RANK): 4.0, **gpu(graphics_engine_active=0.7, tensor_active=0.2)}, lacking)
    assert (None, pytest.approx(0.2 / ACHIEVABLE.tensor)) == (pressure(room, "dram"), pressure(room, "tensor"))
    assert {"dram": Reason.PROFILER_LOCKED, "pcie": Reason.NOT_SUPPORTED, "link": Reason.NOT_CONFIGURED} == {
        resource: (why_pressure(room, resource) or (None,))[0] for resource in ("dram", "pcie", "link")
    }


def test_idle_has_no_pressure() -> None:
    """Without work nothing limits, whatever the GPU does."""
    room = busy(12, 0.0, {}, gpu(graphics_engine_active=0.7, dram_active=0.4, tensor_active=0.2))
    assert {(None, Reason.IDLE)} == {
        (pressure(room, r), (why_pressure(room, r) or (None,))[0]) for r in ("dram", "tensor", "pcie", "link", "host")
    }


def test_a_gap_alone_presses_on_nothing() -> None:
    """Where only NVML's utilization shows the gap there is nothing to compare it with, and the reason is that of the counters."""
    room = busy(12, 4.0, {}, {("gpu_utilization_ratio", GPU): 0.6, ("gpu_info", GPU): 1.0})
    assert (pytest.approx(0.4), None) == (room.value(GAP), pressure(room, "host"))
    assert (Reason.NO_SOURCE, "nothing supplies heptascope_gpu_graphics_engine_active_ratio") == why_pressure(room, "host")


# what a source supplies itself


def test_given_values_are_not_derived_again() -> None:
    """A source that gives a derivable value itself is believed, and pressures and host time follow from it."""
    room = busy(12, 4.0, {(STEPS, RANK): 100.0}, gpu(graphics_engine_active=0.9), {(GAP, RANK): 0.5, (STEP, RANK): 0.02})
    assert (0.5, 0.02, pytest.approx(0.01), 0.5) == (room.value(GAP), room.value(STEP), room.value(HOST), pressure(room, "host"))


def test_given_activity_makes_pressure() -> None:
    """So is one that gives the engine's mean activity and no GPU's."""
    room = busy(12, 4.0, {}, {("engine_gpu_dram_active_ratio", RANK): 0.37})
    assert pytest.approx(0.37 / ACHIEVABLE.dram) == pressure(room, "dram")


def test_given_work_without_requests() -> None:
    """An engine of which only is known that it works has pressures too."""
    room = Derived()
    for _ in range(12):
        room.second({**ENGINE_INFO, ("engine_has_work", RANK): 1.0, **gpu(dram_active=0.37)})
    assert pytest.approx(0.37 / ACHIEVABLE.dram) == pressure(room, "dram")


def test_qualities_are_told() -> None:
    """Derived values say that they are derived; a step time is approximate."""
    room = busy(12, 4.0, {(STEPS, RANK): 100.0}, gpu(graphics_engine_active=0.8))
    quality = room.store.snapshot(room.t).quality
    assert (Quality.DERIVED, Quality.APPROXIMATE) == (quality[f"heptascope_{GAP}", RANK], quality[f"heptascope_{STEP}", RANK])


def test_gpus_of_an_engine_are_told() -> None:
    """Which GPU serves which rank is an info series."""
    room = busy(3, 4.0, {}, gpu(graphics_engine_active=0.8))
    assert 1.0 == live(room.store, "engine_gpu_info", labels(**dict(RANK), **dict(GPU)))
    assert START + 2 == room.t
