"""The columnar form that every kind of trace is read into: arrays, never one object per event."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Int = NDArray[np.int64]
Code = NDArray[np.int32]
Small = NDArray[np.int8]
Float = NDArray[np.float32]
Mask = NDArray[np.bool_]

NONE = -1
"""Stands for "no correlation", "no shape", "no group" in integer columns."""

MOST_DEVICES = 64
"""GPUs of one trace that are told apart; more than one machine holds, so more are damage."""


class GpuKind(IntEnum):
    """What ran on the GPU."""

    KERNEL = 0
    COPY = 1
    SET = 2


class HostKind(IntEnum):
    """What the host recorded: a framework operation, a CUDA call, a user's range, a Python frame, the profiler itself."""

    OP = 0
    CALL = 1
    ANNOTATION = 2
    PYTHON = 3
    OVERHEAD = 4


@dataclass(slots=True)
class GpuEvents:
    """GPU activity, one row each. Times are nanoseconds since the trace's `base_ns`; `name` indexes `Trace.names`.

    `occupancy` is the profiler's own estimate in percent (NaN: none), `shape` a code of grid and block,
    `group` a code of the process group of a collective, `node` the CUDA graph node (0: not from a graph or not recorded).
    """

    start: Int
    end: Int
    name: Code
    kind: Small
    device: Code
    stream: Code
    correlation: Int
    shape: Code
    group: Code
    node: Int
    bytes: Int
    occupancy: Float

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.start)

    @property
    def duration(self) -> Int:
        """Durations in nanoseconds."""
        return self.end - self.start

    def pick(self, index: Mask | Int) -> GpuEvents:
        """Return the chosen rows."""
        return GpuEvents(*(getattr(self, column.name)[index] for column in fields(self)))


@dataclass(slots=True)
class HostEvents:
    """What host threads did; `thread` indexes `Trace.threads`."""

    start: Int
    end: Int
    name: Code
    kind: Small
    thread: Code
    correlation: Int

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.start)


@dataclass(slots=True)
class Trace:
    """One process's or one GPU's trace; `groups` are the names of process groups, by `GpuEvents.group`.

    `rank` and `world_size` come from the profiler's distributed information (None: not in the file).
    `notes` are sentences about what was left out or is doubtful, in the order in which they were found.
    """

    path: str
    format: str
    gpu: GpuEvents
    host: HostEvents
    names: list[str]
    threads: list[str]
    streams: list[str]
    groups: list[str] = field(default_factory=list)
    base_ns: int = 0
    rank: int | None = None
    world_size: int | None = None
    devices: dict[int, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    like: dict[str, Mask] = field(default_factory=dict, repr=False)

    def names_like(self, pattern: re.Pattern[str]) -> Mask:
        """Return for each name whether `pattern` is found in it; each pattern is tried once for all GPUs of a trace."""
        found = self.like.get(pattern.pattern)
        if found is None:
            found = np.fromiter((pattern.search(name) is not None for name in self.names), np.bool_, len(self.names))
            self.like[pattern.pattern] = found
        return found

    def per_device(self) -> list[Trace]:
        """Return one trace for each GPU that did something, the host's events in each."""
        present, count = np.unique(self.gpu.device, return_counts=True)
        if len(present) <= 1:
            return [self]
        kept = present if len(present) <= MOST_DEVICES else np.sort(present[np.argsort(-count, kind="stable")][:MOST_DEVICES])
        if len(kept) < len(present):
            self.notes.append(f"{len(present)} GPUs in one trace: only the {MOST_DEVICES} with most events are shown")
        return [replace(self, gpu=self.gpu.pick(self.gpu.device == device)) for device in kept]

    @property
    def device(self) -> int:
        """The number of the GPU, where there is one GPU only."""
        return int(self.gpu.device[0]) if len(self.gpu) else 0


class Codes(dict[Any, int]):
    """Gives each new key the next number: turns strings and tuples into small integers."""

    def __missing__(self, key: Any) -> int:
        """Give a new key the next number."""
        self[key] = number = len(self)
        return number

    def texts(self) -> list[str]:
        """Return the keys, in the order of their numbers, as text."""
        return [str(key) for key in self]
