"""The daemon: sources are read in their threads, one pipeline thread steps once a second, the web surface reads the result."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from heptascope.model import Missing, Reading, Reason, SourceStatus, labels
from heptascope.pipeline import Pipeline
from heptascope.signals.schema import SCHEMA
from heptascope.signals.snapshot import Snapshot
from heptascope.signals.window import Window
from heptascope.sources.base import Source
from heptascope.sources.runner import MAX_BACKOFF_SECONDS, Clock, Runner, SystemClock, next_due

log = logging.getLogger(__name__)

STEP_SECONDS = 1.0
FIRST_STEP_SECONDS = 0.25  # after the sources' first reads, so that a picture holds what was read in its own second
INBOX_READINGS = 4096  # more than a minute of eight GPUs at 100 ms; past that readings are dropped
ALIVE_SECONDS = 10.0  # without a step for so long, the liveness probe fails
STOP_SECONDS = 0.8
LAST_STEP_SECONDS = 0.1  # what a step in progress gets, even if the sources have used up the time


class Tap(Protocol):
    """Sees what the sources read, in their threads: the recorder, or a command that wants to show it. Must not block."""

    def write(self, reading: Reading) -> None:
        """Take one reading."""
        ...

    def write_failure(self, status: SourceStatus, row: Mapping[str, Any]) -> None:
        """Take one failed read and the row that a recording keeps of it."""
        ...


class Failure(NamedTuple):
    """A read that failed: the status of the source then, and when."""

    status: SourceStatus
    t: float


class Anew(NamedTuple):
    """From `t` (Unix seconds) on `pipeline` takes in what comes, and what was read earlier is dropped."""

    pipeline: Pipeline
    t: float


class Daemon:
    """Everything that runs, and the state that the web surface shows."""

    def __init__(
        self,
        pipeline: Pipeline,
        *,
        clock: Clock | None = None,
        taps: Sequence[Tap] = (),
    ) -> None:
        """Step `pipeline`, and show `taps` what comes in."""
        self._pipeline, self._taps = pipeline, tuple(taps)
        self._clock = clock or SystemClock()
        self._runner = Runner(self._took, self._lost, self._clock)
        self._inbox: queue.SimpleQueue[Reading | Failure | Anew] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="pipeline", daemon=True)
        self._stepped = self._clock.monotonic()
        self._complaint = ""
        self._since = 0.0  # what was read earlier is of no use any more
        self._followers: tuple[Callable[[], None], ...] = ()
        self.header: Callable[[], Mapping[str, Any] | None] = lambda: None

    # what the web surface sees

    @property
    def window(self) -> Window:
        """The in-memory history."""
        return self._pipeline.window

    def snapshot(self) -> Snapshot:
        """Return the newest snapshot."""
        return self._pipeline.snapshot

    def verdict(self) -> Mapping[str, Any] | None:
        """Return the newest verdict as a JSON-ready object, or None before there is one."""
        return self._pipeline.verdict

    @property
    def judge(self) -> object:
        """The rules room; None without rules."""
        return self._pipeline.judge

    def follow(self, call: Callable[[], None]) -> None:
        """Call `call` after each step, in the pipeline's thread; it must be quick."""
        self._followers = (*self._followers, call)

    def tap(self, tap: Tap) -> None:
        """Show `tap` what comes in from now on."""
        self._taps = (*self._taps, tap)

    def now(self) -> float:
        """Return the time on the snapshots' clock (Unix seconds)."""
        return self._clock.time()

    def ready(self) -> bool:
        """Return whether there has been a snapshot."""
        return self._pipeline.snapshot.version > 0

    def alive(self) -> bool:
        """Return whether the pipeline still steps."""
        return self._thread.is_alive() and self._clock.monotonic() - self._stepped < ALIVE_SECONDS

    # what the command line does

    def add(self, sources: Iterable[Source], longest_backoff: float = MAX_BACKOFF_SECONDS) -> None:
        """Start to read `sources`; may be called while running."""
        self._runner.add(sources, longest_backoff)

    def replace(self, name: str, sources: Iterable[Source], longest_backoff: float = MAX_BACKOFF_SECONDS) -> None:
        """Read `sources` from now on, and the source `name` no more: what it said is forgotten."""
        self._runner.remove(name)
        self._runner.add(sources, longest_backoff)
        self.say(Reading(name, self.now()))

    def start_anew(self, pipeline: Pipeline, sources: Iterable[Source]) -> None:
        """Read `sources` from now on and nothing else, into an empty `pipeline`: nothing that was read before is judged with them."""
        for status in self.statuses():
            self._runner.remove(status.name)
        self._inbox.put(Anew(pipeline, self.now()))
        self._runner.add(sources)

    def say(self, reading: Reading) -> None:
        """Hand over a reading that no source made: why signals of a source that is not there have no value."""
        self._inbox.put(reading)

    def statuses(self) -> tuple[SourceStatus, ...]:
        """Return the status of every source."""
        return self._runner.statuses()

    def start(self) -> None:
        """Start to step."""
        self._thread.start()

    def stop(self, timeout: float = STOP_SECONDS) -> None:
        """End within `timeout` seconds; a source that hangs is left behind."""
        self._stop.set()
        deadline = time.monotonic() + timeout
        hung = self._runner.stop(timeout)
        if hung:
            log.warning("left behind, still in a call that does not return: %s", ", ".join(hung))
        if self._thread.is_alive():
            self._thread.join(max(LAST_STEP_SECONDS, deadline - time.monotonic()))

    def step(self) -> None:
        """Take in what the sources brought, and publish the next snapshot."""
        self._runner.watch()
        for _ in range(self._inbox.qsize()):
            self._take(self._inbox.get())
        self._pipeline.step(self._clock.time(), self.statuses())
        self._stepped = self._clock.monotonic()
        for call in self._followers:
            call()

    def _loop(self) -> None:
        due = self._clock.monotonic() + FIRST_STEP_SECONDS
        while not self._clock.wait(self._stop, due - self._clock.monotonic()):
            try:
                self.step()
            except Exception as exc:  # noqa: BLE001  # one bad reading must not end the daemon
                self._complain(f"{type(exc).__name__}: {exc}")
            due = next_due(due, self._clock.monotonic(), STEP_SECONDS)

    def _complain(self, complaint: str) -> None:
        """Log an unexpected error once, not every second."""
        if complaint != self._complaint:
            self._complaint = complaint
            log.error("a step failed, the next one follows: %s", complaint)
        log.debug("a step failed", exc_info=True)

    def _take(self, news: Reading | Failure | Anew) -> None:
        if isinstance(news, Anew):
            news.pipeline.succeed(self._pipeline)
            self._pipeline, self._since = news
        elif news.t < self._since:
            return
        elif isinstance(news, Reading):
            self._pipeline.ingest(news)
        elif news.status.last_success is None and self._speaks_for_its_kind(news.status):
            self._pipeline.ingest(never_read(news.status, news.t))
        else:
            self._pipeline.fail(news.status.name, news.t, news.status.reason or Reason.SOURCE_DOWN, news.status.message)

    def _speaks_for_its_kind(self, status: SourceStatus) -> bool:
        """Return whether what `status` has never given, nobody gives: each engine for itself, but only the first of the GPU sources."""
        first = next((other.name for other in self.statuses() if other.kind == status.kind), "")
        return status.kind == "engine" or first == status.name

    def _took(self, reading: Reading) -> None:
        self._put(reading)
        for tap in self._taps:
            tap.write(reading)

    def _lost(self, status: SourceStatus, t: float, row: dict[str, Any]) -> None:
        self._put(Failure(status, t))
        for tap in self._taps:
            tap.write_failure(status, row)

    def _put(self, news: Reading | Failure) -> None:
        if self._inbox.qsize() < INBOX_READINGS:
            self._inbox.put(news)


def never_read(status: SourceStatus, t: float) -> Reading:
    """Return the reading of a source that has not been read yet: the reason, for every signal that such a source supplies."""
    reason = status.reason or Reason.SOURCE_DOWN
    pairs = labels(engine=status.name) if status.kind == "engine" and reason is not Reason.NO_SOURCE else ()
    missing = [Missing(row.name, reason, status.message, pairs) for row in SCHEMA.values() if status.kind in kinds(row.suppliers)]
    return Reading(status.name, t, missing=missing)


def kinds(suppliers: Iterable[str]) -> set[str]:
    """Return the kinds of source behind the suppliers of a signal: NVML and DCGM are both `gpu`."""
    return {"gpu" if supplier in ("nvml", "gpm", "dcgm", "dcgm_exporter") else supplier for supplier in suppliers}
