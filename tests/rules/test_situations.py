"""Realistic situations that no recording holds, second by second: whatever the verdict says of them must be true."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from heptascope.model import VerdictState, labels
from heptascope.offline import Pass
from heptascope.signals.schema_gpu import ACTIVITY
from support.scenes import ENGINE, GPU, START, Scene, decode, engine_identity, gpu_identity, idle_gpu, judged, processes
from support.traffic import Request, every, load, serve

IDLE, HEALTHY, DEGRADED, UNKNOWN = VerdictState.IDLE, VerdictState.HEALTHY, VerdictState.DEGRADED, VerdictState.CANNOT_TELL
SETTLED = 14  # seconds until a window of load and a hold are over


def gpu(index: int) -> tuple[tuple[str, str], ...]:
    """Return the labels of one of several GPUs."""
    return labels(gpu=str(index), uuid=f"GPU-{index}")


def rank(index: int) -> tuple[tuple[str, str], ...]:
    """Return the labels of one of several data-parallel ranks."""
    return labels(engine="vllm", rank=str(index))


def states(passes: list[Pass], after: int = SETTLED, until: int = 1000) -> set[VerdictState]:
    """Return the states that the verdict has in these seconds; by default, once the window is full of the situation."""
    return {found.verdict.state for found in passes if after < found.t - START < until}


def limiters(passes: list[Pass]) -> set[str]:
    """Return the limiters named once the window is full of the situation; "" where there is none."""
    return {found.verdict.limiter.rule if found.verdict.limiter else "" for found in passes if found.t - START > SETTLED}


def faults(passes: list[Pass]) -> set[str]:
    """Return every fault or unexplained symptom claimed at any moment."""
    return {c.rule for p in passes for c in (*p.verdict.faults, *p.verdict.consequences, *(s for s in p.verdict.symptoms if not s.because))}


def served(seconds: int, requests: list[Request], cap: int = 256) -> Scene:
    """Return a pod that serves these requests for so long."""
    scene = decode()
    scene.seconds = seconds
    return load(scene, serve(requests, cap))


def changed(scene: Scene, of: str, to: Callable[[str, float], Callable[[int], float | None]]) -> Scene:
    """Replace what each series of a source does, given its name and its value so far."""
    for name, pairs in [key for key in scene.series if key[0].startswith(of)]:
        does = scene.series[name, pairs]
        assert not callable(does)
        scene.series[name, pairs] = to(name, does)
    return scene


def test_steady_decode_is_healthy() -> None:
    """The scene that the others start from is a healthy decode load, bound by DRAM."""
    passes = judged(decode())
    assert (set(), {HEALTHY}, {"DramBandwidthLimit"}) == (faults(passes), states(passes), limiters(passes))


@pytest.mark.parametrize(("between", "tokens"), [(5.0, 125.0), (20.0, 125.0), (3.0, 40.0)])
def test_light_load(between: float, tokens: float) -> None:
    """A request now and then: nothing limits, and the GPU's rest between them is no fault of the host."""
    passes = judged(served(60, every(between, 2, 60, output=tokens)))
    assert set() == faults(passes)
    assert states(passes) <= {IDLE, HEALTHY}
    assert {""} == limiters(passes)


@pytest.mark.parametrize(("length", "period", "answer"), [(0.6, 10.0, 300.0), (2.0, 30.0, 1000.0), (0.2, 15.0, 60.0)])
def test_bursts(length: float, period: float, answer: float) -> None:
    """Requests come in bursts: a short queue and falling numbers of running requests are neither overload nor aborts."""
    requests = [r for i in range(3) for r in every(0.005, 5 + i * period, 5 + i * period + length, output=answer)]
    assert set() == faults(judged(served(int(3 * period) + 5, requests)))


def test_ramp_up() -> None:
    """Load that rises for a minute, whose answers are longer than the window, is not aborted requests."""
    passes = judged(served(60, [Request((2 * i) ** 0.5 * 3, output=800) for i in range(200)]))
    assert set() == faults(passes)
    assert HEALTHY in states(passes)


def test_nothing_ends_for_a_minute() -> None:
    """First tokens without finished requests are no aborts while the requests still run."""
    assert set() == faults(judged(served(60, every(0.25, 2, 60, output=8000))))


def test_a_third_of_the_clients_leaves() -> None:
    """Clients that hang up are told, and told as that."""
    requests = [Request(2 + i * 0.1, output=800, leaves=4 + i * 0.1 if i % 3 == 0 else float("inf")) for i in range(360)]
    assert {"ClientAborts"} == faults(judged(served(40, requests)))


def test_restart_under_load() -> None:
    """An engine that goes away, comes back, warms up and is loaded again is unknown, idle, then healthy, and never at fault."""
    away = range(22, 36)

    def loaded(value: float) -> Callable[[int], float]:
        return lambda s: value if s < away.start or s > 48 else 0.0

    def does(name: str, value: float) -> Callable[[int], float | None]:
        stays = name.endswith(("_info", "_limit", "_enabled", "_tokens"))
        return lambda s: None if s in away else value if stays else loaded(value)(s)

    scene = changed(decode(), "engine_", does)
    changed(
        scene,
        "gpu_",
        lambda name, value: loaded(value) if name.removeprefix("gpu_").removesuffix("_ratio") in ACTIVITY else lambda _: value,
    )
    scene.rates = {key: loaded(rate) for key, rate in scene.rates.items() if not callable(rate)}
    scene.seconds, scene.silent = 75, {"engine": away}
    passes = judged(scene)
    assert set() == faults(passes)
    assert {UNKNOWN} == states(passes, away.start, away.stop)
    assert {IDLE} == states(passes, away.stop + 1, 48)
    assert {HEALTHY} == states(passes, 65)


def test_a_lost_gpu_is_named() -> None:
    """When the driver says that the GPU is lost, that is the fault, and nothing else is claimed of it."""
    passes = judged(changed(decode(), "gpu_", lambda name, value: lambda s: value if s < 20 else 0.0 if name == "gpu_up" else None))
    assert {"GpuLost"} == faults(passes)
    assert DEGRADED is passes[-1].verdict.state


def test_a_gpu_that_is_no_longer_read_is_unknown() -> None:
    """When the GPU's signals just end, the verdict is that it cannot be told, at once."""
    passes = judged(changed(decode(), "gpu_", lambda _name, value: lambda s: value if s < 20 else None))
    assert set() == faults(passes)
    assert {UNKNOWN} == states(passes, 20)


def two_ranks(waiting: float) -> Scene:
    """Return an engine of two data-parallel ranks, of which the second has no work."""
    scene, other = decode(rank(0), gpu(0)), decode(rank(1), gpu(1))
    idle_gpu(scene, gpu(1))
    engine_identity(scene, rank(1))
    for key in [key for key in other.series if key[0].startswith("engine_")]:
        scene.series.setdefault(key, 0.0 if key not in other.rates else 0.01)
        if key in other.rates:
            scene.rates[key] = 0.0
    return scene.set(rank(0), engine_requests_waiting=waiting)


def test_an_idle_rank_is_no_fault() -> None:
    """One of two ranks rests while the other is not full: there is nothing to balance, and no GPU has died."""
    assert set() == faults(judged(two_ranks(0.0)))


def test_a_queue_beside_an_idle_rank_is_imbalance() -> None:
    """One of two ranks rests while requests wait for the other."""
    assert {"RankImbalance"} == faults(judged(two_ranks(30.0)))


def eight_gpus() -> Scene:
    """Return a large model on eight GPUs: each step waits for collectives, which spin and talk."""
    scene = decode(ENGINE, gpu(0))
    for index in range(8):
        scene.series.update(decode(ENGINE, gpu(index)).series)
        scene.set(gpu(index), gpu_graphics_engine_active_ratio=0.96, gpu_sm_active_ratio=0.55 + 0.01 * (index % 3), gpu_power_watts=480.0)
        scene.set(gpu(index), gpu_dram_active_ratio=0.36, gpu_tensor_active_ratio=0.15, gpu_nvlink_bandwidth_bytes_per_second=4.5e11)
        scene.set(gpu(index), gpu_nvlink_receive_bytes_total=2e10, gpu_nvlink_transmit_bytes_total=2e10)
    return scene


def test_a_huge_model_on_eight_gpus() -> None:
    """A healthy group of eight is healthy: no straggler, no idle GPU, and no host gap, which spinning collectives hide."""
    passes = judged(eight_gpus())
    assert (set(), {HEALTHY}, {"DramBandwidthLimit"}) == (faults(passes), states(passes), limiters(passes))
    assert {"HostStepLimit"} <= {unknown.rule for unknown in passes[-1].verdict.cannot_tell}


def embedding() -> Scene:
    """Return a server of embeddings: prompts only, not a token generated, no inter-token latency."""
    scene = decode().set(ENGINE, engine_generation_tokens_total=0.0, engine_prompt_tokens_total=60_000.0, engine_requests_running=8.0)
    scene.set(ENGINE, engine_prefix_cache_queried_tokens_total=60_000.0, engine_step_tokens_total=60_000.0, engine_steps_total=60.0)
    scene.set(labels(reason="length", **dict(ENGINE)), engine_requests_finished_total=0.0)
    scene.set(labels(reason="stop", **dict(ENGINE)), engine_requests_finished_total=120.0)
    scene.drop("engine_inter_token_latency_seconds", "engine_decode_time_seconds")
    scene.seen(ENGINE, 120.0, engine_time_to_first_token_seconds=0.07, engine_e2e_latency_seconds=0.07, engine_queue_time_seconds=0.001)
    scene.seen(ENGINE, 120.0, engine_prefill_time_seconds=0.06, engine_prompt_length_tokens=500)
    return scene.set(GPU, gpu_tensor_active_ratio=0.55, gpu_dram_active_ratio=0.2, gpu_sm_active_ratio=0.85, gpu_sm_occupancy_ratio=0.16)


def test_embeddings_are_compute() -> None:
    """A server that generates nothing is bound by its tensor cores."""
    passes = judged(embedding())
    assert (set(), {HEALTHY}, {"TensorComputeLimit"}) == (faults(passes), states(passes), limiters(passes))


def test_embeddings_need_no_prefix_cache() -> None:
    """Embeddings wait in a short queue with the prefix cache off, as it is for such models: that is not their trouble."""
    assert set() == faults(judged(embedding().set(ENGINE, engine_prefix_caching_enabled=0, engine_requests_waiting=3.0)))


def test_warming_up() -> None:
    """An engine that captures graphs keeps the GPU busy with next to nothing and fills its memory; without a request it is idle."""
    scene = Scene()
    gpu_identity(scene, GPU)
    engine_identity(scene, ENGINE)
    processes(scene, "vllm", 1.0, 0.05)
    nothing = (
        "requests_running",
        "requests_waiting",
        "generation_tokens_total",
        "prompt_tokens_total",
        "steps_total",
        "kv_cache_usage_ratio",
    )
    scene.set(ENGINE, **{f"engine_{name}": 0.0 for name in nothing})
    scene.set(GPU, gpu_graphics_engine_active_ratio=0.95, gpu_sm_active_ratio=0.1, gpu_dram_active_ratio=0.05, gpu_utilization_ratio=0.95)
    scene.set(GPU, gpu_power_watts=200.0, gpu_sm_clock_hertz=1.2e9, gpu_memory_used_bytes=lambda s: 1.48e11 + 4e7 * s)
    passes = judged(scene)
    assert (set(), {IDLE}) == (faults(passes), states(passes, 1))


def test_prefix_cache_warm_up() -> None:
    """A cold prefix cache that fills within a minute, with a queue that melts away, is no fault of the cache."""

    def hits(second: int) -> float:
        return min(second / 40, 0.95)

    scene = decode().set(ENGINE, engine_prompt_tokens_total=40_000.0, engine_prefix_cache_queried_tokens_total=40_000.0)
    scene.set(ENGINE, engine_prompt_cached_tokens_total=lambda s: 40_000 * hits(s), engine_requests_waiting=lambda s: max(20.0 - s, 0.0))
    scene.set(ENGINE, engine_prefix_cache_hit_tokens_total=lambda s: 40_000 * hits(s))
    scene.set(GPU, gpu_tensor_active_ratio=lambda s: 0.7 * (1 - hits(s)) + 0.1, gpu_graphics_engine_active_ratio=0.95)
    assert set() == faults(judged(scene))


@pytest.mark.parametrize("visible", [True, False])
def test_one_engine_sees_every_gpu_of_the_node(visible: bool) -> None:
    """A sidecar may see eight GPUs of which its engine uses one: the others are not its, and do not idle for it."""
    scene = decode(ENGINE, gpu(0))
    for index in range(1, 8):
        idle_gpu(scene, gpu(index))
    if not visible:
        scene.drop("host_process_info", "host_process_cpu_seconds_total", "host_process_run_queue_seconds_total")
    passes = judged(scene)
    assert (set(), {HEALTHY}, {"DramBandwidthLimit"}) == (faults(passes), states(passes), limiters(passes))


def test_a_hung_collective() -> None:
    """Requests run, no token comes, the GPU spins: that is what is said."""
    scene = decode().set(ENGINE, engine_generation_tokens_total=0.0, engine_prompt_tokens_total=0.0, engine_steps_total=0.0)
    scene.set(labels(reason="length", **dict(ENGINE)), engine_requests_finished_total=0.0)
    scene.rates = dict.fromkeys(scene.rates, 0.0)
    scene.set(GPU, gpu_graphics_engine_active_ratio=1.0, gpu_sm_active_ratio=0.01, gpu_dram_active_ratio=0.0, gpu_tensor_active_ratio=0.0)
    assert {"BusyWithoutWork"} == faults(judged(scene.set(GPU, gpu_sm_occupancy_ratio=0.001, gpu_power_watts=125.0)))


def two_engines() -> Scene:
    """Return two engines on one GPU, each with its own processes, of which the second is idle."""
    a, b = labels(engine="vllm-8000", rank="0"), labels(engine="vllm-8001", rank="0")
    scene = decode(a)
    engine_identity(scene, b)
    processes(scene, "vllm-8001", 0.01, 0.01, pid=200)
    resting = (
        "requests_running",
        "requests_waiting",
        "generation_tokens_total",
        "prompt_tokens_total",
        "steps_total",
        "kv_cache_usage_ratio",
    )
    scene.set(b, **{f"engine_{name}": 0.0 for name in resting})
    for pid, share in (("100", 0.68), ("200", 0.0)):
        scene.set(labels(pid=pid, **dict(GPU)), gpu_process_memory_bytes=3e10, gpu_process_sm_utilization_ratio=share)
    return scene


def test_two_engines_on_one_gpu() -> None:
    """Each engine has its own verdict, a neighbour is no stranger, and the idle one has no limiter."""
    passes = judged(two_engines())
    last = passes[-1].verdict
    assert set() == faults(passes)
    assert {"vllm-8000": HEALTHY, "vllm-8001": IDLE} == {verdict.engine: verdict.state for verdict in last.engines}
    assert {"vllm-8000": True, "vllm-8001": False} == {verdict.engine: verdict.limiter is not None for verdict in last.engines}


def test_decode_instance_of_a_split_server() -> None:
    """Where another instance prefills, prompts arrive computed: nothing of that is a cache's or a budget's fault."""
    scene = decode().set(ENGINE, engine_prompt_cached_tokens_total=4024.0, engine_prefix_cache_queried_tokens_total=0.0)
    passes = judged(scene.set(ENGINE, engine_prefix_cache_hit_tokens_total=0.0))
    assert (set(), {HEALTHY}) == (faults(passes), states(passes))


def test_a_neighbour_while_the_engine_rests() -> None:
    """Someone else computes on the card of an engine without requests: it waits for nothing."""
    scene = two_engines().drop("engine_info", where=labels(engine="vllm-8001"))
    for name, pairs in list(scene.series):
        if dict(pairs).get("engine") == "vllm-8001":
            del scene.series[name, pairs]
    rest = labels(engine="vllm-8000", rank="0")
    for key in [key for key in scene.series if key[1] == rest and key not in scene.rates and key[0].endswith(("_total", "running"))]:
        scene.series[key] = 0.0
    scene.rates = dict.fromkeys(scene.rates, 0.0)
    scene.set(labels(reason="length", **dict(rest)), engine_requests_finished_total=0.0)
    passes = judged(scene.set(labels(pid="200", **dict(GPU)), gpu_process_sm_utilization_ratio=0.9))
    assert (set(), {IDLE}) == (faults(passes), states(passes, 1))
