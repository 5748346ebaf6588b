"""Trace rows of the signal table: what `heptascope trace` measures, served for the newest trace of `trace.dir`.

The label `trace_rank` is the rank inside the traced run, not the data-parallel `rank` of an engine. docs/trace.md says what each signal is.
"""

from __future__ import annotations

from heptascope.model import Layer
from heptascope.signals.schema_row import Fold, Kind, Signal

_HW, _OP, _SCHED, _PAR = Layer.HARDWARE, Layer.OPERATOR, Layer.SCHEDULING, Layer.PARALLEL


def _t(name: str, unit: str, labels: tuple[str, ...], layer: Layer | None, help: str, kind: Kind = Kind.GAUGE) -> Signal:
    return Signal(f"heptascope_trace_{name}", kind, unit, layer, labels, ("trace",), help, Fold.LAST)


ROWS: list[Signal] = [
    _t("info", "", ("file", "format"), None, "The trace that is served, value 1.", Kind.INFO),
    _t("age_seconds", "seconds", (), None, "Time since the trace was written."),
    _t("wall_seconds", "seconds", ("trace_rank",), _OP, "Time from the first GPU activity to the last in the trace."),
    _t("gpu_busy_ratio", "ratio", ("trace_rank",), _OP, "Share of the trace in which the GPU did anything."),
    _t("kernel_gap_ratio", "ratio", ("trace_rank",), _OP, "Share of the trace in which no kernel ran."),
    _t("gap_ratio", "ratio", ("trace_rank", "cause"), _OP, "Share of the trace in which no kernel ran, by cause."),
    _t(
        "work_gap_ratio",
        "ratio",
        ("trace_rank",),
        _OP,
        "Share of the trace in which no kernel ran though there was work: launch, sync, device.",
    ),
    _t("copy_ratio", "ratio", ("trace_rank",), _OP, "Share of the trace in which a copy or fill ran."),
    _t(
        "copy_kind_ratio",
        "ratio",
        ("trace_rank", "direction", "memory"),
        _OP,
        "Time of copies by direction and kind of memory, over the trace.",
    ),
    _t("copy_kind_bytes", "bytes", ("trace_rank", "direction", "memory"), _OP, "Bytes copied by direction and kind of memory."),
    _t("steps", "", ("trace_rank",), _SCHED, "Engine steps in the trace."),
    _t("step_seconds", "seconds", ("trace_rank", "stat"), _SCHED, "Period of engine steps on the GPU, p50 and p99."),
    _t("kernels", "", ("trace_rank",), _OP, "Kernels in the trace."),
    _t("tiny_kernel_ratio", "ratio", ("trace_rank",), _OP, "Share of kernels shorter than 5 µs."),
    _t("tiny_kernel_time_ratio", "ratio", ("trace_rank",), _OP, "Share of kernel time in kernels shorter than 5 µs."),
    _t("kernel_outliers", "", ("trace_rank",), _OP, "Kernel runs of at least 3 times the median of their kernel and shape."),
    _t("kernel_outlier_ratio", "ratio", ("trace_rank",), _OP, "Time of outliers over their medians, over the trace."),
    _t("occupancy_estimate_ratio", "ratio", ("trace_rank",), _OP, "The profiler's estimate of occupancy, weighted by time."),
    _t("compilations", "", ("trace_rank",), _OP, "Compilations inside the trace."),
    _t("module_loads", "", ("trace_rank",), _OP, "GPU modules loaded inside the trace."),
    _t("graph_captures", "", ("trace_rank",), _OP, "CUDA graph captures begun inside the trace."),
    _t("graph_kernel_ratio", "ratio", ("trace_rank",), _OP, "Share of kernels that CUDA graphs launched."),
    _t("graph_time_ratio", "ratio", ("trace_rank",), _OP, "Share of kernel time that CUDA graphs launched."),
    _t("graph_launches", "", ("trace_rank",), _OP, "CUDA graph launches in the trace."),
    _t("host_syncs", "", ("trace_rank",), _OP, "Host calls that waited for the GPU."),
    _t("host_sync_ratio", "ratio", ("trace_rank",), _OP, "Share of the trace in which a host thread waited for the GPU."),
    _t("launch_delay_seconds", "seconds", ("trace_rank", "stat"), _OP, "Time from launch call to kernel, p50 and p99."),
    _t("class_ratio", "ratio", ("trace_rank", "class"), _OP, "Share of GPU work by class."),
    _t("collective_ratio", "ratio", ("trace_rank",), _PAR, "Share of the trace in which a collective ran."),
    _t("collective_overlap_ratio", "ratio", ("trace_rank",), _PAR, "Share of collective time in which compute kernels ran too."),
    _t("collective_exposed_ratio", "ratio", ("trace_rank",), _PAR, "Share of the trace in which a collective ran and no compute kernel."),
    _t(
        "collective_wait_ratio",
        "ratio",
        ("trace_rank",),
        _PAR,
        "Time that the rank waited in collectives for the last rank, over its trace.",
    ),
    _t("collective_last_ratio", "ratio", ("trace_rank",), _PAR, "Share of collectives to which the rank came last."),
    _t(
        "collective_lateness_seconds",
        "seconds",
        ("trace_rank", "stat"),
        _PAR,
        "By how much the rank came last to collectives, p50 and p99.",
    ),
    _t("clock_skew_seconds", "seconds", ("trace_rank",), _PAR, "What the rank's clock shows more than the first rank's."),
    _t("pipeline_bubble_ratio", "ratio", ("trace_rank",), _PAR, "Share of the run in which the rank computed nothing while another did."),
    _t(
        "profiled_occupancy_ratio",
        "ratio",
        ("bound",),
        _HW,
        "Achieved occupancy of profiled kernels (Nsight Compute), by what bounds them.",
    ),
    _t("profiled_sm_ratio", "ratio", ("bound",), _HW, "SM throughput of profiled kernels, of peak, by what bounds them."),
    _t("profiled_memory_ratio", "ratio", ("bound",), _HW, "Memory throughput of profiled kernels, of peak, by what bounds them."),
    _t("profiled_dram_ratio", "ratio", ("bound",), _HW, "DRAM throughput of profiled kernels, of peak, by what bounds them."),
    _t("profiled_l2_ratio", "ratio", ("bound",), _HW, "L2 throughput of profiled kernels, of peak, by what bounds them."),
    _t("profiled_tensor_ratio", "ratio", ("bound",), _HW, "Tensor pipe activity of profiled kernels, by what bounds them."),
    _t("profiled_stall_ratio", "ratio", ("reason",), _OP, "Stall reasons of profiled kernels, shares of all stalls."),
    _t("profiled_bound_ratio", "ratio", ("bound",), _OP, "Share of profiled kernel time bound by compute, memory or latency."),
]
