"""Measure what the in-engine probe adds to one turn of vLLM's loop: `python tests/benchmarks/bench_probe.py [TURNS]`.

Functions that do nothing stand in for the engine's, once with the probe's wrappers and once without, turn about; the publisher
writes beside them as it does in the engine. Prints microseconds. Exits 1 above the limits.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from heptascope.vllm_probe.counting import Counts, Publisher, around_loop, around_schedule, around_step, around_update
from heptascope.vllm_probe.layout import Writer

LIMIT_MEDIAN_US, LIMIT_P99_US = 2.0, 5.0
SCHEDULED = SimpleNamespace(total_num_scheduled_tokens=256, num_scheduled_tokens=dict.fromkeys(range(256), 1))


class Scheduler:
    """A scheduler with 256 requests running and some waiting."""

    def __init__(self) -> None:
        self.running, self.waiting = list(range(256)), [1]
        self.max_num_running_reqs, self.max_num_scheduled_tokens = 256, 8192

    def schedule(self) -> Any:
        """Do nothing."""
        return SCHEDULED

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
    plain, counts = Core(), Counts()
    plain.scheduler, wrapped = Scheduler(), probed(counts)
    spent: dict[str, list[int]] = {"plain": [], "probed": []}
    with tempfile.TemporaryDirectory() as folder:
        publisher = Publisher(counts, Writer(Path(folder), 0, "bench"), lambda error: None)  # noqa: ARG005  # nothing to switch off
        for _ in range(turns):
            for name, core in (("plain", plain), ("probed", wrapped)):
                began = time.perf_counter_ns()
                core.turn()
                spent[name].append(time.perf_counter_ns() - began)
        publisher.stop()
    median, p99 = (
        (at(spent["probed"]) - at(spent["plain"])) / 1000
        for at in (statistics.median, lambda values: statistics.quantiles(values, n=100)[98])
    )
    print(
        f"added to one turn: median {median:.2f} us (limit {LIMIT_MEDIAN_US:g}), p99 {p99:.2f} us (limit {LIMIT_P99_US:g}), {turns} turns"
    )
    return 0 if median <= LIMIT_MEDIAN_US and p99 <= LIMIT_P99_US else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000))
