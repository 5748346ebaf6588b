"""Measures one GPU's trace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heptascope.errors import UserError
from heptascope.sources.trace import busy, calls, collectives, hotspots, steps
from heptascope.sources.trace.busy import Busy
from heptascope.sources.trace.collectives import Communication
from heptascope.sources.trace.events import GpuKind, Small, Trace
from heptascope.sources.trace.intervals import union
from heptascope.sources.trace.measures import Measures, seconds

TOP = 200
"""Kernels listed."""
BUCKETS = 240
"""Columns of the timeline."""


@dataclass(frozen=True, slots=True)
class Analysed:
    """A measured trace, and what comparing ranks needs of it."""

    trace: Trace
    measures: Measures
    work: Busy
    talk: Communication


def analyse(trace: Trace, rank: str) -> Analysed:
    """Measure one GPU's trace. Raises UserError if nothing ran on a GPU in it."""
    gpu = trace.gpu
    if not len(gpu):
        why = f" ({'; '.join(trace.notes)})" if trace.notes else ""
        raise UserError(f"no GPU activity in this trace{why}", where=trace.path, hint="record it with the profiler's CUDA activities on")
    work = busy.busy(trace)
    launched = calls.launches(trace)
    segments = steps.find(trace, work, launched)
    step_of_event = steps.of_events(trace, launched, segments)
    of_event = hotspots.classes(trace, steps.phases(segments, step_of_event))
    talk = collectives.communication(trace, of_event)
    kernels = gpu.pick(gpu.kind == GpuKind.KERNEL)
    far = hotspots.outliers(kernels)
    sync_rows = calls.sync_rows(trace)
    copy_ratio, copy_rows = busy.copies(trace, work)
    tiny, graph = hotspots.tiny(kernels), hotspots.graph(trace, launched)
    in_wall = calls.sync_time(trace, sync_rows).within(np.array([work.start]), np.array([work.end]))
    measures = Measures(
        rank=rank,
        file=trace.path,
        format=trace.format,
        device=trace.devices.get(trace.device, ""),
        wall_seconds=seconds(work.wall),
        busy_seconds=seconds(work.any.length),
        kernel_seconds=seconds(work.kernels.length),
        kernels=len(kernels),
        streams=len(np.unique(gpu.stream)),
        gap_ratio=1 - work.kernels.length / work.wall if work.wall else 0.0,
        gap_causes=busy.gap_causes(trace, launched, work, sync_rows),
        gap_count=max(len(work.any.start) - 1, 0),
        gap_histogram=busy.histogram(work),
        copy_ratio=copy_ratio,
        copies=copy_rows,
        tiny_ratio=tiny.count,
        tiny_time_ratio=tiny.time,
        graph_kernel_ratio=graph.count,
        graph_time_ratio=graph.time,
        graph_launches=launched.graph_launches,
        launch_delay=calls.launch_delay(trace, launched),
        sync_count=len(sync_rows),
        sync_ratio=float(in_wall[0]) / work.wall if work.wall else 0.0,
        syncs=calls.syncs(trace, sync_rows),
        top=hotspots.top(trace, of_event, far, TOP),
        outliers=int(far.rows.sum()),
        outlier_seconds=seconds(far.excess.sum()),
        classes=hotspots.class_times(gpu, of_event),
        collectives=collectives.measure(talk, work),
        steps=steps.summary(trace, segments, step_of_event),
        late=calls.late_work(trace, work.start, work.end),
        occupancy_estimate_ratio=hotspots.occupancy(kernels),
        timeline=_timeline(trace, of_event, work),
        notes=_notes(trace, launched),
    )
    return Analysed(trace, measures, work, talk)


def _timeline(trace: Trace, of_event: Small, work: Busy) -> dict[str, list[float]]:
    """Return for each class which share of each of BUCKETS equal pieces of the wall time it was running."""
    edges = np.linspace(work.start, work.end, BUCKETS + 1).astype(np.int64)
    width = np.maximum(np.diff(edges), 1)
    shares = {}
    for index in np.unique(of_event).tolist():
        mine = of_event == index
        covered = union(trace.gpu.start[mine], trace.gpu.end[mine]).within(edges[:-1], edges[1:])
        shares[str(hotspots.CLASSES[index])] = [round(float(share), 4) for share in covered / width]
    return shares


def _notes(trace: Trace, launched: calls.Launches) -> list[str]:
    notes = list(trace.notes)
    early = int((trace.gpu.start < trace.host.start[launched.host])[launched.known].sum()) if len(trace.host) else 0
    if early:
        notes.append(f"{early} GPU events begin before their launch: host and GPU clocks disagree, so gap causes and delays are doubtful")
    if not launched.known.any():
        notes.append("no launch calls in this trace: gap causes, launch delay and graph launches cannot be told")
    return notes
