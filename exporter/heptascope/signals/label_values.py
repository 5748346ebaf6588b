"""Labels whose values form a closed list: which values there are, and other spellings of them that people know from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

_ROLES = ("api_server", "engine_core", "worker", "other")
_CORRECTED = ("corrected", "uncorrected")

VALUES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("heptascope_gpu_throttle_seconds_total", "reason"): (
        "power_cap",
        "hardware_slowdown",
        "sync_boost",
        "software_thermal",
        "hardware_thermal",
        "power_brake",
    ),
    ("heptascope_gpu_ecc_errors_total", "kind"): _CORRECTED,
    ("heptascope_gpu_remapped_rows_total", "kind"): _CORRECTED,
    ("heptascope_gpu_nvlink_errors_total", "kind"): ("crc_flit", "crc_data", "replay", "recovery"),
    ("heptascope_engine_http_requests_total", "status"): ("1xx", "2xx", "3xx", "4xx", "5xx"),
    ("heptascope_engine_resource_pressure_ratio", "resource"): ("dram", "tensor", "pcie", "link", "host"),
    ("heptascope_engine_batch_tokens_total", "kind"): ("prefill", "decode"),
    ("heptascope_engine_step_bound_total", "limit"): ("sequences", "tokens", "kv_cache"),
    ("heptascope_host_pressure_waiting_seconds_total", "resource"): ("cpu", "memory", "io"),
}
"""Every value that a label of a signal can have, as the sources write it."""

ROLES = ("role", _ROLES)
"""The label for what a process does, and its values, whatever the signal."""

SPELLINGS: Mapping[str, str] = {
    # NVML and DCGM
    "sw_power_cap": "power_cap",
    "hw_slowdown": "hardware_slowdown",
    "sw_thermal": "software_thermal",
    "sw_thermal_slowdown": "software_thermal",
    "thermal": "software_thermal",
    "hw_thermal": "hardware_thermal",
    "hw_thermal_slowdown": "hardware_thermal",
    "hw_power_brake": "power_brake",
    "hw_power_brake_slowdown": "power_brake",
    "correctable": "corrected",
    "single_bit": "corrected",
    "sbe": "corrected",
    "uncorrectable": "uncorrected",
    "double_bit": "uncorrected",
    "dbe": "uncorrected",
    # engines
    "aborted": "abort",
    "cancelled": "abort",
    "canceled": "abort",
    "scheduler": "engine_core",
    "frontend": "api_server",
    "tokenizer": "api_server",
    "tokenizer_manager": "api_server",
    "detokenizer": "api_server",
}
"""What else a value is called, in lower case; a finished request's reason is the engine's own word, of which only these are known."""


def values(name: str, label: str) -> tuple[str, ...]:
    """Return the values that a label of a signal can have; nothing where the list is open."""
    return ROLES[1] if label == ROLES[0] else VALUES.get((name, label), ())


def spelled(name: str, label: str, value: str) -> str:
    """Return a label's value as the sources write it, or unchanged where nothing is known of it."""
    if label == "status" and len(value) == 3 and value.isdigit():
        return f"{value[0]}xx"
    other = SPELLINGS.get(value.lower().replace("-", "_"), value)
    listed = values(name, label)
    if listed:
        return other if other in listed else value
    return other if (name, label, other) == ("heptascope_engine_requests_finished_total", "reason", "abort") else value
