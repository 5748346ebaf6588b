"""The rows of one GPU, read live from NVML in the layout of recordings. Costs are those of an H200 (driver 580)."""

from __future__ import annotations

from typing import Any

from heptascope.model import Reason
from heptascope.sources.gpu import identity, mig_nvml
from heptascope.sources.gpu.calls import Calls, Gpu, GpuLostError
from heptascope.sources.gpu.events import XidWatch
from heptascope.sources.gpu.gpm import GpmChain
from heptascope.sources.gpu.layout import THROTTLE, Row

_FAST_FIELDS = {"power_cap_ns": 74, "sw_thermal_ns": 269}  # 6 and 10 us
_SLOW_FIELDS = {"mem_temp_c": 82, "hw_thermal_ns": 270, "power_brake_ns": 271}  # 10, 600 and 600 us
_RECOVERY_FIELD = {"recovery_action": 230}
_NVLINK_ERROR_FIELDS = {"nvlink_crc_flit": 38, "nvlink_crc_data": 45, "nvlink_replay": 52, "nvlink_recovery": 59}  # totals of all links
_LINK_ERROR_FIELDS = {"nvlink_crc_flit": 163, "nvlink_replay": 161, "nvlink_recovery": 162}  # of one link; an H200 lacks the totals
_LINK_SPEED_FIELD, _COMMON_SPEED_FIELD = 164, 90  # MB/s of one link; the first wants the link's number as scope (18 links: 0.4 ms)
_CORRECTED, _UNCORRECTED, _VOLATILE = 0, 1, 0  # nvml.h
_GPU_SENSOR = 0
_REMAP_KEYS = ("remap_corrected", "remap_uncorrected", "remap_pending", "remap_failure")


def lost_row(kind: str, gpu: Gpu, t: float) -> Row:
    """Return the row of a GPU that does not answer."""
    return {"kind": kind, "t": t, "gpu": gpu.index, "uuid": gpu.uuid, "lost": gpu.lost}


def fast_row(call: Calls, chain: GpmChain, t: float) -> Row:
    """Return the `gpu` row: GPM (2.2 ms) and what costs a few microseconds. Raises GpuLostError or SessionLostError."""
    get = call.get
    row: Row = {"kind": "gpu", "t": t, "gpu": call.gpu.index, "uuid": call.gpu.uuid, "gpm": chain.read(call)}
    row["power_w"] = _scaled(get("power_w", "nvmlDeviceGetPowerUsage"), 1e-3)
    row["sm_mhz"] = get("sm_mhz", "nvmlDeviceGetClockInfo", identity.CLOCK_SM)
    row["mem_mhz"] = get("mem_mhz", "nvmlDeviceGetClockInfo", identity.CLOCK_MEMORY)
    reasons = (("nvmlDeviceGetCurrentClocksEventReasons",), ("nvmlDeviceGetCurrentClocksThrottleReasons",))
    row["throttle"] = call.first("throttle", *reasons)
    row.update(_throttle(call, _FAST_FIELDS))
    row["util_gpu"] = getattr(get("util_gpu", "nvmlDeviceGetUtilizationRates"), "gpu", None)
    memory = identity.memory(call, "mem_used")
    row["mem_used"] = getattr(memory, "used", None)
    row["mem_reserved"] = getattr(memory, "reserved", None)
    if memory is None:
        call.missing["mem_reserved"] = call.missing["mem_used"]
    sensors = (("nvmlDeviceGetTemperature", _GPU_SENSOR), ("nvmlDeviceGetTemperatureV", _GPU_SENSOR))
    row["temp_c"] = call.first("temp_c", *sensors)
    return _finished(row, call)


def add_xids(row: Row, watch: XidWatch, counts: dict[str, int], times: dict[str, float]) -> None:
    """Add the XID errors counted so far, or why they cannot be counted."""
    if watch.refused is None:
        row["xid"], row["xid_t"] = dict(counts), dict(times)
    else:
        row["xid"] = None
        row["missing"] = {**row.get("missing", {}), "xid": [str(watch.refused[0]), watch.refused[1]]}


def slow_row(call: Calls, t: float, last_seen: int) -> Row:
    """Return the `slow` row (some 8 ms); `last_seen` is the newest time stamp of process samples so far (us of the Unix epoch)."""
    get = call.get
    row: Row = {"kind": "slow", "t": t, "gpu": call.gpu.index, "uuid": call.gpu.uuid}
    row["energy_mj"] = get("energy_mj", "nvmlDeviceGetTotalEnergyConsumption")  # 3 ms
    row["power_limit_w"] = _scaled(get("power_limit_w", "nvmlDeviceGetEnforcedPowerLimit"), 1e-3)
    row.update(_throttle(call, _SLOW_FIELDS))
    row["pcie_gen"] = get("pcie_gen", "nvmlDeviceGetCurrPcieLinkGeneration")
    row["pcie_width"] = get("pcie_width", "nvmlDeviceGetCurrPcieLinkWidth")
    row["pcie_replay"] = get("pcie_replay", "nvmlDeviceGetPcieReplayCounter")
    row["ecc_corrected"] = get("ecc_corrected", "nvmlDeviceGetTotalEccErrors", _CORRECTED, _VOLATILE)
    row["ecc_uncorrected"] = get("ecc_uncorrected", "nvmlDeviceGetTotalEccErrors", _UNCORRECTED, _VOLATILE)
    _remapped(call, row)
    row.update(call.fields(_RECOVERY_FIELD))
    if call.gpu.entry.get("nvlinks"):
        row["nvlink_bytes_s"] = _nvlink_speed(call)
        _nvlink_errors(call, row)
    _processes(call, row, last_seen)
    parts = mig_nvml.listed(call)
    if parts:
        row["mig"] = parts
    return _finished(row, call)


def instance_row(call: Calls, chain: GpmChain, instance: int) -> Row:
    """Return what a `gpu` row's `mig` has of one MIG instance (2.2 ms)."""
    row: Row = {"instance": instance, "gpm": chain.read(call)}
    return {**row, "missing": call.missing} if call.missing else row


def _throttle(call: Calls, wanted: dict[str, int]) -> Row:
    """Return the fields of `wanted`; a driver's throttle counter is read only where the header says that this card has it."""
    kept = {cause.counter for cause in THROTTLE if cause.reason in call.gpu.entry.get("throttle_ns", ())}
    return call.fields({key: field for key, field in wanted.items() if key in kept or not key.endswith("_ns")})


def _remapped(call: Calls, row: Row) -> None:
    found = call.get("remap", "nvmlDeviceGetRemappedRows")
    why = call.missing.pop("remap", None)
    for position, key in enumerate(_REMAP_KEYS):
        row[key] = None if found is None else int(found[position])
        if why is not None:
            call.missing[key] = why


def _nvlink_speed(call: Calls) -> float | None:
    """Return the speed of all links that are up, one direction, in bytes/s: each link's own, or on older drivers the common one."""
    links = identity.active_nvlinks(call)
    speeds = list(call.fields({f"nvlink_{link}": (_LINK_SPEED_FIELD, link) for link in links}).values())
    for link in links:
        call.missing.pop(f"nvlink_{link}", None)
    if None in speeds:
        speeds = [call.fields({"nvlink_bytes_s": _COMMON_SPEED_FIELD})["nvlink_bytes_s"]] * len(links)
    return None if None in speeds else sum(speeds) * 1e6


def _nvlink_errors(call: Calls, row: Row) -> None:
    """Add the errors of all links: the totals, or where the card has none the sums over the links, which know one kind of CRC error."""
    row.update(call.fields(_NVLINK_ERROR_FIELDS))
    lacking = [key for key in _LINK_ERROR_FIELDS if call.missing.get(key, [""])[0] == Reason.NOT_SUPPORTED]
    links = identity.active_nvlinks(call) if lacking else []
    found = call.fields({f"{key}_{link}": (_LINK_ERROR_FIELDS[key], link) for key in lacking for link in links})
    for name in found:
        call.missing.pop(name, None)
    for key in lacking if links else ():
        counts = [found[f"{key}_{link}"] for link in links]
        if None not in counts:
            row[key] = sum(counts)
            del call.missing[key]


def _processes(call: Calls, row: Row, last_seen: int) -> None:
    listed = call.get("procs", "nvmlDeviceGetComputeRunningProcesses")
    row["procs"] = None if listed is None else [[p.pid, p.usedGpuMemory] for p in listed]
    row["mem_used"] = getattr(identity.memory(call, "mem_used"), "used", None)
    used: Any = call.get("proc_util", "nvmlDeviceGetProcessUtilization", last_seen)
    row["proc_util"] = None if used is None else [[p.pid, p.smUtil, p.memUtil, p.timeStamp] for p in used]
    if call.missing.get("proc_util", [""])[0] == Reason.IDLE:  # NVML says "not found" where no process ran
        row["proc_util"] = []
        del call.missing["proc_util"]


def _finished(row: Row, call: Calls) -> Row:
    """Return the row with its reasons. A GPU that answers nothing at all, without refusing, counts as lost."""
    if not call.answered and call.failed:
        raise GpuLostError(call.failed)
    if call.missing:
        row["missing"] = call.missing
    return row


def _scaled(value: int | None, factor: float) -> float | None:
    return None if value is None else round(value * factor, 6)
