"""One event of a Kineto trace, as the JSON parser fills it in."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, NamedTuple

import msgspec

from heptascope.sources.trace.events import NONE

Whole = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]
"""An integer that fits 64 bits with room to add."""
Amount = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
"""One of which there cannot be less than none."""


class Args(msgspec.Struct, gc=False):
    """What an event says besides its name and time, as far as it is used here."""

    correlation: Whole = NONE
    device: int | None = None
    stream: int | str | None = None
    bytes: Amount = 0
    grid: tuple[int, ...] | None = None
    block: tuple[int, ...] | None = None
    occupancy: float | None = msgspec.field(default=None, name="est. achieved occupancy %")
    node: Whole = msgspec.field(default=0, name="graph node id")
    group: str | None = msgspec.field(default=None, name="Process Group Name")
    elements: int | None = msgspec.field(default=None, name="In msg nelems")


class Event(msgspec.Struct, gc=False):
    """One entry of `traceEvents`; a missing time is NaN."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | str = 0
    tid: int | str = 0
    ts: float = math.nan
    dur: float = math.nan
    args: Args | None = None


NO_ARGS = Args()
_STRICT = msgspec.json.Decoder(list[Event])
_WHOLE = re.compile(r"-?\d{1,18}", re.ASCII)
_ARGS = {(field.encode_name or field.name): field for field in msgspec.structs.fields(Args)}


class Decoded(NamedTuple):
    """Events, and how many entries of the array were none."""

    events: list[Event]
    unreadable: int = 0


def decode(text: bytes) -> Decoded:
    """Parse an array of events: at once where all fields have the usual types, one by one otherwise.

    Raises msgspec.DecodeError if `text` is not JSON.
    """
    try:
        return Decoded(_STRICT.decode(text))
    except msgspec.ValidationError:
        rows = msgspec.json.decode(text, type=list[Any])
    events = [event for row in rows if (event := _lenient(row)) is not None]
    return Decoded(events, len(rows) - len(events))


def _lenient(row: Any) -> Event | None:
    """Read one entry whose fields may have any type; what does not fit is as good as missing."""
    if not isinstance(row, dict):
        return None
    args = row.get("args")
    return Event(
        ph=str(row.get("ph", "")),
        cat=str(row.get("cat", "")),
        name=str(row.get("name", "")),
        pid=_number_or_text(row.get("pid")),
        tid=_number_or_text(row.get("tid")),
        ts=_float(row.get("ts")),
        dur=_float(row.get("dur")),
        args=_args(args) if isinstance(args, dict) else None,
    )


def _args(given: dict[str, Any]) -> Args:
    args = Args()
    for name in _ARGS.keys() & given.keys():
        value = given[name]
        if isinstance(value, str) and name not in ("stream", "Process Group Name"):
            value = int(value) if _WHOLE.fullmatch(value) else value
        try:
            setattr(args, _ARGS[name].name, msgspec.convert(value, _ARGS[name].type))
        except msgspec.ValidationError:
            continue
    return args


def _float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _number_or_text(value: Any) -> int | str:
    return value if isinstance(value, int) and abs(value) < 1 << 62 else str(value)
