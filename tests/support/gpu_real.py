"""For checks on a real card: open sources, known work beside them, and sums over readings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from heptascope.model import Reading
from heptascope.sources.gpu.nvml import NvmlSlowSource, NvmlSource, nvml_sources
from support.gpu_rows import value

SUPPORT = Path(__file__).parent
_ACTIVITY = ("graphics_engine_active", "sm_active", "sm_occupancy", "tensor_active", "dram_active")


class Sources(NamedTuple):
    """An open pair of sources."""

    fast: NvmlSource
    slow: NvmlSlowSource


@contextmanager
def opened(interval: float = 1.0, nvml: Any = None, devices: Sequence[str] = ()) -> Iterator[Sources]:
    """Give a pair of sources and close it."""
    pair = Sources(*nvml_sources(interval, devices=devices, nvml=nvml))
    try:
        yield pair
    finally:
        pair.fast.close()
        pair.slow.close()


class Load:
    """A process that does known work, and how much it had done by when."""

    def __init__(self, kind: str) -> None:
        """Start and wait until it works."""
        command = [os.environ.get("HEPTASCOPE_TORCH_PYTHON", sys.executable), str(SUPPORT / "gpu_load.py"), kind]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._points: list[tuple[float, float]] = []
        self._clocks: list[tuple[float, float]] = []
        self._started = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()
        assert self._started.wait(120)
        assert self._points, "the load ended at once: set HEPTASCOPE_TORCH_PYTHON to a Python that has torch"

    def rate(self, begin: float, end: float) -> float:
        """Return work per second between two Unix times, by interpolation between the pieces of work."""
        while self._points[-1][0] < end:
            time.sleep(0.01)
        return (self._done(end) - self._done(begin)) / (end - begin)

    def clock(self, begin: float, end: float) -> float:
        """Return the mean SM clock in hertz between two Unix times, as an SM counted it."""
        found = [hertz for t, hertz in self._clocks if begin <= t <= end]
        return sum(found) / len(found)

    def stop(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            point = json.loads(line)
            self._points.append((point["t"], point["done"]))
            if "hz" in point:
                self._clocks.append((point["t"], point["hz"]))
            if len(self._points) == 10:
                self._started.set()
        self._started.set()

    def _done(self, t: float) -> float:
        after = next(i for i, point in enumerate(self._points) if point[0] >= t)
        (t0, d0), (t1, d1) = self._points[after - 1], self._points[after]
        return d0 + (d1 - d0) * (t - t0) / (t1 - t0)


@contextmanager
def working(kind: str) -> Iterator[Load]:
    """Run a load beside the block."""
    load = Load(kind)
    try:
        yield load
    finally:
        load.stop()


def poll(source: NvmlSource, seconds: float, interval: float) -> tuple[list[Reading], float, float]:
    """Read on schedule for `seconds`, after a first read that only starts the windows; return the readings, begin and end."""
    source.read(time.time())
    begin = time.time()
    readings, due = [], time.monotonic()
    for _ in range(round(seconds / interval)):
        due += interval
        time.sleep(max(0.0, due - time.monotonic()))
        readings.append(source.read(time.time()))
    return readings, begin, time.time()


def integral(readings: list[Reading], what: str, gpu: str = "0") -> tuple[float, float]:
    """Return (active seconds, sampled seconds) of one kind of activity."""
    found = [s for r in readings for s in r.samples if s.name == f"heptascope_gpu_{what}_ratio" and ("gpu", gpu) in s.labels]
    return sum(s.value * s.window for s in found), sum(s.window for s in found)


def mean(readings: list[Reading], what: str) -> float:
    """Return the mean of one kind of activity."""
    active, sampled = integral(readings, what)
    return active / sampled


def average(readings: list[Reading], signal: str) -> float:
    """Return the plain mean of a gauge."""
    found = [value(r, signal, gpu="0") for r in readings]
    return sum(found) / len(found)


def grown(readings: list[Reading], signal: str, gpu: str = "0") -> float:
    """Return the growth of a counter over readings."""
    return value(readings[-1], signal, gpu=gpu) - value(readings[0], signal, gpu=gpu)


def table(readings: list[Reading]) -> dict[str, float]:
    """Return what the counters read, for the results."""
    row = {what: round(mean(readings, what), 4) for what in _ACTIVITY}
    row["sm_clock_mhz"] = round(average(readings, "sm_clock_hertz") / 1e6)
    row["power_watts"] = round(average(readings, "power_watts"), 1)
    row["utilization_ratio"] = round(average(readings, "utilization_ratio"), 2)
    return row
