"""What a read of the NVML sources costs, and how much of it is inside NVML."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from heptascope.sources.base import Source


class TimedNvml:
    """A module that passes every call on and adds up the time inside, as wall and as processor time, in all and by function."""

    def __init__(self, nvml: Any) -> None:
        """Wrap `nvml`."""
        self._nvml = nvml
        self.reset()

    def reset(self) -> None:
        """Start the sums at 0."""
        self.wall = self.processor = 0.0
        self.by_function: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        """Return a timed function, or anything else as it is."""
        found = getattr(self._nvml, name)
        if not name.startswith("nvml") or not callable(found) or isinstance(found, type):
            return found

        def timed(*args: Any, **kwargs: Any) -> Any:
            processor, begin = time.thread_time(), time.perf_counter()
            try:
                return found(*args, **kwargs)
            finally:
                took = time.perf_counter() - begin
                self.wall += took
                self.processor += time.thread_time() - processor
                self.by_function[name] += took

        setattr(self, name, timed)
        return timed


class Cost(NamedTuple):
    """Milliseconds of one read (means), and the share of one core at the interval."""

    reads: int
    wall_ms: float
    processor_ms: float
    nvml_wall_ms: float
    nvml_processor_ms: float
    core_percent: float


def cost(
    source: Source, nvml: TimedNvml | None, reads: int, interval: float, sleep: Callable[[float], None] = time.sleep
) -> tuple[Cost, Counter[str]]:
    """Read `source` `reads` times, one every `interval` seconds; return the cost and the milliseconds by NVML function of one read."""
    source.read(time.time())
    if nvml is not None:
        nvml.reset()
    wall = processor = 0.0
    due = time.monotonic()
    for _ in range(reads):
        due += interval
        sleep(max(0.0, due - time.monotonic()))
        begun, begin = time.thread_time(), time.perf_counter()
        source.read(time.time())
        wall += time.perf_counter() - begin
        processor += time.thread_time() - begun
    inside = (nvml.wall, nvml.processor) if nvml is not None else (0.0, 0.0)
    per_read = [1000 * seconds / reads for seconds in (wall, processor, *inside)]
    by_function = Counter({name: 1000 * s / reads for name, s in nvml.by_function.items()}) if nvml is not None else Counter()
    return Cost(reads, *per_read, 100 * processor / reads / interval), by_function
