"""What the derivation of engine signals shares: one engine rank at one moment, and where results go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

from heptascope.model import Labels, Missing, Quality, Reason
from heptascope.signals.derive_gpu import Card
from heptascope.signals.rates import Growth, growth, mean
from heptascope.signals.window import Window

PREFIX = "heptascope_engine_"
WHICH_GPU = "it cannot be told which GPU serves this rank; set engines[].gpus"


class Collector(Protocol):
    """Where derived values and reasons go."""

    def add(self, name: str, pairs: Labels, value: float | None, quality: Quality = ...) -> None:
        """Add one value; None adds nothing."""
        ...

    def lack(self, name: str, pairs: Labels, reason: Reason, detail: str = ...) -> None:
        """Say why a value is missing."""
        ...

    def reason(self, name: str, pairs: Labels) -> tuple[Reason, str] | None:
        """Return why `name` is missing, if that has been said in this pass."""
        ...


@dataclass(frozen=True, slots=True)
class Context:
    """One engine rank at one moment: its window, its GPUs, and why things are missing elsewhere."""

    window: Window
    now: float
    span: float
    pairs: Labels
    cards: Sequence[Card]
    ambiguous: bool
    reasons: Sequence[Missing]
    slo_seconds: Mapping[str, float]
    supplied: AbstractSet[tuple[str, Labels]] = frozenset()

    def given(self, name: str) -> float | None:
        """Return the mean of a derivable gauge that a source supplies, which goes before what would be derived."""
        return self.mean(name) if (PREFIX + name, self.pairs) in self.supplied else None

    def growth(self, name: str) -> Growth | None:
        """Return the growth of one of the engine's counters over the window."""
        return growth(self.window.get(PREFIX + name, self.pairs), self.now, self.span)

    def mean(self, name: str) -> float | None:
        """Return the mean of one of the engine's gauges over the window."""
        return mean(self.window.get(PREFIX + name, self.pairs), self.now, self.span)

    def reason(self, *signals: str) -> tuple[Reason, str]:
        """Return why the first missing one of `signals` is missing."""
        for signal in signals:
            for found in self.reasons:
                if found.signal == signal and set(found.labels) <= {*self.pairs, *(p for c in self.cards for p in c.pairs)}:
                    return found.reason, found.detail
        return Reason.NO_SOURCE, f"nothing supplies {signals[0]}" if signals else ""


_MEANS = {
    "gpu_active_ratio": "graphics_engine_active",
    "gpu_sm_active_ratio": "sm_active",
    "gpu_dram_active_ratio": "dram_active",
    "gpu_tensor_active_ratio": "tensor_active",
}


def average(c: Context, name: str) -> float | None:
    """Return the mean of one activity over the engine's GPUs; None unless it is known of each."""
    given = c.given(name)
    values = [card.activity[_MEANS[name]] for card in c.cards if _MEANS[name] in card.activity]
    return given if given is not None else sum(values) / len(values) if values and len(values) == len(c.cards) else None


def gpu_means(c: Context, out: Collector) -> None:
    """Add the mean activity of the engine's GPUs, each part where it is known of all of them."""
    out.add(PREFIX + "gpus", c.pairs, float(len(c.cards)) if c.cards else None)
    for name, what in _MEANS.items():
        value = average(c, name)
        out.add(PREFIX + name, c.pairs, value)
        if value is None:
            _lack_gpu(c, name, f"heptascope_gpu_{what}_ratio", out)


def _lack_gpu(c: Context, name: str, input_signal: str, out: Collector) -> None:
    if c.ambiguous:
        out.lack(PREFIX + name, c.pairs, Reason.AMBIGUOUS, WHICH_GPU)
    else:
        out.lack(PREFIX + name, c.pairs, *c.reason(input_signal))
