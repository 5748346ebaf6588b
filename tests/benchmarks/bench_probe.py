"""Measure what the in-engine probe adds to one turn of vLLM's loop: `python tests/benchmarks/bench_probe.py [TURNS]`.

Functions that do nothing stand in for the engine's, once with the probe's wrappers and once without, turn about; the publisher
writes beside them as it does in the engine. In a batch of 256 requests all decode, but in every tenth turn one begins its prompt and
another is in the middle of it. Prints microseconds. Exits 1 above the limits.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from heptascope.vllm_probe.counting import Counts, around_loop, around_schedule, around_step, around_update
from heptascope.vllm_probe.layout import Writer
from heptascope.vllm_probe.publishing import Publisher

LIMIT_MEDIAN_US, LIMIT_P99_US = 2.0, 5.0
REQUESTS = 256


NEW, IN_PROMPT = 0, 1


def batch(tokens: dict[int, int], *new: int) -> SimpleNamespace:
    """Return what a scheduler returns."""
    begun = [SimpleNamespace(req_id=number) for number in new]
    return SimpleNamespace(total_num_scheduled_tokens=sum(tokens.values()), num_scheduled_tokens=tokens, scheduled_new_reqs=begun)


ONES = dict.fromkeys(range(REQUESTS), 1)
DECODE, WITH_PROMPTS = batch(ONES), batch(ONES | {NEW: 1024, IN_PROMPT: 1024}, NEW)
PROMPTS_EVERY = 10


class Scheduler:
    """A scheduler with 256 requests running and some waiting."""

    def __init__(self) -> None:
        self.scheduled = DECODE
        self.requests = {number: SimpleNamespace(num_computed_tokens=1024, num_tokens=1024) for number in range(REQUESTS)}
        self.requests[IN_PROMPT].num_computed_tokens = 0
        self.running, self.waiting = list(range(REQUESTS)), [1]
        self.max_num_running_reqs, self.max_num_scheduled_tokens = REQUESTS, 8192

    def schedule(self) -> Any:
        """Do nothing."""
        return self.scheduled

    def update_from_output(self, scheduled: Any, output: None) -> None:
        """Do nothing."""


class Core:
    """An engine core that only calls its scheduler."""

    scheduler: Any

    def step(self) -> None:
        """Schedule and update."""
        self.scheduler.update_from_output(self.scheduler.schedule(), None)

    def turn(self) -> None:
        """Step."""
        self.step()


def probed(counts: Counts) -> Core:
    """Return a core with the probe's wrappers around it."""

    def fail(error: BaseException) -> None:
        raise error

    class ProbedScheduler(Scheduler):
        schedule = around_schedule(Scheduler.schedule, counts, fail)
        update_from_output = around_update(Scheduler.update_from_output, counts, fail)

    class ProbedCore(Core):
        step = around_step(Core.step, counts, fail)
        turn = around_loop(Core.turn, counts, fail, lambda _core: None)

    core = ProbedCore()
    core.scheduler = ProbedScheduler()
    return core


def main(turns: int) -> int:
    """Measure and print; return the exit status."""
    counts = Counts()
    plain, wrapped = Core(), probed(counts)
    plain.scheduler = Scheduler()
    spent: dict[str, list[int]] = {"plain": [], "probed": []}
    with tempfile.TemporaryDirectory() as folder:
        publisher = Publisher(counts.picture, Writer(Path(folder), 0, "bench"), lambda error: None)  # noqa: ARG005  # nothing to switch off
        for turn in range(turns):
            prompts = turn % PROMPTS_EVERY == 0
            counts.prefilling.clear()
            counts.prefilling.update({IN_PROMPT: 4096} if prompts else {})
            for kind, core in (("plain", plain), ("probed", wrapped)):
                core.scheduler.scheduled = WITH_PROMPTS if prompts else DECODE
                began = time.perf_counter_ns()
                core.turn()
                spent[kind].append(time.perf_counter_ns() - began)
        publisher.stop()
    median, p99 = (added(spent, at) for at in (statistics.median, lambda values: statistics.quantiles(values, n=100)[98]))
    slower = added({kind: times[::PROMPTS_EVERY] for kind, times in spent.items()}, statistics.median)
    limits = f"median {median:.2f} us (limit {LIMIT_MEDIAN_US:g}), p99 {p99:.2f} us (limit {LIMIT_P99_US:g})"
    print(f"added to one turn: {limits}; with prompts: median {slower:.2f} us; {turns} turns")
    return 0 if median <= LIMIT_MEDIAN_US and p99 <= LIMIT_P99_US else 1


def added(spent: dict[str, list[int]], at: Callable[[list[int]], float]) -> float:
    """Return by how much the probe moves a statistic, in microseconds."""
    return (at(spent["probed"]) - at(spent["plain"])) / 1000


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000))
