"""What dcgm-exporter's names mean, over all its generations: the key of a row, and the factor to the row's unit.

The unit is told from the name, never from the declared type or the size of the number: 4.7 renamed fields and changed their units.
Names of the 1.x series are the same stems in small letters. Sources: field lists and release notes of dcgm-exporter 1.7 to 4.9.
"""

from __future__ import annotations

from typing import NamedTuple

from heptascope.sources.gpu.layout import MIB

_HERTZ, _JOULES = 1e-6, 1e3  # rows hold MHz and mJ


class Meaning(NamedTuple):
    """The key in a row, the factor to its unit, and whether DCGM measures it for a MIG instance itself."""

    key: str
    factor: float = 1.0
    of_instance: bool = False


_PREFIXES = ("DCGM_FI_DEV_", "DCGM_FI_PROF_", "DCGM_FI_")
_STEMS: dict[str, Meaning] = {
    "POWER_USAGE": Meaning("power_w"),
    "BOARD_POWER_WATTS": Meaning("power_w"),
    "TOTAL_ENERGY_CONSUMPTION": Meaning("energy_mj"),
    "GPU_ENERGY_JOULES_TOTAL": Meaning("energy_mj", _JOULES),
    "SM_CLOCK": Meaning("sm_mhz"),
    "SM_CLOCK_HERTZ": Meaning("sm_mhz", _HERTZ),
    "MEM_CLOCK": Meaning("mem_mhz"),
    "MEMORY_CLOCK": Meaning("mem_mhz"),
    "MEM_CLOCK_HERTZ": Meaning("mem_mhz", _HERTZ),
    "MEMORY_CLOCK_HERTZ": Meaning("mem_mhz", _HERTZ),
    "GPU_UTIL": Meaning("util_gpu"),
    "GPU_UTIL_RATIO": Meaning("util_ratio"),
    "FB_USED": Meaning("mem_used", MIB, True),
    "FB_USED_BYTES": Meaning("mem_used", 1.0, True),
    "FB_RESERVED": Meaning("mem_reserved", MIB),
    "FB_RESERVED_BYTES": Meaning("mem_reserved"),
    "FB_FREE": Meaning("mem_free", MIB, True),
    "FB_FREE_BYTES": Meaning("mem_free", 1.0, True),
    "FB_TOTAL": Meaning("mem_total", MIB, True),
    "FB_TOTAL_BYTES": Meaning("mem_total", 1.0, True),
    "FB_CAPACITY_BYTES": Meaning("mem_total", 1.0, True),
    "GPU_TEMP": Meaning("temp_c"),
    "GPU_TEMP_CELSIUS": Meaning("temp_c"),
    "CLOCKS_EVENT_REASONS": Meaning("throttle"),
    "CLOCK_THROTTLE_REASONS": Meaning("throttle"),
    "POWER_VIOLATION": Meaning("power_violation_ns"),
    "CLOCKS_EVENT_REASON_SW_POWER_CAP_NS": Meaning("power_cap_ns"),
    "CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS": Meaning("sw_thermal_ns"),
    "CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS": Meaning("hw_thermal_ns"),
    "CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS": Meaning("power_brake_ns"),
    "XID_ERRORS": Meaning("xid_last"),
    "XID_ERROR": Meaning("xid_last"),
    "MEMORY_TEMP": Meaning("mem_temp_c"),
    "MEMORY_TEMP_CELSIUS": Meaning("mem_temp_c"),
    "ENFORCED_POWER_LIMIT": Meaning("power_limit_w"),
    "BOARD_POWER_LIMIT_ENFORCED_WATTS": Meaning("power_limit_w"),
    "POWER_MGMT_LIMIT": Meaning("power_limit_w"),
    "BOARD_POWER_LIMIT_REQUESTED_WATTS": Meaning("power_limit_w"),
    "PCIE_LINK_GEN": Meaning("pcie_gen"),
    "PCIE_LINK_WIDTH": Meaning("pcie_width"),
    "PCIE_MAX_LINK_GEN": Meaning("pcie_gen_max"),
    "PCIE_MAX_LINK_WIDTH": Meaning("pcie_width_max"),
    "PCIE_REPLAY_COUNTER": Meaning("pcie_replay"),
    "PCIE_REPLAY_TOTAL": Meaning("pcie_replay"),
    "MAX_SM_CLOCK": Meaning("max_sm_mhz"),
    "MAX_SM_CLOCK_HERTZ": Meaning("max_sm_mhz", _HERTZ),
    "MAX_MEM_CLOCK": Meaning("max_mem_mhz"),
    "MAX_MEM_CLOCK_HERTZ": Meaning("max_mem_mhz", _HERTZ),
    "SLOWDOWN_TEMP": Meaning("temp_slowdown_c"),
    "GPU_TEMP_SLOWDOWN_CELSIUS": Meaning("temp_slowdown_c"),
    "ECC_SBE_VOL_TOTAL": Meaning("ecc_corrected"),
    "ECC_DBE_VOL_TOTAL": Meaning("ecc_uncorrected"),
    "CORRECTABLE_REMAPPED_ROWS": Meaning("remap_corrected"),
    "ROW_REMAP_CORRECTABLE_TOTAL": Meaning("remap_corrected"),
    "UNCORRECTABLE_REMAPPED_ROWS": Meaning("remap_uncorrected"),
    "ROW_REMAP_UNCORRECTABLE_TOTAL": Meaning("remap_uncorrected"),
    "ROW_REMAP_PENDING": Meaning("remap_pending"),
    "ROW_REMAP_FAILURE": Meaning("remap_failure"),
    "ROW_REMAP_FAILED": Meaning("remap_failure"),
    "GPU_RECOVERY_ACTION": Meaning("recovery_action"),
    "NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": Meaning("nvlink_crc_flit"),
    "NVLINK_CRC_DATA_ERROR_COUNT_TOTAL": Meaning("nvlink_crc_data"),
    "NVLINK_REPLAY_ERROR_COUNT_TOTAL": Meaning("nvlink_replay"),
    "NVLINK_RECOVERY_ERROR_COUNT_TOTAL": Meaning("nvlink_recovery"),
    "NVLINK_BANDWIDTH_TOTAL": Meaning("nvlink_rate"),
    "NVLINK_THROUGHPUT_TOTAL": Meaning("nvlink_rate"),
}
"""Stem of a plain name to its meaning."""

_SHARES = {
    "gr_util": ("GR_ENGINE_ACTIVE", "GR_ENGINE_UTIL_RATIO"),
    "sm_util": ("SM_ACTIVE", "SM_UTIL_RATIO"),
    "sm_occ": ("SM_OCCUPANCY", "SM_OCCUPANCY_RATIO"),
    "tensor": ("PIPE_TENSOR_ACTIVE", "TENSOR_UTIL_RATIO"),
    "dram_util": ("DRAM_ACTIVE", "DRAM_UTIL_RATIO"),
    "fp64": ("PIPE_FP64_ACTIVE", "FP64_UTIL_RATIO"),
    "fp32": ("PIPE_FP32_ACTIVE", "FP32_UTIL_RATIO"),
    "fp16": ("PIPE_FP16_ACTIVE", "FP16_UTIL_RATIO"),
    "int_util": ("PIPE_INT_ACTIVE", "INT_UTIL_RATIO"),
}
_RATES = {
    "pcie_tx_mib_s": ("PCIE_TX_BYTES", "PCIE_TX_BYTES_PER_SECOND"),
    "pcie_rx_mib_s": ("PCIE_RX_BYTES", "PCIE_RX_BYTES_PER_SECOND"),
    "nvlink_tx_mib_s": ("NVLINK_TX_BYTES", "NVLINK_TX_BYTES_PER_SECOND"),
    "nvlink_rx_mib_s": ("NVLINK_RX_BYTES", "NVLINK_RX_BYTES_PER_SECOND"),
}
PROFILED = (*_SHARES, *_RATES)
"""Keys of a row's `gpm`. Bytes are rates, whatever the declared type says."""


def _meanings() -> dict[str, Meaning]:
    stems = dict(_STEMS)
    stems |= {stem: Meaning(key, 100.0, True) for key, names in _SHARES.items() for stem in names}
    stems |= {stem: Meaning(key, 1 / MIB) for key, names in _RATES.items() for stem in names}
    found = {prefix + stem: meaning for stem, meaning in stems.items() for prefix in _PREFIXES}
    return found | {f"dcgm_{stem.lower()}": meaning for stem, meaning in stems.items()}


MEANINGS: dict[str, Meaning] = _meanings()
"""Every name that is understood."""

USUAL_NAMES: dict[str, str] = {
    meaning.key: name for name, meaning in reversed(MEANINGS.items()) if name.startswith(("DCGM_FI_DEV_", "DCGM_FI_PROF_"))
} | {key: f"DCGM_FI_PROF_{names[0]}" for key, names in {**_SHARES, **_RATES}.items()}
"""Key to the name that most generations have, for messages."""

MODERN_FAMILY, MODERN_LABEL = "DCGM_FI_DEV_FB_CAPACITY_BYTES", "DCGM_FI_SYSTEM_DRIVER_VERSION"
"""Marks of 4.9 and later, where GPU_UTIL_RATIO is a ratio; before that it is 0 to 100 in spite of its name."""

LABELS = {
    "uuid": ("UUID", "uuid", "gpu_uuid"),
    "gpu": ("gpu",),
    "model": ("modelName", "model_name"),
    "host": ("Hostname", "hostname"),
    "pci_bus_id": ("pci_bus_id",),
    "driver": ("DCGM_FI_DRIVER_VERSION", MODERN_LABEL),
    "instance": ("GPU_I_ID",),
    "profile": ("GPU_I_PROFILE",),
    "pod": ("pod", "pod_name", "exported_pod"),
    "namespace": ("namespace", "pod_namespace", "exported_namespace"),
    "vgpu": ("vgpu",),
}
"""What a label says to the spellings of it."""

INT64_TEXT, DOUBLE_BLANK, INT32_BLANK = 9.2233720368e18, 2.0**47, 2147483632.0
_WIDE = frozenset({"energy_mj", "mem_used", "mem_reserved", "mem_free", "mem_total"})


def is_blank(value: float, key: str) -> bool:
    """Return whether a number on a page is one of DCGM's blanks: old releases let them through; tested before any scaling."""
    if value >= INT64_TEXT or DOUBLE_BLANK <= value <= DOUBLE_BLANK + 15:
        return True
    wide = key in _WIDE or key.endswith(("_ns", "_mib_s"))
    return INT32_BLANK <= value <= INT32_BLANK + (3 if wide else 15)  # of what counts past 2^31 only the four exact blanks
