"""The daemon: readings become snapshots, failures become reasons, and nothing ends it but a signal."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from heptascope.daemon import ALIVE_SECONDS, Daemon, kinds
from heptascope.model import Labels, Reading, Reason, Sample, SourceStatus, labels
from heptascope.pipeline import Pipeline
from heptascope.signals.snapshot import Snapshot
from heptascope.sources.base import SourceError
from support.fakes import GatedClock, ManualClock, ScriptedSource

RUNNING = "heptascope_engine_requests_running"
ENGINE = labels(engine="vllm", rank="0")
Make = Callable[..., Daemon]


class EngineSource(ScriptedSource):
    """A scripted source whose readings hold one gauge; each read is announced."""

    def __init__(self, clock: ManualClock, steps: list[float | Exception], pairs: Labels = ENGINE) -> None:
        super().__init__(clock, steps)
        self.pairs, self.done = pairs, threading.Semaphore(0)

    def read(self, now: float) -> Reading:
        try:
            super().read(now)
            return Reading(self.name, now, [Sample(RUNNING, self.pairs, 3.0)], raw={"t": now, "dt": 0.0, "status": 200, "text": "page"})
        finally:
            self.done.release()


class ListTap:
    """Keeps what it is shown."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []

    def write(self, reading: Reading) -> None:
        self.seen.append((reading.source, reading.raw))

    def write_failure(self, status: SourceStatus, row: Mapping[str, Any]) -> None:
        self.seen.append((status.name, row))


@pytest.fixture
def make() -> Iterator[Make]:
    """Make daemons that end with the test."""
    made: list[Daemon] = []

    def build(clock: ManualClock, pipeline: Pipeline | None = None, **more: Any) -> Daemon:
        made.append(Daemon(pipeline or Pipeline(), clock=clock, **more))
        return made[-1]

    yield build
    for daemon in made:
        daemon.stop(30.0)


def started(daemon: Daemon, source: EngineSource) -> None:
    """Add `source` and wait for its first read to have ended."""
    daemon.add([source])
    assert source.done.acquire(timeout=30)


def step_until(daemon: Daemon, condition: Callable[[Snapshot], bool]) -> Snapshot:
    """Step until the snapshot is as it should be: news of a source arrives in its thread's own time."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        daemon.step()
        if condition(daemon.snapshot()):
            return daemon.snapshot()
        time.sleep(0.001)
    raise AssertionError(f"not within 30 s: {daemon.snapshot()}")


def details(snapshot: Snapshot) -> set[str]:
    """Return the words of all gaps."""
    return {gap.detail for gap in snapshot.missing}


def test_a_reading_is_in_the_next_snapshot_with_its_status(make: Make) -> None:
    """What a source read stands in the snapshot that the next step publishes, with the source up."""
    clock = GatedClock()
    daemon = make(clock)
    assert (False, 0) == (daemon.ready(), daemon.snapshot().version)
    started(daemon, EngineSource(clock, []))
    step_until(daemon, lambda now: now.value(RUNNING, ENGINE) == 3.0)
    assert [("vllm", True, 1000.0)] == [(s.name, s.up, s.last_success) for s in daemon.snapshot().sources]
    assert (True, 1000.0) == (daemon.ready(), daemon.now())
    assert [RUNNING] == [name for name in daemon.window.names() if name == RUNNING]


def test_an_engine_that_was_never_read_has_a_reason_for_each_of_its_signals(make: Make) -> None:
    """An engine that is down at the start is visible as such: no value, and the reason on every engine signal."""
    clock = GatedClock()
    daemon = make(clock)
    started(daemon, EngineSource(clock, [SourceError(Reason.SOURCE_DOWN, "connection refused")]))
    gaps = {gap.signal: gap for gap in step_until(daemon, lambda now: "connection refused" in details(now)).missing}
    assert (Reason.SOURCE_DOWN, "connection refused", labels(engine="vllm")) == gaps[RUNNING][1:]
    assert "heptascope_engine_time_to_first_token_seconds" in gaps
    assert "heptascope_gpu_power_watts" not in gaps


def test_a_source_that_fails_later_loses_its_series_at_once(make: Make) -> None:
    """After a failed read the value is gone, with the source's reason in its place."""
    clock = GatedClock()
    daemon = make(clock)
    source = EngineSource(clock, [0.0, SourceError(Reason.INVALID, "half a page")])
    started(daemon, source)
    step_until(daemon, lambda now: now.value(RUNNING, ENGINE) == 3.0)
    clock.now += 1.0
    clock.gate.release()
    after = step_until(daemon, lambda now: now.value(RUNNING, ENGINE) is None)
    assert [(Reason.INVALID, "half a page", ENGINE)] == [gap[1:] for gap in after.missing if gap.signal == RUNNING]


def test_a_source_that_is_found_replaces_the_one_that_looked_for_it(make: Make) -> None:
    """After the replacement only the new source has a status, and the reasons that the seeker gave are gone."""
    clock = GatedClock()
    daemon = make(clock)
    seeker = EngineSource(clock, [SourceError(Reason.NO_SOURCE, "none found")])
    seeker.name = "engine"
    started(daemon, seeker)
    step_until(daemon, lambda now: "none found" in details(now))
    seeker.during = lambda: daemon.replace("engine", [EngineSource(clock, [])])
    clock.gate.release()
    after = step_until(daemon, lambda now: "none found" not in details(now))
    assert ["vllm"] == [status.name for status in after.sources]


def test_a_new_start_knows_nothing_of_before(make: Make) -> None:
    """What was read before, and what a read in progress still brings, is gone from the next picture; versions go on."""
    clock = ManualClock()
    daemon = make(clock)
    daemon.say(Reading("vllm", clock.now, [Sample(RUNNING, ENGINE, 3.0)]))
    daemon.step()
    window, before = daemon.window, daemon.snapshot()
    assert 3.0 == before.value(RUNNING, ENGINE)
    clock.now += 10.0
    daemon.start_anew(Pipeline(), [])
    daemon.say(Reading("vllm", clock.now - 0.1, [Sample(RUNNING, ENGINE, 4.0)]))
    daemon.say(Reading("other", clock.now, [Sample(RUNNING, labels(engine="other"), 5.0)]))
    assert before is daemon.snapshot()
    daemon.step()
    assert {labels(engine="other"): 5.0} == dict(daemon.snapshot().values[RUNNING])
    assert before.version + 1 == daemon.snapshot().version
    assert window is not daemon.window
    assert [labels(engine="other")] == [series.pairs for series in daemon.window.series(RUNNING)]


def test_only_the_first_gpu_source_speaks_for_all_gpu_signals(make: Make) -> None:
    """The slow GPU source failing from the start does not say that the fast one's signals are missing."""
    clock = GatedClock()
    daemon = make(clock)
    fast, slow = EngineSource(clock, [0.0]), EngineSource(clock, [SourceError(Reason.SOURCE_DOWN, "slow is down")])
    for source, name in ((fast, "nvml"), (slow, "nvml_slow")):
        source.name, source.kind = name, "gpu"
        daemon.add([source])
        assert source.done.acquire(timeout=30)
    after = step_until(daemon, lambda now: now.sources[1].failures == 1)
    daemon.step()
    assert "slow is down" not in details(after) | details(daemon.snapshot())


def test_a_tap_sees_rows_and_failures(make: Make) -> None:
    """The row of a good read and that of a failed one are shown, in their order."""
    clock, tap = GatedClock(), ListTap()
    daemon = make(clock, taps=[tap])
    source = EngineSource(clock, [0.0, SourceError(Reason.SOURCE_DOWN, "gone")])
    started(daemon, source)
    clock.gate.release()
    step_until(daemon, lambda now: now.sources[0].failures == 1)
    daemon.start()
    daemon.stop(30.0)
    assert [("vllm", "text", "page"), ("vllm", "error", "gone")] == [(n, list(r)[-1], list(r.values())[-1]) for n, r in tap.seen]
    assert 1 == source.closed


class FaultyPipeline(Pipeline):
    """Fails in its first two steps."""

    def __init__(self) -> None:
        super().__init__()
        self.steps, self.enough = 0, threading.Event()

    def step(self, now: float, statuses: Any = ()) -> Snapshot:
        self.steps += 1
        if self.steps <= 2:
            raise ZeroDivisionError("x")
        self.enough.set()
        return super().step(now, statuses)


def test_a_step_that_fails_is_logged_once_and_the_next_one_follows(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    """A bug in derivation or rules does not end the daemon and does not fill the log."""
    clock, pipeline = GatedClock(), FaultyPipeline()
    daemon = make(clock, pipeline)
    with caplog.at_level(logging.INFO):
        daemon.start()
        clock.gate.release(3)
        assert pipeline.enough.wait(30)
        clock.gate.release(10)
        daemon.stop(30.0)
    assert ["a step failed, the next one follows: ZeroDivisionError: x"] == [r.getMessage() for r in caplog.records]
    assert daemon.ready()


def test_alive_ends_when_the_pipeline_stops_stepping(make: Make) -> None:
    """The liveness probe sees a pipeline that has not stepped for ten seconds, and one that has ended."""
    clock = GatedClock()
    daemon = make(clock)
    assert False is daemon.alive()
    daemon.start()
    assert True is daemon.alive()
    clock.now += ALIVE_SECONDS
    assert False is daemon.alive()
    clock.gate.release(10)
    daemon.stop(30.0)
    assert False is daemon.alive()


def test_nvml_and_dcgm_are_gpu_sources() -> None:
    """The suppliers that the signal table names lead to the kinds that sources have."""
    assert {"gpu", "derived"} == kinds(("nvml", "gpm", "dcgm", "dcgm_exporter", "derived"))
