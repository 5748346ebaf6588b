"""What one GPU's row says: samples, and for each value that it lacks the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

from heptascope.model import Labels, Missing, Quality, Reason, Sample
from heptascope.sources.gpu.layout import NO_VALUE, NOT_RECORDED, PREFIX, Field, Row

Why = tuple[Reason, str]


def reason_of(row: Row, key: str) -> Why:
    """Return why `key` has no value: what the row itself says, else "not recorded" or "no value"."""
    said: Sequence[str] | None = row.get("missing", {}).get(key)
    if said is not None:
        return Reason(said[0]), said[1]
    return NO_VALUE if key in row else NOT_RECORDED


class Page:
    """Collects the samples and reasons of one GPU."""

    def __init__(self, pairs: Labels) -> None:
        """Start empty; `pairs` are the GPU's labels."""
        self.pairs = pairs
        self.samples: list[Sample] = []
        self.missing: list[Missing] = []
        self.quality: dict[tuple[str, Labels], Quality] = {}

    def put(self, signal: str, value: float, window: float = 0.0, extra: Labels = (), quality: Quality = Quality.EXACT) -> None:
        """Add one value in base units."""
        pairs = tuple(sorted((*self.pairs, *extra))) if extra else self.pairs
        self.samples.append(Sample(PREFIX + signal, pairs, value, window))
        if quality is not Quality.EXACT:
            self.quality[PREFIX + signal, pairs] = quality

    def miss(self, signal: str, why: Why, extra: Labels = ()) -> None:
        """Add the reason why a signal has no value."""
        pairs = tuple(sorted((*self.pairs, *extra))) if extra else self.pairs
        self.missing.append(Missing(PREFIX + signal, why[0], why[1], pairs))

    def fields(self, fields: Iterable[Field], row: Row) -> None:
        """Add the value of each field of `row`, or its reason; an impossible value (a sentinel, garbage) is a reason too."""
        for field in fields:
            value: Any = row.get(field.key)
            if value is None:
                self.miss(field.signal, reason_of(row, field.key), field.labels)
            elif not possible(value, field.top, field.low):
                self.miss(field.signal, (Reason.INVALID, f"{value!r} is no possible value of {field.key}"), field.labels)
            else:
                self.put(field.signal, value * field.scale, extra=field.labels)

    def miss_all(self, signals: Iterable[str], why: Why) -> None:
        """Add one reason for many signals."""
        for signal in signals:
            self.miss(signal, why)


def possible(value: Any, top: float, low: float = 0.0) -> bool:
    """Return whether `value` is a number from `low` to `top`."""
    return isinstance(value, int | float) and isfinite(value) and low <= value <= top


def labels_of(entry: Mapping[str, Any], index: int) -> Labels:
    """Return a GPU's labels; a recording without uuid leaves that label out."""
    uuid = entry.get("uuid") or ""
    return (("gpu", str(index)), ("uuid", uuid)) if uuid else (("gpu", str(index)),)
