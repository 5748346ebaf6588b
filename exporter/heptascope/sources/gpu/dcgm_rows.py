"""From DCGM values to rows in the layout of recordings: pure, so that a recording replays through the same `GpuRows` as NVML's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from heptascope.model import Reason
from heptascope.sources.gpu.dcgm_codes import Value
from heptascope.sources.gpu.dcgm_fields import FAST, IDENTITY, INSTANCE_PLAIN, SLOW, DcgmField
from heptascope.sources.gpu.layout import THROTTLE, Row
from heptascope.sources.gpu.page import Why

Values = Mapping[int, Value]

_NOT_IN_DCGM = [str(Reason.NOT_SUPPORTED), "DCGM does not tell it; NVML does"]
_GPU_PACK, _LOW = 16, 0xFFFF  # field 63 packs major << 16 | minor


def plain(fields: Iterable[DcgmField], values: Values, missing: dict[str, list[str]], unknown: Mapping[int, Why]) -> Row:
    """Return the plain values of `fields`, scaled to the row's unit; why one is missing goes into `missing`."""
    row: Row = {}
    for field in fields:
        value = values.get(field.id)
        why = unknown.get(field.id) if value is None else value.why
        if value is not None and why is None:
            row[field.key] = value.value if field.scale == 1.0 or isinstance(value.value, str) else value.value * field.scale
        else:
            row[field.key] = None
            reason, text = why or (Reason.SOURCE_DOWN, "DCGM has no value")
            missing[field.key] = [str(reason), f"DCGM field {field.id}: {text}"]
    return row


def fast_row(index: int, uuid: str, values: Values, unknown: Mapping[int, Why], t: float) -> Row:
    """Return the plain part of a `gpu` row."""
    missing: dict[str, list[str]] = {}
    row: Row = {"kind": "gpu", "t": t, "gpu": index, "uuid": uuid, **plain(FAST, values, missing, unknown)}
    return {**row, "missing": missing}


def slow_row(index: int, uuid: str, values: Values, unknown: Mapping[int, Why], t: float) -> Row:
    """Return a `slow` row."""
    missing: dict[str, list[str]] = {"procs": _NOT_IN_DCGM, "proc_util": _NOT_IN_DCGM, "nvlink_bytes_s": _NOT_IN_DCGM}
    row: Row = {"kind": "slow", "t": t, "gpu": index, "uuid": uuid, **plain(SLOW, values, missing, unknown)}
    row.update(dict.fromkeys(("procs", "proc_util", "nvlink_bytes_s")))
    return {**row, "missing": missing}


def lost_row(kind: str, index: int, uuid: str, why: str, t: float) -> Row:
    """Return the row of a GPU that does not answer."""
    return {"kind": kind, "t": t, "gpu": index, "uuid": uuid, "lost": why}


def entry(gpu_id: int, values: Values, fast: Values, unknown: Mapping[int, Why]) -> Row:
    """Return the header's entry for one GPU."""
    missing: dict[str, list[str]] = {}
    found = plain(IDENTITY, values, missing, unknown)
    index = found.pop("index")
    found.pop("driver")
    found.pop("nvml")
    for key in ("index", "driver", "nvml"):
        missing.pop(key, None)
    row: Row = {"gpu": gpu_id if index is None else index, **found}
    row["uuid"] = found["uuid"] or ""
    row["compute_capability"] = _capability(found["compute_capability"])
    row["pci_bus_id"] = _bus_id(found["pci_bus_id"])
    row["throttle_ns"] = _throttle_counters({**values, **fast})
    if values.get(_NVLINK_ERRORS) is not None and values[_NVLINK_ERRORS].why is None:
        row["nvlinks"] = True
    return {**row, "missing": missing} if missing else row


_NVLINK_ERRORS = 409
"""Blank on a card without NVLink; there the throughput fields read 0, which would look like an idle link."""
_COUNTERS = {field.key: field.id for field in (*FAST, *SLOW)}


def instance_memory(values: Values) -> Row:
    """Return the memory of one MIG instance; what it lacks is left out."""
    return {f.key: values[f.id].value * f.scale for f in INSTANCE_PLAIN if f.id in values and values[f.id].why is None}


def newest(values: Values) -> float:
    """Return the host engine's time of the newest value (Unix seconds, 0: none)."""
    return max((value.t for value in values.values()), default=0.0)


def first_text(values: Values, field_id: int) -> Any:
    """Return the text of a field, None if it has none."""
    value = values.get(field_id)
    return None if value is None else value.value


def _throttle_counters(values: Values) -> list[str]:
    """Return the reasons for which the driver's own counter answers. It is blank before the first event since DCGM 4.5.3."""
    return [cause.reason for cause in THROTTLE if cause.counter and _answers(values.get(_COUNTERS[cause.counter]))]


def _answers(value: Value | None) -> bool:
    return value is not None and value.why is None


def _capability(packed: int | None) -> list[int] | None:
    return None if packed is None else [packed >> _GPU_PACK, packed & _LOW]


def _bus_id(text: str | None) -> str | None:
    """Return the PCI id as sysfs writes it: four digits of domain, lower case."""
    if text is None:
        return None
    domain, _, rest = text.lower().partition(":")
    return f"{domain[-4:]}:{rest}"
