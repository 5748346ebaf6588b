"""Facts about a GPU that are read once: a header's entry."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from heptascope.sources.gpu import library
from heptascope.sources.gpu.calls import Calls
from heptascope.sources.gpu.layout import THROTTLE, Row

CLOCK_SM, CLOCK_MEMORY, SLOWDOWN_THRESHOLD = 1, 2, 1  # nvml.h
MOST_NVLINKS = 36  # NVML_NVLINK_MAX_LINKS
THROTTLE_FIELDS = {"power_cap_ns": 74, "sw_thermal_ns": 269, "hw_thermal_ns": 270, "power_brake_ns": 271}
"""Key in a row to the id of the driver's counter of nanoseconds (nvml.h)."""


def describe(call: Calls, sysfs: Path) -> Row:
    """Return the header's entry for one GPU. Raises GpuLostError or SessionLostError."""
    get = call.get
    entry: Row = {"gpu": call.gpu.index, "uuid": call.gpu.uuid}
    entry["name"] = _text(get("name", "nvmlDeviceGetName"))
    entry["mem_total"] = getattr(memory(call, "mem_total"), "total", None)
    entry["bus_width_bits"] = get("bus_width_bits", "nvmlDeviceGetMemoryBusWidth")
    entry["max_sm_mhz"] = get("max_sm_mhz", "nvmlDeviceGetMaxClockInfo", CLOCK_SM)
    entry["max_mem_mhz"] = get("max_mem_mhz", "nvmlDeviceGetMaxClockInfo", CLOCK_MEMORY)
    entry["power_limit_w"] = _scaled(get("power_limit_w", "nvmlDeviceGetEnforcedPowerLimit"), 1e-3)
    entry["pcie_gen_max"] = get("pcie_gen_max", "nvmlDeviceGetMaxPcieLinkGeneration")
    entry["pcie_width_max"] = get("pcie_width_max", "nvmlDeviceGetMaxPcieLinkWidth")
    entry["num_cores"] = get("num_cores", "nvmlDeviceGetNumGpuCores")
    entry["mig_mode"] = _first(get("mig_mode", "nvmlDeviceGetMigMode"))
    entry["compute_capability"] = _list(get("compute_capability", "nvmlDeviceGetCudaComputeCapability"))
    entry["serial"] = _text(get("serial", "nvmlDeviceGetSerial"))
    entry["vbios"] = _text(get("vbios", "nvmlDeviceGetVbiosVersion"))
    entry["temp_slowdown_c"] = get("temp_slowdown_c", "nvmlDeviceGetTemperatureThreshold", SLOWDOWN_THRESHOLD)
    entry["cpus"] = _cpus(call)
    entry["pci_bus_id"] = _bus_id(call)
    entry["numa_node"] = _numa_node(sysfs, entry["pci_bus_id"])
    entry["nvlinks"] = len(active_nvlinks(call))
    entry["throttle_ns"] = _throttle_counters(call)
    return {**entry, "missing": call.missing} if call.missing else entry


def memory(call: Calls, key: str) -> Any:
    """Return NVML's memory info: version 2 (used without the reserved part), or version 1 on old drivers."""
    return call.first(key, ("nvmlDeviceGetMemoryInfo", getattr(call.nvml, "nvmlMemory_v2", None)), ("nvmlDeviceGetMemoryInfo",))


def active_nvlinks(call: Calls) -> list[int]:
    """Return the numbers of the NVLinks that are up; none where the card has no NVLink."""
    links = []
    for link in range(MOST_NVLINKS):
        state = call.get("nvlink", "nvmlDeviceGetNvLinkState", link)
        if state is None:
            break
        if state:
            links.append(link)
    call.missing.pop("nvlink", None)
    return links


def compact(numbers: Iterable[int]) -> str:
    """Return numbers as Linux writes CPU lists, such as "0-15,32"."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ",".join("-".join(str(edge) for edge in part) for part in parts)


def _cpus(call: Calls) -> str | None:
    words = -(-os.sysconf("SC_NPROCESSORS_CONF") // 64)
    mask = call.get("cpus", "nvmlDeviceGetCpuAffinity", words)
    if mask is None:
        return None
    return compact(word * 64 + bit for word in range(words) for bit in range(64) if mask[word] >> bit & 1)


def _bus_id(call: Calls) -> str | None:
    """Return the PCI id as sysfs writes it: NVML has an 8-digit domain in capitals, sysfs four digits in lower case."""
    info = call.get("pci_bus_id", "nvmlDeviceGetPciInfo")
    if info is None:
        return None
    domain, _, rest = str(_text(info.busId)).lower().partition(":")
    return f"{domain[-4:]}:{rest}"


def _numa_node(sysfs: Path, bus_id: str | None) -> int | None:
    """Return the NUMA node of the PCI device; None where the machine has one node (-1) or does not say."""
    try:
        node = int((sysfs / "bus/pci/devices" / str(bus_id) / "numa_node").read_text())
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None


def _throttle_counters(call: Calls) -> list[str]:
    """Return the reasons for which the driver keeps a counter of its own."""
    found = call.fields(THROTTLE_FIELDS)
    for key in THROTTLE_FIELDS:
        call.missing.pop(key, None)
    return [cause.reason for cause in THROTTLE if found.get(cause.counter) is not None]


def _text(value: Any) -> str | None:
    return None if value is None else library.text(value)


def _scaled(value: int | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _first(pair: Any) -> Any:
    return None if pair is None else pair[0]


def _list(pair: Any) -> list[int] | None:
    return None if pair is None else list(pair)
