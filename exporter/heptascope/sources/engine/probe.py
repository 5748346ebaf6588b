"""What the in-engine probe wrote: read from its files, and laid over what the page says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import Any

from heptascope.model import Histogram, Labels, Missing, Reading, Reason, Sample, labels
from heptascope.sources.engine.names import PREFIX, PROBED
from heptascope.vllm_probe.layout import (
    BUCKETS,
    DECODE,
    FRONT,
    FRONT_AT,
    FRONTEND,
    LIMIT,
    LIMITS,
    PHASE_WIDTH,
    PHASES,
    PREFILL,
    RECOMPUTED,
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
_KINDS = {"prefill": PREFILL, "decode": DECODE}


class ProbeReader:
    """Looks for the files of one engine's probe in a folder."""

    def __init__(self, folder: Path) -> None:
        """Read below `folder`."""
        self._folder = folder

    def rows(self, now: float) -> list[dict[str, Any]]:
        """Return the numbers of each rank and each front end whose probe lives at `now` (Unix seconds), as a recording keeps them."""
        newest: dict[int, Block] = {}
        fronts: list[Block] = []
        for path in sorted(self._folder.glob(f"*{SUFFIX}")):
            block = read_block(path)
            if block is None or now - block.heartbeat >= STALE_SECONDS:
                continue
            if block.role == FRONTEND:
                fronts.append(block)
            elif block.rank not in newest or block.start > newest[block.rank].start:
                newest[block.rank] = block
        rows = [{"rank": rank, "start": block.start, "values": list(block.values)} for rank, block in sorted(newest.items())]
        return rows + [{"frontend": block.pid, "start": block.start, "values": list(block.values)} for block in fronts]


def overlay(reading: Reading, rows: Sequence[Mapping[str, Any]] | None) -> Reading:
    """Return the reading with the probe's exact numbers in place of what the page leads to; without `rows` no probe is configured."""
    if rows is None:
        return reading
    engine = next((value for sample in reading.samples for key, value in sample.labels if key == "engine"), reading.source)
    samples = list(reading.samples)
    histograms = list(reading.histograms)
    quality = dict(reading.quality)
    for row in (row for row in rows if len(row["values"]) == WIDTH):
        if "frontend" in row:
            pairs = labels(engine=engine, rank=_lone_rank(reading))
            histograms += _front_histograms(row["values"], pairs, f"{row['frontend']}-{row['start']}")
            continue
        pairs = labels(engine=engine, rank=str(row["rank"]))
        samples = [sample for sample in samples if (sample.name, sample.labels) != (_EXACT[0], pairs)] + _samples(row["values"], pairs)
        histograms += _phase_histograms(row["values"], pairs)
        for name in _EXACT:
            quality.pop((name, pairs), None)
    found = {sample.name for sample in samples} | {histogram.name for histogram in histograms}
    return replace(reading, samples=samples, histograms=histograms, quality=quality, missing=_missing(reading, found, engine))


def _lone_rank(reading: Reading) -> str:
    """Return the rank of what all ranks share: that of the only one, or none if there are several."""
    ranks = {value for sample in reading.samples for key, value in sample.labels if key == "rank"}
    return ranks.pop() if len(ranks) == 1 else ""


def _samples(values: Sequence[int], pairs: Labels) -> list[Sample]:
    split = [Sample(PREFIX + "batch_tokens_total", _with(pairs, "kind", k), float(values[at])) for k, at in _KINDS.items()]
    bound = [Sample(PREFIX + "step_bound_total", _with(pairs, "limit", name), float(values[LIMIT + i])) for i, name in enumerate(LIMITS)]
    steps, busy = float(values[STEPS]), busy_ns(values) * _NS
    again = Sample(PREFIX + "recomputed_tokens_total", pairs, float(values[RECOMPUTED]))
    return [Sample(_EXACT[0], pairs, steps), Sample(_EXACT[1], pairs, busy), again, *split, *bound]


def _phase_histograms(values: Sequence[int], pairs: Labels) -> list[Histogram]:
    places = enumerate(PHASES)
    return [_histogram("step_phase_seconds", _with(pairs, "phase", phase), values, number * PHASE_WIDTH) for number, phase in places]


def _front_histograms(values: Sequence[int], pairs: Labels, part: str) -> list[Histogram]:
    places = enumerate(FRONT)
    return [_histogram(f"frontend_{what}_seconds", pairs, values, FRONT_AT + number * PHASE_WIDTH, part) for number, what in places]


def _histogram(signal: str, pairs: Labels, values: Sequence[int], at: int, part: str = "") -> Histogram:
    buckets = values[at : at + BUCKETS]
    counts = [float(sum(buckets[: bucket + 1])) for bucket in _SHOWN] + [float(sum(buckets))]
    return Histogram(PREFIX + signal, pairs, _BOUNDS, tuple(counts), values[at + BUCKETS] * _NS, part)


def _missing(reading: Reading, found: AbstractSet[str], engine: str) -> list[Missing]:
    probed = {PREFIX + name for name in PROBED}
    others = [gap for gap in reading.missing if gap.signal not in probed]
    detail = "no probe writes to the folder engines[].probe; see docs/engines.md"
    return others + [Missing(signal, Reason.SOURCE_DOWN, detail, labels(engine=engine)) for signal in sorted(probed - found)]


def _with(pairs: Labels, key: str, value: str) -> Labels:
    return tuple(sorted((*pairs, (key, value))))
