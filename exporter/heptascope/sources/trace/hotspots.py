"""Which kernels the time went to: by name, by class, outliers, tiny ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heptascope.sources.trace.calls import Launches
from heptascope.sources.trace.events import GpuEvents, GpuKind, Int, Mask, Small, Trace
from heptascope.sources.trace.kernel_table import KernelClass
from heptascope.sources.trace.kernels import classify, short_name
from heptascope.sources.trace.measures import ClassTime, Kernel, seconds

TINY = 5_000
"""Nanoseconds: a kernel shorter than this costs more to launch than to run (a launch call takes 4 to 8 µs; docs/trace.md)."""
OUTLIER = 3
"""An outlier takes at least so many times the median of the runs of its kernel with the same shape."""
OUTLIER_RUNS = 8
"""Fewer runs have no median worth the name."""
CLASSES = tuple(KernelClass)
_CLASSIFIED = 20_000  # names; a trace with more is damaged, and the rest are "other"


def classes(trace: Trace, phase: Small) -> Small:
    """Return for each GPU event the index of its class; attention that serves both phases goes by the step that it ran in."""
    gpu = trace.gpu
    names, inverse = np.unique(gpu.name, return_inverse=True)
    index = {kernel_class: i for i, kernel_class in enumerate(CLASSES)}
    known = [index[classify(trace.names[name])] for name in names[:_CLASSIFIED].tolist()]
    table = np.full(len(names), index[KernelClass.OTHER], np.int8)
    table[: len(known)] = known
    found: Small = table[inverse]
    mixed = found == index[KernelClass.ATTENTION]
    found[mixed & (phase == 1)] = index[KernelClass.ATTENTION_PREFILL]
    found[mixed & (phase == 2)] = index[KernelClass.ATTENTION_DECODE]
    return found


def class_times(gpu: GpuEvents, of_event: Small) -> list[ClassTime]:
    """Return time by class, most first; times of different streams add up."""
    count = np.bincount(of_event, minlength=len(CLASSES))
    total = np.bincount(of_event, weights=gpu.duration, minlength=len(CLASSES))
    whole = total.sum() or 1.0
    rows = [ClassTime(str(c), int(n), seconds(t), float(t / whole)) for c, n, t in zip(CLASSES, count, total, strict=True) if n]
    return sorted(rows, key=lambda row: -row.seconds)


@dataclass(frozen=True, slots=True)
class Outliers:
    """Kernel runs far over the median of their kernel and shape, and the time over that median."""

    rows: Mask
    excess: NDArray[np.float64]


def outliers(kernels: GpuEvents) -> Outliers:
    """Find kernel runs that took at least OUTLIER times the median of the same kernel with the same shape."""
    duration = kernels.duration
    key = kernels.name.astype(np.int64) * (int(kernels.shape.max(initial=0)) + 2) + kernels.shape + 1
    order = np.lexsort((duration, key))
    first, count = _groups(key[order])
    median = duration[order][first + (count - 1) // 2]
    of_row = np.empty(len(order), np.int64)
    of_row[order] = np.repeat(np.where(count >= OUTLIER_RUNS, median, 0), count)
    rows = (of_row > 0) & (duration >= OUTLIER * of_row)
    return Outliers(rows, np.where(rows, duration - of_row, 0).astype(np.float64))


def _groups(keys: Int) -> tuple[Int, Int]:
    """Return begin and size of each run of equal keys."""
    if not len(keys):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    first = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    return first, np.diff(np.append(first, len(keys)))


def top(trace: Trace, of_event: Small, far: Outliers, limit: int) -> list[Kernel]:
    """Return the kernels with most time, most first. `of_event` is the class of each GPU event of the trace."""
    is_kernel = trace.gpu.kind == GpuKind.KERNEL
    name, duration, kernel_class = trace.gpu.name[is_kernel], trace.gpu.duration[is_kernel], of_event[is_kernel]
    order = np.lexsort((duration, name))
    first, count = _groups(name[order].astype(np.int64))
    if not len(first):
        return []
    sorted_duration = duration[order]
    total = np.add.reduceat(sorted_duration, first)
    far_count = np.add.reduceat(far.rows[order].astype(np.int64), first)
    far_excess = np.add.reduceat(far.excess[order], first)
    whole = float(total.sum()) or 1.0
    return [
        Kernel(
            name=short_name(trace.names[name[order[first[i]]]]),
            kernel_class=_class_name(kernel_class[order[first[i] : first[i] + count[i]]]),
            count=int(count[i]),
            seconds=seconds(total[i]),
            share=float(total[i]) / whole,
            mean=seconds(total[i] / count[i]),
            p50=seconds(sorted_duration[first[i] + _rank(int(count[i]), 0.5)]),
            p99=seconds(sorted_duration[first[i] + _rank(int(count[i]), 0.99)]),
            max=seconds(sorted_duration[first[i] + count[i] - 1]),
            outliers=int(far_count[i]),
            outlier_seconds=seconds(far_excess[i]),
        )
        for i in np.argsort(-total, kind="stable")[:limit]
    ]


def _class_name(of_runs: Small) -> str:
    """One class, or plain attention where one kernel ran in both phases."""
    present = [CLASSES[i] for i in np.unique(of_runs)]
    return str(present[0]) if len(present) == 1 else str(KernelClass.ATTENTION)


def _rank(count: int, q: float) -> int:
    return max(int(np.ceil(q * count)) - 1, 0)


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of the kernels: by number and by time."""

    count: float | None
    time: float | None


def share_of(kernels: GpuEvents, chosen: Mask) -> Shares:
    """Return the share of the kernels that are `chosen`, None without kernels."""
    duration = kernels.duration
    whole = int(duration.sum())
    if not len(kernels):
        return Shares(None, None)
    return Shares(float(chosen.sum()) / len(kernels), float(duration[chosen].sum()) / whole if whole else None)


def tiny(kernels: GpuEvents) -> Shares:
    """Return the share of kernels that ran for less than TINY."""
    return share_of(kernels, kernels.duration < TINY)


def graph(trace: Trace, launched: Launches) -> Shares:
    """Return the share of kernels that a CUDA graph launched."""
    is_kernel = trace.gpu.kind == GpuKind.KERNEL
    return share_of(trace.gpu.pick(is_kernel), launched.from_graph[is_kernel])


def occupancy(kernels: GpuEvents) -> float | None:
    """Return the profiler's estimate of occupancy, weighted by time; None if it gave none."""
    known = ~np.isnan(kernels.occupancy)
    weight = kernels.duration[known]
    return float((kernels.occupancy[known] * weight).sum() / weight.sum() / 100) if weight.sum() else None
