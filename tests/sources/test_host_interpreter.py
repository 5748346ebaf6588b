"""Looks at Python processes: what a dump shows, what many add up to, and what happens without py-spy or the right to use it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from heptascope.model import Quality, Reading, Reason
from heptascope.signals.schema import SCHEMA
from heptascope.sources.base import SourceError
from heptascope.sources.host import interpreter
from heptascope.sources.host.interpreter import FEWEST_SAMPLES, MOST_MISSES, InterpreterSource, Look, py_spy, read_dump
from support.procfs import FakeRoot

PROCESS = "heptascope_host_process_"
# frames of vLLM 0.32's API server, as py-spy 0.4 names them: waiting in the loop, and streaming an answer
WAITING = [("Runner.run", "/lib/python3.11/asyncio/runners.py"), ("run", "/uvloop/__init__.py"), ("ServeSubcommand.cmd", "/vllm/serve.py")]
STREAMING = [("completion_stream_generator", "/vllm/serving.py"), ("TaskHandle._run_coro", "/anyio/_core/_tasks.py"), *WAITING]
POLLING = [
    ("EpollSelector.select", "/lib/selectors.py"),
    ("BaseEventLoop._run_once", "/lib/asyncio/base_events.py"),
    ("BaseEventLoop.run_forever", "/lib/asyncio/base_events.py"),
]
STEPPING = [("Scheduler.schedule", "/vllm/scheduler.py"), ("EngineCoreProc.run_busy_loop", "/vllm/core.py")]


def dump(*threads: tuple[str, bool, list[tuple[str, str]]]) -> str:
    """Return a dump of these threads: name, whether it owns the lock, frames from the innermost."""
    return json.dumps(
        [
            {"thread_name": name, "thread_id": 1, "owns_gil": owns, "frames": [{"name": n, "filename": f} for n, f in frames]}
            for name, owns, frames in threads
        ]
    )


IDLE = dump(("MainThread", False, WAITING), ("worker", False, []))
BUSY = dump(("MainThread", True, STREAMING), ("worker", False, []))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (IDLE, Look("", False)),
        (BUSY, Look("MainThread", True)),
        (dump(("MainThread", False, POLLING)), Look("", False)),
        (dump(("MainThread", True, STEPPING)), Look("MainThread", None)),
        (dump(("", True, STEPPING)), Look("unnamed", None)),
    ],
)
def test_a_dump(text: str, expected: Look) -> None:
    """The owner of the lock, and whether a thread that runs an event loop does something else than wait in it."""
    assert expected == read_dump(text)


def source(fake: FakeRoot, look: Callable[[int], str]) -> InterpreterSource:
    """Return a source for one vLLM on port 8000."""
    return InterpreterSource(lambda: (("vllm", 8000),), root=str(fake.root), dump=look)


@pytest.fixture
def fake(tmp_path: Path) -> FakeRoot:
    """Start with a server, its engine core and a worker."""
    root = FakeRoot(tmp_path)
    root.vllm(workers=1)
    return root


def shares(reading: Reading, signal: str) -> dict[str, float]:
    """Return the shares of one signal by process, or by thread."""
    return {dict(s.labels).get("thread", dict(s.labels)["process"]): s.value for s in reading.samples if s.name == PROCESS + signal}


def test_processes_are_looked_at_in_turn(fake: FakeRoot) -> None:
    """One look a read; the resource tracker is none of them."""
    seen: list[int] = []

    def look(pid: int) -> str:
        seen.append(pid)
        return IDLE

    one = source(fake, look)
    for t in range(6):
        one.read(float(t))
    assert {20: 2, 22: 2, 29: 2} == {pid: seen.count(pid) for pid in seen}


def test_shares_of_many_looks(fake: FakeRoot) -> None:
    """In three of ten looks the API server owned its lock; fewer looks are not shown, and all is marked approximate."""
    counts: dict[int, int] = {}

    def look(pid: int) -> str:
        counts[pid] = counts.get(pid, 0) + 1
        return BUSY if pid == 20 and counts[pid] <= 3 else IDLE if pid == 20 else dump(("MainThread", False, STEPPING))

    one = source(fake, look)
    readings = [one.read(float(t)) for t in range(3 * FEWEST_SAMPLES)]
    assert ([], {Reason.IDLE}) == (readings[-4].samples, {m.reason for m in readings[-4].missing})
    last = readings[-1]
    assert {"api_server": pytest.approx(0.3), "engine_core": 0.0, "worker": 0.0} == shares(last, "interpreter_lock_ratio")
    assert {"MainThread": pytest.approx(0.3)} == shares(last, "interpreter_lock_thread_ratio")
    assert {"api_server": pytest.approx(0.3)} == shares(last, "event_loop_blocked_ratio")
    assert {Quality.APPROXIMATE} == set(last.quality.values())
    for sample in last.samples:
        assert set(dict(sample.labels)) == set(SCHEMA[sample.name].labels)


def test_a_look_that_misses_is_no_failure(fake: FakeRoot) -> None:
    """A running process moves under the look; only many misses in a row are a failure."""

    def look(pid: int) -> str:
        raise SourceError(Reason.SOURCE_DOWN, f"no dump of {pid}")

    one = source(fake, look)
    for t in range(MOST_MISSES - 1):
        one.read(float(t))
    with pytest.raises(SourceError, match="no dump of"):
        one.read(99.0)


def test_without_rights_it_says_so_at_once(fake: FakeRoot) -> None:
    """The reason is permission, whatever was seen before."""

    def look(pid: int) -> str:
        raise SourceError(Reason.NO_PERMISSION, "py-spy may not look")

    with pytest.raises(SourceError, match="may not look") as raised:
        source(fake, look).read(1.0)
    assert Reason.NO_PERMISSION is raised.value.reason


def test_without_a_process_there_is_nothing_to_look_at(tmp_path: Path) -> None:
    """No engine in sight is a reason of its own."""
    with pytest.raises(SourceError, match="no Python process of an engine is in sight"):
        source(FakeRoot(tmp_path), str).read(1.0)


@pytest.fixture
def spinning() -> Iterator[int]:
    """Run a Python process whose main thread holds the lock most of the time."""
    code = "import threading\nprint('up', flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


def test_the_real_py_spy_sees_who_owns_the_lock(spinning: int) -> None:
    """A look at a real process: its only thread spins and owns the lock in some of ten looks."""
    owners = {read_dump(py_spy(spinning)).owner for _ in range(10)}
    assert "MainThread" in owners


def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a program in py-spy's place."""
    path = tmp_path / "py-spy"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setattr(interpreter.shutil, "which", lambda name, **_: str(tmp_path / name))


@pytest.mark.parametrize(
    ("script", "reason", "message"),
    [
        (
            "echo 'Error: Permission Denied: Try running again with elevated permissions' >&2; exit 1",
            Reason.NO_PERMISSION,
            "CAP_SYS_PTRACE",
        ),
        ("echo 'Error: Failed to copy PyCodeObject' >&2; exit 1", Reason.SOURCE_DOWN, "could not read process 7: Error: Failed to copy"),
    ],
)
def test_what_py_spy_says_becomes_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, reason: Reason, message: str
) -> None:
    """One line, with what to do where something can be done."""
    program(tmp_path, monkeypatch, script)
    with pytest.raises(SourceError, match=message) as raised:
        py_spy(7)
    assert reason is raised.value.reason


def test_without_py_spy_the_reason_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra."""
    monkeypatch.setattr(interpreter.shutil, "which", lambda *_, **__: None)
    with pytest.raises(SourceError, match=r"pip install 'heptascope\[interpreter\]'"):
        py_spy(7)
