"""The whole of a run: what its ranks measure, taken together."""

from __future__ import annotations

from typing import NamedTuple

from heptascope.sources.trace.measures import Run

_PREFIX = "heptascope_trace_"


class Whole(NamedTuple):
    """One measure over the ranks that have it; named by its signal, with the labels beside the rank in braces."""

    name: str
    ranks: int
    mean: float
    least: float
    most: float


def overall(run: Run) -> list[Whole]:
    """Return each measure that is one number a rank, over all ranks, in the order of the signals."""
    values: dict[str, list[float]] = {}
    for name, pairs, value in run.to_samples():
        others = ", ".join(f"{key}={text}" for key, text in pairs if key != "trace_rank")
        short = name.removeprefix(_PREFIX)
        values.setdefault(f"{short}{{{others}}}" if others else short, []).append(value)
    return [Whole(name, len(some), sum(some) / len(some), min(some), max(some)) for name, some in values.items()]
