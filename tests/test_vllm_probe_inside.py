"""The probe's wrappers, on functions that stand in for the engine's; tests/engines runs it in the real one."""

from __future__ import annotations

import asyncio
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from heptascope.sources.engine.probe import ProbeReader
from heptascope.vllm_probe import counting, frontend, layout, plugin
from heptascope.vllm_probe.layout import DECODE, FRONTEND, LIMIT, PREFILL, RECOMPUTED, STEPS, read_block
from support.fake_vllm import AsyncLLM, EngineCore, EngineCoreProc, KVCacheManager, PreTrainedTokenizerBase, Scheduled, Scheduler


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


def test_an_engine_whose_step_takes_arguments(engine: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """What is not called as it is known to be is left alone."""

    def step(self: EngineCore, limit: int = 0) -> str:
        return "tokens"

    monkeypatch.setattr(EngineCore, "step", step)
    plugin.install()
    assert (step, 1) == (EngineCore.step, sum("stays off: TypeError: EngineCore.step takes arguments" in r.message for r in caplog.records))
