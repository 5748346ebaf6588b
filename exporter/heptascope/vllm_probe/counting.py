"""What the probe does in the engine core's path: read a clock, add to a list. Publishing happens in a thread of its own.

A list's items are added to by the engine's thread only; the publisher copies the whole list in one call, which the interpreter
lock makes one consistent picture. Constants are bound to the functions, since the limit of cost is near.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter_ns
from typing import Any

from heptascope.vllm_probe.layout import DECODE, LIMIT, PHASE_WIDTH, PHASES, PREFILL, RECOMPUTED, STEPS, WIDTH

SCHEDULE, MODEL, UPDATE, OUTPUT = (PHASES.index(name) * PHASE_WIDTH for name in ("schedule", "model", "update", "output"))
_SUM = PHASE_WIDTH - 1
Fail = Callable[[BaseException], None]
"""Switches the probe off; called with what went wrong."""


class Counts:
    """The numbers of one engine core.

    `prefilling` holds the requests of whose prompt a part is computed, and how long it is; `given_up` those that were preempted, and
    how many tokens they had computed.
    """

    __slots__ = ("given_up", "prefilling", "schedule_ns", "step_ns", "update_ns", "values")

    def __init__(self) -> None:
        """Start at nothing."""
        self.values = [0] * WIDTH
        self.schedule_ns = self.update_ns = self.step_ns = 0
        self.prefilling: dict[str, int] = {}
        self.given_up: dict[str, int] = {}

    def picture(self) -> tuple[int, ...]:
        """Return the numbers as they are now."""
        return tuple(self.values)


Function = Callable[..., Any]


def around_schedule(original: Function, counts: Counts, fail: Fail) -> Function:
    """Return `Scheduler.schedule` with its time, the batch that it made, and the limit that kept requests waiting."""
    values, prefilling, given_up = counts.values, counts.prefilling, counts.given_up
    first, total, clock = SCHEDULE, SCHEDULE + _SUM, perf_counter_ns

    def schedule(self: Any, *args: Any, **kwargs: Any) -> Any:
        began = clock()
        result = original(self, *args, **kwargs)
        try:
            counts.schedule_ns = spent = clock() - began
            values[first + (spent.bit_length() >> 1)] += 1
            values[total] += spent
            tokens = result.total_num_scheduled_tokens
            if prefilling or given_up or result.scheduled_new_reqs:
                prompts = _prompt_tokens(self, result, counts)
                values[PREFILL] += prompts
                values[DECODE] += tokens - prompts
            else:
                values[DECODE] += tokens
            if self.waiting:
                full = len(self.running) >= self.max_num_running_reqs
                values[LIMIT + (0 if full else 1 if tokens >= self.max_num_scheduled_tokens else 2)] += 1
        except Exception as error:  # noqa: BLE001  # whatever it is, the engine must run on
            fail(error)
        return result

    return schedule


def _prompt_tokens(scheduler: Any, result: Any, counts: Counts) -> int:
    """Return how many of the scheduled tokens are of prompts, or computed again; looks only at requests for which that can be so."""
    found, scheduled, requests = 0, result.num_scheduled_tokens, scheduler.requests
    for request_id, length in list(counts.prefilling.items()):
        found += scheduled.get(request_id, 0)
        if request_id not in requests or requests[request_id].num_computed_tokens >= length:
            del counts.prefilling[request_id]
    begun = {new.req_id for new in result.scheduled_new_reqs}
    if counts.given_up:
        begun |= _count_again(requests, scheduled, counts)
    for request_id in begun:
        found += scheduled[request_id]
        request = requests[request_id]
        if request.num_computed_tokens < request.num_tokens:
            counts.prefilling[request_id] = request.num_tokens
    return found


def _count_again(requests: Mapping[str, Any], scheduled: Mapping[str, int], counts: Counts) -> set[str]:
    """Count what preempted requests that run again must compute again, and return them; the prefix cache may still hold a part."""
    again = counts.given_up.keys() & scheduled.keys()
    for request_id in again:
        kept = requests[request_id].num_computed_tokens - scheduled[request_id]
        counts.values[RECOMPUTED] += max(counts.given_up.pop(request_id) - kept, 0)
    for request_id in counts.given_up.keys() - requests.keys():
        del counts.given_up[request_id]
    return again


def _give_up(request: Any, counts: Counts) -> None:
    counts.given_up[request.request_id] = request.num_computed_tokens
    counts.prefilling.pop(request.request_id, None)


def around_preempt(original: Function, counts: Counts, fail: Fail) -> Function:
    """Return `Scheduler._preempt_request`, which throws away what a request has computed."""

    def preempt_request(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            _give_up(request, counts)
        except Exception as error:  # noqa: BLE001  # whatever it is, the engine must run on
            fail(error)
        return original(self, request, *args, **kwargs)

    return preempt_request


def around_free(original: Function, counts: Counts, fail: Fail) -> Function:
    """Return `KVCacheManager.free`: in releases without a function for preemption, a request that still runs loses its blocks by that."""

    def free(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if request.status.name == "RUNNING":
                _give_up(request, counts)
        except Exception as error:  # noqa: BLE001  # whatever it is, the engine must run on
            fail(error)
        return original(self, request, *args, **kwargs)

    return free


def around_update(original: Function, counts: Counts, fail: Fail) -> Function:
    """Return `Scheduler.update_from_output`, each call of which ends one step."""
    values = counts.values
    first, total, clock = UPDATE, UPDATE + _SUM, perf_counter_ns

    def update_from_output(self: Any, scheduled: Any, *args: Any, **kwargs: Any) -> Any:
        began = clock()
        result = original(self, scheduled, *args, **kwargs)
        try:
            counts.update_ns = spent = clock() - began
            values[first + (spent.bit_length() >> 1)] += 1
            values[total] += spent
            if scheduled.total_num_scheduled_tokens:
                values[STEPS] += 1
        except Exception as error:  # noqa: BLE001  # whatever it is, the engine must run on
            fail(error)
        return result

    return update_from_output


def around_step(original: Function, counts: Counts, fail: Fail) -> Function:
    """Return `EngineCore.step` or its like; what is neither scheduling nor update is hand-over to the model, and the wait for it."""
    values = counts.values
    first, total, clock = MODEL, MODEL + _SUM, perf_counter_ns

    def step(self: Any) -> Any:
        counts.schedule_ns = counts.update_ns = 0
        began = clock()
        result = original(self)
        try:
            counts.step_ns = spent = clock() - began
            model = spent - counts.schedule_ns - counts.update_ns
            values[first + (model.bit_length() >> 1)] += 1
            values[total] += model
        except Exception as error:  # noqa: BLE001  # whatever it is, the engine must run on
            fail(error)
        return result

    return step


def around_loop(original: Function, counts: Counts, fail: Fail, begin: Callable[[Any], None]) -> Function:
    """Return `EngineCoreProc._process_engine_step`: one turn of the loop. `begin` is given the engine core at the first."""
    values = counts.values
    first, total, clock = OUTPUT, OUTPUT + _SUM, perf_counter_ns
    started = False

    def process_engine_step(self: Any) -> Any:
        nonlocal started
        if not started:
            started = True
            begin(self)
        began = clock()
        result = original(self)
        try:
            output = clock() - began - counts.step_ns
            values[first + (output.bit_length() >> 1)] += 1
            values[total] += output
        except Exception as error:  # noqa: BLE001  # whatever it is, the engine must run on
            fail(error)
        return result

    return process_engine_step
