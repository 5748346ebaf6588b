"""The runner: schedule, errors, hangs, backoff, statuses."""

from __future__ import annotations

import gc
import logging
import queue
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from heptascope.model import Reading, Reason, SourceStatus
from heptascope.sources.base import SourceError
from heptascope.sources.runner import MAX_BACKOFF_SECONDS, Job, Runner, backoff_seconds, next_due
from support.fakes import GatedClock, ManualClock, ScriptedSource


class Collected:
    """What the callbacks received."""

    def __init__(self) -> None:
        self.readings: list[Reading] = []
        self.failures: list[tuple[SourceStatus, float, dict[str, Any]]] = []

    def fail(self, status: SourceStatus, t: float, raw: dict[str, Any]) -> None:
        self.failures.append((status, t, raw))


def make(steps: list[float | Exception], during: Callable[[], None] = lambda: None) -> tuple[Job, ScriptedSource, ManualClock, Collected]:
    """Return a job for a scripted source, with its source, clock and what its callbacks get."""
    clock, got = ManualClock(), Collected()
    source = ScriptedSource(clock, steps, during)
    return Job(source, got.readings.append, got.fail, clock), source, clock, got


def drive(job: Job, clock: ManualClock, reads: int) -> list[float]:
    """Read `reads` times as the runner's loop does; return the delays."""
    delays = []
    for _ in range(reads):
        delays.append(job.run_once())
        clock.now += delays[-1]
    return delays


def test_reads_stay_on_the_grid_however_long_each_takes() -> None:
    """Reads of 0.3 s at an interval of 1 s begin at whole seconds: the duration does not add up."""
    job, source, clock, _ = make([0.3, 0.1, 0.7, 0.2])
    drive(job, clock, 4)
    assert [1000.0, 1001.0, 1002.0, 1003.0] == pytest.approx(source.reads)


def test_a_late_read_skips_ticks_instead_of_bunching() -> None:
    """After a read of 3.4 s the next one is on the next free tick, not three at once."""
    job, source, clock, _ = make([3.4, 0.0, 0.0])
    drive(job, clock, 3)
    assert [1000.0, 1004.0, 1005.0] == pytest.approx(source.reads)


@pytest.mark.parametrize(
    ("due", "now", "expected"), [(10.0, 10.0, 11.0), (10.0, 10.9, 11.0), (10.0, 11.0, 12.0), (10.0, 13.5, 14.0), (10.0, 9.5, 11.0)]
)
def test_next_due_is_the_first_grid_point_after_now(due: float, now: float, expected: float) -> None:
    """The grid is `due + n` with n >= 1, and a point that is exactly now has passed."""
    assert expected == next_due(due, now, 1.0)


def test_status_before_the_first_read_is_down_and_says_so() -> None:
    """A source that was not read yet is not up."""
    job, *_ = make([])
    assert SourceStatus("vllm", "engine", False, None, None, Reason.SOURCE_DOWN, "not read yet") == job.status()


def test_a_good_read_is_up_with_time_and_duration() -> None:
    """The status after a good read holds its Unix time and how long it took; the reading went to the callback."""
    job, _, _, got = make([0.25])
    job.run_once()
    assert SourceStatus("vllm", "engine", True, 1000.0, 0.25) == job.status()
    assert [Reading("vllm", 1000.0)] == got.readings


def test_a_source_error_keeps_its_reason_and_message() -> None:
    """A failed read is down with the source's own reason, and the row for the recording has its message."""
    job, _, _, got = make([0.0, SourceError(Reason.NO_PERMISSION, "NVML: insufficient permissions")])
    job.run_once()
    job.run_once()
    expected = SourceStatus("vllm", "engine", False, 1000.0, 0.0, Reason.NO_PERMISSION, "NVML: insufficient permissions", 1)
    assert expected == job.status()
    assert [
        (expected, 1000.0, {"t": 1000.0, "dt": 0.0, "reason": "no_permission", "error": "NVML: insufficient permissions"})
    ] == got.failures


def test_an_unexpected_exception_is_contained_as_invalid(caplog: pytest.LogCaptureFixture) -> None:
    """A bug in a source is one short warning without a traceback; the traceback is at debug level."""
    job, *_ = make([KeyError("gpm\nwin")])
    with caplog.at_level(logging.DEBUG):
        job.run_once()
    assert (Reason.INVALID, "KeyError: 'gpm\\nwin'") == (job.status().reason, job.status().message)
    warnings = [r for r in caplog.records if r.levelno >= logging.WARNING]
    assert ["source vllm is down: invalid: KeyError: 'gpm\\nwin'"] == [r.getMessage() for r in warnings]
    assert [None] == [r.exc_info for r in warnings]
    assert [True] == [r.exc_info is not None for r in caplog.records if r.levelno == logging.DEBUG]


def test_a_reading_that_nobody_can_take_is_a_failure_too(caplog: pytest.LogCaptureFixture) -> None:
    """An error in what follows the source is contained as one in the source is: one line, and the next read follows."""
    clock, got = ManualClock(), Collected()

    def refuse(reading: Reading) -> None:
        raise TypeError("no such row")

    job = Job(ScriptedSource(clock, []), refuse, got.fail, clock)
    with caplog.at_level(logging.INFO):
        drive(job, clock, 3)
    assert (False, Reason.INVALID, "TypeError: no such row", 3) == (job.status().up, *job.status()[5:])
    assert ["source vllm is down: invalid: TypeError: no such row"] == [r.getMessage() for r in caplog.records]


def test_one_line_when_it_goes_down_and_one_when_it_recovers(caplog: pytest.LogCaptureFixture) -> None:
    """Five failed reads and a recovery make two log lines."""
    job, _, clock, _ = make([0.0, *[SourceError(Reason.SOURCE_DOWN, "connection refused") for _ in range(5)], 0.0])
    with caplog.at_level(logging.INFO):
        drive(job, clock, 7)
    assert ["WARNING", "INFO"] == [r.levelname for r in caplog.records]
    assert "source vllm is down: source_down: connection refused" == caplog.records[0].getMessage()
    assert caplog.records[1].getMessage().endswith("(5 failed reads)")


def test_backoff_doubles_to_half_a_minute_and_starts_soon() -> None:
    """At 1 s: 1, 2, 4, 8, 16, 30, 30; a source read once a minute is retried after 1 s; a fast one after its interval."""
    assert [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0] == [backoff_seconds(1.0, n, 0.0) for n in range(1, 8)]
    assert 1.0 == backoff_seconds(60.0, 1, 0.0)
    assert 0.1 == backoff_seconds(0.1, 1, 0.0)
    assert MAX_BACKOFF_SECONDS * 1.2 == backoff_seconds(1.0, 10_000, 1.0)


def test_backoff_is_jittered_and_ends_with_the_first_good_read() -> None:
    """Delays after failures lie within a fifth of the doubling; after the recovery the plain interval is back."""
    job, _, clock, _ = make([SourceError(Reason.SOURCE_DOWN, "x") for _ in range(4)])
    delays = drive(job, clock, 6)
    for delay, middle in zip(delays[:4], [1.0, 2.0, 4.0, 8.0], strict=True):
        assert pytest.approx(middle, rel=0.2) == delay
    assert 1.0 == pytest.approx(delays[5])


def test_a_hung_read_is_down_while_it_hangs_and_its_late_answer_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    """A read of 45 s is reported once, after the timeout; what it brings back is not used; the next read recovers."""
    seen: list[SourceStatus] = []

    def look() -> None:
        job.watch()
        job.watch()
        seen.append(job.status())

    job, _, clock, got = make([45.0], during=look)
    with caplog.at_level(logging.INFO):
        delay = job.run_once()
        assert (False, Reason.SOURCE_DOWN, "no answer for 45 s") == (seen[0].up, seen[0].reason, seen[0].message)
        assert (1, []) == (len(got.failures), got.readings)
        clock.now += delay
        job.run_once()
    assert delay == pytest.approx(1.0, rel=0.2)
    assert (True, 1) == (job.status().up, job.status().failures)
    assert [Reading("vllm", clock.now)] == got.readings
    assert 2 == len(caplog.records)


def test_a_read_just_within_its_timeout_is_not_hung() -> None:
    """Exactly the timeout is still an answer."""
    job, _, _, got = make([5.0])
    job.run_once()
    assert (True, 1, []) == (job.status().up, len(got.readings), got.failures)


class BlockingSource:
    """Blocks in its first read until a test lets it go."""

    name, kind, interval, timeout = "nvml", "gpu", 1.0, 5.0

    def __init__(self) -> None:
        self.entered, self.release, self.reads, self.closed = threading.Event(), threading.Event(), 0, 0

    def read(self, now: float) -> Reading:
        self.reads += 1
        self.entered.set()
        self.release.wait(30)
        return Reading(self.name, now)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def make_runner() -> Iterator[Callable[..., Runner]]:
    """Make runners whose threads end with the test."""
    made: list[Runner] = []

    def build(on_reading: Callable[[Reading], None] = lambda _: None, clock: ManualClock | None = None) -> Runner:
        made.append(Runner(on_reading, lambda *_: None, clock or GatedClock()))
        return made[-1]

    yield build
    for runner in made:
        runner.stop(30.0)


def threads(*names: str) -> list[threading.Thread]:
    """Return the running threads of these sources."""
    return [thread for thread in threading.enumerate() if thread.name in [f"source-{name}" for name in names]]


def test_a_hang_costs_its_own_source_only_and_piles_up_no_threads(make_runner: Callable[..., Runner]) -> None:
    """While one source hangs the other keeps reading; there is one thread for each; the hung one recovers when its call returns."""
    clock = GatedClock()
    arrived: queue.Queue[str] = queue.Queue()
    hung, good = BlockingSource(), ScriptedSource(clock, [])
    runner = make_runner(lambda reading: arrived.put(reading.source), clock)
    runner.add([hung, good])
    assert hung.entered.wait(30)
    assert "vllm" == arrived.get(timeout=30)
    clock.now += 6.0
    runner.watch()
    by_name = {status.name: status for status in runner.statuses()}
    assert (False, "no answer for 6 s") == (by_name["nvml"].up, by_name["nvml"].message)
    clock.gate.release()
    assert "vllm" == arrived.get(timeout=30)
    assert (1, 2) == (hung.reads, len(good.reads))
    assert 2 == len(threads("nvml", "vllm"))
    hung.release.set()
    clock.gate.release(100_000)
    while arrived.get(timeout=30) != "nvml":
        pass
    assert [] == runner.stop(30.0)
    assert {True} == {status.up for status in runner.statuses()}


def test_stop_closes_each_source_once_and_leaves_a_hung_one_behind(make_runner: Callable[..., Runner]) -> None:
    """A source that answers is closed from its own thread; a hung one is named, not waited for."""
    clock = GatedClock()
    hung, good = BlockingSource(), ScriptedSource(clock, [])
    runner = make_runner(clock=clock)
    runner.add([good, hung])
    assert hung.entered.wait(30)
    (good_thread,) = threads("vllm")
    clock.gate.release(10)
    assert ["nvml"] == [name for name in runner.stop(0.05) if name == "nvml"]
    good_thread.join(30)
    assert (1, 0) == (good.closed, hung.closed)
    hung.release.set()


def test_an_error_while_closing_stays_inside() -> None:
    """A source that cannot be closed does not keep the others from closing."""

    class Stubborn(ScriptedSource):
        def close(self) -> None:
            raise OSError("busy")

    clock = ManualClock()
    Job(Stubborn(clock, []), lambda _: None, lambda *_: None, clock).close()


def test_two_sources_with_one_name_are_refused(make_runner: Callable[..., Runner]) -> None:
    """Statuses and series go by the source's name, so it must be unique."""
    clock = GatedClock()
    runner = make_runner(clock=clock)
    runner.add([ScriptedSource(clock, [])])
    with pytest.raises(ValueError, match="two sources are named vllm"):
        runner.add([ScriptedSource(clock, [])])
    clock.gate.release(10)
    runner.stop(30.0)


def test_a_removed_source_is_closed_and_gone_from_the_statuses(make_runner: Callable[..., Runner]) -> None:
    """A source may remove itself during a read: that reading still arrives, then its thread ends."""
    clock = GatedClock()
    arrived: queue.Queue[str] = queue.Queue()
    runner = make_runner(lambda reading: arrived.put(reading.source), clock)
    source = ScriptedSource(clock, [], during=lambda: runner.remove("vllm"))
    runner.add([source])
    assert "vllm" == arrived.get(timeout=30)
    clock.gate.release(2)
    assert () == runner.statuses()
    for thread in threads("vllm"):
        thread.join(30)
    assert (1, 1) == (len(source.reads), source.closed)


def test_a_source_that_is_removed_while_it_waits_is_not_read_again(make_runner: Callable[..., Runner]) -> None:
    """Removed between two reads, a source gives no further reading, and is closed."""
    clock = GatedClock()
    arrived: queue.Queue[str] = queue.Queue()
    runner = make_runner(lambda reading: arrived.put(reading.source), clock)
    source = ScriptedSource(clock, [])
    runner.add([source])
    assert "vllm" == arrived.get(timeout=30)
    runner.remove("vllm")
    clock.gate.release(2)
    for thread in threads("vllm"):
        thread.join(30)
    assert (1, 1) == (len(source.reads), source.closed)


def test_a_source_may_have_a_shorter_longest_backoff() -> None:
    """What is being looked for is looked for every ten seconds, not every thirty."""
    assert [8.0, 10.0, 10.0] == [backoff_seconds(10.0, n, 0.0, longest=10.0) for n in (4, 5, 9)]


class _Page:
    """Something large that a failing read holds."""


@pytest.mark.parametrize("error", [SourceError(Reason.INVALID, "too large"), ValueError("broken")])
def test_what_a_failed_read_held_is_let_go_at_once(error: Exception) -> None:
    """Also where the error hangs together with its own frames, and without a garbage collection: the daemon makes those rare."""
    held: list[weakref.ref[_Page]] = []

    class Failing:
        name, kind, interval, timeout = "vllm", "engine", 1.0, 5.0

        def read(self, now: float) -> Reading:
            failures = [error]
            page = _Page()
            held.append(weakref.ref(page))
            try:
                raise KeyError(now)
            except KeyError as cause:
                raise failures[0] from cause

        def close(self) -> None:
            """Nothing is open."""

    got = Collected()
    gc.disable()
    try:
        Job(Failing(), got.readings.append, got.fail, ManualClock()).run_once()
        assert ([None], 1) == ([ref() for ref in held], len(got.failures))
    finally:
        gc.enable()
