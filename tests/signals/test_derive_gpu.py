"""Each derived GPU signal, against values worked out by hand."""

from __future__ import annotations

import pytest

from heptascope.model import Labels, labels
from heptascope.signals.ceilings import CardPeaks
from heptascope.signals.derive_gpu import HAS_WORK_POWER, HAS_WORK_SHARE
from support.feeding import GPU, RANK, Derived

OTHER = labels(gpu="1", uuid="GPU-b")
H200 = labels(model="NVIDIA H200", sm_count="132", memory_bus_bits="6016", compute_capability="9.0", **dict(GPU))
WORK = "gpu_has_work"


def after(values: dict[tuple[str, Labels], float], seconds: int = 12, **settings: object) -> Derived:
    """Return a room in which a GPU showed these values for so long."""
    room = Derived(**settings)
    for _ in range(seconds):
        room.second(values)
    return room


@pytest.mark.parametrize(
    ("shown", "work"),
    [
        ({"gpu_graphics_engine_active_ratio": HAS_WORK_SHARE * 1.1}, 1.0),
        ({"gpu_graphics_engine_active_ratio": HAS_WORK_SHARE * 0.9}, 0.0),
        ({"gpu_dram_active_ratio": 0.5}, 1.0),
        ({"gpu_utilization_ratio": 0.5, "gpu_graphics_engine_active_ratio": 0.0}, 0.0),
        ({"gpu_utilization_ratio": 0.5}, 1.0),
        ({"gpu_utilization_ratio": 0.0, "gpu_power_watts": 600.0, "gpu_power_limit_watts": 700.0}, 0.0),
        ({"gpu_power_watts": 700 * HAS_WORK_POWER * 1.1, "gpu_power_limit_watts": 700.0}, 1.0),
        ({"gpu_power_watts": 700 * HAS_WORK_POWER * 0.9, "gpu_power_limit_watts": 700.0}, 0.0),
        ({"gpu_power_watts": 600.0}, None),
    ],
)
def test_has_work(shown: dict[str, float], work: float | None) -> None:
    """Activity tells it best, then utilisation, then power; where none is known it is not known."""
    assert work == after({("gpu_info", GPU): 1.0, **{(name, GPU): value for name, value in shown.items()}}).value(WORK, GPU)


ACTIVE = {("gpu_info", GPU): 1.0, ("gpu_graphics_engine_active_ratio", GPU): 0.9}


@pytest.mark.parametrize(("running", "work"), [(1.0, 1.0), (0.0, 0.0)])
def test_a_gpu_whose_engine_rests_has_no_work(running: float, work: float) -> None:
    """What runs on the GPU of an engine without requests is not work: a warm-up, or someone else's."""
    assert work == after({**ACTIVE, ("engine_requests_running", RANK): running}).value(WORK, GPU)


def test_a_gpu_of_two_engines_works_for_either() -> None:
    """One busy engine is enough."""
    ranks = [labels(engine=name, rank="0") for name in "ab"]
    room = after(
        {**ACTIVE, ("engine_requests_running", ranks[0]): 0.0, ("engine_requests_running", ranks[1]): 1.0},
        engine_gpus={"a": ["0"], "b": ["0"]},
    )
    assert 1.0 == room.value(WORK, GPU)


def test_an_engine_of_unknown_load_does_not_rest() -> None:
    """An engine that tells nothing of its load does not make its GPU idle."""
    assert 1.0 == after({**ACTIVE, ("engine_info", RANK): 1.0}).value(WORK, GPU)


def test_dram_estimates() -> None:
    """Peak is twice the clock times the bus; traffic is the active share of it."""
    room = after({("gpu_info", H200): 1.0, ("gpu_memory_clock_max_hertz", GPU): 3201e6, ("gpu_dram_active_ratio", GPU): 0.5})
    peak = 2 * 3201e6 * 6016 / 8
    assert (peak, pytest.approx(peak / 2)) == (
        room.value("gpu_dram_peak_bytes_per_second", GPU),
        room.value("gpu_dram_throughput_bytes_per_second", GPU),
    )


def test_tensor_estimate() -> None:
    """Active share times SMs times FLOP a clock times clock: 0.925 at 1485 MHz are 743 TFLOP/s, of which a product got 667."""
    room = after({("gpu_info", H200): 1.0, ("gpu_sm_clock_hertz", GPU): 1485e6, ("gpu_tensor_active_ratio", GPU): 0.925})
    assert pytest.approx(0.925 * 132 * 4096 * 1485e6) == room.value("gpu_tensor_throughput_flops_per_second", GPU)


def test_estimates_by_configured_peaks() -> None:
    """A user's peaks are used for models whose name holds the configured word."""
    card = labels(model="ACME 9000", sm_count="10", compute_capability="99.0", **dict(GPU))
    shown = {
        ("gpu_info", card): 1.0,
        ("gpu_sm_clock_hertz", GPU): 1e9,
        ("gpu_tensor_active_ratio", GPU): 0.5,
        ("gpu_dram_active_ratio", GPU): 0.5,
    }
    room = after(shown, peaks={"ACME": CardPeaks(dram_bytes_per_second=1e12, flops_per_clock_per_sm=1000)})
    assert (0.5e12, 0.5 * 10 * 1000 * 1e9) == (
        room.value("gpu_dram_throughput_bytes_per_second", GPU),
        room.value("gpu_tensor_throughput_flops_per_second", GPU),
    )


def test_an_unknown_card_has_no_estimates() -> None:
    """Without a peak there is nothing to estimate with."""
    room = after(
        {("gpu_info", labels(model="ACME", **dict(GPU))): 1.0, ("gpu_dram_active_ratio", GPU): 0.5, ("gpu_tensor_active_ratio", GPU): 0.5}
    )
    names = ("gpu_dram_peak_bytes_per_second", "gpu_dram_throughput_bytes_per_second", "gpu_tensor_throughput_flops_per_second")
    assert [None, None, None] == [room.value(name, GPU) for name in names]


def processes(*rows: tuple[str, str, float, float], gpu: Labels = GPU) -> dict[tuple[str, Labels], float]:
    """Return processes as (pid, role, memory, SM share); a role of "" is not listed by the host."""
    out: dict[tuple[str, Labels], float] = {}
    for pid, role, memory, share in rows:
        out["gpu_process_memory_bytes", labels(pid=pid, **dict(gpu))] = memory
        out["gpu_process_sm_utilization_ratio", labels(pid=pid, **dict(gpu))] = share
        if role:
            out["host_process_info", labels(engine="vllm" if role != "other" else "", role=role, process=f"{role}-{pid}", pid=pid)] = 1.0
    return out


def test_neighbours_are_processes_of_no_engine() -> None:
    """What strangers use of a GPU adds up; an engine's own processes do not count."""
    room = after(processes(("1", "engine_core", 60e9, 0.5), ("2", "other", 1e9, 0.2), ("3", "", 2e9, 0.1)))
    assert (pytest.approx(0.3), 3e9) == (
        room.value("gpu_neighbour_sm_utilization_ratio", GPU),
        room.value("gpu_neighbour_memory_bytes", GPU),
    )


def test_an_engine_alone_has_no_neighbours() -> None:
    """Without strangers their use is 0, and known."""
    room = after(processes(("1", "worker", 60e9, 0.5), ("2", "api_server", 1e9, 0.1)))
    assert (0.0, 0.0) == (room.value("gpu_neighbour_sm_utilization_ratio", GPU), room.value("gpu_neighbour_memory_bytes", GPU))


def test_unrecognised_processes_are_no_neighbours() -> None:
    """Where none of the processes is known to be an engine's, any of them may be: nothing is said."""
    room = after(processes(("1", "", 60e9, 0.5), ("2", "", 1e9, 0.2)))
    assert (None, None) == (room.value("gpu_neighbour_sm_utilization_ratio", GPU), room.value("gpu_neighbour_memory_bytes", GPU))


def test_neighbours_of_one_gpu_are_not_another_ones() -> None:
    """Each GPU has its own."""
    room = after({**processes(("1", "worker", 1e9, 0.5), ("9", "", 5e9, 0.4)), **processes(("2", "worker", 1e9, 0.5), gpu=OTHER)})
    assert (pytest.approx(0.4), 0.0) == tuple(room.value("gpu_neighbour_sm_utilization_ratio", card) for card in (GPU, OTHER))
