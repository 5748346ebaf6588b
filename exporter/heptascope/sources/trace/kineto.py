"""Reads PyTorch profiler (Kineto) traces: Chrome's JSON trace format, plain or gzip, whole or cut short."""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from heptascope.sources.trace import kineto_event
from heptascope.sources.trace.bytesource import ByteSource
from heptascope.sources.trace.columns import Tables, encode, pick
from heptascope.sources.trace.events import NONE, GpuKind, HostKind, Trace
from heptascope.sources.trace.jsonstream import EventStream
from heptascope.sources.trace.kineto_event import NO_ARGS, Args, Event

FORMAT = "kineto"
_GPU = {
    "kernel": GpuKind.KERNEL,
    "gpu_memcpy": GpuKind.COPY,
    "gpu_memset": GpuKind.SET,
    # names before torch 1.13
    "memcpy": GpuKind.COPY,
    "memset": GpuKind.SET,
}
_HOST = {
    "cpu_op": HostKind.OP,
    "cuda_runtime": HostKind.CALL,
    "cuda_driver": HostKind.CALL,
    "user_annotation": HostKind.ANNOTATION,
    "python_function": HostKind.PYTHON,
    "overhead": HostKind.OVERHEAD,
    # names before torch 1.13
    "operator": HostKind.OP,
    "runtime": HostKind.CALL,
}
_LARGEST = 1 << 62
_Kind = tuple[bool, int]


def read(file: BinaryIO, path: str) -> Trace:
    """Read one trace. Raises UserError if it is not one. Memory: about 70 bytes an event, beside one piece of the file."""
    stream = EventStream(ByteSource(file), path)
    tables = Tables()
    kinds: dict[str, _Kind] = {}
    with _no_collector():
        for piece in stream.pieces(lambda text: [kineto_event.decode(text)]):
            for events, unreadable in piece:
                tables.unreadable(unreadable)
                _add(tables, events, kinds)
    notes = [f"{stream.problem}: what comes after that point is missing"] if stream.problem else []
    return _trace(tables, path, stream.tail | stream.head, notes)


@contextmanager
def _no_collector() -> Iterator[None]:
    """Stop the cycle collector: nothing here makes cycles, and it would walk the new objects again and again."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _add(tables: Tables, events: list[Event], kinds: dict[str, _Kind]) -> None:
    """Append events to the columns; flows, counters and metadata are not used. One loop, as it runs for each event."""
    gpu: tuple[list[Event], list[int]] = ([], [])
    host: tuple[list[Event], list[int]] = ([], [])
    for event in events:
        if event.ph != "X":
            continue
        found = kinds.get(event.cat)
        if found is None:
            found = kinds[event.cat] = _kind(event.cat)
        on_gpu, kind = found
        if kind != NONE:
            rows, codes = gpu if on_gpu else host
            rows.append(event)
            codes.append(kind)
    if gpu[0]:
        _add_gpu(tables, *gpu)
    if host[0]:
        _add_host(tables, *host)


def _kind(category: str) -> _Kind:
    lower = category.lower()
    return (True, int(_GPU[lower])) if lower in _GPU else (False, int(_HOST.get(lower, NONE)))


def _add_gpu(tables: Tables, events: list[Event], kinds: list[int]) -> None:
    args = [event.args or NO_ARGS for event in events]
    both = list(zip(events, args, strict=True))
    shapes, groups = tables.shapes, tables.groups
    columns = _common(tables, events, kinds) | {
        "correlation": np.array([a.correlation for a in args], np.int64),
        "device": np.array([_device(event, a) for event, a in both], np.int32),
        "stream": encode([event.tid if a.stream is None else a.stream for event, a in both], tables.streams),
        "shape": np.array([NONE if a.grid is None else shapes[a.grid, a.block, a.elements] for a in args], np.int32),
        "group": np.array([NONE if a.group is None else groups[a.group] for a in args], np.int32),
        "node": np.array([a.node for a in args], np.int64),
        "bytes": np.array([a.bytes for a in args], np.int64),
        "occupancy": np.array([math.nan if a.occupancy is None else a.occupancy for a in args], np.float32),
    }
    tables.gpu.add(**_usable(tables, columns))


def _add_host(tables: Tables, events: list[Event], kinds: list[int]) -> None:
    columns = _common(tables, events, kinds) | {
        "correlation": np.array([NONE if (a := event.args) is None else a.correlation for event in events], np.int64),
        "thread": encode([(event.pid, event.tid) for event in events], tables.threads),
    }
    tables.host.add(**_usable(tables, columns))


def _common(tables: Tables, events: list[Event], kinds: list[int]) -> dict[str, NDArray[Any]]:
    """Return the columns that both tables have; the file's times are microseconds."""
    with np.errstate(over="ignore", invalid="ignore"):
        start = np.rint(np.array([event.ts for event in events], np.float64) * 1e3)
        end = start + np.rint(np.array([event.dur for event in events], np.float64) * 1e3)
    name = encode([event.name for event in events], tables.names)
    return {"start": start, "end": end, "name": name, "kind": np.array(kinds, np.int8)}


def _usable(tables: Tables, columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    kept = pick(columns, tables.plausible(columns["start"], columns["end"] - columns["start"]))
    return kept | {"start": kept["start"].astype(np.int64), "end": kept["end"].astype(np.int64)}


def _device(event: Event, args: Args) -> int:
    """Kineto draws GPU events under a process whose id is the GPU's number."""
    device = args.device if args.device is not None else event.pid
    return device if isinstance(device, int) and 0 <= device < 1 << 31 else 0


def _trace(tables: Tables, path: str, head: dict[str, Any], notes: list[str]) -> Trace:
    info = head.get("distributedInfo")
    info = info if isinstance(info, dict) else {}
    gpu, host = tables.finish()
    return Trace(
        path=path,
        format=FORMAT,
        gpu=gpu,
        host=host,
        names=tables.names.texts(),
        threads=tables.threads.texts(),
        streams=tables.streams.texts(),
        groups=tables.groups.texts(),
        base_ns=_whole(head.get("baseTimeNanoseconds")) or 0,
        rank=_whole(info.get("rank")),
        world_size=_whole(info.get("world_size")),
        devices=_devices(head.get("deviceProperties")),
        notes=notes + tables.notes(),
    )


def _devices(properties: object) -> dict[int, str]:
    rows = properties if isinstance(properties, list) else []
    return {row["id"]: str(row.get("name", "")) for row in rows if isinstance(row, dict) and isinstance(row.get("id"), int)}


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and abs(value) < _LARGEST else None
