"""A clock that a test moves, and a source that does what a test says."""

from __future__ import annotations

import threading
from collections.abc import Callable

from heptascope.model import Reading


class ManualClock:
    """Time that moves only when a test moves it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now - 900.0

    def wait(self, event: threading.Event, seconds: float) -> bool:
        self.now += seconds
        return event.is_set()


class GatedClock(ManualClock):
    """Waits end when the test opens the gate, one waiter at a time, or at the end; the clock does not move by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Semaphore(0)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        while seconds > 0 and not event.is_set() and not self.gate.acquire(timeout=0.01):
            pass
        return event.is_set()


class ScriptedSource:
    """Answers each read with the next step of a script: an exception to raise, or seconds that the read takes."""

    name, kind, interval, timeout = "vllm", "engine", 1.0, 5.0

    def __init__(self, clock: ManualClock, steps: list[float | Exception], during: Callable[[], None] = lambda: None) -> None:
        self.clock, self.steps, self.during = clock, steps, during
        self.reads: list[float] = []
        self.closed = 0

    def read(self, now: float) -> Reading:
        self.reads.append(now)
        step = self.steps.pop(0) if self.steps else 0.0
        if isinstance(step, Exception):
            raise step
        self.clock.now += step
        self.during()
        return Reading(self.name, now)

    def close(self) -> None:
        self.closed += 1
