"""Snapshots to show: an H200 under a steady decode load, with the figures of the recording `decode-c64`."""

from __future__ import annotations

from collections.abc import Mapping

from heptascope.model import Histogram, Labels, Missing, Quality, Reason, SourceStatus, labels
from heptascope.signals.schema import SCHEMA
from heptascope.signals.schema_row import Kind, Signal
from heptascope.signals.snapshot import Snapshot
from heptascope.signals.window import Window

T0 = 1_795_968_955.0
"""When the load of these snapshots began, Unix seconds."""
UUIDS = [f"GPU-1f6d2c3{i}-8a41-4b0e-9c55-d0e3b7a9f2c{i}" for i in range(10)]
ENGINE = labels(engine="vllm", rank="0")
GPU = labels(gpu="0", uuid=UUIDS[0])
INFINITY = float("inf")
BOUNDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560, INFINITY)

_ACTIVE = {
    "graphics_engine_active": 0.862, "sm_active": 0.684, "sm_occupancy": 0.111, "tensor_active": 0.223, "dram_active": 0.521,
    "int_active": 0.049, "fp64_active": 0.0, "fp32_active": 0.0157, "fp16_active": 0.0,
}  # fmt: skip
_GAUGES = {
    **{f"gpu_{what}_ratio": share for what, share in _ACTIVE.items()},
    "gpu_up": 1, "gpu_utilization_ratio": 0.92, "gpu_power_watts": 598.2, "gpu_power_limit_watts": 700, "gpu_temperature_celsius": 55,
    "gpu_memory_temperature_celsius": 52, "gpu_sm_clock_hertz": 1.971e9, "gpu_sm_clock_max_hertz": 1.98e9,
    "gpu_memory_clock_hertz": 3.201e9, "gpu_memory_clock_max_hertz": 3.201e9, "gpu_memory_used_bytes": 123_879_424_000,
    "gpu_memory_total_bytes": 150_754_820_096, "gpu_pcie_link_generation": 5, "gpu_pcie_link_width": 16,
    "gpu_dram_peak_bytes_per_second": 4.814e12, "gpu_dram_throughput_bytes_per_second": 2.508e12,
    "gpu_tensor_throughput_flops_per_second": 2.2e14,
    "engine_requests_running": 62, "engine_requests_waiting": 0, "engine_kv_cache_usage_ratio": 0.0924,
    "engine_kv_cache_capacity_tokens": 487_232, "engine_step_seconds": 0.00803, "engine_step_host_gap_ratio": 0.138,
    "engine_step_host_seconds": 0.00111, "engine_prefix_caching_enabled": 1, "engine_model_length_limit": 8192,
    "engine_prompt_computed_tokens_per_second": 4024, "engine_kv_cache_tokens_per_sequence": 726,
    "host_cpus": 16, "host_load1": 2.68, "host_cgroup_memory_used_bytes": 9.1e9,
}  # fmt: skip
_PER_SECOND = {
    **{f"gpu_{what}_seconds_total": share for what, share in _ACTIVE.items()},
    **{f"gpu_{what}_sampled_seconds_total": 1.0 for what in _ACTIVE},
    "gpu_energy_joules_total": 598.2, "gpu_pcie_receive_bytes_total": 8.28e7, "gpu_pcie_transmit_bytes_total": 2.62e7,
    "engine_prompt_tokens_total": 4024, "engine_generation_tokens_total": 7957, "engine_steps_total": 124,
    "engine_busy_seconds_total": 1.0, "engine_preemptions_total": 0, "engine_prefix_cache_queried_tokens_total": 4024,
    "engine_prefix_cache_hit_tokens_total": 6.7, "engine_step_tokens_total": 11_981, "host_cgroup_cpu_seconds_total": 1.4,
}  # fmt: skip
_BY_LABEL = {
    "gpu_throttle_seconds_total": ("reason", {"sw_power_cap": 0.32, "hw_slowdown": 0.0, "sw_thermal": 0.0, "hw_thermal": 0.0}),
    "engine_requests_finished_total": ("reason", {"stop": 0.0, "length": 15.5, "abort": 0.0, "error": 0.0}),
    "host_cpu_seconds_total": ("mode", {"busy": 2.7, "idle": 13.3}),
    "host_pressure_waiting_seconds_total": ("resource", {"cpu": 0.02, "memory": 0.0, "io": 0.001}),
}  # fmt: skip
_MEANS = {
    "time_to_first_token_seconds": 0.039, "inter_token_latency_seconds": 0.008, "time_per_output_token_seconds": 0.0077,
    "e2e_latency_seconds": 3.97, "queue_time_seconds": 1e-5, "prefill_time_seconds": 0.028, "decode_time_seconds": 3.94,
    "http_request_duration_seconds": 3.96, "prompt_length_tokens": 251, "generation_length_tokens": 512,
}  # fmt: skip
_SOURCES = (("nvml", "gpu", 0.0031), ("vllm", "engine", 0.012), ("host", "host", 0.0042))
_FACTS = {
    "gpu_info": {"model": "NVIDIA H200", "driver": "580.159.04", "compute_capability": "9.0", "sm_count": "132"},
    "engine_info": {"kind": "vllm", "version": "0.25.1", "model": "llama-8b"},
}  # fmt: skip


def busy(t: float = T0 + 60, version: int = 1, gpus: int = 1) -> Snapshot:
    """Return the picture at `t` with `gpus` cards and one engine; all sources are up."""
    values: dict[str, tuple[tuple[Labels, float], ...]] = {}
    for name, signal in SCHEMA.items():
        rows = tuple((pairs, value) for where in _entities(signal, gpus) for pairs, value in _rows(name, where, t))
        if rows:
            values[name] = rows
    return Snapshot(
        t=t,
        version=version,
        values=values,
        histograms={f"heptascope_engine_{what}": (_histogram(f"heptascope_engine_{what}", mean, t),) for what, mean in _MEANS.items()},
        missing=GAPS,
        quality={("heptascope_engine_kv_cache_capacity_tokens", ENGINE): Quality.DERIVED},
        sources=tuple(SourceStatus(name, kind, True, t - 0.2, took) for name, kind, took in _SOURCES),
    )


GAPS = (
    Missing("heptascope_engine_sequence_limit", Reason.ENGINE, "vLLM does not show --max-num-seqs", ENGINE),
    Missing("heptascope_engine_step_token_limit", Reason.ENGINE, "vLLM does not show --max-num-batched-tokens", ENGINE),
    Missing("heptascope_engine_estimated_flops_total", Reason.FLAG_OFF, "start vLLM with --enable-mfu-metrics", ENGINE),
    Missing("heptascope_engine_estimated_dram_bytes_total", Reason.FLAG_OFF, "start vLLM with --enable-mfu-metrics", ENGINE),
    Missing("heptascope_gpu_nvlink_receive_bytes_total", Reason.NOT_SUPPORTED, "this card has no active NVLink", GPU),
    Missing("heptascope_gpu_nvlink_transmit_bytes_total", Reason.NOT_SUPPORTED, "this card has no active NVLink", GPU),
    Missing("heptascope_engine_spec_acceptance_ratio", Reason.NOT_CONFIGURED, "", ENGINE),
)


def failing(t: float = T0 + 60, version: int = 1) -> Snapshot:
    """Return a picture in which the engine cannot be read."""
    whole = busy(t, version)
    lost = tuple(Missing(name, Reason.SOURCE_DOWN, "refused", ENGINE) for name in whole.values if name.startswith("heptascope_engine_"))
    down = SourceStatus("vllm", "engine", False, t - 47.3, 5.0, Reason.SOURCE_DOWN, "http://127.0.0.1:8000/metrics: connection refused", 12)
    return Snapshot(
        t=t,
        version=version,
        values={name: rows for name, rows in whole.values.items() if not name.startswith("heptascope_engine_")},
        missing=(*whole.missing, *lost),
        sources=tuple(down if source.name == "vllm" else source for source in whole.sources),
    )


def remember(window: Window, snapshot: Snapshot) -> None:
    """Append a snapshot's values to a window, as the pipeline does."""
    for name, rows in snapshot.values.items():
        for pairs, value in rows:
            window.append(name, pairs, snapshot.t, value)


def series_count(snapshot: Snapshot) -> int:
    """Return the number of series apart from histograms."""
    return sum(len(rows) for rows in snapshot.values.values())


def _entities(signal: Signal, gpus: int) -> list[dict[str, str]]:
    if signal.name.startswith("heptascope_gpu_"):
        return [{"gpu": str(i), "uuid": UUIDS[i]} for i in range(gpus)]
    return [dict(ENGINE)] if signal.name.startswith("heptascope_engine_") else [{}]


def _rows(name: str, where: Mapping[str, str], t: float) -> list[tuple[Labels, float]]:
    key = name.removeprefix("heptascope_")
    if key in _GAUGES:
        return [(labels(**where), float(_GAUGES[key]))]
    if key in _PER_SECOND:
        return [(labels(**where), _PER_SECOND[key] * (t - T0))]
    if key in _BY_LABEL:
        label, rates = _BY_LABEL[key]
        return [(labels(**where, **{label: part}), rate * (t - T0)) for part, rate in rates.items()]
    if key in _FACTS:
        return [(labels(**where, **_FACTS[key]), 1.0)]
    return []


def _histogram(name: str, mean: float, t: float) -> Histogram:
    assert SCHEMA[name].kind is Kind.HISTOGRAM
    total = round(15.5 * (t - T0))
    counts = tuple(float(round(total * min(1.0, bound / (2 * mean)))) for bound in BOUNDS)
    return Histogram(name, ENGINE, BOUNDS, counts, total * mean)


def complete(t: float = T0 + 60, version: int = 1) -> Snapshot:
    """Return a picture in which every signal of the table has a sample, with every label it may have."""
    values = {}
    histograms = {}
    for name, signal in SCHEMA.items():
        pairs = labels(**{label: f"{label}-1" for label in signal.labels})
        if signal.kind is Kind.HISTOGRAM:
            histograms[name] = (Histogram(name, pairs, BOUNDS, tuple(float(i) for i in range(len(BOUNDS))), 4.5),)
        else:
            values[name] = ((pairs, 1.0),)
    return Snapshot(t=t, version=version, values=values, histograms=histograms)
