"""GPM (GPU performance monitoring of NVML): averages between two samples, chained without gaps.

A GPM sample is cumulative inside, so the average between two of them is exact, however far apart they are. Each new sample is the
end of one window and the start of the next. Where a metric has no number for a window (a NaN, seen over short windows on an idle
card), its older sample is kept, so that its next window covers the lost time too. A metric that is dear waits in the same way where
reads are more frequent than once a second.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from heptascope.model import Reason
from heptascope.sources.gpu import calls
from heptascope.sources.gpu.calls import Calls
from heptascope.sources.gpu.layout import NO_GPM, NO_NUMBER, SAME_VALUE_SECONDS, Row
from heptascope.sources.gpu.page import Why

FIRST_WINDOW_SECONDS = 0.1
"""NVML asks for 100 ms between two samples; the first window is made at least that long."""
SHORTEST_WINDOW_SECONDS = 0.05
"""Later windows may be shorter by a schedule's jitter; on an H200 windows of 5 ms still gave numbers."""
LONGEST_HOLD_SECONDS = 60.0
"""A metric without a number for this long starts anew; the time is lost to its counters, both of them."""
UNHURRIED_SECONDS = 0.9
"""Shortest window of the metrics below: they are asked for at every read of a second, and at every ninth or tenth one of 100 ms."""
UNHURRIED = frozenset({"gr_util"})
"""This one alone costs 1.5 to 1.9 ms of a core, all others together 0.04 ms (H200, driver 580)."""

_UNKNOWN: Why = (Reason.NOT_SUPPORTED, "this card or driver has no such GPM metric")
_NO_SUCH_METRIC = frozenset({2, calls.NOT_SUPPORTED})
_FORBIDDEN = "; ask for access to GPU counters (NVreg_RestrictProfilingToAdminUsers=0) or run as root"


_IN_GPM = threading.Lock()
"""Only one thread of a process may be inside GPM: a sample taken beside a request ends in a segmentation fault (driver 580, H200).

Other NVML calls beside GPM were tried for thousands of reads and do no harm.
"""


class _Base:
    """A sample, when it was taken, and the metrics whose next window starts there."""

    def __init__(self, sample: Any, t: float, names: list[str]) -> None:
        self.sample, self.t, self.names = sample, t, names


class GpmChain:
    """The chained samples of one GPU. `refused` says why GPM as a whole does not work here (None: it does)."""

    def __init__(
        self,
        call: Calls,
        metrics: Mapping[str, int],
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], None] = time.sleep,
        instance: int | None = None,
    ) -> None:
        """Take the first sample. `metrics` maps a row's key to the GPM metric id; `instance` is a MIG instance (None: the board)."""
        self._nvml, self._handle, self._metrics = call.nvml, call.gpu.handle, dict(metrics)
        self._instance = instance
        self._clock, self._wait = clock, wait
        self._shortest = FIRST_WINDOW_SECONDS
        self._free: list[Any] = []
        self._bases: list[_Base] = []
        self._seen: dict[str, float] = {}  # metrics that ever gave a number, and the last one
        self._unknown: set[str] = set()
        self.refused = self._start(call)

    def read(self, call: Calls) -> Row:
        """Return a row's `gpm`, averages since the last read; what it lacks is in `call.missing`. Raises GpuLostError, SessionLostError."""
        if self.refused is not None and self.refused[0] is Reason.SOURCE_DOWN:
            self.refused = self._start(call)
        if self.refused is not None:
            call.missing["gpm"] = [str(self.refused[0]), self.refused[1]]
            return {}
        pause = self._shortest - (self._clock() - max(base.t for base in self._bases))
        if pause > 0:
            self._wait(pause)
        self._shortest = SHORTEST_WINDOW_SECONDS
        try:
            new = _Base(self._take(), self._clock(), [])
        except self._nvml.NVMLError as exc:  # the next window covers this time too
            call.fail("gpm", exc.value, f"nvmlGpmSampleGet: {exc}")
            return {}
        return self._row(self._chain(new), call)

    def close(self) -> None:
        """Give the samples back to the library."""
        for sample in (*self._free, *(base.sample for base in self._bases)):
            try:
                self._nvml.nvmlGpmSampleFree(sample)
            except self._nvml.NVMLError:  # the driver is gone, and its samples with it
                break
        self._free, self._bases = [], []

    def _start(self, call: Calls) -> Why | None:
        support = call.get("gpm", "nvmlGpmQueryDeviceSupport")
        if support is None or not support.isSupportedDevice:
            return _whole(call.missing.get("gpm"))
        try:
            sample = self._take()
        except self._nvml.NVMLError as exc:
            call.fail("gpm", exc.value, f"nvmlGpmSampleGet: {exc}")
            return _whole(call.missing["gpm"])
        self._struct = self._nvml.c_nvmlGpmMetricsGet_t()
        self._struct.version = self._nvml.NVML_GPM_METRICS_GET_VERSION
        self._slots = [self._struct.metrics[position] for position in range(len(self._metrics))]
        self._bases = [_Base(sample, self._clock(), list(self._metrics))]
        return None

    def _take(self) -> Any:
        sample = self._free.pop() if self._free else self._nvml.nvmlGpmSampleAlloc()
        try:
            with _IN_GPM:
                if self._instance is None:
                    self._nvml.nvmlGpmSampleGet(self._handle, sample)
                else:
                    self._nvml.nvmlGpmMigSampleGet(self._handle, self._instance, sample)
        except self._nvml.NVMLError:
            self._free.append(sample)
            raise
        return sample

    def _chain(self, new: _Base) -> dict[str, tuple[float, float]]:
        """Return (value, window) of every metric that has a number, and start its next window at `new`; the others stay where they are."""
        found: dict[str, tuple[float, float]] = {}
        for base in self._bases:
            window = new.t - base.t
            wait = [name for name in base.names if name in UNHURRIED and name in self._seen and window < UNHURRIED_SECONDS]
            due = [name for name in base.names if name not in wait] if wait else base.names
            averages = self._averages(base.sample, new.sample, due) if due else {}
            self._seen.update(averages)
            found.update((name, (value, window)) for name, value in averages.items())
            found.update((name, (self._seen[name], SAME_VALUE_SECONDS)) for name in wait)
            stay = [name for name in due if name not in found and name in self._seen and window < LONGEST_HOLD_SECONDS]
            new.names += [name for name in due if name not in stay and name not in self._unknown]
            base.names = stay + wait
        ended = [base for base in (*self._bases, new) if not base.names]
        self._bases = [base for base in (*self._bases, new) if base.names]
        self._free += [base.sample for base in ended]
        if not self._bases:
            self.refused = _UNKNOWN
        return found

    def _averages(self, older: Any, newer: Any, names: list[str]) -> dict[str, float]:
        request, slots = self._struct, self._slots
        request.numMetrics, request.sample1, request.sample2 = len(names), older, newer
        for slot, name in zip(slots, names, strict=False):
            slot.metricId = self._metrics[name]
            if name not in self._seen:
                slot.metricInfo.shortName = None
        try:
            with _IN_GPM:
                self._nvml.nvmlGpmMetricsGet(request)
        except self._nvml.NVMLError:
            return {}
        values = {}
        for slot, name in zip(slots, names, strict=False):
            if name not in self._seen and (slot.nvmlReturn in _NO_SUCH_METRIC or not slot.metricInfo.shortName):
                self._unknown.add(name)
            elif not slot.nvmlReturn and isfinite(value := slot.value):
                values[name] = value
        return values

    def _row(self, found: dict[str, tuple[float, float]], call: Calls) -> Row:
        call.answered += 1
        lengths = [window for _, window in found.values() if window != SAME_VALUE_SECONDS]
        common = max(set(lengths), key=lengths.count, default=0.0)
        gpm: Row = {"win": round(common, 6)}
        for name in self._metrics:
            gpm[name] = round(found[name][0], 4) if name in found else None
            if name not in found:
                why = _UNKNOWN if name in self._unknown else NO_NUMBER
                call.missing[name] = [str(why[0]), why[1]]
        other = {name: round(window, 9) for name, (_, window) in found.items() if window != common}
        return {**gpm, "win_of": other} if other else gpm


def _whole(said: list[str] | None) -> Why:
    """Return why GPM as a whole is refused: what the call said, else that the card is too old."""
    if said is None or said[0] == Reason.NOT_SUPPORTED:
        return NO_GPM
    return Reason(said[0]), said[1] + (_FORBIDDEN if said[0] == Reason.NO_PERMISSION else "")
