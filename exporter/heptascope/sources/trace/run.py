"""From files to runs: which traces are ranks of one run, which are to be compared, and the measures of each run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from heptascope.errors import UserError
from heptascope.sources.trace import ranks as between
from heptascope.sources.trace.analyze import Analysed, analyse
from heptascope.sources.trace.events import Trace
from heptascope.sources.trace.measures import Run

SKEW_NOTED = 1e-3
"""Seconds: a larger clock skew between ranks is mentioned."""


def measure(traces: Sequence[Trace]) -> Run:
    """Measure the ranks of one run. Raises UserError if nothing ran on a GPU in any of them."""
    parts = [part for trace in traces for part in trace.per_device()]
    used = [part for part in parts if len(part.gpu)]
    if not used:
        return Run([analyse(part, "0").measures for part in parts])  # raises: there is nothing to measure
    ranks = [analyse(part, name) for part, name in zip(used, _names(used), strict=True)]
    groups = between.groups(ranks)
    skew = {name: offset for group in groups for name, offset in group.skew.items()}
    return Run([rank.measures for rank in ranks], groups, between.bubbles(ranks, skew), [*_empty(parts), *_skewed(ranks, skew)])


def _names(parts: Sequence[Trace]) -> list[str]:
    """Name the ranks: by the profiler's rank where that is unique, by GPU otherwise, by order at last."""
    by_rank = [None if part.rank is None else str(part.rank) for part in parts]
    by_device = [str(part.device) for part in parts]
    for names in (by_rank, by_device):
        known = [name for name in names if name is not None]
        if len(set(known)) == len(parts):
            return known
    return [str(i) for i in range(len(parts))]


def _empty(parts: Iterable[Trace]) -> list[str]:
    return [f"{part.path} has no GPU activity and is left out" for part in parts if not len(part.gpu)]


def _skewed(ranks: Sequence[Analysed], skew: dict[str, float]) -> list[str]:
    far = {rank.measures.rank: skew[rank.measures.rank] for rank in ranks if abs(skew.get(rank.measures.rank, 0.0)) > SKEW_NOTED}
    return [
        f"the clock of rank {rank} is off by {offset * 1e3:+.3f} ms; its times were aligned by the collectives' ends"
        for rank, offset in far.items()
    ]


def runs(traces: Sequence[Trace]) -> list[list[Trace]]:
    """Part traces into runs, in the order given.

    Two traces are ranks of one run if the profiler numbered them differently within worlds of the same size and their
    recordings overlap in time. All others are runs of their own.
    """
    found: list[list[Trace]] = []
    for trace in traces:
        home = next((run for run in found if all(_same_run(trace, other) for other in run)), None)
        if home is None:
            found.append([trace])
        else:
            home.append(trace)
    return found


def _same_run(one: Trace, other: Trace) -> bool:
    if None in (one.rank, other.rank) or one.rank == other.rank or one.world_size != other.world_size:
        return False
    begin, end = _span(one)
    other_begin, other_end = _span(other)
    return begin < other_end and other_begin < end


def _span(trace: Trace) -> tuple[int, int]:
    """Return when a trace was recorded, in absolute nanoseconds."""
    if not len(trace.gpu):
        return (0, 0)
    return int(trace.gpu.start.min()) + trace.base_ns, int(trace.gpu.end.max()) + trace.base_ns


def choose(found: Sequence[Sequence[Trace]], compare: bool, one_run: bool) -> list[list[Trace]]:
    """Return one run to measure, or two to compare: as the flags say, else as `runs` found. Raises UserError on any other number."""
    if one_run:
        return [[trace for run in found for trace in run]]
    if compare and len(found) == 1 and len(found[0]) == 2:
        return [[trace] for trace in found[0]]
    if len(found) > 2 or (compare and len(found) != 2):
        what = f"{_number(len(found), 'run')} in {_number(sum(len(run) for run in found), 'file')}"
        raise UserError(what, hint="give one run, two runs to compare, or --ranks if all are ranks of one run")
    return [list(run) for run in found]


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
