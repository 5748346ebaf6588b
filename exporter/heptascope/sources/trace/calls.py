"""What the host did for the GPU: which call launched what, graph launches, launch delay, synchronisation, late compilation."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from heptascope.sources.trace.events import NONE, GpuKind, HostEvents, HostKind, Int, Mask, Trace
from heptascope.sources.trace.intervals import Union, percentile, union
from heptascope.sources.trace.measures import Late, Spread, Sync, seconds

_GRAPH_LAUNCH = re.compile(r"^(cuda|cu|hip)GraphLaunch")
_SYNC = re.compile(
    r"^(cuda(Device|Stream|Event|Thread)Synchronize|cu(Ctx|Stream|Event)Synchronize|hip(Device|Stream|Event)Synchronize"
    r"|(cuda|hip)Memcpy(2D|3D|Peer|ToSymbol|FromSymbol)?|cuMemcpy(HtoD|DtoH|DtoD)?)(_v\d+|_ptds)*$"
)
_COMPILE = re.compile(r"_compile\.compile_inner|entire_frame_compile|compile_fx|dynamo_timed\).*compile|triton.*compile", re.IGNORECASE)
_MODULE_LOAD = re.compile(r"^(cu(Module|Library)Load|hipModuleLoad)|Lazy Function Loading|Triggered Module Loading")
_CAPTURE = re.compile(r"^(cuda|cu|hip)StreamBeginCapture")
_CALLERS_EXAMINED = 2000
_THREADS_EXAMINED = 64
_FIRST_LOOK = 64  # events looked at before a call for its enclosing one; then eight times as many, and so on


@dataclass(frozen=True, slots=True)
class Launches:
    """For each GPU event: the host row that launched it (NONE: not in the trace), and whether a CUDA graph did."""

    host: Int
    from_graph: Mask
    graph_launches: int

    @property
    def known(self) -> Mask:
        """Which GPU events have their launch in the trace."""
        known: Mask = self.host != NONE
        return known


def launches(trace: Trace) -> Launches:
    """Match GPU events with the calls of the same correlation."""
    gpu, host = trace.gpu, trace.host
    calls = np.flatnonzero((host.kind == HostKind.CALL) & (host.correlation > 0))
    order = calls[np.argsort(host.correlation[calls], kind="stable")]
    keys = host.correlation[order]
    at = np.searchsorted(keys, gpu.correlation)
    found = (at < len(keys)) & (gpu.correlation > 0)
    found[found] = keys[at[found]] == gpu.correlation[found]
    row = np.full(len(gpu), NONE, np.int64)
    row[found] = order[at[found]]
    graph_call = trace.names_like(_GRAPH_LAUNCH)
    from_graph = (gpu.node > 0) | (found & graph_call[host.name[row]] if len(host) else False)
    from_graph |= ~found & _shared(gpu.correlation)
    recorded = int((graph_call[host.name] & (host.kind == HostKind.CALL)).sum())
    return Launches(row, from_graph, recorded or len(np.unique(gpu.correlation[from_graph])))


def _shared(correlation: Int) -> Mask:
    """Tell which events share their correlation: only a graph launch starts several kernels."""
    _, inverse, count = np.unique(correlation, return_inverse=True, return_counts=True)
    shared: Mask = (count[inverse] > 1) & (correlation > 0)
    return shared


def launch_delay(trace: Trace, launched: Launches) -> Spread | None:
    """Spread of the time from the begin of a launch call to the begin of the first kernel that it started."""
    gpu = trace.gpu
    kernels = np.flatnonzero((gpu.kind == GpuKind.KERNEL) & launched.known)
    _, first = np.unique(launched.host[kernels], return_index=True)
    rows = kernels[first]
    delay = gpu.start[rows] - trace.host.start[launched.host[rows]]
    return spread(delay)


def spread(values: Int) -> Spread | None:
    """Summarise nanoseconds as seconds; None for no values."""
    if not len(values):
        return None
    return Spread(
        len(values), seconds(values.min()), seconds(percentile(values, 0.5)), seconds(percentile(values, 0.99)), seconds(values.max())
    )


def sync_rows(trace: Trace) -> Int:
    """Return the host rows in which a thread waited for the GPU."""
    waits = trace.names_like(_SYNC)
    return np.flatnonzero((trace.host.kind == HostKind.CALL) & waits[trace.host.name])


def sync_time(trace: Trace, rows: Int) -> Union:
    """Return when any thread waited for the GPU."""
    return union(trace.host.start[rows], trace.host.end[rows])


def syncs(trace: Trace, rows: Int) -> list[Sync]:
    """Return the waits by call and caller, longest first; callers are looked up for the longest calls only."""
    host = trace.host
    longest = rows[np.argsort(host.start[rows] - host.end[rows], kind="stable")]
    callers = _callers(trace, longest[:_CALLERS_EXAMINED])
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for row in longest.tolist():
        key = (trace.names[host.name[row]], callers.get(row, ""))
        calls, total = found.get(key, (0, 0))
        found[key] = (calls + 1, total + int(host.end[row] - host.start[row]))
    return sorted((Sync(call, caller, n, seconds(total)) for (call, caller), (n, total) in found.items()), key=lambda s: -s.seconds)


def _callers(trace: Trace, rows: Int) -> dict[int, str]:
    """Name the innermost operation, range or Python frame around each call, on the call's own thread."""
    host, callers = trace.host, {}
    for thread in np.unique(host.thread[rows]).tolist()[:_THREADS_EXAMINED]:
        around = _enclosable(host, thread)
        for row in rows[host.thread[rows] == thread].tolist():
            name = _innermost(host, around, row)
            callers[row] = "" if name == NONE else trace.names[name]
    return callers


def _innermost(host: HostEvents, around: Int, row: int) -> int:
    """Return the name of the last of the events `around` (by start) that still lasts when the call in `row` ends."""
    stop = int(np.searchsorted(host.start[around], host.start[row], side="right"))
    width = _FIRST_LOOK
    while stop > 0:
        low = max(stop - width, 0)
        lasting = np.flatnonzero(host.end[around[low:stop]] >= host.end[row])
        if len(lasting):
            return int(host.name[around[low + lasting[-1]]])
        stop, width = low, width * 8
    return NONE


def _enclosable(host: HostEvents, thread: int) -> Int:
    """Rows of a thread that can contain a call, by start and, at the same start, the longest first."""
    kinds = (host.kind == HostKind.OP) | (host.kind == HostKind.ANNOTATION) | (host.kind == HostKind.PYTHON)
    rows = np.flatnonzero((host.thread == thread) & kinds)
    return rows[np.lexsort((-host.end[rows], host.start[rows]))]


def late_work(trace: Trace, start: int, end: int) -> Late:
    """Count compilations, module loads and graph captures inside [start, end), and the time they took."""
    host = trace.host
    inside = (host.end > start) & (host.start < end)
    compile_rows = np.flatnonzero(inside & trace.names_like(_COMPILE)[host.name])
    load_rows = np.flatnonzero(inside & trace.names_like(_MODULE_LOAD)[host.name])
    captures = int((inside & trace.names_like(_CAPTURE)[host.name]).sum())
    compiling = union(host.start[compile_rows], host.end[compile_rows])
    loading = union(host.start[load_rows], host.end[load_rows])
    return Late(len(compiling.start), seconds(compiling.length), len(load_rows), seconds(loading.length), captures)
