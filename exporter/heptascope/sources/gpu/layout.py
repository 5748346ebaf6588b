"""The layout of GPU rows, as recordings keep them, and the signal behind each key.

A recording is a `header` line and then `gpu` rows (cheap values, often) and `slow` rows (dear or slow values), one per GPU.
GPM values are percent or MiB/s, power is W, energy mJ, clocks MHz, memory bytes, temperatures degrees Celsius.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from heptascope.model import Reason

Row = dict[str, Any]
"""One line of a recording."""

PREFIX = "heptascope_gpu_"
MIB = 2**20
SAME_VALUE_SECONDS = 1e-9
"""Window of a value that was read before: it is shown again, and must not be counted twice (0 would mean "an instant reading")."""

GPM_IDS: dict[str, int] = {
    "gr_util": 1,
    "sm_util": 2,
    "sm_occ": 3,
    "int_util": 4,
    "tensor": 5,
    "dram_util": 10,
    "fp64": 11,
    "fp32": 12,
    "fp16": 13,
    "pcie_tx_mib_s": 20,
    "pcie_rx_mib_s": 21,
    "nvlink_rx_mib_s": 60,
    "nvlink_tx_mib_s": 61,
}
"""Key in a row's `gpm` to the metric id of nvml.h. NVLink has receive before transmit, PCIe the other way round."""

GPM_RATIOS: dict[str, str] = {
    "gr_util": "graphics_engine_active",
    "sm_util": "sm_active",
    "sm_occ": "sm_occupancy",
    "tensor": "tensor_active",
    "dram_util": "dram_active",
    "int_util": "int_active",
    "fp64": "fp64_active",
    "fp32": "fp32_active",
    "fp16": "fp16_active",
}
"""Key in a row's `gpm` to what is active: `_ratio`, `_seconds_total` and `_sampled_seconds_total` follow."""

GPM_BYTES: dict[str, str] = {
    "pcie_rx_mib_s": "pcie_receive_bytes_total",
    "pcie_tx_mib_s": "pcie_transmit_bytes_total",
    "nvlink_rx_mib_s": "nvlink_receive_bytes_total",
    "nvlink_tx_mib_s": "nvlink_transmit_bytes_total",
}
"""Key in a row's `gpm` to the byte counter that integrates it."""


class Field(NamedTuple):
    """One plain value: its key in the row, its signal, the factor to base units, the highest and lowest values that can be true."""

    key: str
    signal: str
    scale: float
    top: float
    labels: tuple[tuple[str, str], ...] = ()
    low: float = 0.0


_TOP_COUNT = 2.0**62  # NVML's "no value" sentinels are all ones, 2^63 and above
_TOP_BYTES = 2.0**50
_TOP_CELSIUS = 300.0
_TOP_MHZ = 20_000.0
_TOP_WATTS = 20_000.0
_ENERGY = Field("energy_mj", "energy_joules_total", 1e-3, _TOP_COUNT)

FAST: tuple[Field, ...] = (
    Field("power_w", "power_watts", 1.0, _TOP_WATTS),
    Field("sm_mhz", "sm_clock_hertz", 1e6, _TOP_MHZ),
    Field("mem_mhz", "memory_clock_hertz", 1e6, _TOP_MHZ),
    Field("util_gpu", "utilization_ratio", 0.01, 100.0),
    Field("mem_used", "memory_used_bytes", 1.0, _TOP_BYTES),
    Field("mem_reserved", "memory_reserved_bytes", 1.0, _TOP_BYTES),
    Field("temp_c", "temperature_celsius", 1.0, _TOP_CELSIUS),
)
"""Values of `gpu` rows."""

SLOW: tuple[Field, ...] = (
    Field("mem_temp_c", "memory_temperature_celsius", 1.0, _TOP_CELSIUS),
    Field("pcie_gen", "pcie_link_generation", 1.0, 100.0),
    Field("pcie_width", "pcie_link_width", 1.0, 100.0),
    Field("pcie_replay", "pcie_replays_total", 1.0, _TOP_COUNT),
    Field("ecc_corrected", "ecc_errors_total", 1.0, _TOP_COUNT, (("kind", "corrected"),)),
    Field("ecc_uncorrected", "ecc_errors_total", 1.0, _TOP_COUNT, (("kind", "uncorrected"),)),
    Field("remap_corrected", "remapped_rows_total", 1.0, _TOP_COUNT, (("kind", "corrected"),)),
    Field("remap_uncorrected", "remapped_rows_total", 1.0, _TOP_COUNT, (("kind", "uncorrected"),)),
    Field("remap_pending", "row_remap_pending", 1.0, 1.0),
    Field("remap_failure", "row_remap_failure", 1.0, 1.0),
    Field("recovery_action", "recovery_action", 1.0, 100.0),
)
"""Values of `slow` rows."""

NVLINK_ERRORS: tuple[Field, ...] = tuple(
    Field(f"nvlink_{kind}", "nvlink_errors_total", 1.0, _TOP_COUNT, (("kind", kind),))
    for kind in ("crc_flit", "crc_data", "replay", "recovery")
)
"""Values of `slow` rows on a card with NVLink."""

EITHER: tuple[Field, ...] = (_ENERGY,)
"""Values that are in `gpu` rows where a recording took them there, else in `slow` rows (3 ms a call on an H200)."""

CONSTANTS: tuple[Field, ...] = (
    Field("max_sm_mhz", "sm_clock_max_hertz", 1e6, _TOP_MHZ),
    Field("max_mem_mhz", "memory_clock_max_hertz", 1e6, _TOP_MHZ),
    Field("power_limit_w", "power_limit_watts", 1.0, _TOP_WATTS, low=1.0),
    Field("mem_total", "memory_total_bytes", 1.0, _TOP_BYTES),
    Field("pcie_gen_max", "pcie_link_generation_max", 1.0, 100.0),
    Field("pcie_width_max", "pcie_link_width_max", 1.0, 100.0),
    Field("temp_slowdown_c", "temperature_slowdown_celsius", 1.0, _TOP_CELSIUS),
)
"""Values of the header's entry for a GPU. A `slow` row's own value of the same key goes before it."""


class ThrottleReason(NamedTuple):
    """One reason for which clocks are held down: its bit in the clocks-event mask and the key of the driver's own counter (ns)."""

    reason: str
    bit: int
    counter: str = ""
    slow: bool = False  # the driver's counter is in `slow` rows


THROTTLE: tuple[ThrottleReason, ...] = (
    ThrottleReason("power_cap", 0x04, "power_cap_ns"),
    ThrottleReason("hardware_slowdown", 0x08),
    ThrottleReason("sync_boost", 0x10),
    ThrottleReason("software_thermal", 0x20, "sw_thermal_ns"),
    ThrottleReason("hardware_thermal", 0x40, "hw_thermal_ns", slow=True),
    ThrottleReason("power_brake", 0x80, "power_brake_ns", slow=True),
)
"""Reasons that count (nvml.h). Left out: 0x1 idle, 0x2 application clocks and 0x100 display clocks, which are settings or no work."""

XIDS = (13, 31, 43, 45, 48, 62, 63, 64, 74, 79, 92, 94, 95, 109, 119, 120, 140)
"""XID codes whose series stand at 0 from the start: the common ones of NVIDIA's XID catalogue for data-centre cards."""

NOT_RECORDED = (Reason.NO_SOURCE, "this recording does not hold it")
NO_VALUE = (Reason.NOT_SUPPORTED, "NVML gave no value")
NO_NVLINK = (Reason.NOT_SUPPORTED, "this GPU has no NVLink in use")
NO_GPM = (Reason.NOT_SUPPORTED, "GPM needs Hopper or later; use a DCGM host engine")
NO_NUMBER = (Reason.INVALID, "GPM gave no number for this window; the next one covers its time too")
