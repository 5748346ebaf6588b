"""The shape of one row of the signal table."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from heptascope.model import Layer


class Kind(StrEnum):
    """What a signal's numbers are."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"
    INFO = "info"


class Fold(StrEnum):
    """How the pieces of one series (API servers, processes) become one value."""

    SUM = "sum"
    MAX = "max"
    LAST = "last"


@dataclass(frozen=True, slots=True)
class Signal:
    """One signal: everything that `/metrics`, panels, docs and tests need to know about it.

    `suppliers` are the kinds of source that can give it (`derived`: computed by the signals room).
    `integral` names the counter that this ratio gauge feeds with its gap-free integral over time.
    """

    name: str
    kind: Kind
    unit: str
    layer: Layer | None
    labels: tuple[str, ...]
    suppliers: tuple[str, ...]
    help: str
    fold: Fold = Fold.SUM
    integral: str = ""


GPU = ("gpu", "uuid")
ENGINE = ("engine", "rank")
