"""Measures one trace with heptascope; prints what it found, its seconds and its memory as JSON.

Run by bench_trace.py: `python trace_worker.py TRACE`.
"""

from __future__ import annotations

import json
import re
import resource
import sys
import time
from pathlib import Path
from typing import Any

from heptascope.sources.trace import run
from heptascope.sources.trace.events import GpuKind, Trace
from heptascope.sources.trace.intervals import union
from heptascope.sources.trace.load import load


def totals(trace: Trace) -> dict[str, float]:
    """Return the time of each kernel by its full name."""
    kernels = trace.gpu.pick(trace.gpu.kind == GpuKind.KERNEL)
    found: dict[str, float] = {}
    for name, duration in zip(kernels.name.tolist(), kernels.duration.tolist(), strict=True):
        found[trace.names[name]] = found.get(trace.names[name], 0.0) + duration * 1e-9
    return found


def nccl_overlap(trace: Trace) -> float | None:
    """Return the overlap as HolisticTraceAnalysis defines it: only kernels whose name begins with nccl communicate."""
    gpu = trace.gpu.pick(trace.gpu.kind == GpuKind.KERNEL)
    nccl = trace.names_like(re.compile("^nccl"))[gpu.name]
    talking, computing = union(gpu.start[nccl], gpu.end[nccl]), union(gpu.start[~nccl], gpu.end[~nccl])
    return talking.common(computing) / talking.length if talking.length else None


def analyse(path: str) -> dict[str, Any]:
    """Load and measure everything."""
    begin = time.perf_counter()
    trace = load(Path(path))
    assert isinstance(trace, Trace)  # the benchmark's own file
    loaded = time.perf_counter()
    measures = run.measure([trace]).ranks[0]
    end = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "wall": measures.wall_seconds,
        "idle": measures.wall_seconds - measures.busy_seconds,
        "overlap": nccl_overlap(trace),
        "kernels": totals(trace),
        "load_seconds": loaded - begin,
        "seconds": end - begin,
        "peak_bytes": peak,
    }


if __name__ == "__main__":
    print(json.dumps(analyse(sys.argv[1])))
