"""A server second by second, as readings: what an H200 and a vLLM would show of a situation that no recording holds.

A scene maps series to what they do: a number, or a function of the second that returns a number, or None while the series is absent.
Gauges take it as their value, counters as their rate, histograms as the latency of every observation (their rate stands beside them).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from heptascope.config import Settings
from heptascope.model import Histogram, Labels, Reading, Reason, Sample, labels
from heptascope.offline import Pass, passes
from heptascope.signals.schema import SCHEMA
from heptascope.signals.schema_row import Kind
from heptascope.sources.replay import Failure
from heptascope.wiring import build_pipeline
from support.untraced import untraced

START = 1_700_000_000.0
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 60.0, 1024.0, 8192.0, float("inf"))
Key = tuple[str, Labels]
Does = float | Callable[[int], float | None]
ENGINE = labels(engine="vllm", rank="0")
GPU = labels(gpu="0", uuid="GPU-0")


@dataclass
class Scene:
    """Series by name without prefix and labels; `silent` holds, by source, the seconds in which its reads fail."""

    series: dict[Key, Does] = field(default_factory=dict)
    rates: dict[Key, Does] = field(default_factory=dict)
    silent: dict[str, range] = field(default_factory=dict)
    seconds: int = 45

    def set(self, where: Labels, /, **does: Does) -> Scene:
        """Let series of one engine rank, GPU or process do something; return the scene."""
        for name, what in does.items():
            self.series[name, where] = what
        return self

    def seen(self, where: Labels, rate: Does, /, **latencies: Does) -> Scene:
        """Let histograms observe latencies at `rate` per second; return the scene."""
        for name, latency in latencies.items():
            self.series[name, where], self.rates[name, where] = latency, rate
        return self

    def drop(self, *names: str, where: Labels | None = None) -> Scene:
        """Take series away, of one entity or of all; return the scene."""
        self.series = {key: does for key, does in self.series.items() if key[0] not in names or (where is not None and key[1] != where)}
        return self


def decode(rank: Labels = ENGINE, gpu: Labels = GPU) -> Scene:
    """Return a healthy decode load, in the figures of the recording `decode-c64`."""
    scene = Scene()
    gpu_identity(scene, gpu)
    scene.set(gpu, gpu_graphics_engine_active_ratio=0.86, gpu_sm_active_ratio=0.68, gpu_sm_occupancy_ratio=0.11)
    scene.set(gpu, gpu_tensor_active_ratio=0.22, gpu_dram_active_ratio=0.52, gpu_utilization_ratio=0.92)
    scene.set(gpu, gpu_power_watts=598.0, gpu_pcie_receive_bytes_total=8.3e7, gpu_pcie_transmit_bytes_total=2.6e7)
    engine_identity(scene, rank)
    scene.set(rank, engine_requests_running=62, engine_requests_waiting=0, engine_requests_deferred=0, engine_kv_cache_usage_ratio=0.09)
    scene.set(rank, engine_prompt_tokens_total=4024, engine_prompt_cached_tokens_total=7, engine_generation_tokens_total=7957)
    scene.set(rank, engine_prefix_cache_queried_tokens_total=4024, engine_prefix_cache_hit_tokens_total=7, engine_preemptions_total=0)
    scene.set(rank, engine_steps_total=124, engine_step_tokens_total=11_981)
    scene.set(labels(reason="length", **dict(rank)), engine_requests_finished_total=15.5)
    scene.set(labels(status="2xx", **dict(rank)), engine_http_requests_total=15.5)
    scene.seen(rank, 15.5, engine_time_to_first_token_seconds=0.039, engine_e2e_latency_seconds=3.97, engine_queue_time_seconds=0.002)
    scene.seen(rank, 15.5, engine_prefill_time_seconds=0.03, engine_decode_time_seconds=3.9, engine_prompt_length_tokens=251)
    scene.seen(rank, 7900, engine_inter_token_latency_seconds=0.008)
    processes(scene, dict(rank)["engine"])
    return scene


def gpu_identity(scene: Scene, gpu: Labels) -> None:
    """Add what an H200 shows whether it works or not."""
    scene.set(gpu, gpu_info=1, gpu_up=1, gpu_power_limit_watts=700, gpu_sm_clock_hertz=1.98e9, gpu_sm_clock_max_hertz=1.98e9)
    scene.set(gpu, gpu_memory_clock_hertz=3.2e9, gpu_memory_clock_max_hertz=3.2e9, gpu_temperature_celsius=52)
    scene.set(gpu, gpu_memory_used_bytes=1.2e11, gpu_memory_total_bytes=1.5e11, gpu_row_remap_pending=0, gpu_row_remap_failure=0)
    scene.set(gpu, gpu_pcie_link_generation=5, gpu_pcie_link_generation_max=5, gpu_pcie_link_width=16, gpu_pcie_link_width_max=16)
    scene.set(gpu, gpu_pcie_replays_total=0)
    for reason in ("power_cap", "hardware_slowdown", "software_thermal", "hardware_thermal", "power_brake"):
        scene.set(labels(reason=reason, **dict(gpu)), gpu_throttle_seconds_total=0)


def engine_identity(scene: Scene, rank: Labels) -> None:
    """Add what a vLLM shows whether it works or not."""
    scene.set(labels(kind="vllm", version="0.25.1", model="llama", **dict(rank)), engine_info=1)
    scene.set(rank, engine_kv_cache_capacity_tokens=487_232, engine_prefix_caching_enabled=1, engine_model_length_limit=8192)
    scene.set(rank, engine_speculation_enabled=0)


def processes(scene: Scene, engine: str, core: Does = 0.85, server: Does = 0.3, pid: int = 100) -> None:
    """Add the two processes of an engine: how many cores each uses."""
    for offset, (role, cpu) in enumerate((("engine_core", core), ("api_server", server))):
        row = {"engine": engine, "role": role, "process": role}
        scene.set(labels(pid=str(pid + offset), command=role, **row), host_process_info=1)
        scene.set(labels(**row), host_process_cpu_seconds_total=cpu, host_process_run_queue_seconds_total=0.01)


def idle_gpu(scene: Scene, gpu: Labels = GPU) -> Scene:
    """Let a GPU rest."""
    gpu_identity(scene, gpu)
    for what in ("graphics_engine_active", "sm_active", "sm_occupancy", "tensor_active", "dram_active"):
        scene.set(gpu, **{f"gpu_{what}_ratio": 0.0})
    scene.set(gpu, gpu_pcie_receive_bytes_total=1e6, gpu_pcie_transmit_bytes_total=1e6)
    return scene.set(gpu, gpu_power_watts=129.0, gpu_utilization_ratio=0.0)


def play(scene: Scene) -> Iterator[Reading | Failure]:
    """Yield the readings of a scene, three sources a second, and a failure for each read that its silence makes fail."""
    player = _Player(scene)
    for second in range(scene.seconds + 1):
        for source in ("engine", "gpu", "host"):
            t = START + second
            if second in scene.silent.get(source, ()):
                yield Failure(source, t, Reason.SOURCE_DOWN, "connection refused")
                continue
            yield player.read(source, second)


class _Player:
    """Keeps the counters and histograms of a scene."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._totals: dict[Key, float] = {}
        self._seen: dict[Key, tuple[tuple[float, ...], float]] = {}

    def read(self, source: str, second: int) -> Reading:
        reading = Reading(source, START + second)
        for key, does in self._scene.series.items():
            if not key[0].startswith(source):
                continue
            value = _at(does, second)
            if value is None:  # it is gone, and starts anew when it comes back
                self._totals.pop(key, None)
                continue
            name, pairs = f"heptascope_{key[0]}", key[1]
            if SCHEMA[name].kind is Kind.HISTOGRAM:
                reading.histograms.append(Histogram(name, pairs, BOUNDS, *self._observe(key, value, second)))
            elif SCHEMA[name].kind is Kind.COUNTER:
                self._totals[key] = self._totals[key] + value if key in self._totals else 0.0
                reading.samples.append(Sample(name, pairs, self._totals[key]))
            else:
                reading.samples.append(Sample(name, pairs, value, 1.0 if SCHEMA[name].integral else 0.0))
        return reading

    def _observe(self, key: Key, latency: float, second: int) -> tuple[tuple[float, ...], float]:
        counts, total = self._seen.get(key, ((0.0,) * len(BOUNDS), 0.0))
        number = _at(self._scene.rates[key], second) or 0.0
        grown = tuple(count + number * (latency <= bound) for count, bound in zip(counts, BOUNDS, strict=True))
        self._seen[key] = grown, total + number * latency
        return self._seen[key]


def _at(does: Does, second: int) -> float | None:
    return does(second) if callable(does) else does


def judged(scene: Scene, engine_gpus: Mapping[str, tuple[str, ...]] | None = None) -> list[Pass]:
    """Return every pass of a scene through the real pipeline."""
    with untraced():
        return list(passes(play(scene), build_pipeline(Settings(), engine_gpus or {})))
