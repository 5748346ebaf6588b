"""NVML calls on one GPU: what an error means, and which calls are not worth repeating."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heptascope.model import Reason
from heptascope.sources.gpu.backoff import Backoff
from heptascope.sources.gpu.layout import Row
from heptascope.sources.gpu.page import Why

# Return codes of nvml.h.
UNINITIALIZED, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = 1, 3, 4, 6
DRIVER_NOT_LOADED, TIMEOUT, LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND = 9, 10, 12, 13
GPU_IS_LOST, RESET_REQUIRED, VERSION_MISMATCH, NO_DATA = 15, 16, 18, 21
ARGUMENT_VERSION_MISMATCH, DEPRECATED, GPU_NOT_FOUND = 25, 26, 28

FieldId = int | tuple[int, int]
"""An NVML field id, or (id, scope): the scope of a link's field is the link's number."""

SESSION_ENDING = frozenset({UNINITIALIZED, DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, VERSION_MISMATCH})
"""The driver went away or was replaced: every handle is invalid."""
GPU_ENDING = frozenset({GPU_IS_LOST, RESET_REQUIRED, GPU_NOT_FOUND})
"""This one GPU does not answer any more."""

_REASONS: dict[int, Reason] = {
    NOT_SUPPORTED: Reason.NOT_SUPPORTED,
    FUNCTION_NOT_FOUND: Reason.NOT_SUPPORTED,
    ARGUMENT_VERSION_MISMATCH: Reason.NOT_SUPPORTED,
    DEPRECATED: Reason.NOT_SUPPORTED,
    NO_PERMISSION: Reason.NO_PERMISSION,
    NOT_FOUND: Reason.IDLE,
    NO_DATA: Reason.IDLE,
}
_FINAL = frozenset({Reason.NOT_SUPPORTED, Reason.NO_PERMISSION})

_VALUE_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""Member of a field value's union by its valueType (nvml.h, nvmlValueType_t)."""


def reason_of_code(code: int) -> Reason:
    """Return what an NVML return code means for a value; what may work the next time is SOURCE_DOWN."""
    return _REASONS.get(code, Reason.SOURCE_DOWN)


class SessionLostError(Exception):
    """The driver went away: NVML must be initialised again."""


class GpuLostError(Exception):
    """One GPU fell off the bus or needs a reset."""


class Gpu:
    """One GPU of the session: where it is, and what it refuses for good."""

    def __init__(self, index: int, uuid: str, handle: Any) -> None:
        """`index` is NVML's; a GPU that cannot be opened has no handle and perhaps no `uuid`."""
        self.index, self.uuid, self.handle = index, uuid, handle
        self.refused: dict[tuple[Any, ...], Why] = {}
        self.lost = ""  # why it does not answer; empty: it does
        self.retry: Backoff | None = None  # when to try to open it again; None: it was read in full
        self.epoch = 0  # grows each time the handle is replaced: what was made with the old one is void
        self.entry: Row = {}
        self.instances: tuple[tuple[int, str], ...] = ()  # MIG instances, as the slow source last saw them

    @property
    def key(self) -> str:
        """Return what the GPU is known by."""
        return self.uuid or str(self.index)


class Calls:
    """The calls that fill one row. A failed one gives None and leaves its reason in `missing`, by the row's key."""

    def __init__(self, nvml: Any, gpu: Gpu) -> None:
        """Call the module `nvml` on `gpu`."""
        self.nvml, self.gpu = nvml, gpu
        self.missing: dict[str, list[str]] = {}
        self.answered = 0
        self.failed = ""  # the last failure that was no final refusal

    def get(self, key: str, function: str, *args: Any) -> Any:
        """Return `nvml.<function>(handle, *args)`, or None. Raises GpuLostError or SessionLostError where the error says so."""
        call = (function, *args)
        refused = self.gpu.refused.get(call)
        if refused is not None:
            return self._refuse(key, refused)
        try:
            value = getattr(self.nvml, function)(self.gpu.handle, *args)
        except AttributeError:
            self.gpu.refused[call] = (Reason.NOT_SUPPORTED, f"this nvidia-ml-py has no {function}")
            return self._refuse(key, self.gpu.refused[call])
        except self.nvml.NVMLError as exc:
            return self.fail(key, exc.value, f"{function}: {exc}", call)
        self.answered += 1
        return value

    def first(self, key: str, *alternatives: tuple[Any, ...]) -> Any:
        """Return the answer of the first of several calls (function, arguments...) that this driver supports."""
        for function, *args in alternatives:
            value = self.get(key, function, *args)
            if value is not None:
                self.missing.pop(key, None)
                return value
            if self.missing[key][0] != Reason.NOT_SUPPORTED:
                break
        return None

    def fields(self, wanted: Mapping[str, FieldId]) -> dict[str, Any]:
        """Return NVML field values (key to field id) in one driver call; a field that failed is None."""
        out: dict[str, Any] = dict.fromkeys(wanted)
        open_keys = []
        for key, field in wanted.items():
            refused = self.gpu.refused.get(("field", field))
            if refused is None:
                open_keys.append(key)
            else:
                self._refuse(key, refused)
        if not open_keys:
            return out
        values = self.get("fields", "nvmlDeviceGetFieldValues", tuple(wanted[key] for key in open_keys))
        why = self.missing.pop("fields", None)
        for position, key in enumerate(open_keys):
            if values is None:
                self.missing[key] = why or ["source_down", ""]
            else:
                out[key] = self._field(key, wanted[key], values[position])
        return out

    def _field(self, key: str, field: FieldId, found: Any) -> Any:
        if found.nvmlReturn:
            return self.fail(key, found.nvmlReturn, f"NVML field {field}: {self.nvml.NVMLError(found.nvmlReturn)}", ("field", field))
        return getattr(found.value, _VALUE_MEMBERS[found.valueType])

    def fail(self, key: str, code: int, text: str, call: tuple[Any, ...] = ()) -> None:
        """Keep why `key` has no value; a final refusal of `call` is kept for good. Raises GpuLostError or SessionLostError."""
        if code in SESSION_ENDING:
            raise SessionLostError(text)
        if code in GPU_ENDING:
            raise GpuLostError(text)
        why = (reason_of_code(code), text)
        if why[0] in _FINAL and call:
            self.gpu.refused[call] = why
        elif why[0] is Reason.SOURCE_DOWN:
            self.failed = text
        self._refuse(key, why)

    def _refuse(self, key: str, why: Why) -> None:
        self.missing[key] = [str(why[0]), why[1]]
