"""Recordings as rounds of exposition pages: what one pod would expose, second by second, however long it plays.

Each recording is played for two rounds through the live pipeline, as the demo plays it: its counters go on from round to round. The second
round is kept. Later rounds look the same, with counters moved up by what a round counts, so that an hour costs no more than a minute.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from heptascope.config import Settings
from heptascope.model import Labels, SourceStatus
from heptascope.pipeline import Pipeline
from heptascope.signals.schema import HISTOGRAM_SUFFIXES
from heptascope.signals.snapshot import Snapshot
from heptascope.sources.base import Source, SourceError
from heptascope.sources.playback import replay_sources
from heptascope.sources.recording import Recording
from heptascope.surfaces.own import own_values
from heptascope.surfaces.prometheus import SnapshotCollector
from heptascope.wiring import build_pipeline
from support.dashboard_told import told, trace_sources
from support.untraced import untraced

Series = tuple[str, Labels]
Frame = Mapping[Series, float]
CLOCK: Series = ("heptascope_clock_timestamp_seconds", ())
WARM_SECONDS = 12
"""Longer than the windows and holds of rules."""

_COUNTS = ("_total", *HISTOGRAM_SUFFIXES)


@dataclass(frozen=True)
class Round:
    """One round: a page for each of its seconds, and by how much each counter grows in it."""

    frames: tuple[Frame, ...]
    growth: Mapping[Series, float]

    def at(self, second: int) -> dict[Series, float]:
        """Return the page `second` seconds after the start."""
        rounds, phase = divmod(second, len(self.frames))
        return {series: value + rounds * self.growth.get(series, 0.0) for series, value in self.frames[phase].items()}


def counts(series: Series) -> bool:
    """Return whether a series is a counter, or of a histogram."""
    return series[0].endswith(_COUNTS)


@cache
def round_of(name: str) -> Round:
    """Play a recording and return its round."""
    recording = told(name)
    with trace_sources(name, recording.steady.start) as traces, untraced():
        frames = _frames(recording, [_Feed(source) for source in (*replay_sources(recording), *traces)])
    length = len(frames) - WARM_SECONDS
    before, last = frames[-length - 1], frames[-1]
    growth = {series: value - before.get(series, value) for series, value in last.items() if counts(series)}
    return Round(tuple(frames[-length:]), growth)


def _frames(recording: Recording, feeds: list[_Feed]) -> list[Frame]:
    """Return the pages of the end of the first round and of the second one."""
    pipeline = build_pipeline(Settings(), {})
    length, frames = _length(recording), []
    for second in range(2 * length):
        now = recording.steady.start + second
        statuses = [feed.read(pipeline, now) for feed in feeds]
        if second >= length - WARM_SECONDS:  # what is read counts from the start; verdicts need no more than their windows
            frames.append(_page(pipeline.step(now, statuses), now))
    return frames


def _length(recording: Recording) -> int:
    """Return the length of the steady window in whole seconds, so that scrapes meet whole seconds of it."""
    start, end = recording.steady
    return round((max(event.t for event in recording.events()) if end is None else end) - start)


class _Feed:
    """One source, and how it fares."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._failures = 0
        self._good: float | None = None

    def read(self, pipeline: Pipeline, now: float) -> SourceStatus:
        """Give the pipeline what the source reads now."""
        began = time.perf_counter()
        try:
            pipeline.ingest(self._source.read(now))
        except SourceError as exc:
            self._failures += 1
            pipeline.fail(self._source.name, now, exc.reason, str(exc))
            return SourceStatus(self._source.name, self._source.kind, False, self._good, None, exc.reason, str(exc), self._failures)
        self._good = now
        return SourceStatus(self._source.name, self._source.kind, True, now, time.perf_counter() - began, None, "", self._failures)


def _page(snapshot: Snapshot, now: float) -> Frame:
    """Return every sample of the page that heptascope would expose."""
    full = snapshot.with_values(own_values(snapshot, now))
    return {
        (sample.name, tuple(sample.labels.items())): float(sample.value)
        for family in SnapshotCollector(full).collect()
        for sample in family.samples
    }
