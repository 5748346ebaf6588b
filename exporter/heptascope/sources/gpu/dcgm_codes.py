"""DCGM's return codes and what each asks for, and its blank values. The numbers of dcgm_structs.h are the same in 3.x and 4.x."""

from __future__ import annotations

from enum import Enum
from math import isfinite, isnan
from typing import Any, NamedTuple

from heptascope.model import Reason
from heptascope.sources.gpu.page import Why

BADPARAM, NOT_SUPPORTED, UNKNOWN_FIELD, MAX_LIMIT, DUPLICATE_KEY = -1, -6, -13, -24, -26
NO_DATA, NOT_WATCHED = -14, -16
GPU_IS_LOST, RESET_REQUIRED, MODULE_NOT_LOADED, MULTI_PASS, GPUS_DETACHED = -18, -19, -33, -38, -67
FUNCTION_NOT_FOUND, LIBRARY_NOT_FOUND, CONNECTION_NOT_VALID, NVML_NOT_LOADED = -20, -25, -21, -56


class Reaction(Enum):
    """What an error asks for."""

    GO_ON = "go on"  # the next read may work
    FORGET = "forget"  # this value or field will never come: stop asking
    SPLIT = "split"  # one member of a set is at fault: find and drop it
    LOSE_GPU = "lose the GPU"  # this GPU does not answer, the others go on
    NO_PROFILING = "no profiling"  # do without profiling fields; watch the plain ones again
    LOOK_AGAIN = "look again"  # instances changed: list the entities again
    REBUILD = "rebuild"  # the connection and all that was made with it are void
    RELEASE = "release"  # give everything back, so that the driver can be unbound; come back later
    GIVE_UP = "give up"  # this host engine cannot be used with this library


class Code(NamedTuple):
    """One return code: the reaction, the reason for the series, and what to say."""

    reaction: Reaction
    reason: Reason
    text: str


_DOWN, _NONE, _FORBIDDEN, _LOCKED = Reason.SOURCE_DOWN, Reason.NOT_SUPPORTED, Reason.NO_PERMISSION, Reason.PROFILER_LOCKED

_CODES: dict[int, Code] = {
    BADPARAM: Code(Reaction.SPLIT, _NONE, "the host engine does not know this field or takes no such set of fields"),
    -3: Code(Reaction.GO_ON, _DOWN, "generic error"),
    NOT_SUPPORTED: Code(Reaction.FORGET, _NONE, "not supported by this card"),
    -7: Code(Reaction.REBUILD, _DOWN, "the DCGM library could not be initialised"),
    -8: Code(Reaction.GO_ON, _DOWN, "NVML error inside the host engine"),
    -10: Code(Reaction.REBUILD, _DOWN, "the DCGM library is not initialised"),
    -11: Code(Reaction.GO_ON, _DOWN, "the host engine did not answer in time"),
    -12: Code(Reaction.GIVE_UP, _NONE, "library and host engine are of different versions: use the bindings of the engine's own version"),
    UNKNOWN_FIELD: Code(Reaction.FORGET, _NONE, "this host engine does not know the field"),
    NO_DATA: Code(Reaction.GO_ON, _DOWN, "no data yet"),
    -15: Code(Reaction.GO_ON, Reason.STALE, "the host engine's value is old"),
    NOT_WATCHED: Code(Reaction.GO_ON, _DOWN, "not watched"),
    -17: Code(Reaction.NO_PROFILING, _FORBIDDEN, "the host engine may not read this: run it as root or with CAP_SYS_ADMIN"),
    GPU_IS_LOST: Code(Reaction.LOSE_GPU, _DOWN, "the GPU is lost"),
    RESET_REQUIRED: Code(Reaction.LOSE_GPU, _DOWN, "the GPU needs a reset"),
    FUNCTION_NOT_FOUND: Code(Reaction.GIVE_UP, _NONE, "the DCGM library lacks a function: bindings and library are of different versions"),
    CONNECTION_NOT_VALID: Code(Reaction.REBUILD, _DOWN, "the connection to the host engine broke"),
    -22: Code(Reaction.LOSE_GPU, _NONE, "DCGM does not support this GPU"),
    -23: Code(Reaction.NO_PROFILING, _NONE, "GPUs of different models cannot be profiled in one group"),
    MAX_LIMIT: Code(Reaction.GO_ON, _DOWN, "the host engine has too many groups or field groups"),
    LIBRARY_NOT_FOUND: Code(Reaction.GIVE_UP, _NONE, "libdcgm was not found: install it, or put its folder on LD_LIBRARY_PATH"),
    DUPLICATE_KEY: Code(Reaction.GO_ON, _DOWN, "the host engine has a group of this name"),
    -29: Code(Reaction.NO_PROFILING, _FORBIDDEN, "the host engine must run as root for this"),
    MODULE_NOT_LOADED: Code(
        Reaction.NO_PROFILING, _NONE, "the host engine has no profiling module for this card: install datacenter-gpu-manager-4-proprietary"
    ),
    -34: Code(Reaction.GO_ON, _LOCKED, "another profiler holds the counters"),
    -36: Code(Reaction.NO_PROFILING, _NONE, "this card or driver cannot be profiled"),
    -37: Code(
        Reaction.NO_PROFILING, _LOCKED, "another profiler holds the counters, or the profiling module hangs: restart the host engine"
    ),
    MULTI_PASS: Code(Reaction.SPLIT, _NONE, "these counters cannot be read in one pass"),
    -44: Code(Reaction.GIVE_UP, _NONE, "the NVIDIA driver is too old for this DCGM"),
    -45: Code(Reaction.LOOK_AGAIN, _DOWN, "the MIG instance is not there any more"),
    -46: Code(Reaction.LOOK_AGAIN, _DOWN, "the MIG compute instance is not there any more"),
    -54: Code(Reaction.GO_ON, _LOCKED, "the host engine's profiling is paused"),
    NVML_NOT_LOADED: Code(Reaction.REBUILD, _DOWN, "the host engine runs without NVML: the NVIDIA driver is not up there"),
    -57: Code(Reaction.REBUILD, _DOWN, "the NVIDIA driver hangs"),
    GPUS_DETACHED: Code(Reaction.RELEASE, _DOWN, "the GPUs are detached from the driver"),
}


def meaning(code: int) -> Code:
    """Return what a return code asks for; an unknown one is worth another try."""
    return _CODES.get(code) or Code(Reaction.GO_ON, _DOWN, f"DCGM error {code}")


class DcgmCallError(Exception):
    """A DCGM call failed; `code` is DCGM's return code."""

    def __init__(self, code: int, text: str = "") -> None:
        """Keep the code; the message is one line for people."""
        super().__init__(text or meaning(code).text)
        self.code = code

    @property
    def means(self) -> Code:
        """What the code asks for."""
        return meaning(self.code)


# Blank values (dcgm_structs.h). Four kinds in this order: blank, not found, not supported, not permitted.
INT64_BLANK, INT32_BLANK, DOUBLE_BLANK = 0x7FFFFFFFFFFFFFF0, 0x7FFFFFF0, 2.0**47
_BLANK_SPAN = 15  # dcgm_structs.h keeps so many values after each blank
_STRINGS = ("<<<NULL>>>", "<<<NOT_FOUND>>>", "<<<NOT_SUPPORTED>>>", "<<<NOT_PERM>>>")
_BLANKS: tuple[Why, ...] = (
    (Reason.SOURCE_DOWN, "DCGM has no value"),
    (Reason.NOT_SUPPORTED, "DCGM did not find it"),
    (Reason.NOT_SUPPORTED, "not supported by this card"),
    (Reason.NO_PERMISSION, "the host engine may not read it: run it as root"),
)


def blank_int(value: int, wide: bool) -> Why | None:
    """Return why an integer is no value, None if it is one; `wide`: it counts bytes, cycles or nanoseconds and passes 2^31.

    Blanks of 32 bits come in fields of 64 bits too. In a wide field only the four exact blanks are none: a counter is on one of them
    for so short a time that a value lost there is rarer, and costs less, than a blank that is taken for an amount.
    """
    if value >= INT64_BLANK:
        return _kind(value - INT64_BLANK)
    if INT32_BLANK <= value <= INT32_BLANK + (len(_BLANKS) - 1 if wide else _BLANK_SPAN):
        return _kind(value - INT32_BLANK)
    return None


def blank_double(value: float) -> Why | None:
    """Return why a double is no value, None if it is one. The range is closed: a bigger number is a number."""
    if isnan(value) or not isfinite(value):
        return _BLANKS[0]
    return _kind(int(value - DOUBLE_BLANK)) if DOUBLE_BLANK <= value <= DOUBLE_BLANK + _BLANK_SPAN else None


def blank_string(value: str) -> Why | None:
    """Return why a string is no value, None if it is one."""
    return _BLANKS[_STRINGS.index(value)] if value in _STRINGS else _BLANKS[0] if not value else None


class Value(NamedTuple):
    """One field of one entity: its value, or why it has none; `t` is the host engine's time of it (Unix seconds, 0: never)."""

    value: Any
    why: Why | None
    t: float
    code: int = 0


def decode(found: Any, wide: bool = False) -> Value:
    """Return what a field value structure holds. The blanks are tested by type, before anything is scaled."""
    t = max(found.ts, 0) / 1e6
    if found.status:
        code = meaning(found.status)
        return Value(None, (code.reason, code.text), t, found.status)
    kind = chr(found.fieldType) if found.fieldType > 0 else ""
    if kind == "d":
        return _valued(found.value.dbl, blank_double(found.value.dbl), t)
    if kind in ("i", "t"):
        return _valued(found.value.i64, blank_int(found.value.i64, wide), t)
    if kind == "s":
        text = found.value.str.decode("utf-8", "replace") if isinstance(found.value.str, bytes) else str(found.value.str)
        return _valued(text, blank_string(text), t)
    return Value(None, (Reason.INVALID, f"DCGM gave a value of the unknown type {found.fieldType}"), t)


def _valued(value: Any, why: Why | None, t: float) -> Value:
    return Value(value if why is None else None, why, t)


def _kind(offset: int) -> Why:
    return _BLANKS[offset] if offset < len(_BLANKS) else _BLANKS[0]
