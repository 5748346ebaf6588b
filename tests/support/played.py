"""A recording played to a given second, as the web surface's state: no waiting, and the same verdict as live."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from heptascope.config import Settings
from heptascope.demo.scenarios import FOLDER
from heptascope.model import Labels, Reading
from heptascope.offline import passes
from heptascope.sources.replay import Failure, replay_readings
from heptascope.surfaces.web.state import Tap
from heptascope.wiring import build_pipeline
from support.degrade import Degradation, degraded
from support.web_state import MemoryState


class Played(MemoryState):
    """The state at the end of what was played; `advance` plays on. Who follows is told of everything at once."""

    def __init__(self, news: Iterable[Reading | Failure], gpus: Mapping[str, Sequence[str]] | None = None) -> None:
        """Play `news`, with `gpus` as the configured GPUs of each engine."""
        super().__init__()
        self.pipeline = build_pipeline(Settings(), gpus or {})
        self.window = self.pipeline.window
        self.judge = self.pipeline.judge
        self.readings: list[Reading] = []
        self._passes = passes(self._noted(news), self.pipeline)

    def advance(self, steps: int) -> None:
        """Play `steps` more seconds."""
        for _ in range(steps):
            self._take(next(self._passes).t)

    def advance_to(self, t: float) -> None:
        """Play up to `t` (Unix seconds)."""
        while self.time < t:
            self.advance(1)

    def follow(self, call: Callable[[], None]) -> None:
        """Tell `call` what stands."""
        super().follow(call)
        call()

    def tap(self, tap: Tap) -> None:
        """Give `tap` what was read."""
        super().tap(tap)
        for reading in self.readings:
            tap.write(reading)

    def _noted(self, news: Iterable[Reading | Failure]) -> Iterator[Reading | Failure]:
        for item in news:
            if isinstance(item, Reading):
                self.readings.append(item)
            yield item

    def _take(self, t: float) -> None:
        self.current, self.time, self.found = self.pipeline.snapshot, t, self.pipeline.verdict
        for call in self.followers:
            call()


def played(folder: Path, *changes: Degradation, seconds_before_end: float = 2.0) -> Played:
    """Return the state near the end of a recording's steady window, with what `changes` take away."""
    recording = degraded(folder, *changes)
    state = Played(replay_readings(recording))
    state.header = lambda: recording.header
    end = recording.steady.end
    state.advance_to((end if end is not None else max(event.t for event in recording.events())) - seconds_before_end)
    return state


@cache
def severe() -> Played:
    """Return the state under a full KV cache; played once in a process, so nobody may advance it."""
    return played(FOLDER / "kv-severe")


def relabelled(news: Iterable[Reading | Failure], engine: str, gpus: Sequence[str], later: float) -> Iterator[Reading]:
    """Yield the readings of one engine on one GPU as those of `engine` on `gpus`, `later` seconds later; the host's are left out."""
    for reading in news:
        if isinstance(reading, Failure) or (reading.raw or {}).get("kind") == "host":
            continue
        yield replace(
            reading,
            source=f"{engine}-{reading.source}",
            t=reading.t + later,
            raw=None,
            samples=[s._replace(labels=pairs) for s in reading.samples for pairs in _renamed(s.labels, engine, gpus)],
            histograms=[h._replace(labels=pairs) for h in reading.histograms for pairs in _renamed(h.labels, engine, gpus)],
            missing=[m._replace(labels=pairs) for m in reading.missing for pairs in _renamed(m.labels, engine, gpus)],
            quality={(name, pairs): q for (name, old), q in reading.quality.items() for pairs in _renamed(old, engine, gpus)},
        )


def _renamed(pairs: Labels, engine: str, gpus: Sequence[str]) -> list[Labels]:
    found: dict[str, Any] = dict(pairs)
    if "engine" in found:
        return [tuple(sorted({**found, "engine": engine}.items()))]
    if "gpu" in found:
        return [tuple(sorted({**found, "gpu": gpu, "uuid": f"GPU-{gpu}"}.items())) for gpu in gpus]
    return [pairs]
