"""What the in-engine probe wrote: read from its files, and laid over what the page says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from heptascope.model import Histogram, Labels, Missing, Reading, Reason, Sample, labels
from heptascope.sources.engine.names import PREFIX
from heptascope.vllm_probe.layout import (
    BUCKETS,
    LIMIT,
    LIMITS,
    PHASE_WIDTH,
    PHASES,
    STEPS,
    SUFFIX,
    WIDTH,
    Block,
    bound_ns,
    busy_ns,
    read_block,
)

STALE_SECONDS = 5.0
"""A probe writes twice a second, idle or not; one that is silent for ten times as long has ended, or its engine hangs."""

_NS = 1e-9
_SHOWN = range(6, 18)
"""The buckets that are shown, from 8 us to 34 s: below lies a scheduler without requests, above nothing."""
_BOUNDS = (*(bound_ns(bucket) * _NS for bucket in _SHOWN), float("inf"))
_EXACT = (PREFIX + "steps_total", PREFIX + "busy_seconds_total")


class ProbeReader:
    """Looks for the files of one engine's probe in a folder."""

    def __init__(self, folder: Path) -> None:
        """Read below `folder`."""
        self._folder = folder

    def rows(self, now: float) -> list[dict[str, Any]]:
        """Return the numbers of each rank whose probe lives at `now` (Unix seconds), as a recording keeps them."""
        newest: dict[int, Block] = {}
        for path in sorted(self._folder.glob(f"*{SUFFIX}")):
            block = read_block(path)
            if block is not None and now - block.heartbeat < STALE_SECONDS:
                known = newest.get(block.rank)
                newest[block.rank] = block if known is None or block.start > known.start else known
        return [{"rank": rank, "start": block.start, "values": list(block.values)} for rank, block in sorted(newest.items())]


def overlay(reading: Reading, rows: Sequence[Mapping[str, Any]] | None) -> Reading:
    """Return the reading with the probe's exact numbers in place of what the page leads to; without `rows` no probe is configured."""
    if rows is None:
        return reading
    engine = next((value for sample in reading.samples for key, value in sample.labels if key == "engine"), reading.source)
    samples = list(reading.samples)
    histograms = list(reading.histograms)
    quality = dict(reading.quality)
    for row in rows:
        if len(row["values"]) != WIDTH:
            continue
        pairs = labels(engine=engine, rank=str(row["rank"]))
        samples = [sample for sample in samples if (sample.name, sample.labels) != (_EXACT[0], pairs)] + _samples(row["values"], pairs)
        histograms += _histograms(row["values"], pairs)
        for name in _EXACT:
            quality.pop((name, pairs), None)
    return replace(reading, samples=samples, histograms=histograms, quality=quality, missing=_missing(reading, histograms, engine))


def _samples(values: Sequence[int], pairs: Labels) -> list[Sample]:
    bound = [Sample(PREFIX + "step_bound_total", _with(pairs, "limit", name), float(values[LIMIT + i])) for i, name in enumerate(LIMITS)]
    steps, busy = float(values[STEPS]), busy_ns(values) * _NS
    return [Sample(_EXACT[0], pairs, steps), Sample(_EXACT[1], pairs, busy), *bound]


def _histograms(values: Sequence[int], pairs: Labels) -> list[Histogram]:
    found = []
    for number, phase in enumerate(PHASES):
        at = number * PHASE_WIDTH
        buckets = values[at : at + BUCKETS]
        counts = [float(sum(buckets[: bucket + 1])) for bucket in _SHOWN] + [float(sum(buckets))]
        name = PREFIX + "step_phase_seconds"
        found.append(Histogram(name, _with(pairs, "phase", phase), _BOUNDS, tuple(counts), values[at + BUCKETS] * _NS))
    return found


def _missing(reading: Reading, histograms: Sequence[Histogram], engine: str) -> list[Missing]:
    signal = PREFIX + "step_phase_seconds"
    others = [gap for gap in reading.missing if gap.signal != signal]
    if any(histogram.name == signal for histogram in histograms):
        return others
    detail = "no probe writes to the folder engines[].probe; see docs/engines.md"
    return [*others, Missing(signal, Reason.SOURCE_DOWN, detail, labels(engine=engine))]


def _with(pairs: Labels, key: str, value: str) -> Labels:
    return tuple(sorted((*pairs, (key, value))))
