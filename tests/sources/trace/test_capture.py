"""Recording from a running engine: bounds, flags to name, and a profiler that is never left running."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from heptascope import cli
from heptascope.errors import UserError
from heptascope.sources.trace import guard, profiler
from heptascope.sources.trace.capture_files import LARGEST, TraceFolder, configured_folders
from heptascope.sources.trace.profiler import Captured, Clock, Engine, Wanted
from heptascope.surfaces import capture_command
from support.profiler_server import FakeEngine, serving
from support.trace_builder import TRACES

TRACE = (TRACES / "graph-b8.json.gz").read_bytes()
SOON = 20.0


class Time:
    """A clock that only pauses move."""

    def __init__(self) -> None:
        self.now = 0.0

    def clock(self) -> Clock:
        return Clock(lambda: self.now, self.pause)

    def pause(self, seconds: float) -> None:
        self.now += seconds


def _capture(engine: FakeEngine, wanted: Wanted) -> Captured:
    with httpx.Client() as client:
        return profiler.capture(Engine(engine.url, client), wanted, "/nowhere", lambda: False, Time().clock())


def test_steps_are_counted_on_the_engines_metrics(tmp_path: Path) -> None:
    """20 steps at 5 a look: four looks, then the stop; the engine was given the bound as well."""
    with serving(FakeEngine(folder=tmp_path)) as engine:
        assert Captured(20) == _capture(engine, Wanted(20, 10))
        assert (["/start_profile", "/stop_profile"], [{"max_iterations": 20}]) == (engine.asked, engine.bodies)


def test_seconds_are_waited_for(tmp_path: Path) -> None:
    """Without a number of steps only the clock counts, and no body is sent."""
    with serving(FakeEngine(folder=tmp_path)) as engine:
        assert Captured(None) == _capture(engine, Wanted(None, 2))
        assert ([{}], False) == (engine.bodies, engine.running)


@pytest.mark.parametrize(
    ("per_look", "note"),
    [(0, "only 0 of 20 steps ran within 3 s: is there traffic?"), (None, "it cannot be seen how many steps ran: recorded for 3 s")],
)
def test_fewer_steps_than_wanted_are_mentioned(tmp_path: Path, per_look: int | None, note: str) -> None:
    """An idle engine ends the capture at the bound in time."""
    with serving(FakeEngine(folder=tmp_path)) as engine:
        engine.steps_per_look = per_look
        assert note == _capture(engine, Wanted(20, 3)).note
        assert engine.asked[-1] == "/stop_profile"


def test_an_engine_that_refuses_the_bound_is_started_without(tmp_path: Path) -> None:
    """Some versions answer 422 to a body."""
    with serving(FakeEngine(folder=tmp_path)) as engine:
        engine.refuse_body = True
        assert Captured(20) == _capture(engine, Wanted(20, 10))
        assert [{"max_iterations": 20}, {}] == engine.bodies


@pytest.mark.parametrize(
    ("version", "status", "message"),
    [
        ("0.33.0", 404, r"the engine was started without profiling; start vLLM with --profiler-config '\{\"profiler\": \"torch\""),
        ("0.16.1", 404, "start vLLM with --profiler-config"),
        ("0.11.0", 404, "start vLLM with VLLM_TORCH_PROFILER_DIR=/absolute/folder in its environment"),
        ("0.33.0", 500, r"the profiler does not start \(HTTP 500\); see the engine's log"),
    ],
)
def test_an_engine_without_profiling_is_told_its_flag(version: str, status: int, message: str) -> None:
    """The flag is the one of the engine's version; nothing is stopped that never began."""
    with serving(FakeEngine()) as engine:
        engine.version, engine.start_status = version, status
        with pytest.raises(UserError, match=message):
            _capture(engine, Wanted(20, 10))
        assert ["/start_profile"] == engine.asked


def test_the_profiler_is_stopped_when_waiting_breaks_off(tmp_path: Path) -> None:
    """Ctrl-C, or anything else, between start and stop."""

    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    with serving(FakeEngine(folder=tmp_path)) as engine, httpx.Client() as client:
        with pytest.raises(KeyboardInterrupt):
            profiler.capture(Engine(engine.url, client), Wanted(None, 9), "/nowhere", lambda: False, Clock(lambda: 0.0, interrupt))
        assert (False, 1) == (engine.running, engine.asked.count("/stop_profile"))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_profiler_is_stopped_when_the_command_is_killed(tmp_path: Path, how: signal.Signals) -> None:
    """Even a kill that cannot be caught leaves no profiler running: the guard stops it."""
    with serving(FakeEngine(folder=tmp_path)) as engine:
        command = [sys.executable, "-m", "heptascope", "capture", "--engine", engine.url, "--seconds", "50", "--trace-dir", str(tmp_path)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        assert engine.started.wait(SOON)
        process.send_signal(how)
        process.wait(SOON)
        assert engine.stopped.wait(SOON)
        assert not engine.running


@pytest.mark.parametrize(
    ("words", "stops"),
    [("started\nstopped\n", 0), ("stopped\n", 0), ("started\n", 1), ("", 1)],
    ids=["clean", "refused", "died", "died early"],
)
def test_guard_stops_the_profiler_only_if_nobody_else_did(monkeypatch: pytest.MonkeyPatch, words: str, stops: int) -> None:
    """The end of its input without `stopped` is the parent's death."""
    reader, writer = os.pipe()
    os.write(writer, words.encode())
    os.close(writer)
    with serving(FakeEngine()) as engine, os.fdopen(reader) as pipe:
        monkeypatch.setattr(sys, "stdin", pipe)
        assert stops == guard.main(engine.url, SOON, lambda _: None)
        assert stops == engine.asked.count("/stop_profile")


def test_guard_stops_the_profiler_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """A parent that hangs does not keep the profiler running."""
    reader, writer = os.pipe()
    with serving(FakeEngine()) as engine, os.fdopen(reader) as pipe:
        monkeypatch.setattr(sys, "stdin", pipe)
        assert 1 == guard.main(engine.url, 0.0, lambda _: None)
        assert ["/stop_profile"] == engine.asked
    os.close(writer)


def test_guard_tries_again_while_the_engine_does_not_answer() -> None:
    """A stop that nobody takes is no stop."""
    with serving(FakeEngine()) as engine:
        url = engine.url
    assert not guard.stop(url)


def test_capture_analyses_what_it_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the command to the report, on a real trace."""
    with serving(FakeEngine(folder=tmp_path, trace=TRACE)) as engine:
        status = cli.run(["capture", "--engine", engine.url, "--steps", "20", "--trace-dir", str(tmp_path), "--format", "json"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (0, [], 20) == (status, document["notes"], document["run"]["ranks"][0]["steps"]["count"])


def test_sglang_writes_where_it_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """SGLang takes the folder and the number of steps, and is done when its trace is there."""
    with serving(FakeEngine("sglang", trace=TRACE)) as engine:
        status = cli.run(["capture", "--engine", engine.url, "--steps", "7", "--format", "markdown"])
    assert 0 == status
    assert "# Trace" in capsys.readouterr().out
    (body,) = engine.bodies
    assert (7, ["CPU", "GPU"]) == (body["num_steps"], body["activities"])


def test_a_trace_that_does_not_appear_is_said_in_one_line(tmp_path: Path) -> None:
    """The engine may write elsewhere, or see the folder under another name."""
    time = Time()
    with serving(FakeEngine(folder=None)) as engine, pytest.raises(UserError, match="no trace appeared within 120 s; give --trace-dir"):
        capture_command.run(engine.url, Wanted(None, 1), tmp_path, time.clock())


def test_only_new_and_whole_files_count(tmp_path: Path) -> None:
    """Old traces are left alone, and a file that still grows is waited for."""
    (tmp_path / "old.json").write_text("old")
    folder, time = TraceFolder.watch(tmp_path), Time()
    growing = tmp_path / "sub" / "new.json.gz"
    growing.parent.mkdir()
    (tmp_path / "notes.txt").write_text("x")

    def grow(seconds: float) -> None:
        time.pause(seconds)
        if time.now < 3:
            growing.write_bytes(b"x" * int(time.now * 100))

    assert [growing] == folder.whole(Clock(lambda: time.now, grow))
    assert 3.5 <= time.now < 4.5


def test_traces_beyond_the_bound_are_not_analysed(tmp_path: Path) -> None:
    """A capture that made too much is left on disk, and the user told how to go on."""
    folder = TraceFolder.watch(tmp_path)
    with (tmp_path / "t.json").open("wb") as file:
        file.truncate(LARGEST + 1)
    with pytest.raises(UserError, match="the traces have 4096 MiB; record fewer steps"):
        folder.whole(Time().clock())


def test_trace_folder_is_read_from_the_engines_command_line(tmp_path: Path) -> None:
    """VLLM's option as JSON, with a dot, and the older variable; relative folders and other programs are passed over."""
    processes = {
        "1": (["vllm", "serve", "--profiler-config", '{"profiler": "torch", "torch_profiler_dir": "/a"}'], []),
        "2": (["vllm", "--profiler-config.torch_profiler_dir=/b"], []),
        "3": (["vllm", "--profiler_config.torch_profiler_dir", "/c"], ["VLLM_TORCH_PROFILER_DIR=/not-this"]),
        "4": (["python"], ["PATH=/bin", "VLLM_TORCH_PROFILER_DIR=/d"]),
        "5": (["vllm", "--profiler-config", "{broken"], []),
        "6": (["vllm", '--profiler-config={"torch_profiler_dir": "relative"}'], []),
    }
    for pid, (arguments, environment) in processes.items():
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "cmdline").write_text("\0".join(arguments) + "\0")
        (tmp_path / pid / "environ").write_text("\0".join(environment) + "\0")
    (tmp_path / "7").mkdir()
    assert ["/a", "/b", "/c", "/d"] == [str(folder) for folder in configured_folders(tmp_path)]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--engine", "x", "--steps", "5", "--seconds", "2"], "--steps and --seconds exclude each other; give one of them"),
        (["--engine", "x", "--steps", "5000"], "--steps 5000 is too much; at most 1000"),
        (["--engine", "x", "--seconds", "61"], "--seconds 61 is too long; at most 60"),
        (["--engine", "ftp://x"], "ftp://x: not an http or https address; give the engine's address, such as http://127.0.0.1:8000"),
        (
            ["--engine", "http://x:99999"],
            "http://x:99999: not an http or https address; give the engine's address, such as http://127.0.0.1:8000",
        ),
        (["--engine", "http://u:secret@x"], "--engine: the address holds credentials; leave them out: profiler endpoints ask for none"),
        ([], "Missing option '--engine'; see heptascope capture --help"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(capsys: pytest.CaptureFixture[str], args: list[str], message: str) -> None:
    """What, where, what to do."""
    assert (2, f"heptascope: {message}\n") == (cli.run(["capture", *args]), capsys.readouterr().err)


def test_engine_that_is_not_there_or_is_another_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Down, or without profiler endpoints."""
    with serving(FakeEngine("other")) as engine:
        assert 2 == cli.run(["capture", "--engine", engine.url])
    assert 2 == cli.run(["capture", "--engine", engine.url])
    first, second = capsys.readouterr().err.splitlines()
    assert "neither vLLM nor SGLang answers here; capture works with engines that have profiler endpoints" in first
    assert "the engine does not answer (" in second


def test_unknown_trace_folder_is_asked_for(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Where no process shows the folder, the user is told both what to give and what the engine may lack."""
    for folders, words in (
        ([], "no engine on this machine shows its trace folder"),
        ([Path("/a"), Path("/b")], "several trace folders: /a, /b"),
    ):
        monkeypatch.setattr("heptascope.sources.trace.capture_files.configured_folders", lambda found=folders: found)
        with serving(FakeEngine()) as engine:
            assert 2 == cli.run(["capture", "--engine", engine.url])
        assert f"{words}; give --trace-dir; if the engine has none, start vLLM with --profiler-config" in capsys.readouterr().err
