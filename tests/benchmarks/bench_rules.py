"""Measure the rules room: processor time of a pass of the whole catalogue, memory of ten minutes of one pod, time of a replay.

Run with `python tests/benchmarks/bench_rules.py [SECONDS]`; prints one table and exits 1 above a limit. Recordings are played round and
round until the history is full (their GPUs are read five times a second, which is five times what the daemon does by default), so
that counters restart now and then. Processor time, so that other work on the machine does not count.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from heptascope.config import Settings
from heptascope.model import Reading
from heptascope.pipeline import Pipeline
from heptascope.rules.diagnose import Diagnoser
from heptascope.rules.load import load
from heptascope.signals.derive import DeriveSettings
from heptascope.signals.store import Store
from heptascope.signals.window import RETENTION_SECONDS
from heptascope.sources.recording import Recording
from heptascope.sources.replay import Failure, replay_readings
from support.recordings import all_recordings

RECORDINGS = ("decode-c64", "tp2-c64")
PASS_LIMIT_MS, WINDOW_LIMIT_MIB, REPLAY_LIMIT_SECONDS = 10.0, 20.0, 2.0
WARM_UP = 20


class Timed(Diagnoser):
    """The rules room, with the processor time of each of its passes in seconds."""

    def __init__(self) -> None:
        """Judge with the whole catalogue."""
        super().__init__(load())
        self.took: list[float] = []

    def step(self, store: Store, now: float) -> None:
        """Judge, and note how long it took."""
        begin = time.process_time()
        super().step(store, now)
        self.took.append(time.process_time() - begin)


def round_and_round(name: str, seconds: float) -> Iterator[Reading]:
    """Yield a recording's readings for so long, one time after the other."""
    news = [item for item in replay_readings(Recording.open(all_recordings()[name])) if not isinstance(item, Failure)]
    begin, length = news[0].t, news[-1].t - news[0].t + 1.0
    for turn in range(int(seconds / length) + 1):
        for reading in news:
            if turn * length + reading.t - begin <= seconds:
                yield replace(reading, t=reading.t + turn * length)


def played(name: str, seconds: float) -> tuple[Pipeline, Timed]:
    """Return the pipeline and the rules room after so long, a pass a second."""
    judge = Timed()
    pipeline = Pipeline(DeriveSettings(slo_seconds=Settings().slo.model_dump(exclude_none=True)), judge)
    due = 0.0
    for reading in round_and_round(name, seconds):
        pipeline.ingest(reading)
        due = due or reading.t + 1.0
        while reading.t >= due:
            pipeline.step(due)
            due += 1.0
    return pipeline, judge


def memory(pipeline: Pipeline) -> tuple[int, float, float]:
    """Return the number of series, MiB of their points, and MiB that their arrays take."""
    series = [s for name in pipeline.window.names() for s in pipeline.window.series(name)]
    taken = sum(sys.getsizeof(s.t) + sys.getsizeof(s.v) for s in series)
    return len(series), pipeline.window.nbytes() / 2**20, taken / 2**20


def replay(name: str) -> tuple[float, float]:
    """Return the processor and wall seconds of `heptascope replay` of one recording, start of the program included."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "heptascope", "replay", str(all_recordings()[name])]
    subprocess.run(command, check=True, capture_output=True)
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def main() -> None:
    """Measure and print."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else RETENTION_SECONDS
    heads = {
        "recording": -12,
        "rules": 5,
        "pass ms": 8,
        "p99 ms": 7,
        "series": 6,
        "points MiB": 10,
        "arrays MiB": 10,
        "replay s": 8,
        "wall s": 6,
    }
    print(" ".join(f"{head:<{-width}}" if width < 0 else f"{head:>{width}}" for head, width in heads.items()))
    kept = True
    for name in RECORDINGS:
        pipeline, judge = played(name, seconds)
        took = sorted(1000 * t for t in judge.took[WARM_UP:])
        median, p99 = statistics.median(took), took[int(len(took) * 0.99)]
        series, points, arrays = memory(pipeline)
        cpu, wall = replay(name)
        rules = len(judge.judge.rules)
        print(f"{name:<12} {rules:>5} {median:>8.2f} {p99:>7.2f} {series:>6} {points:>10.1f} {arrays:>10.1f} {cpu:>8.2f} {wall:>6.2f}")
        kept &= median <= PASS_LIMIT_MS and arrays <= WINDOW_LIMIT_MIB and cpu <= REPLAY_LIMIT_SECONDS
    print(f"limits: {PASS_LIMIT_MS:g} ms a pass, {WINDOW_LIMIT_MIB:g} MiB, {REPLAY_LIMIT_SECONDS:g} s a replay")
    sys.exit(not kept)


if __name__ == "__main__":
    main()
