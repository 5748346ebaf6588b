"""The DCGM fields that are read, by numeric id: names changed between versions, ids never did."""

from __future__ import annotations

from typing import NamedTuple

from heptascope.sources.gpu.layout import MIB


class DcgmField(NamedTuple):
    """One field: its key in a row, its id, the factor to the row's unit, and whether it counts bytes or time past 2^31 (`wide`)."""

    key: str
    id: int
    scale: float = 1.0
    wide: bool = False


FAST = (
    DcgmField("power_w", 155),
    DcgmField("sm_mhz", 100),
    DcgmField("mem_mhz", 101),
    DcgmField("util_gpu", 203),
    DcgmField("mem_used", 252, MIB),
    DcgmField("mem_reserved", 253, MIB),
    DcgmField("temp_c", 150),
    DcgmField("throttle", 112),
    DcgmField("power_cap_ns", 1420, wide=True),
    DcgmField("sw_thermal_ns", 1422, wide=True),
    DcgmField("energy_mj", 156, wide=True),
)
"""Values of `gpu` rows."""

SLOW = (
    DcgmField("mem_temp_c", 140),
    DcgmField("power_limit_w", 164),
    DcgmField("pcie_gen", 237),
    DcgmField("pcie_width", 238),
    DcgmField("pcie_replay", 202),
    DcgmField("ecc_corrected", 310),
    DcgmField("ecc_uncorrected", 311),
    DcgmField("remap_corrected", 394),
    DcgmField("remap_uncorrected", 393),
    DcgmField("remap_pending", 396),
    DcgmField("remap_failure", 395),
    DcgmField("hw_thermal_ns", 1423, wide=True),
    DcgmField("power_brake_ns", 1424, wide=True),
    DcgmField("nvlink_crc_flit", 409),
    DcgmField("nvlink_crc_data", 419),
    DcgmField("nvlink_replay", 429),
    DcgmField("nvlink_recovery", 439),
    DcgmField("recovery_action", 1523),
)
"""Values of `slow` rows."""

IDENTITY = (
    DcgmField("index", 52),
    DcgmField("uuid", 54),
    DcgmField("name", 50),
    DcgmField("serial", 53),
    DcgmField("pci_bus_id", 57),
    DcgmField("compute_capability", 63),
    DcgmField("mig_mode", 67),
    DcgmField("max_sm_mhz", 113),
    DcgmField("max_mem_mhz", 114),
    DcgmField("mem_total", 250, MIB),
    DcgmField("pcie_gen_max", 235),
    DcgmField("pcie_width_max", 236),
    DcgmField("temp_slowdown_c", 158),
    DcgmField("power_limit_w", 164),
    DcgmField("driver", 1),
    DcgmField("nvml", 2),
)
"""What a header's entry for a GPU is made from."""

BIND_EVENT, BIND_STARTED = 6, 1
"""Field 6 (4.5 and later): 1 means that the driver is being bound or unbound anew, 2 that this has ended."""
XID = 230
"""The last XID code; the time of the value says when."""

PROFILED: dict[str, tuple[int, float]] = {
    "gr_util": (1001, 100.0),
    "sm_util": (1002, 100.0),
    "sm_occ": (1003, 100.0),
    "tensor": (1004, 100.0),
    "dram_util": (1005, 100.0),
    "fp64": (1006, 100.0),
    "fp32": (1007, 100.0),
    "fp16": (1008, 100.0),
    "int_util": (1016, 100.0),
    "pcie_tx_mib_s": (1009, 1 / MIB),
    "pcie_rx_mib_s": (1010, 1 / MIB),
    "nvlink_tx_mib_s": (1011, 1 / MIB),
    "nvlink_rx_mib_s": (1012, 1 / MIB),
}
"""Key in a row's `gpm` to field id and factor: ratios 0..1 become percent, bytes a second MiB a second."""

INSTANCE_KEYS = ("gr_util", "sm_util", "sm_occ", "tensor", "dram_util", "fp64", "fp32", "fp16", "int_util")
"""Profiling fields that DCGM measures for one MIG instance; links belong to the board."""

CYCLES_ELAPSED = 1084
CYCLES: dict[str, int] = {"sm_util": 1085, "tensor": 1086, "int_util": 1093, "fp64": 1094, "fp32": 1095, "fp16": 1096}
"""Key to the raw counter of active cycles (4.6 and later, GPM cards); divided by the growth of the elapsed cycles."""
CYCLE_BYTES: dict[str, int] = {"pcie_tx_mib_s": 1091, "pcie_rx_mib_s": 1092}
"""Key to the raw counter of bytes."""

INSTANCE_PLAIN = (DcgmField("mem_used", 252, MIB), DcgmField("mem_total", 250, MIB))
"""Plain fields that DCGM gives for a MIG instance itself; any other plain field would repeat the board's value."""

GPU, GPU_INSTANCE, COMPUTE_INSTANCE = 1, 4, 5
"""Entity groups (dcgm_fields.h)."""

FAST_IDS = (*(field.id for field in FAST), XID, BIND_EVENT)
SLOW_IDS = tuple(dict.fromkeys(field.id for field in (*SLOW, *IDENTITY)))
RATIO_IDS = tuple(dict.fromkeys(field_id for field_id, _ in PROFILED.values()))
CYCLE_IDS = (CYCLES_ELAPSED, *CYCLES.values(), *CYCLE_BYTES.values())
WIDE = frozenset(f.id for f in (*FAST, *SLOW) if f.wide) | frozenset(CYCLE_IDS) | {1009, 1010, 1011, 1012}
