"""GPU rows of the signal table. Labels: `gpu` (index) and `uuid`; all else is in `heptascope_gpu_info`."""

from __future__ import annotations

from heptascope.model import Layer
from heptascope.signals.schema_row import GPU, Fold, Kind, Signal

_HW, _OP, _MEM, _PAR = Layer.HARDWARE, Layer.OPERATOR, Layer.MEMORY, Layer.PARALLEL

# what -> (layer, what the ratio is the share of)
_ACTIVITY: dict[str, tuple[Layer, str]] = {
    "graphics_engine_active": (_OP, "time in which any kernel ran"),
    "sm_active": (_HW, "SM time with at least one warp resident"),
    "sm_occupancy": (_OP, "warp slots that were filled"),
    "tensor_active": (_HW, "time in which the tensor pipes issued (any data type)"),
    "dram_active": (_HW, "peak DRAM bandwidth that was used, reads plus writes"),
    "int_active": (_HW, "time in which the integer pipes issued"),
    "fp64_active": (_HW, "time in which the FP64 pipes issued, tensor cores apart"),
    "fp32_active": (_HW, "time in which the FP32 pipes issued, tensor cores apart"),
    "fp16_active": (_HW, "time in which the FP16 pipes issued, tensor cores apart"),
}
ACTIVITY = tuple(_ACTIVITY)
_PROFILED = ("gpm", "dcgm", "dcgm_exporter")
_BOARD = ("nvml", "dcgm", "dcgm_exporter")


def _activity_rows(of: str = "", extra: tuple[str, ...] = (), whose: str = "", by: tuple[str, ...] = _PROFILED) -> list[Signal]:
    rows = []
    for what, (layer, share) in _ACTIVITY.items():
        stem = f"heptascope_gpu_{of}{what}"
        pairs, share = GPU + extra, share + whose
        rows += [
            Signal(
                f"{stem}_ratio",
                Kind.GAUGE,
                "ratio",
                layer,
                pairs,
                by,
                f"Share of {share}, mean over the last sampling window (NVML GPM or DCGM profiling).",
                Fold.LAST,
                f"{stem}_seconds_total",
            ),
            Signal(
                f"{stem}_seconds_total",
                Kind.COUNTER,
                "seconds",
                layer,
                pairs,
                by,
                f"Integral over time of the share of {share}; divide its rate by the rate of {stem}_sampled_seconds_total.",
            ),
            Signal(
                f"{stem}_sampled_seconds_total",
                Kind.COUNTER,
                "seconds",
                layer,
                pairs,
                by,
                f"Time that {stem}_seconds_total covers.",
            ),
        ]
    return rows


def _gauge(name: str, unit: str, layer: Layer, help: str, by: tuple[str, ...] = _BOARD, extra: tuple[str, ...] = ()) -> Signal:
    return Signal(f"heptascope_gpu_{name}", Kind.GAUGE, unit, layer, GPU + extra, by, help, Fold.LAST)


def _counter(name: str, unit: str, layer: Layer, help: str, by: tuple[str, ...] = _BOARD, extra: tuple[str, ...] = ()) -> Signal:
    return Signal(f"heptascope_gpu_{name}", Kind.COUNTER, unit, layer, GPU + extra, by, help)


ROWS: list[Signal] = [
    Signal(
        "heptascope_gpu_info",
        Kind.INFO,
        "",
        _HW,
        (
            *GPU,
            "model",
            "driver",
            "compute_capability",
            "pci_bus_id",
            "serial",
            "vbios",
            "sm_count",
            "memory_bus_bits",
            "cpus",
            "numa_node",
            "mig",
            "scope",
        ),
        _BOARD,
        "Identity of the GPU (NVML), value 1; scope is pod, shared (by several pods) or node (it cannot be told whose it is).",
        Fold.LAST,
    ),
    _gauge("up", "", _HW, "1 while the GPU answers, 0 after it was lost, needs a reset, or its values stand still."),
    *_activity_rows(),
    _gauge(
        "utilization_ratio",
        "ratio",
        _HW,
        "Share of time with a kernel or a copy in progress (NVML utilization); it says nothing about how much of the GPU is used.",
    ),
    _gauge("power_watts", "watts", _HW, "Board power (NVML; about a one-second mean on Ampere and later)."),
    _gauge("power_limit_watts", "watts", _HW, "Power limit in force (NVML enforced limit)."),
    _counter("energy_joules_total", "joules", _HW, "Energy used since the driver was loaded (NVML)."),
    _gauge(
        "sm_clock_hertz",
        "hertz",
        _HW,
        "SM clock now (NVML); under tensor work an H200 counts 6 to 11 % fewer cycles.",
    ),
    _gauge("sm_clock_max_hertz", "hertz", _HW, "Highest SM clock of this card (NVML)."),
    _gauge("memory_clock_hertz", "hertz", _HW, "Memory clock now (NVML)."),
    _gauge("memory_clock_max_hertz", "hertz", _HW, "Highest memory clock of this card (NVML)."),
    _counter(
        "throttle_seconds_total",
        "seconds",
        _HW,
        "Time for which clocks were held down, by reason (NVML clocks-event reasons over the sampling interval, or the driver's counters).",
        extra=("reason",),
    ),
    _gauge("temperature_celsius", "celsius", _HW, "GPU core temperature (NVML)."),
    _gauge("temperature_slowdown_celsius", "celsius", _HW, "Core temperature at which the card slows down (NVML threshold)."),
    _gauge("memory_temperature_celsius", "celsius", _HW, "Memory temperature (NVML field 82)."),
    _gauge("memory_used_bytes", "bytes", _MEM, "Device memory in use by anyone (NVML, version 2: without the reserved part)."),
    _gauge("memory_total_bytes", "bytes", _MEM, "Device memory of the card (NVML)."),
    _gauge("memory_reserved_bytes", "bytes", _MEM, "Device memory that the driver keeps for itself (NVML version 2)."),
    _gauge(
        "process_memory_bytes", "bytes", _MEM, "Device memory of one process (NVML, where process ids are visible).", ("nvml",), ("pid",)
    ),
    _gauge(
        "process_sm_utilization_ratio",
        "ratio",
        _HW,
        "Share of SM time that one process used (NVML process utilization, where visible).",
        ("nvml",),
        ("pid",),
    ),
    _counter(
        "pcie_receive_bytes_total",
        "bytes",
        _HW,
        "Bytes from host to GPU over PCIe, packet overhead included (GPM rate integrated, or DCGM).",
        _PROFILED,
    ),
    _counter(
        "pcie_transmit_bytes_total",
        "bytes",
        _HW,
        "Bytes from GPU to host over PCIe, packet overhead included (GPM rate integrated, or DCGM).",
        _PROFILED,
    ),
    _gauge("pcie_link_generation", "", _HW, "PCIe generation of the link now (NVML); it falls at idle to save power."),
    _gauge("pcie_link_generation_max", "", _HW, "Highest PCIe generation that card and slot can do together (NVML)."),
    _gauge("pcie_link_width", "", _HW, "PCIe lanes in use now (NVML)."),
    _gauge("pcie_link_width_max", "", _HW, "PCIe lanes that card and slot can use together (NVML)."),
    _counter("pcie_replays_total", "", _HW, "PCIe packets that had to be sent again (NVML)."),
    _counter("nvlink_receive_bytes_total", "bytes", _PAR, "Bytes received over all NVLinks (GPM rate integrated, or DCGM).", _PROFILED),
    _counter("nvlink_transmit_bytes_total", "bytes", _PAR, "Bytes sent over all NVLinks (GPM rate integrated, or DCGM).", _PROFILED),
    _gauge("nvlink_bandwidth_bytes_per_second", "", _PAR, "Sum of the speeds of the active NVLinks, one direction (NVML).", ("nvml",)),
    _counter("xid_errors_total", "", _HW, "XID errors since heptascope started watching, by code (NVML events).", extra=("xid",)),
    _gauge(
        "xid_error_last_timestamp_seconds",
        "seconds",
        _HW,
        "Time of the last XID error of a code (Unix time, NVML events or DCGM).",
        extra=("xid",),
    ),
    _counter("nvlink_errors_total", "", _PAR, "NVLink errors over all links, by kind (NVML or DCGM).", extra=("kind",)),
    _gauge(
        "recovery_action",
        "",
        _HW,
        "What the driver wants done: 0 nothing, 1 reset the GPU, 2 reboot, 3 drain peer traffic, 4 drain and reset (NVML or DCGM).",
    ),
    _gauge(
        "profiling_stuck",
        "",
        _HW,
        "1 while DCGM profiling stands at 0 on a busy GPU after an XID error, else 0.",
        ("dcgm", "dcgm_exporter"),
    ),
    _counter("ecc_errors_total", "", _HW, "ECC errors since the driver was loaded, by kind (NVML volatile counts).", extra=("kind",)),
    _counter("remapped_rows_total", "", _HW, "Memory rows remapped over the life of the card, by kind (NVML).", extra=("kind",)),
    _gauge("row_remap_pending", "", _HW, "1 if a row remap waits for a GPU reset (NVML)."),
    _gauge("row_remap_failure", "", _HW, "1 if a row remap failed: the card should be replaced (NVML)."),
    _gauge(
        "has_work",
        "",
        _HW,
        "1 if the GPU ran kernels for a twentieth of the window or more, unless all engines that it serves were idle.",
        ("derived",),
    ),
    _gauge(
        "dram_peak_bytes_per_second",
        "",
        _HW,
        "Peak DRAM bandwidth: 2 x maximum memory clock x bus width / 8, or the datasheet value.",
        ("derived",),
    ),
    _gauge(
        "dram_throughput_bytes_per_second",
        "",
        _HW,
        "DRAM traffic estimate: DRAM active ratio x peak bandwidth, over the derivation window.",
        ("derived",),
    ),
    _gauge(
        "tensor_throughput_flops_per_second",
        "",
        _HW,
        "Dense bf16 tensor work estimate: tensor active ratio x SMs x FLOP per clock x SM clock; an upper bound of the model's share.",
        ("derived",),
    ),
    _gauge(
        "neighbour_sm_utilization_ratio",
        "ratio",
        _HW,
        "Share of SM time used by processes that do not belong to a known engine, where process ids are visible.",
        ("derived",),
    ),
    _gauge(
        "neighbour_memory_bytes",
        "bytes",
        _HW,
        "Device memory held by processes that do not belong to a known engine, where process ids are visible.",
        ("derived",),
    ),
    *_activity_rows("instance_", ("instance",), ", of one MIG instance"),
    Signal(
        "heptascope_gpu_instance_info",
        Kind.INFO,
        "",
        _HW,
        (*GPU, "instance", "compute_instance", "mig_uuid", "profile", "slices"),
        _BOARD,
        "Identity of a MIG instance, or of a compute instance in it, value 1; gpu and uuid are the board's.",
        Fold.LAST,
    ),
    _gauge(
        "instance_memory_used_bytes",
        "bytes",
        _MEM,
        "Device memory in use in one MIG instance.",
        _BOARD,
        ("instance",),
    ),
    _gauge("instance_memory_total_bytes", "bytes", _MEM, "Device memory of one MIG instance.", extra=("instance",)),
    Signal(
        "heptascope_gpus_visible",
        Kind.GAUGE,
        "",
        _HW,
        (),
        _BOARD,
        "GPUs that answer to the source in use.",
        Fold.LAST,
    ),
    Signal(
        "heptascope_gpus_expected",
        Kind.GAUGE,
        "",
        _HW,
        (),
        _BOARD,
        "GPUs that should be there: the configured number, or the most that were seen since the start.",
        Fold.LAST,
    ),
]
