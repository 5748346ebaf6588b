"""What the probe does in the engine's path: read a clock, add to a list. Publishing happens in a thread of its own.

A list's items are added to by the engine's thread only; the publisher copies the whole list in one call, which the interpreter
lock makes one consistent picture.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from heptascope.vllm_probe.layout import LIMIT, PHASE_WIDTH, PHASES, REQUESTS, STEPS, TOKENS, WIDTH, Writer

PUBLISH_SECONDS = 0.5
SCHEDULE, MODEL, UPDATE, OUTPUT = (PHASES.index(name) * PHASE_WIDTH for name in ("schedule", "model", "update", "output"))
_SUM = PHASE_WIDTH - 1
Fail = Callable[[BaseException], None]
"""Switches the probe off; called with what went wrong."""


class Counts:
    """The numbers of one engine core."""

    def __init__(self) -> None:
        """Start at nothing."""
        self.values = [0] * WIDTH
        self.schedule_ns = self.update_ns = self.step_ns = 0


Function = Callable[..., Any]


def around_schedule(original: Function, counts: Counts, fail: Fail) -> Function:
    """Return `Scheduler.schedule` with its time, the batch that it made, and the limit that kept requests waiting."""
    values = counts.values

    def schedule(self: Any, *args: Any, **kwargs: Any) -> Any:
        began = perf_counter_ns()
        result = original(self, *args, **kwargs)
        try:
            counts.schedule_ns = spent = perf_counter_ns() - began
            values[SCHEDULE + (spent.bit_length() >> 1)] += 1
            values[SCHEDULE + _SUM] += spent
            tokens = result.total_num_scheduled_tokens
            values[TOKENS] += tokens
            values[REQUESTS] += len(result.num_scheduled_tokens)
            if self.waiting:
                full = len(self.running) >= self.max_num_running_reqs
                values[LIMIT + (0 if full else 1 if tokens >= self.max_num_scheduled_tokens else 2)] += 1
        except Exception as error:  # noqa: BLE001  # whatever it is, the engine must run on
            fail(error)
        return result

    return schedule


def around_update(original: Function, counts: Counts, fail: Fail) -> Function:
    """Return `Scheduler.update_from_output`, each call of which ends one step."""
    values = counts.values

    def update_from_output(self: Any, scheduled: Any, *args: Any, **kwargs: Any) -> Any:
        began = perf_counter_ns()
        result = original(self, scheduled, *args, **kwargs)
        try:
            counts.update_ns = spent = perf_counter_ns() - began
            values[UPDATE + (spent.bit_length() >> 1)] += 1
            values[UPDATE + _SUM] += spent
            if scheduled.total_num_scheduled_tokens:
                values[STEPS] += 1
        except Exception as error:  # noqa: BLE001  # whatever it is, the engine must run on
            fail(error)
        return result

    return update_from_output


def around_step(original: Function, counts: Counts, fail: Fail) -> Function:
    """Return `EngineCore.step` or its like; what is neither scheduling nor update is hand-over to the model, and the wait for it."""
    values = counts.values

    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        counts.schedule_ns = counts.update_ns = 0
        began = perf_counter_ns()
        result = original(self, *args, **kwargs)
        try:
            counts.step_ns = spent = perf_counter_ns() - began
            model = spent - counts.schedule_ns - counts.update_ns
            values[MODEL + (model.bit_length() >> 1)] += 1
            values[MODEL + _SUM] += model
        except Exception as error:  # noqa: BLE001  # whatever it is, the engine must run on
            fail(error)
        return result

    return step


def around_loop(original: Function, counts: Counts, fail: Fail, begin: Callable[[Any], None]) -> Function:
    """Return `EngineCoreProc._process_engine_step`: one turn of the loop. `begin` is given the engine core at the first."""
    values = counts.values
    started = False

    def process_engine_step(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal started
        if not started:
            started = True
            begin(self)
        began = perf_counter_ns()
        result = original(self, *args, **kwargs)
        try:
            output = perf_counter_ns() - began - counts.step_ns
            values[OUTPUT + (output.bit_length() >> 1)] += 1
            values[OUTPUT + _SUM] += output
        except Exception as error:  # noqa: BLE001  # whatever it is, the engine must run on
            fail(error)
        return result

    return process_engine_step


class Publisher:
    """Writes the numbers down twice a second, from a thread of its own, whether the engine works or waits."""

    def __init__(self, counts: Counts, writer: Writer, fail: Fail) -> None:
        """Start to write."""
        self._counts, self._writer, self._fail = counts, writer, fail
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heptascope-probe", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread and remove the file."""
        self._ended.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=2 * PUBLISH_SECONDS)
        self._writer.close()

    def _run(self) -> None:
        try:
            while True:
                self._writer.write(tuple(self._counts.values))
                if self._ended.wait(PUBLISH_SECONDS):
                    return
        except Exception as error:  # noqa: BLE001  # a full disk or the like must not reach the engine
            self._fail(error)
