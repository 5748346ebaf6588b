"""Feeds the signals room by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heptascope.model import Labels, Missing, Reading, Reason, Sample, labels
from heptascope.signals.derive import Deriver, DeriveSettings
from heptascope.signals.store import Store

START = 1_700_000_000.0
RANK = labels(engine="vllm", rank="0")
GPU = labels(gpu="0", uuid="GPU-a")


def sample(name: str, pairs: Labels, value: float, window: float = 0.0, part: str = "") -> Sample:
    """Return a sample; the name comes without prefix."""
    return Sample(f"heptascope_{name}", pairs, value, window, part)


def series(store: Store, name: str, pairs: Labels) -> list[tuple[float, float]]:
    """Return the points of a series since START, without the markers of its ends."""
    found = store.window.get(f"heptascope_{name}", pairs)
    return [] if found is None else [(t - START, v) for t, v in zip(found.t, found.v, strict=True) if v == v]


def live(store: Store, name: str, pairs: Labels) -> float | None:
    """Return a series' value if it has one now."""
    return dict(store.current(f"heptascope_{name}")).get(pairs)


class Derived:
    """A store that is fed each second, and what is derived from it."""

    def __init__(self, **settings: Any) -> None:
        """Derive with these settings."""
        self.store = Store()
        self.deriver = Deriver(self.store, DeriveSettings(**settings))
        self.t = START - 1.0

    def second(self, samples: Mapping[tuple[str, Labels], float], missing: tuple[Missing, ...] = ()) -> None:
        """Take a second's samples (names without prefix; activity ratios are means over that second) and derive."""
        self.t += 1.0
        taken = [sample(name, pairs, value, 1.0 if name.endswith("_active_ratio") else 0.0) for (name, pairs), value in samples.items()]
        self.store.ingest(Reading("source", self.t, taken, missing=list(missing)))
        self.store.ingest(self.deriver.step(self.t))

    def steady(self, seconds: int = 12, rates: Mapping[tuple[str, Labels], float] | None = None, **at: Any) -> Derived:
        """Play gauges of one rank that stand still (`name=value`) and counters with these rates; return the room."""
        begin = self.t + 1.0
        for second in range(seconds):
            grown = {key: rate * (begin + second - START) for key, rate in (rates or {}).items()}
            self.second({**{(name, RANK): value for name, value in at.items()}, **grown})
        return self

    def value(self, name: str, pairs: Labels = RANK) -> float | None:
        """Return a derived value, None if it is absent."""
        return live(self.store, name, pairs)

    def why(self, name: str, pairs: Labels = RANK) -> tuple[Reason, str] | None:
        """Return why a derived value is absent."""
        return next(((m.reason, m.detail) for m in self.store.missing() if m.signal == f"heptascope_{name}" and m.labels == pairs), None)


def gpu(pairs: Labels = GPU, /, **ratios: float) -> dict[tuple[str, Labels], float]:
    """Return what a GPU shows: it is there, and these activity ratios."""
    return {("gpu_info", pairs): 1.0, **{(f"gpu_{what}_ratio", pairs): value for what, value in ratios.items()}}


def busy(
    seconds: int = 12, running: float = 4.0, rates: dict[tuple[str, Labels], float] | None = None, *gpus: dict[tuple[str, Labels], float]
) -> Derived:
    """Return a room in which an engine runs these requests on these GPUs, with counters that grow at these rates."""
    room = Derived()
    for second in range(seconds):
        cards = {key: value for card in gpus for key, value in card.items()}
        grown = {key: rate * second for key, rate in (rates or {}).items()}
        room.second({("engine_requests_running", RANK): running, **cards, **grown})
    return room
