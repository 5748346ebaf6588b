"""Runs HolisticTraceAnalysis on one trace, in an environment of its own; prints what it found, its seconds and its memory as JSON.

Run by bench_trace.py: `python hta_worker.py TRACE`.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import resource
import sys
import time
import warnings
from typing import Any

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
# Without this it rounds all times down to microseconds, so that a 1.9 µs kernel counts as 1 µs.
os.environ.setdefault("HTA_DISABLE_NS_ROUNDING", "1")


def analyse(path: str) -> dict[str, Any]:
    """Ask for what heptascope measures too: busy, idle and wall time, overlap, kernel totals, idle causes, launch statistics."""
    from hta.trace_analysis import TraceAnalysis

    begin = time.perf_counter()
    traces = TraceAnalysis(trace_files={0: path}, trace_dir="/")
    loaded = time.perf_counter()
    times = traces.get_temporal_breakdown(visualize=False).iloc[0].to_dict()
    overlap = float(traces.get_comm_comp_overlap(visualize=False).iloc[0]["comp_comm_overlap_pctg"])
    _, kernels = traces.get_gpu_kernel_breakdown(visualize=False, num_kernels=10**6, duration_ratio=1.0)
    traces.get_idle_time_breakdown(visualize=False)
    traces.get_cuda_kernel_launch_stats(visualize=False)
    end = time.perf_counter()
    return {
        "wall": float(times["kernel_time(us)"]) * 1e-6,
        "idle": float(times["idle_time(us)"]) * 1e-6,
        "overlap": None if overlap != overlap else overlap / 100,  # NaN without collectives
        "kernels": {str(row["name"]): float(row["sum (us)"]) * 1e-6 for _, row in kernels.iterrows()},
        "load_seconds": loaded - begin,
        "seconds": end - begin,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


if __name__ == "__main__":
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        found = analyse(sys.argv[1])
    print(json.dumps(found))
