"""Sources that play a recording as if it happened now, round and round: the demo.

Each round plays the recording's steady window. Counters go on from round to round, as an engine's do that never restarts;
with a `speed` other than 1 everything happens so much faster: rates grow with it, ratios and latencies stay.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from dataclasses import replace

from heptascope.model import Histogram, Labels, Reading, Reason, Sample
from heptascope.sources.base import SourceError
from heptascope.sources.recording import Event, Recording
from heptascope.sources.replay import Failure, RowReaders

HIGHEST_SPEED = 20.0
LOWEST_SPEED = 0.1
SHORTEST_INTERVAL_SECONDS = 0.2
PRIME_SECONDS = 6.0
"""Each round begins so much before its window, so that every source, some of them read each 5 s, has something to give."""
_KINDS = {"host": "host", **dict.fromkeys(("nvml", "nvml_slow", "dcgm", "dcgm_slow", "dcgm_exporter"), "gpu")}
_NO_TIME = 1e-9  # window of a value that is shown again: it must not be counted twice (0 would mean "an instant reading")

Key = tuple[str, Labels, str]


class Continued:
    """Makes counters go on when the recording begins anew."""

    def __init__(self) -> None:
        """Start with the recording's own values."""
        self._shown: dict[Key, tuple[float, ...]] = {}
        self._offsets: dict[Key, tuple[float, ...]] = {}

    def apply(self, reading: Reading, counted: bool) -> Reading:
        """Return the reading with its counters moved up by what earlier rounds counted.

        One that is not `counted` lies before the round: its counters stand at what was shown last, and count on from there.
        """
        samples = [
            s._replace(value=self._next((s.name, s.labels, s.part), (s.value,), counted)[0]) if s.name.endswith("_total") else s
            for s in reading.samples
        ]
        return replace(reading, samples=samples, histograms=[self._histogram(h, counted) for h in reading.histograms])

    def _histogram(self, h: Histogram, counted: bool) -> Histogram:
        *counts, total = self._next((h.name, h.labels, h.part), (*h.counts, h.sum), counted)
        return h._replace(counts=tuple(counts), sum=total)

    def _next(self, key: Key, values: tuple[float, ...], counted: bool) -> tuple[float, ...]:
        offsets = self._offsets.get(key)
        if offsets is None or not counted or len(offsets) != len(values):
            before = self._shown.get(key, values)
            before = before if len(before) == len(values) else values
            offsets = self._offsets[key] = tuple(b - v for b, v in zip(before, values, strict=True))
        shown = self._shown[key] = tuple(v + o for v, o in zip(values, offsets, strict=True))
        return shown


class _Slot:
    """What one source has to give: the newest reading, with the ratios of all readings since the last look averaged over their windows."""

    def __init__(self) -> None:
        self._newest: Reading | Failure | None = None
        self._sums: dict[tuple[str, Labels], tuple[float, float]] = {}

    def put(self, found: Reading | Failure, counted: bool) -> None:
        """Take a reading; the windows of one that is not `counted` lie outside the round."""
        self._newest = found
        if isinstance(found, Failure):
            self._sums = {}
            return
        for sample in found.samples:
            if counted and sample.window > 0:
                key = (sample.name, sample.labels)
                total, window = self._sums.get(key, (0.0, 0.0))
                self._sums[key] = (total + sample.value * sample.window, window + sample.window)

    def take(self, now: float, speed: float) -> Reading:
        found = self._newest
        if found is None:
            raise SourceError(Reason.SOURCE_DOWN, "the recording has nothing of this source yet")
        if isinstance(found, Failure):
            raise SourceError(found.reason, found.message)
        samples = [self._mean(sample, speed) if sample.window > 0 else sample for sample in found.samples]
        self._sums = {}
        return replace(found, t=now, samples=samples)

    def _mean(self, sample: Sample, speed: float) -> Sample:
        total, window = self._sums.get((sample.name, sample.labels), (0.0, 0.0))
        return sample._replace(value=total / window, window=window / speed) if window > 0 else sample._replace(window=_NO_TIME)


class Player:
    """Plays one recording for all its sources. Used by several threads."""

    def __init__(self, recording: Recording, speed: float = 1.0) -> None:
        """Play from the steady window's start to its end, `speed` times as fast. Raises ValueError for a speed out of bounds."""
        if not LOWEST_SPEED <= speed <= HIGHEST_SPEED:
            raise ValueError(f"speed is {speed}; it can be {LOWEST_SPEED} to {HIGHEST_SPEED:g}")
        self.speed = speed
        self._recording = recording
        self._lock = threading.Lock()
        self._continued = Continued()
        self._slots: dict[str, _Slot] = {}
        self._start, self._length = _steady_span(recording)
        self._began: float | None = None
        self._position = 0.0
        self._round = 0
        self._begin_round(0)
        self._advance(0.0)

    @property
    def sources(self) -> list[str]:
        """Names of the sources that were recorded."""
        return list(self._slots)

    def read(self, source: str, now: float) -> Reading:
        """Return what `source` reads at `now` (Unix seconds). Raises SourceError where its read failed in the recording."""
        with self._lock:
            if self._began is None:
                self._began = now
            # a clock that is set back must not play backwards
            self._position = max(self._position, (now - self._began) * self.speed)
            self._play_to(self._position)
            return self._slots[source].take(now, self.speed)

    def _play_to(self, position: float) -> None:
        number = math.floor(position / self._length)
        if number > self._round:
            self._advance(self._length)
            self._begin_round(number)
        self._advance(position - number * self._length)

    def _begin_round(self, number: int) -> None:
        self._round = number
        self._readers = RowReaders(self._recording)
        self._events = _since(self._recording, self._start - PRIME_SECONDS)
        self._next: Event | None = next(self._events, None)

    def _advance(self, offset: float) -> None:
        """Play what lies before `offset` seconds after the window's start."""
        while self._next is not None and self._next.t <= self._start + offset:
            found, counted = self._readers.play(self._next), self._next.t > self._start
            self._next = next(self._events, None)
            if isinstance(found, Reading):
                found = self._continued.apply(found, counted)
            if found is not None:
                self._slots.setdefault(found.source, _Slot()).put(found, counted)


class ReplaySource:
    """One source of a recording, read as if it were live."""

    timeout = 10.0

    def __init__(self, player: Player, name: str) -> None:
        """Read the source `name` of what `player` plays."""
        self.name, self.kind = name, _KINDS.get(name, "engine")
        self.interval = min(1.0, max(SHORTEST_INTERVAL_SECONDS, 1.0 / player.speed))
        self._player = player

    def read(self, now: float) -> Reading:
        """Return what the source reads at `now` (Unix seconds). Raises SourceError where its read failed in the recording."""
        return self._player.read(self.name, now)

    def close(self) -> None:
        """Do nothing: no file stays open between reads for long."""


def replay_sources(recording: Recording, speed: float = 1.0) -> list[ReplaySource]:
    """Return one source for each that was recorded. Raises ValueError for a speed out of bounds."""
    player = Player(recording, speed)
    return [ReplaySource(player, name) for name in player.sources]


def _since(recording: Recording, t: float) -> Iterator[Event]:
    """Yield the events from `t` on; it holds on to no player, so that one that is no longer played goes at once, with its rows."""
    return (event for event in recording.events() if event.t >= t)


def _steady_span(recording: Recording) -> tuple[float, float]:
    """Return the start and the length of what is played: the steady window, or all of a recording that is shorter."""
    last = max(event.t for event in recording.events())
    start, end = recording.steady
    end = last if end is None else min(end, last)
    return (start, end - start) if end > start else (recording.start, max(last - recording.start, 1.0))
