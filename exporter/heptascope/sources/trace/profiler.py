"""An engine's own profiler over HTTP: start, wait, stop, and never leave it running."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import IO, Any
from urllib.parse import urlsplit

import httpx

from heptascope.errors import UserError
from heptascope.sources.urls import is_http

MOST_SECONDS = 60.0
MOST_STEPS = 1000
"""Longer captures slow the engine for too long and make files that nobody opens."""
_ASK = 5.0  # seconds for questions
_START = 60.0  # seconds for a start; the first one loads the profiler's library
_STOP = 600.0  # seconds for a stop, which answers once the trace is written
_POLL = 0.1  # seconds between looks at the number of steps
_STEPS = re.compile(r"^vllm:iteration_tokens_total_count(?:\{[^}]*\})? (\S+)", re.MULTILINE)
_VLLM_FLAG = """start vLLM with --profiler-config '{"profiler": "torch", "torch_profiler_dir": "/absolute/folder"}'"""
_VLLM_OLD = "start vLLM with VLLM_TORCH_PROFILER_DIR=/absolute/folder in its environment"
_NEW_FLAG_SINCE = (0, 13)  # vLLM that knows --profiler-config
_NOT_THERE = (404, 405)


@dataclass(frozen=True, slots=True)
class Wanted:
    """How much to record: a number of engine steps, or seconds. Either way no longer than `seconds`."""

    steps: int | None
    seconds: float


@dataclass(slots=True)
class Captured:
    """What was recorded: steps seen (None: not known) and a note on what was not as wanted."""

    steps: int | None
    note: str = ""


class NoAnswerError(UserError):
    """The engine did not answer: what was asked may have happened or not."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Time for waiting: seconds that only go forward, and a pause."""

    now: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep


class Engine:
    """One engine's profiler endpoints."""

    def __init__(self, url: str, client: httpx.Client) -> None:
        """Find out which engine answers at `url`. Raises UserError if none does or it has no profiler."""
        self.url = url.rstrip("/")
        self._client = client
        if not is_http(self.url):
            raise UserError("not an http or https address", where=url, hint="give the engine's address, such as http://127.0.0.1:8000")
        if "@" in urlsplit(self.url).netloc:  # it would stand in messages, and in the guard's command line
            raise UserError("the address holds credentials", where="--engine", hint="leave them out: profiler endpoints ask for none")
        self.kind, self.version = self._recognise()

    def _recognise(self) -> tuple[str, str]:
        for path in ("/get_model_info", "/model_info"):
            if "model_path" in (self._json(path) or {}):
                return "sglang", ""
        version = (self._json("/version") or {}).get("version")
        if version is None:
            raise UserError(
                "neither vLLM nor SGLang answers here", where=self.url, hint="capture works with engines that have profiler endpoints"
            )
        return "vllm", str(version)

    def _json(self, path: str) -> dict[str, Any] | None:
        try:
            answer = self._client.get(self.url + path, timeout=_ASK)
            body = answer.json() if answer.is_success else None
        except httpx.HTTPError as error:
            raise UserError(
                f"the engine does not answer ({error})", where=self.url, hint="check that it runs and the address is right"
            ) from error
        except ValueError:
            return None
        return body if isinstance(body, dict) else None

    def start(self, wanted: Wanted, folder: str) -> None:
        """Start the profiler. Raises UserError, naming the flag that the engine needs, if it cannot be started."""
        answer = self._post("/start_profile", self._body(wanted, folder), _START)
        if answer.status_code in (400, 422):  # versions that refuse the bound on steps
            answer = self._post("/start_profile", None, _START)
        if answer.status_code in _NOT_THERE:
            raise UserError("the engine was started without profiling", where=self.url, hint=self.flag)
        if not answer.is_success:
            raise UserError(f"the profiler does not start (HTTP {answer.status_code})", where=self.url, hint="see the engine's log")

    def _body(self, wanted: Wanted, folder: str) -> dict[str, Any] | None:
        """Give the engine its own bound on steps where it takes one."""
        if self.kind == "sglang":
            return {"output_dir": folder, "activities": ["CPU", "GPU"], "num_steps": wanted.steps or MOST_STEPS}
        return {"max_iterations": wanted.steps} if wanted.steps else None

    @property
    def flag(self) -> str:
        """What this engine has to be started with to be profiled."""
        found = re.match(r"(\d+)\.(\d+)", self.version)
        old = found is not None and (int(found[1]), int(found[2])) < _NEW_FLAG_SINCE
        return _VLLM_OLD if old else _VLLM_FLAG

    def stop(self) -> None:
        """Stop the profiler; returns once the engine has written the trace, as far as it waits for that."""
        self._post("/stop_profile", None, _STOP)

    def _post(self, path: str, body: dict[str, Any] | None, timeout: float) -> httpx.Response:
        try:
            return self._client.post(self.url + path, json=body, timeout=timeout)
        except httpx.HTTPError as error:
            raise NoAnswerError(f"{path} got no answer ({error})", where=self.url, hint="check the engine's log") from error

    def steps(self) -> int | None:
        """Return how many steps the engine has run since it began; None where its metrics do not say."""
        try:
            answer = self._client.get(f"{self.url}/metrics", timeout=_ASK)
        except httpx.HTTPError:
            return None
        found = _STEPS.findall(answer.text) if answer.is_success else []
        return int(sum(float(number) for number in found)) if found else None


def capture(engine: Engine, wanted: Wanted, folder: str, written: Callable[[], bool], clock: Clock) -> Captured:
    """Record as much as wanted; the profiler is stopped whatever happens, even if this process is killed.

    `written` tells whether a trace has appeared: an engine that bounds itself writes one when it is done.
    """
    with _guarded(engine, wanted.seconds) as tell:
        before = engine.steps() if wanted.steps and engine.kind == "vllm" else None
        try:
            engine.start(wanted, folder)
        except NoAnswerError:
            raise  # it may have started: the guard stops it
        except UserError:
            tell("stopped")
            raise
        try:
            tell("started")
            return _wait(engine, wanted, before, written, clock)
        finally:
            engine.stop()
            tell("stopped")


def _wait(engine: Engine, wanted: Wanted, before: int | None, written: Callable[[], bool], clock: Clock) -> Captured:
    end = clock.now() + wanted.seconds
    done: int | None = None
    while clock.now() < end:
        clock.pause(min(_POLL, wanted.seconds))
        if wanted.steps is None:
            continue
        if engine.kind == "sglang" and written():
            return Captured(wanted.steps)
        now = engine.steps() if before is not None else None
        if now is not None and before is not None:
            done = now - before
            if done >= wanted.steps:
                return Captured(done)
    return Captured(done, _shortfall(wanted, done))


def _shortfall(wanted: Wanted, done: int | None) -> str:
    if wanted.steps is None:
        return ""
    if done is None:
        return f"it cannot be seen how many steps ran: recorded for {wanted.seconds:g} s"
    return f"only {done} of {wanted.steps} steps ran within {wanted.seconds:g} s: is there traffic?"


@contextmanager
def _guarded(engine: Engine, seconds: float) -> Iterator[Callable[[str], None]]:
    """Keep a process beside this one that stops the profiler if this one cannot."""
    command = [sys.executable, "-m", "heptascope.sources.trace.guard", engine.url, str(seconds + _START + 10)]
    guard = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)  # noqa: S603  # our own
    assert guard.stdin is not None  # noqa: S101  # both are pipes
    assert guard.stdout is not None  # noqa: S101  # both are pipes
    said: list[str] = []
    tell = partial(_tell, guard.stdin, said)
    try:
        guard.stdout.readline()
        yield tell
    finally:
        guard.stdin.close()
        guard.stdout.close()
        if "stopped" in said:  # else it has work to do, which may take long, and goes on alone
            guard.wait()


def _tell(pipe: IO[str], said: list[str], word: str) -> None:
    said.append(word)
    pipe.write(f"{word}\n")
    pipe.flush()
