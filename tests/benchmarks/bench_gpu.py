"""Measure the NVML sources: on the GPUs of this machine, or, where there are none, on eight simulated ones.

Run with `python tests/benchmarks/bench_gpu.py [READS]`; prints milliseconds per read and the share of one core at 1 Hz and at 10 Hz.
For simulated GPUs the processor time is heptascope's own part, without that of the simulation; results/ has real ones.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the helpers of the tests
from heptascope.sources.base import SourceError
from heptascope.sources.gpu.nvml import NvmlSlowSource, NvmlSource, nvml_sources
from heptascope.sources.gpu.session import Session
from support.fake_nvml import FakeClock, FakeNvml, h200
from support.gpu_cost import Cost, TimedNvml, cost

SIMULATED = 8
LIMIT_PERCENT = 5.0  # of one core, for eight simulated GPUs at 1 Hz, the slow source included


def real_module() -> Any:
    """Return pynvml if this machine has GPUs, else None."""
    fast, slow = nvml_sources()
    try:
        fast.read(0.0)
    except SourceError:
        return None
    finally:
        fast.close()
        slow.close()
    import pynvml

    return pynvml


def real(nvml: Any, reads: int) -> list[tuple[str, Cost]]:
    """Measure this machine's GPUs, on schedule."""
    timed = TimedNvml(nvml)
    out = []
    for interval in (1.0, 0.1):
        fast, slow = nvml_sources(interval, nvml=timed)
        out.append((f"fast source every {interval:g} s", cost(fast, timed, reads, interval)[0]))
        fast.close()
        slow.close()
    fast, slow = nvml_sources(nvml=timed)
    fast.read(0.0)
    found = cost(slow, timed, max(3, reads // 5), 0.5)[0]
    out.append(("slow source every 5 s", found._replace(core_percent=found.core_percent * 0.5 / slow.interval)))
    fast.close()
    slow.close()
    return out


def simulated(reads: int) -> list[tuple[str, Cost]]:
    """Measure eight simulated GPUs with NVLink, without waiting."""
    clock = FakeClock()
    timed = TimedNvml(FakeNvml([h200(f"GPU-{i}", links=18) for i in range(SIMULATED)], clock))
    session = Session(timed, clock=clock, now=clock)
    fast = NvmlSource(session, 1.0, clock=clock, wait=clock.wait)
    slow = NvmlSlowSource(session)
    out = []
    for source in (fast, slow):
        found = cost(source, timed, reads, source.interval, clock.wait)[0]
        own = found.processor_ms - found.nvml_processor_ms
        found = found._replace(processor_ms=own, core_percent=own / source.interval / 10)
        out.append((f"{source.name} every {source.interval:g} s, {SIMULATED} simulated GPUs", found))
    return out


def main() -> None:
    """Measure and print."""
    reads = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    nvml = real_module()
    rows = simulated(10 * reads) if nvml is None else real(nvml, reads)
    print(f"{'NVML sources':<46} {'wall ms':>8} {'cpu ms':>8} {'NVML ms':>8} {'% of a core':>12}")
    for name, found in rows:
        print(f"{name:<46} {found.wall_ms:8.2f} {found.processor_ms:8.2f} {found.nvml_wall_ms:8.2f} {found.core_percent:12.3f}")
    sys.exit(sum(found.core_percent for _, found in rows) > LIMIT_PERCENT if nvml is None else 0)


if __name__ == "__main__":
    main()
