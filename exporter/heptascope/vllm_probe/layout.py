"""The file that the probe in the engine writes and the sidecar reads: fixed places, one writer, any number of readers, no locks.

A sequence number guards the values: it is odd while they change, and a reader takes them only if it was even and the same before and
after. Only the standard library is used, since this runs inside the engine too. All numbers are little-endian.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

MAGIC = b"HEPTAPRB"
LAYOUT = 2
SUFFIX = ".probe"
CORE, FRONTEND = 0, 1
"""Who writes: an engine core, which has a rank, or an API server, which serves them all."""

PHASES = ("schedule", "model", "update", "output")
LIMITS = ("sequences", "tokens", "kv_cache")
FRONT = ("event_loop_lag", "tokenize")
BUCKETS = 33
"""Bucket n holds durations whose number of binary digits in ns is 2n or 2n + 1: the cheapest logarithm there is."""

PHASE_WIDTH = BUCKETS + 1  # counts of each bucket, and the sum in ns
STEPS = len(PHASES) * PHASE_WIDTH
PREFILL, DECODE, RECOMPUTED = STEPS + 1, STEPS + 2, STEPS + 3
LIMIT = STEPS + 4
FRONT_AT = LIMIT + len(LIMITS)
WIDTH = FRONT_AT + len(FRONT) * PHASE_WIDTH

_HEADER = struct.Struct("<8sIIQQII32s")  # magic, layout, number of values, pid, start (Unix ns), rank, role, engine version
_GUARD = struct.Struct("<QQ")  # sequence, heartbeat (Unix ns)
_VALUES = struct.Struct(f"<{WIDTH}Q")
_SEQUENCE = struct.Struct("<Q")
_GUARD_AT = _HEADER.size
_VALUES_AT = _GUARD_AT + _GUARD.size
SIZE = _VALUES_AT + _VALUES.size
_TRIES = 5


def bound_ns(bucket: int) -> int:
    """Return the longest duration in a bucket, in ns."""
    return (2 << 2 * bucket) - 1


def busy_ns(values: Sequence[int]) -> int:
    """Return the time spent in all turns of the loop: the phases are all of it."""
    return sum(values[phase * PHASE_WIDTH + BUCKETS] for phase in range(len(PHASES)))


class Block(NamedTuple):
    """One consistent picture. `heartbeat` is Unix seconds; `values` are laid out as the constants say."""

    pid: int
    start: int
    rank: int
    role: int
    version: str
    heartbeat: float
    values: tuple[int, ...]


class Writer:
    """Owns one file. Used by one thread."""

    def __init__(self, folder: Path, rank: int, version: str, role: int = CORE) -> None:
        """Make the file complete before it gets its name. Raises OSError."""
        self.path = folder / f"vllm-{rank if role == CORE else 'front'}-{os.getpid()}{SUFFIX}"
        header = _HEADER.pack(MAGIC, LAYOUT, WIDTH, os.getpid(), time.time_ns(), rank, role, version.encode()[:32])
        fresh = self.path.with_suffix(".new")
        fresh.write_bytes(header + bytes(SIZE - len(header)))
        with fresh.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), SIZE)
        fresh.rename(self.path)
        self._sequence = 0

    def write(self, values: Sequence[int]) -> None:
        """Publish the values."""
        self._sequence += 1
        _SEQUENCE.pack_into(self._memory, _GUARD_AT, self._sequence)
        _VALUES.pack_into(self._memory, _VALUES_AT, *values)
        self._sequence += 1
        _GUARD.pack_into(self._memory, _GUARD_AT, self._sequence, time.time_ns())

    def close(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)
        self._memory.close()


def read_block(path: Path) -> Block | None:
    """Return what a file holds, None while it changes, if it is of another layout, or gone."""
    for _ in range(_TRIES):
        try:
            content = _content(path, SIZE + 1, 0)
        except OSError:
            return None
        if len(content) != SIZE:
            return None
        magic, layout, width, pid, start, rank, role, version = _HEADER.unpack_from(content)
        if (magic, layout, width) != (MAGIC, LAYOUT, WIDTH):
            return None
        sequence, heartbeat = _GUARD.unpack_from(content, _GUARD_AT)
        again = _sequence_of(path)
        if sequence and sequence % 2 == 0 and sequence == again:
            text = version.rstrip(b"\0").decode("ascii", "replace")
            return Block(pid, start, rank, role, text, heartbeat / 1e9, _VALUES.unpack_from(content, _VALUES_AT))
    return None


def _sequence_of(path: Path) -> int:
    try:
        return int(_SEQUENCE.unpack(_content(path, _SEQUENCE.size, _GUARD_AT))[0])
    except (OSError, struct.error):
        return 0


def _content(path: Path, size: int, at: int) -> bytes:
    """Return a part of a file, however large that is. Raises OSError, for a pipe of that name too, which nobody must wait for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return os.pread(descriptor, size, at)
    finally:
        os.close(descriptor)
