"""MIG instances as NVML lists them: a MIG device is a compute instance in a GPU instance, and memory belongs to the GPU instance."""

from __future__ import annotations

from typing import Any

from heptascope.sources.gpu import identity, library
from heptascope.sources.gpu.calls import NOT_FOUND, Calls, Gpu
from heptascope.sources.gpu.layout import GPM_IDS, GPM_RATIOS, Row

METRICS = {key: GPM_IDS[key] for key in GPM_RATIOS}
"""GPM metrics that are an instance's own; links belong to the board."""


def listed(call: Calls) -> list[Row]:
    """Return a `slow` row's `mig`: one entry per GPU instance and per compute instance; empty with MIG off. Raises GpuLostError."""
    if call.gpu.entry.get("mig_mode") != 1:
        return []
    out: list[Row] = []
    for position in range(call.get("mig", "nvmlDeviceGetMaxMigDeviceCount") or 0):
        device = _device(call, position)
        if device is None:
            continue
        part = _describe(call.nvml, device)
        if part is not None:
            known = {row["instance"] for row in out if row["compute"] is None}
            board = {key: value for key, value in part.items() if key not in ("uuid", "compute")}
            out += [part] if part["instance"] in known else [{**board, "compute": None}, part]
    call.missing.pop("mig", None)
    return [{key: value for key, value in row.items() if key == "compute" or value is not None} for row in out]


def numbers(rows: list[Row]) -> tuple[tuple[int, str], ...]:
    """Return what tells whether a card was cut anew: the GPU instances and the uuids of what is in them."""
    return tuple(sorted((row["instance"], str(row.get("uuid", ""))) for row in rows))


def _device(call: Calls, position: int) -> Gpu | None:
    """Return the MIG device at a position as something that can be asked; positions have holes."""
    try:
        handle = call.nvml.nvmlDeviceGetMigDeviceHandleByIndex(call.gpu.handle, position)
    except call.nvml.NVMLError as exc:
        if exc.value != NOT_FOUND:
            call.fail("mig", exc.value, f"nvmlDeviceGetMigDeviceHandleByIndex: {exc}")
        return None
    return Gpu(call.gpu.index, "", handle)


def _describe(nvml: Any, device: Gpu) -> Row | None:
    call = Calls(nvml, device)
    instance = call.get("instance", "nvmlDeviceGetGpuInstanceId")
    if instance is None:
        return None
    uuid = call.get("uuid", "nvmlDeviceGetUUID")
    memory = identity.memory(call, "memory")
    attributes = call.get("attributes", "nvmlDeviceGetAttributes")
    name = call.get("name", "nvmlDeviceGetName")
    return {
        "instance": int(instance),
        "compute": call.get("compute", "nvmlDeviceGetComputeInstanceId"),
        "uuid": None if uuid is None else library.text(uuid),
        "profile": _profile(library.text(name)) if name is not None else None,
        "slices": getattr(attributes, "gpuInstanceSliceCount", None),
        "mem_used": getattr(memory, "used", None),
        "mem_total": getattr(memory, "total", None),
    }


def _profile(name: str) -> str | None:
    """Return the profile at the end of a MIG device's name, such as "NVIDIA H200 MIG 3g.71gb"."""
    _, found, profile = name.partition(" MIG ")
    return profile if found else None
