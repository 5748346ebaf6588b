"""What the probe does in the front end: how late its event loop runs a timer, and how long the tokeniser takes.

The tokeniser runs in threads, so its times go into a queue, whose append is one step of the interpreter; the publisher's thread sorts
them in.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from heptascope.vllm_probe.counting import Fail, Function
from heptascope.vllm_probe.layout import FRONT, FRONT_AT, PHASE_WIDTH, WIDTH

TICK_SECONDS = 0.1
"""Time between two looks at the loop: ten timers a second cost it some tens of microseconds."""

_TICK_NS = int(TICK_SECONDS * 1e9)
_MOST_TIMES = 65536
LAG, TOKENIZE = (FRONT_AT + FRONT.index(name) * PHASE_WIDTH for name in ("event_loop_lag", "tokenize"))
_SUM = PHASE_WIDTH - 1


class FrontCounts:
    """The numbers of one API server."""

    def __init__(self) -> None:
        """Start at nothing."""
        self.values = [0] * WIDTH
        self.tokenized: deque[int] = deque(maxlen=_MOST_TIMES)

    def add(self, place: int, spent_ns: int) -> None:
        """Add a duration to a histogram."""
        self.values[place + (spent_ns.bit_length() >> 1)] += 1
        self.values[place + _SUM] += spent_ns

    def picture(self) -> tuple[int, ...]:
        """Return the numbers as they are now; called by the publisher's thread only."""
        while self.tokenized:
            self.add(TOKENIZE, self.tokenized.popleft())
        return tuple(self.values)


class LoopWatch:
    """A timer that sets itself again and again, and counts how late it ran."""

    def __init__(self, loop: asyncio.AbstractEventLoop, counts: FrontCounts, fail: Fail) -> None:
        """Start to watch."""
        self._loop, self._counts, self._fail = loop, counts, fail
        self.ended = False
        self._arm()

    def _arm(self) -> None:
        self._due = perf_counter_ns() + _TICK_NS
        self._loop.call_later(TICK_SECONDS, self._tick)

    def _tick(self) -> None:
        if self.ended:
            return
        try:
            self._counts.add(LAG, max(perf_counter_ns() - self._due, 0))
            self._arm()
        except Exception as error:  # noqa: BLE001  # whatever it is, the engine must run on
            self._fail(error)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None  # the handler is called again with the first request


def around_output_handler(original: Function, fail: Fail, begin: Callable[[asyncio.AbstractEventLoop], None]) -> Function:
    """Return `AsyncLLM._run_output_handler`; `begin` is given the loop in which it first runs."""
    started = False

    def run_output_handler(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal started
        result = original(self, *args, **kwargs)
        loop = None if started else _running_loop()
        if loop is not None:
            started = True
            try:
                begin(loop)
            except Exception as error:  # noqa: BLE001  # whatever it is, the engine must run on
                fail(error)
        return result

    return run_output_handler


def around_tokenizer(original: Function, counts: FrontCounts, fail: Fail) -> Function:
    """Return the tokeniser's call with its time."""
    times = counts.tokenized

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        began = perf_counter_ns()
        result = original(self, *args, **kwargs)
        try:
            times.append(perf_counter_ns() - began)
        except Exception as error:  # noqa: BLE001  # whatever it is, the engine must run on
            fail(error)
        return result

    return call
