"""When the GPU worked, when it did not, and why not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from heptascope.sources.trace.calls import Launches
from heptascope.sources.trace.events import Codes, GpuKind, HostEvents, HostKind, Int, Mask, Trace
from heptascope.sources.trace.intervals import Union, union
from heptascope.sources.trace.measures import Copies, GapBucket, GapCause, seconds

BRIDGE = 100_000
"""Nanoseconds: a thread that recorded nothing for less than this was between two operations, not without work."""
_THREADS = 16  # launching threads looked at one by one; the rest are taken together
_BUCKETS = 18  # powers of two from 1 µs: the last one is open
_DIRECTION = re.compile(r"([HDAP])(?:ost|evice)?to([HDAP])", re.IGNORECASE)
_KINDS = re.compile(r"\((\w[\w ]*?) -> (\w[\w ]*?)\)")


@dataclass(frozen=True, slots=True)
class Busy:
    """The GPU's wall time [start, end), when anything ran, and when kernels ran."""

    start: int
    end: int
    any: Union
    kernels: Union

    @property
    def wall(self) -> int:
        """Nanoseconds from the first GPU activity's begin to the last one's end."""
        return self.end - self.start


def busy(trace: Trace) -> Busy:
    """Find when the GPU of this trace worked."""
    gpu = trace.gpu
    kernels = gpu.kind == GpuKind.KERNEL
    return Busy(int(gpu.start.min()), int(gpu.end.max()), union(gpu.start, gpu.end), union(gpu.start[kernels], gpu.end[kernels]))


@dataclass(frozen=True, slots=True)
class _Gaps:
    """Idle gaps [begin, end), and what is known of the launch of the activity that ended each."""

    begin: Int
    end: Int
    known: Mask
    call_begin: Int
    call_end: Int
    thread: Int


def gap_causes(trace: Trace, launched: Launches, work: Busy, sync_rows: Int) -> dict[str, float]:
    """Split the time without a kernel by cause, as shares of the wall time. They add up to the kernel gap ratio."""
    gaps = _gaps(trace, launched, work)
    late = np.clip(gaps.call_begin, gaps.begin, gaps.end)  # until then the host had not begun to launch
    sync, active = np.zeros_like(late), np.zeros_like(late)
    for mine, syncing, doing in _threads(trace, gaps, sync_rows):
        sync[mine] = syncing.within(gaps.begin[mine], late[mine])
        active[mine] = doing.within(gaps.begin[mine], late[mine])
    before = gaps.call_begin < gaps.begin
    calling = np.where(before, np.clip(gaps.call_end, gaps.begin, gaps.end) - gaps.begin, gaps.end - late)
    length = gaps.end - gaps.begin
    launch = (active - sync) + calling
    parts = {
        GapCause.COPY: work.any.length - work.kernels.length,
        GapCause.LAUNCH: launch[gaps.known].sum(),
        GapCause.SYNC: sync[gaps.known].sum(),
        GapCause.EMPTY: (late - gaps.begin - active)[gaps.known].sum(),
        GapCause.DEVICE: (length - calling)[gaps.known & before].sum(),
        GapCause.UNKNOWN: length[~gaps.known].sum(),
    }
    return {cause: float(value) / work.wall for cause, value in parts.items()} if work.wall else {}


def _gaps(trace: Trace, launched: Launches, work: Busy) -> _Gaps:
    begin, end = work.any.holes()
    after = np.searchsorted(trace.gpu.start, end)
    row = launched.host[after]
    known = row >= 0
    host = trace.host
    if not len(host):
        return _Gaps(begin, end, known, begin, begin, np.zeros_like(begin))
    return _Gaps(begin, end, known, host.start[row], host.end[row], host.thread[row].astype(np.int64))


def _threads(trace: Trace, gaps: _Gaps, sync_rows: Int) -> Iterator[tuple[Mask, Union, Union]]:
    """Yield for each launching thread: its gaps, when it waited for the GPU, when it recorded anything at all."""
    threads, count = np.unique(gaps.thread[gaps.known], return_counts=True)
    alone = threads[np.argsort(-count, kind="stable")][:_THREADS]
    host = trace.host
    waits = np.zeros(len(host), np.bool_)
    waits[sync_rows] = True
    recorded = host.kind != HostKind.PYTHON  # a Python frame says nothing: one is always open
    for thread in alone.tolist():
        mine = host.thread == thread
        yield gaps.known & (gaps.thread == thread), _of(host, mine & waits), _of(host, mine & recorded, BRIDGE)
    rest = gaps.known & ~np.isin(gaps.thread, alone)
    if rest.any():
        yield rest, _of(host, waits), _of(host, recorded, BRIDGE)


def _of(host: HostEvents, rows: Mask, bridge: int = 0) -> Union:
    return union(host.start[rows], host.end[rows], bridge)


def histogram(work: Busy) -> list[GapBucket]:
    """Count idle gaps by length: up to 1 µs, 2 µs, 4 µs and so on."""
    begin, end = work.any.holes()
    length = end - begin
    bucket = np.clip(np.ceil(np.log2(np.maximum(length, 1) / 1e3)), 0, _BUCKETS - 1).astype(np.int64)
    count = np.bincount(bucket, minlength=_BUCKETS)
    total = np.bincount(bucket, weights=length, minlength=_BUCKETS)
    upper = [*(2.0**power * 1e-6 for power in range(_BUCKETS - 1)), None]
    return [GapBucket(u, int(c), seconds(t)) for u, c, t in zip(upper, count, total, strict=True)]


def copies(trace: Trace, work: Busy) -> tuple[float, list[Copies]]:
    """Return the share of the wall time in which a copy or fill ran, and the copies by direction and kind of memory."""
    gpu = trace.gpu.pick(trace.gpu.kind != GpuKind.KERNEL)
    ratio = union(gpu.start, gpu.end).length / work.wall if work.wall else 0.0
    names, inverse = np.unique(gpu.name, return_inverse=True)
    kinds = Codes()
    kind = np.array([kinds[copy_kind(trace.names[name])] for name in names.tolist()], np.int64)[inverse]
    count = np.bincount(kind, minlength=len(kinds))
    total = np.bincount(kind, weights=gpu.duration, minlength=len(kinds))
    size = np.bincount(kind, weights=gpu.bytes, minlength=len(kinds))
    listed = [
        Copies(direction, memory, int(count[i]), seconds(total[i]), float(total[i]) / work.wall if work.wall else 0.0, int(size[i]))
        for (direction, memory), i in kinds.items()
    ]
    return ratio, sorted(listed, key=lambda row: -row.seconds)


def copy_kind(name: str) -> tuple[str, str]:
    """Return direction and the host's kind of memory, from a name such as `Memcpy HtoD (Pinned -> Device)`."""
    if name.lower().startswith("memset"):
        return "set", "device"
    way = _DIRECTION.search(name)
    direction = f"{way[1].upper()}to{way[2].upper()}" if way else "other"
    kinds = _KINDS.search(name)
    sides = [side.lower().replace("pagable", "pageable") for side in kinds.groups()] if kinds else []
    host = [side for letter, side in zip(direction[::3], sides, strict=False) if letter == "H"]
    return direction, host[0] if host else (sides[-1] if sides else "unknown")
