"""The one runner: it owns the timing, timeouts, errors, backoff and statuses of every source.

Each source has a daemon thread of its own. A read that does not come back costs that source's series and nothing else: no second
read is started, and the source recovers by itself when the call returns.
"""

from __future__ import annotations

import logging
import math
import random
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol, TypeVar

from heptascope.model import Reading, Reason, SourceStatus
from heptascope.sources.base import Source, SourceError

log = logging.getLogger(__name__)

FIRST_RETRY_SECONDS = 1.0
MAX_BACKOFF_SECONDS = 30.0
JITTER = 0.2  # share by which a delay may be shorter or longer, so that many pods do not retry in step

OnReading = Callable[[Reading], None]
OnFailure = Callable[[SourceStatus, float, dict[str, Any]], None]
"""Takes the status, the Unix time of the read and the row that a recording keeps of it."""


_T = TypeVar("_T")
_R = TypeVar("_R")


class Problem(NamedTuple):
    """Why a read failed."""

    reason: Reason
    message: str


class Clock(Protocol):
    """Time, replaceable in tests."""

    def time(self) -> float:
        """Return Unix seconds."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never jump."""
        ...

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait for `event` for at most `seconds`; return whether it is set."""
        ...


class SystemClock:
    """The machine's clock."""

    def time(self) -> float:
        """Return Unix seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Return seconds that never jump."""
        return time.monotonic()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait for `event` for at most `seconds`; return whether it is set."""
        return event.wait(seconds)


def backoff_seconds(interval: float, failures: int, jitter: float, longest: float = MAX_BACKOFF_SECONDS) -> float:
    """Return the delay after the `failures`-th failure in a row: soon at first, doubling up to `longest`; `jitter` is in [-1, 1]."""
    first = min(interval, FIRST_RETRY_SECONDS)
    return float(min(first * 2.0 ** min(failures - 1, 16), longest)) * (1 + JITTER * jitter)


def next_due(due: float, now: float, interval: float) -> float:
    """Return the first moment of the grid `due + n * interval` that is after `now`: late reads neither drift nor bunch."""
    return due + interval * max(1, math.floor((now - due) / interval) + 1)


class Job:
    """One source, its schedule and its status. `run_once` does one read and says how long to wait for the next."""

    def __init__(
        self, source: Source, on_reading: OnReading, on_failure: OnFailure, clock: Clock, longest_backoff: float = MAX_BACKOFF_SECONDS
    ) -> None:
        """Start in the state "not read yet"; the first read is due at once."""
        self.source = source
        self.removed = threading.Event()
        self._longest_backoff = longest_backoff
        self._on_reading, self._on_failure, self._clock = on_reading, on_failure, clock
        self._lock = threading.Lock()
        self._status = SourceStatus(source.name, source.kind, False, None, None, Reason.SOURCE_DOWN, "not read yet")
        self._due = clock.monotonic()
        self._began: float | None = None  # monotonic time at which the read in progress began
        self._hung = False
        self._down_since: float | None = None
        self._streak = 0

    def status(self) -> SourceStatus:
        """Return the status now; a read that takes longer than the source's timeout counts as down."""
        with self._lock:
            waited = self._waited()
            if waited is None:
                return self._status
            return self._status._replace(up=False, reason=Reason.SOURCE_DOWN, message=f"no answer for {waited:.0f} s")

    def watch(self) -> None:
        """Notice a hung read, once per hang."""
        with self._lock:
            waited = self._waited()
            if waited is None or self._hung:
                return
            self._hung = True
        self._fail(Reason.SOURCE_DOWN, f"no answer for {waited:.0f} s", waited)

    def run_once(self) -> float:
        """Read once; return the seconds until the next read is due."""
        began, now = self._clock.monotonic(), self._clock.time()
        with self._lock:
            self._began = began
        result = self._contained(self.source.read, now)
        ended = self._clock.monotonic()
        self.watch()
        with self._lock:
            self._began = None
            hung, self._hung = self._hung, False
        if not hung:  # what a hung call brings back is old: it only ends the hang
            problem = self._contained(self._on_reading, result) if isinstance(result, Reading) else result
            if problem is None:
                self._succeed(now, ended - began)
            else:
                self._fail(*problem, ended - began)
        return self._delay(ended)

    def close(self) -> None:
        """Release the source; an error here is only worth a debug line."""
        try:
            self.source.close()
        except Exception:  # closing is the last thing that happens: nobody can act on it
            log.debug("source %s: error while closing", self.source.name, exc_info=True)

    def _contained(self, function: Callable[[_T], _R], argument: _T) -> _R | Problem:
        """Return what `function` returns, or why it failed."""
        try:
            return function(argument)
        except SourceError as exc:
            _let_go(exc)
            return Problem(exc.reason, str(exc))
        except Exception as exc:  # a bug in one source must not take the others down
            log.debug("source %s: unexpected error", self.source.name, exc_info=True)
            _let_go(exc)
            return Problem(Reason.INVALID, _one_line(exc))

    def _waited(self) -> float | None:
        """Return for how long the read in progress has hung, None if it has not."""
        waited = 0.0 if self._began is None else self._clock.monotonic() - self._began
        return waited if waited > self.source.timeout else None

    def _succeed(self, now: float, duration: float) -> None:
        with self._lock:
            down_since, failures, self._down_since, self._streak = self._down_since, self._streak, None, 0
            self._status = SourceStatus(self.source.name, self.source.kind, True, now, duration, failures=self._status.failures)
        if down_since is not None:
            log.info("source %s answers after %.0f s (%d failed reads)", self.source.name, self._clock.monotonic() - down_since, failures)

    def _fail(self, reason: Reason, message: str, duration: float) -> None:
        with self._lock:
            first = self._down_since is None
            self._down_since = self._clock.monotonic() if first else self._down_since
            self._streak += 1
            self._status = self._status._replace(
                up=False, duration=duration, reason=reason, message=message, failures=self._status.failures + 1
            )
            status = self._status
        if first:
            log.warning("source %s is down: %s: %s", status.name, reason, message)
        now = self._clock.time()
        self._on_failure(status, now, {"t": now - duration, "dt": duration, "reason": reason.value, "error": message})

    def _delay(self, now: float) -> float:
        if self._streak:
            jitter = random.uniform(-1, 1)  # noqa: S311  # not a secret
            delay = backoff_seconds(self.source.interval, self._streak, jitter, self._longest_backoff)
            self._due = now + delay
        else:
            self._due = next_due(self._due, now, self.source.interval)
        return self._due - now


class Runner:
    """Runs sources until stopped. Readings and failures go to the two callbacks, from the sources' threads."""

    def __init__(self, on_reading: OnReading, on_failure: OnFailure, clock: Clock | None = None) -> None:
        """Keep the callbacks; nothing runs yet."""
        self._on_reading, self._on_failure = on_reading, on_failure
        self._clock = clock or SystemClock()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._jobs: dict[str, tuple[Job, threading.Thread]] = {}

    def add(self, sources: Iterable[Source], longest_backoff: float = MAX_BACKOFF_SECONDS) -> None:
        """Start to read `sources`; failing ones are retried within `longest_backoff` seconds. Raises ValueError if a name is taken."""
        for source in sources:
            job = Job(source, self._on_reading, self._on_failure, self._clock, longest_backoff)
            thread = threading.Thread(target=self._loop, args=(job,), name=f"source-{source.name}", daemon=True)
            with self._lock:
                if source.name in self._jobs:
                    raise ValueError(f"two sources are named {source.name}")
                self._jobs = {**self._jobs, source.name: (job, thread)}
            thread.start()

    def remove(self, name: str) -> None:
        """Read a source no more; it is closed after the read in progress, which may be the caller."""
        with self._lock:
            job, _ = self._jobs[name]
            self._jobs = {key: value for key, value in self._jobs.items() if key != name}
        job.removed.set()

    def statuses(self) -> tuple[SourceStatus, ...]:
        """Return the status of every source, at any time and from any thread."""
        return tuple(job.status() for job, _ in self._jobs.values())

    def watch(self) -> None:
        """Report reads that hang; to be called about once a second."""
        for job, _ in self._jobs.values():
            job.watch()

    def stop(self, timeout: float) -> list[str]:
        """End all reads and close the sources within `timeout` seconds; return the names of those that hang and are left behind."""
        self._stop.set()
        deadline = self._clock.monotonic() + timeout
        for _, thread in self._jobs.values():
            thread.join(max(0.0, deadline - self._clock.monotonic()))
        return [name for name, (_, thread) in self._jobs.items() if thread.is_alive()]

    def _loop(self, job: Job) -> None:
        delay = 0.0
        while not job.removed.is_set() and not self._clock.wait(self._stop, delay):
            if not job.removed.is_set():  # perhaps during the wait
                delay = job.run_once()
        job.close()


def _one_line(exc: Exception) -> str:
    text = " ".join(str(exc).split())
    return f"{type(exc).__name__}: {text}"[:200]


def _let_go(exc: BaseException | None) -> None:
    """Clear the frames that an error and its causes went through: with them a page that is too large would live on for a while."""
    while exc is not None:
        traceback.clear_frames(exc.__traceback__)
        exc = exc.__cause__ or exc.__context__
