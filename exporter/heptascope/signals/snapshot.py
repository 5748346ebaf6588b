"""What the signals room shows to the rooms on its right: one immutable, consistent picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from heptascope.model import Histogram, Labels, Missing, Quality, SourceStatus


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Every current value at one moment.

    `values` holds gauges, counters and infos by signal name; `histograms` the classic histograms.
    `version` grows by one with each new picture, so that a surface can keep what it rendered.
    """

    t: float
    version: int
    values: Mapping[str, tuple[tuple[Labels, float], ...]] = field(default_factory=dict)
    histograms: Mapping[str, tuple[Histogram, ...]] = field(default_factory=dict)
    missing: tuple[Missing, ...] = ()
    quality: Mapping[tuple[str, Labels], Quality] = field(default_factory=dict)
    sources: tuple[SourceStatus, ...] = ()

    def value(self, name: str, pairs: Labels) -> float | None:
        """Return one value, or None."""
        return next((v for key, v in self.values.get(name, ()) if key == pairs), None)

    def with_values(self, extra: Mapping[str, tuple[tuple[Labels, float], ...]]) -> Snapshot:
        """Return the same picture with `extra` added (the verdict's series, a surface's own)."""
        return replace(self, values={**self.values, **extra})


EMPTY = Snapshot(t=0.0, version=0)
