"""The probe's file and its wrappers, on functions that stand in for the engine's; tests/engines runs it in the real one."""

from __future__ import annotations

import asyncio
import struct
import sys
import threading
import types
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heptascope.model import Histogram, Missing, Quality, Reading, Reason, Sample, labels
from heptascope.sources.engine.fetch import Fetched
from heptascope.sources.engine.probe import STALE_SECONDS, ProbeReader, overlay
from heptascope.sources.engine.reader import EngineReader
from heptascope.sources.engine.source import EngineSource
from heptascope.vllm_probe import counting, frontend, layout, plugin
from heptascope.vllm_probe.layout import DECODE, FRONTEND, LIMIT, PREFILL, RECOMPUTED, STEPS, WIDTH, Writer, read_block
from support.engine_pages import VLLM_032, capture, value

VALUES = tuple(range(1, WIDTH + 1))


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    """Open a file of rank 0."""
    mine = Writer(tmp_path, 0, "0.32.0+cpu")
    yield mine
    mine.close()


def test_what_is_written_is_read(writer: Writer) -> None:
    """Values, rank, version and a fresh heartbeat; before the first write there is nothing."""
    assert read_block(writer.path) is None
    writer.write(VALUES)
    block = read_block(writer.path)
    assert block is not None
    assert (VALUES, 0, "0.32.0+cpu") == (block.values, block.rank, block.version)


def test_a_picture_is_never_torn(writer: Writer) -> None:
    """While one thread writes blocks of one number, readers see blocks of one number only."""
    ended = threading.Event()

    def write() -> None:
        number = 0
        while not ended.wait(0.0002):
            number += 1
            writer.write((number,) * WIDTH)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        seen = [block for block in (read_block(writer.path) for _ in range(300)) if block is not None]
    finally:
        ended.set()
        thread.join()
    assert seen
    assert all(len(set(block.values)) == 1 for block in seen)


def test_a_block_that_changes_is_not_taken(writer: Writer) -> None:
    """An odd sequence means that the writer is at it, or died at it."""
    writer.write(VALUES)
    content = bytearray(writer.path.read_bytes())
    struct.pack_into("<Q", content, layout._GUARD_AT, 3)
    writer.path.write_bytes(content)
    assert read_block(writer.path) is None


@pytest.mark.parametrize("damage", [b"", b"HEPTAPRB", b"x" * layout.SIZE, b"HEPTAPRB" + b"\x09" * (layout.SIZE - 8)])
def test_files_of_another_kind_or_layout_are_passed_over(tmp_path: Path, damage: bytes) -> None:
    """Short, foreign, or of a layout that is not ours."""
    path = tmp_path / "vllm-0-1.probe"
    path.write_bytes(damage)
    assert (None, []) == (read_block(path), ProbeReader(tmp_path).rows(0.0))


def test_the_newest_living_file_of_a_rank_counts(writer: Writer, tmp_path: Path) -> None:
    """After a restart the old file may lie there still; a silent one is stale."""
    writer.write(VALUES)
    old = writer.path.read_bytes()
    (tmp_path / "vllm-0-1.probe").write_bytes(old[:16] + struct.pack("<QQ", 1, 5) + old[32:])
    block = read_block(writer.path)
    assert block is not None
    (row,) = ProbeReader(tmp_path).rows(block.heartbeat + 1)
    assert (0, block.start) == (row["rank"], row["start"])
    assert [] == ProbeReader(tmp_path).rows(block.heartbeat + STALE_SECONDS + 1)


# laid over a page

PAIRS = labels(engine="vllm", rank="0")
PAGE = Reading(
    "vllm",
    1.0,
    [Sample("heptascope_engine_steps_total", PAIRS, 7.0)],
    missing=[Missing("heptascope_engine_step_phase_seconds", Reason.NOT_CONFIGURED, "", labels(engine="vllm"))],
    quality={("heptascope_engine_steps_total", PAIRS): Quality.APPROXIMATE},
)


def test_the_probe_goes_before_the_page() -> None:
    """Its steps replace those of the page and are exact; phases are there, and the limits."""
    values = [0] * WIDTH
    values[STEPS], values[LIMIT + 1], values[PREFILL], values[DECODE], values[RECOMPUTED] = 90, 4, 700, 80, 33
    for spent in (1_000, 1_000, 20_000, 20_000, 20_000, 20_000, 2_920_000):
        values[spent.bit_length() >> 1] += 1
    values[layout.BUCKETS] = 3_000_000
    out = overlay(PAGE, [{"rank": 0, "start": 1, "values": values}])
    found = {
        s.name.removeprefix("heptascope_engine_") + "/".join(sorted(v for _, v in s.labels if v not in ("vllm", "0"))): s.value
        for s in out.samples
    }
    assert (90.0, 0.003, 4.0) == (found["steps_total"], found["busy_seconds_total"], found["step_bound_totaltokens"])
    assert (700.0, 80.0, 33.0) == (found["batch_tokens_totalprefill"], found["batch_tokens_totaldecode"], found["recomputed_tokens_total"])
    front = {"heptascope_engine_frontend_event_loop_lag_seconds", "heptascope_engine_frontend_tokenize_seconds"}
    assert ({}, front) == (out.quality, {gap.signal for gap in out.missing})
    schedule = next(h for h in out.histograms if ("phase", "schedule") in h.labels)
    assert isinstance(schedule, Histogram)
    below = dict(zip(schedule.bounds, schedule.counts, strict=True))
    assert (2.0, 6.0, 6.0, 7.0, 7.0) == tuple(below[min(b for b in below if b >= at)] for at in (8e-6, 32e-6, 2e-3, 8e-3, 1.0))
    assert (7.0, pytest.approx(0.003)) == (schedule.counts[-1], schedule.sum)


def test_front_ends_are_added_up() -> None:
    """Each API server is a part of the histograms of the engine's only rank, or of none if there are several."""
    rows = []
    for number, late in enumerate((1_000_000, 3_000_000)):
        values = [0] * WIDTH
        values[frontend.LAG + (late.bit_length() >> 1)], values[frontend.LAG + layout.BUCKETS] = 1, late
        rows.append({"frontend": 70 + number, "start": 5, "values": values})
    lags = [h for h in overlay(PAGE, rows).histograms if h.name.endswith("event_loop_lag_seconds")]
    assert [("70-5", PAIRS, 1.0, 0.001), ("71-5", PAIRS, 1.0, 0.003)] == [(h.part, h.labels, h.counts[-1], h.sum) for h in lags]
    two = [*PAGE.samples, Sample("heptascope_engine_steps_total", labels(engine="vllm", rank="1"), 7.0)]
    several = overlay(replace(PAGE, samples=two), rows)
    assert {labels(engine="vllm", rank="")} == {h.labels for h in several.histograms}


def test_a_probe_that_is_configured_and_silent_is_said() -> None:
    """The page's steps stay, and the reason leads to the documentation; without a probe nothing changes."""
    out = overlay(PAGE, [])
    assert (7.0, Reason.SOURCE_DOWN) == (out.samples[0].value, out.missing[0].reason)
    assert PAGE is overlay(PAGE, None)


def test_a_recorded_probe_replays(writer: Writer, tmp_path: Path) -> None:
    """The row holds the probe's numbers, and replay lays them over the page as live."""
    values = [0] * WIDTH
    values[STEPS] = 90
    writer.write(values)
    block = read_block(writer.path)
    assert block is not None
    text = capture(VLLM_032, "steady_16")
    one = EngineSource("vllm", "http://h:1", fetch=lambda _: Fetched(200, "text/plain", text), probe=tmp_path, clock=lambda: 0.0)
    live = one.read(block.heartbeat)
    assert live.raw is not None
    again = EngineReader("vllm").read_row(live.raw)
    assert (live.samples, live.histograms, live.missing, live.quality) == (again.samples, again.histograms, again.missing, again.quality)
    assert 90.0 == value(live, "steps_total")


# in the engine


class Scheduled:
    """What a scheduler returns."""

    total_num_scheduled_tokens = 32
    num_scheduled_tokens = {"a": 31, "b": 1}  # noqa: RUF012  # never changed
    scheduled_new_reqs = (types.SimpleNamespace(req_id="a"),)


class Scheduler:
    """Stands in for vLLM's."""

    max_num_running_reqs, max_num_scheduled_tokens = 2, 32

    def __init__(self) -> None:
        self.running: list[str] = ["a", "b"]
        self.waiting: list[str] = ["c"]
        self.requests: dict[str, Any] = {name: types.SimpleNamespace(num_computed_tokens=31, num_tokens=31) for name in "ab"}

    def schedule(self) -> Scheduled:
        return Scheduled()

    def update_from_output(self, scheduled: Scheduled, output: str) -> str:
        return output

    def _preempt_request(self, request: Any, timestamp: float) -> None:
        request.num_computed_tokens = 0


class KVCacheManager:
    """Stands in for vLLM's."""

    def free(self, request: Any) -> None:
        pass


class AsyncLLM:
    """Stands in for vLLM's."""

    def _run_output_handler(self) -> str:
        return "runs"


class PreTrainedTokenizerBase:
    """Stands in for that of transformers."""

    def __call__(self, text: str) -> list[int]:
        return [len(text)]


class EngineCore:
    """Stands in for vLLM's."""

    def __init__(self) -> None:
        self.scheduler = Scheduler()
        parallel = types.SimpleNamespace(data_parallel_rank=1)
        self.vllm_config = types.SimpleNamespace(parallel_config=parallel)

    def step(self) -> str:
        return self.scheduler.update_from_output(self.scheduler.schedule(), "tokens")

    def step_with_batch_queue(self) -> str:
        return self.step()


class EngineCoreProc(EngineCore):
    """Stands in for vLLM's."""

    def _process_engine_step(self) -> str:
        return self.step()


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Put the stand-ins in vLLM's place, and ask for the probe."""
    modules = {
        "vllm.v1.engine.core": (EngineCore, EngineCoreProc),
        "vllm.v1.core.sched.scheduler": (Scheduler,),
        "vllm.v1.core.kv_cache_manager": (KVCacheManager,),
        "vllm.v1.engine.async_llm": (AsyncLLM,),
        "transformers.tokenization_utils_base": (PreTrainedTokenizerBase,),
    }
    for name, classes in modules.items():
        module = types.ModuleType(name)
        for each in classes:
            setattr(module, each.__name__, each)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(plugin, "_state", None)
    monkeypatch.setattr(plugin.metadata, "version", lambda *_: "0.32.0+cpu")
    monkeypatch.setenv(plugin.FOLDER_VARIABLE, str(tmp_path))
    yield tmp_path
    if plugin._state is not None:
        plugin._state.stop()


def test_a_turn_of_the_loop_is_counted(engine: Path) -> None:
    """Steps, tokens, requests, the limit that bound; results pass through unchanged, and a file of the rank appears."""
    plugin.install()
    assert ["tokens"] * 3 == [EngineCoreProc()._process_engine_step() for _ in range(3)]
    assert plugin._state is not None
    values = plugin._state.counts.values
    assert (3, 93, 3, 3) == tuple(values[at] for at in (STEPS, PREFILL, DECODE, LIMIT))
    for phase in range(len(layout.PHASES)):
        at = phase * layout.PHASE_WIDTH
        assert 3 == sum(values[at : at + layout.BUCKETS])
    assert 0 < layout.busy_ns(values) < 1e9
    assert ["vllm-1"] == [path.name.rpartition("-")[0] for path in engine.glob("*.probe")]


@pytest.mark.parametrize(("running", "tokens", "limit"), [(2, 8, "sequences"), (1, 32, "tokens"), (1, 8, "kv_cache")])
def test_the_limit_that_bound(monkeypatch: pytest.MonkeyPatch, running: int, tokens: int, limit: str) -> None:
    """Requests wait because slots, tokens or the cache are used up, in this order; nobody waits, nothing bound."""
    monkeypatch.setattr(Scheduled, "total_num_scheduled_tokens", tokens)
    counts = counting.Counts()
    schedule = counting.around_schedule(Scheduler.schedule, counts, pytest.fail)
    scheduler = Scheduler()
    scheduler.running = ["a"] * running
    schedule(scheduler)
    scheduler.waiting = []
    schedule(scheduler)
    assert {limit: 1} == {name: n for name, n in zip(layout.LIMITS, counts.values[LIMIT : layout.FRONT_AT], strict=True) if n}


class Room:
    """A wrapped scheduler whose batches the test makes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counts, self.scheduler, self._patch = counting.Counts(), Scheduler(), monkeypatch
        self.scheduler.requests = {}
        self._schedule = counting.around_schedule(Scheduler.schedule, self.counts, pytest.fail)

    def request(self, name: str, tokens: int) -> Any:
        """Let a request arrive whose prompt has so many tokens."""
        status = types.SimpleNamespace(name="RUNNING")
        found = types.SimpleNamespace(request_id=name, num_computed_tokens=0, num_tokens=tokens, status=status)
        self.scheduler.requests[name] = found
        return found

    def step(self, *new: str, **scheduled: int) -> tuple[int, int]:
        """Schedule so many tokens of each request; return by how much prefill and decode tokens grew."""
        for name, tokens in scheduled.items():
            self.scheduler.requests[name].num_computed_tokens += tokens
        self._patch.setattr(Scheduled, "scheduled_new_reqs", [types.SimpleNamespace(req_id=name) for name in new])
        self._patch.setattr(Scheduled, "num_scheduled_tokens", scheduled)
        self._patch.setattr(Scheduled, "total_num_scheduled_tokens", sum(scheduled.values()))
        before = self.counts.values[PREFILL], self.counts.values[DECODE]
        self._schedule(self.scheduler)
        return self.counts.values[PREFILL] - before[0], self.counts.values[DECODE] - before[1]


def test_prefill_and_decode_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A prompt in three parts, the last of one token, is prefill to its end; then come single tokens, or drafts to verify."""
    room = Room(monkeypatch)
    room.request("long", 1001)
    assert (600, 0) == room.step("long", long=600)
    room.request("short", 16)
    assert (416, 0) == room.step("short", long=400, short=16)
    assert (1, 1) == room.step(long=1, short=1)
    assert (0, 6) == room.step(long=1, short=5)
    assert {} == room.counts.prefilling


def test_a_prompt_that_is_cut_off_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """An aborted request leaves nothing behind."""
    room = Room(monkeypatch)
    room.request("long", 1001)
    room.step("long", long=600)
    room.scheduler.requests.clear()
    room.step()
    assert {} == room.counts.prefilling


@pytest.mark.parametrize("release", ["preempt", "free"])
def test_what_a_preemption_costs(monkeypatch: pytest.MonkeyPatch, release: str) -> None:
    """Of 900 computed tokens the prefix cache still holds 256 when the request runs again; one that was aborted is forgotten."""
    room = Room(monkeypatch)
    request, gone, done = room.request("again", 1000), room.request("gone", 500), room.request("done", 20)
    room.step("again", "gone", "done", again=900, gone=200, done=20)
    done.status.name = "FINISHED_STOPPED"
    if release == "preempt":
        preempt = counting.around_preempt(Scheduler._preempt_request, room.counts, pytest.fail)
        preempt(room.scheduler, request, 0.0)
        preempt(room.scheduler, gone, timestamp=0.0)
    else:
        free = counting.around_free(KVCacheManager.free, room.counts, pytest.fail)
        for each in (request, gone, done):
            free(KVCacheManager(), each)
    del room.scheduler.requests["gone"]
    room.step()
    assert (0, {"again": 900}, {}) == (room.counts.values[RECOMPUTED], room.counts.given_up, room.counts.prefilling)
    request.num_computed_tokens = 256
    assert (500, 0) == room.step(again=500)
    assert (244, 0) == room.step(again=244)
    assert (0, 1) == room.step(again=1)
    assert (900 - 256, {}, {}) == (room.counts.values[RECOMPUTED], room.counts.given_up, room.counts.prefilling)


class Loop:
    """An event loop that keeps the timer, and runs it when it is told to."""

    def __init__(self) -> None:
        self.timers: list[tuple[float, Any]] = []

    def call_later(self, delay: float, call: Any) -> None:
        self.timers.append((delay, call))


def test_a_late_timer_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timer of 0.1 s that runs after 0.35 s is a quarter of a second late; one that is early is not late; it ends when it is told to."""
    clock = iter((0, 350_000_000, 400_000_000, 450_000_000, 500_000_000))
    monkeypatch.setattr(frontend, "perf_counter_ns", lambda: next(clock))
    counts, loop = frontend.FrontCounts(), Loop()
    watch = frontend.LoopWatch(loop, counts, pytest.fail)  # type: ignore[arg-type]  # all of a loop that it uses
    for _ in range(2):
        delay, tick = loop.timers.pop()
        assert 0.1 == delay
        tick()
    at = frontend.LAG
    assert (2, 250_000_000) == (sum(counts.values[at : at + layout.BUCKETS]), counts.values[at + layout.BUCKETS])
    watch.ended = True
    loop.timers.pop()[1]()
    assert [] == loop.timers


def test_the_front_end_is_watched(engine: Path) -> None:
    """Calls of the tokeniser are counted, results pass through, and a file of the front end appears, once."""
    plugin.install()

    async def serve() -> list[str]:
        return [AsyncLLM()._run_output_handler() for _ in range(2)]

    assert ["runs"] * 2 == asyncio.run(serve())
    assert [3] == PreTrainedTokenizerBase()("abc")
    assert plugin._state is not None
    values = plugin._state.front.picture()
    assert 1 == sum(values[frontend.TOKENIZE : frontend.TOKENIZE + layout.BUCKETS])
    (path,) = engine.glob("*.probe")
    assert plugin._state._publisher is not None
    plugin._state._publisher._writer.write(values)
    block = read_block(path)
    assert block is not None
    assert (FRONTEND, values) == (block.role, block.values)
    (row,) = ProbeReader(engine).rows(block.heartbeat)
    assert {"frontend", "start", "values"} == set(row)


def test_outside_a_loop_nothing_is_watched_yet(engine: Path) -> None:
    """The handler may be asked to run before there is a loop."""
    plugin.install()
    assert "runs" == AsyncLLM()._run_output_handler()
    assert [] == list(engine.glob("*.probe"))


def test_a_loop_whose_folder_is_gone_runs_on(engine: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """The front end serves without a probe; one line says why."""
    monkeypatch.setenv(plugin.FOLDER_VARIABLE, str(engine / "missing"))
    plugin.install()

    async def serve() -> str:
        return AsyncLLM()._run_output_handler()

    assert "runs" == asyncio.run(serve())
    assert ["heptascope's probe has switched itself off"] == [r.message.partition(":")[0] for r in caplog.records]


def test_a_release_without_a_function_for_preemption(engine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There the cache manager's `free` is wrapped instead."""
    original = KVCacheManager.free
    monkeypatch.delattr(Scheduler, "_preempt_request")
    plugin.install()
    assert original is not KVCacheManager.free
    assert plugin._state is not None
    plugin._state.stop()
    assert original is KVCacheManager.free


def test_a_fault_switches_the_probe_off_once(engine: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Results still pass through, the engine's own functions are back, the file is gone, and there is one line."""
    original = EngineCore.step
    plugin.install()
    monkeypatch.setattr(Scheduled, "num_scheduled_tokens", None)
    core = EngineCoreProc()
    assert ["tokens"] * 2 == [core._process_engine_step() for _ in range(2)]
    assert original is EngineCore.step
    assert (1, []) == (sum("switched itself off" in r.message for r in caplog.records), list(engine.glob("*.probe")))


def test_an_error_of_the_engine_passes_through(engine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the engine raises is its own affair."""

    def update(self: Any, scheduled: Any, output: str) -> str:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(Scheduler, "update_from_output", update)
    plugin.install()
    with pytest.raises(RuntimeError, match="out of memory"):
        EngineCoreProc()._process_engine_step()


def test_a_folder_that_cannot_be_written(engine: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """The engine runs on without a probe."""
    monkeypatch.setenv(plugin.FOLDER_VARIABLE, str(engine / "missing"))
    plugin.install()
    assert "tokens" == EngineCoreProc()._process_engine_step()
    assert ["heptascope's probe has switched itself off"] == [r.message.partition(":")[0] for r in caplog.records]


@pytest.mark.parametrize("version", ["0.33.0", "0.10.2", "1.0", "dev"])
def test_unknown_versions_are_refused(
    engine: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, version: str
) -> None:
    """One line names the tested versions; a variable tries it all the same."""
    original = EngineCore.step
    monkeypatch.setattr(plugin.metadata, "version", lambda *_: version)
    plugin.install()
    assert (original, 1) == (EngineCore.step, sum("tested with vLLM 0.11, 0.32, not with" in r.message for r in caplog.records))
    monkeypatch.setenv(plugin.ANY_VERSION_VARIABLE, "1")
    plugin.install()
    assert original is not EngineCore.step


def test_unasked_it_does_nothing(engine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the variable the engine's functions stay as they are."""
    original = EngineCore.step
    monkeypatch.delenv(plugin.FOLDER_VARIABLE)
    plugin.install()
    assert original is EngineCore.step


def test_an_engine_without_these_functions(engine: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A release that renamed one leaves the probe off, with everything as it was."""
    original = EngineCore.step
    monkeypatch.delattr(EngineCoreProc, "_process_engine_step")
    plugin.install()
    assert (original, 1) == (EngineCore.step, sum("stays off: AttributeError" in r.message for r in caplog.records))
