"""What only several ranks together show: who comes last to the collectives, clock skew, pipeline bubbles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heptascope.sources.trace.analyze import Analysed
from heptascope.sources.trace.calls import spread
from heptascope.sources.trace.events import Int
from heptascope.sources.trace.intervals import Union, union
from heptascope.sources.trace.measures import Arrival, Group, seconds

NOISE = 5_000
"""Nanoseconds: arrivals closer than this are not told apart (timestamps of two GPUs agree to about a microsecond)."""
SAME_GROUP = 50_000
"""Nanoseconds: ranks whose collectives' ends disagree by more than this after alignment are not in one group."""
_FEWEST = 8  # matched collectives that make a group
_LAGS = 64  # how many collectives one trace may have begun earlier than another
_SLACK = 8  # as many more than the difference of their numbers
_SAMPLED = 4000  # collectives compared to find the lag

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Calls:
    """One rank's collectives in order: absolute begins and ends by kind of collective."""

    index: int
    by_key: dict[Key, tuple[Int, Int]]

    @property
    def count(self) -> int:
        return sum(len(start) for start, _ in self.by_key.values())


def groups(ranks: Sequence[Analysed]) -> list[Group]:
    """Find the groups of ranks that take part in the same collectives, and who came last in them."""
    waiting = [_Calls(i, _by_key(rank)) for i, rank in enumerate(ranks)]
    waiting = [calls for calls in waiting if calls.count >= _FEWEST]
    found = []
    while waiting:
        first, *rest = waiting
        matches = {calls.index: match for calls in rest if (match := _match(first, calls)) is not None}
        if matches:
            found.append(_group(ranks, first, [calls for calls in rest if calls.index in matches], matches))
        waiting = [calls for calls in rest if calls.index not in matches]
    return found


def _by_key(rank: Analysed) -> dict[Key, tuple[Int, Int]]:
    """Collect collectives by kernel and process group; what passes data between two ranks has no common begin."""
    trace = rank.trace
    gpu, groups = trace.gpu, ["", *trace.groups]
    rows = np.flatnonzero(rank.talk.rows & ~rank.talk.point_to_point)
    keys: dict[Key, list[int]] = {}
    for row in rows.tolist():
        keys.setdefault((trace.names[gpu.name[row]], groups[gpu.group[row] + 1]), []).append(row)
    return {key: (gpu.start[mine] + trace.base_ns, gpu.end[mine] + trace.base_ns) for key, mine in keys.items()}


@dataclass(frozen=True, slots=True)
class _Match:
    """Which of two ranks' collectives belong together: for each kind the first common one of either, and how many."""

    pairs: dict[Key, tuple[int, int, int]]
    offset: int
    residual: int


def _match(one: _Calls, other: _Calls) -> _Match | None:
    """Pair the collectives of two ranks; None if their ends do not agree."""
    pairs: dict[Key, tuple[int, int, int]] = {}
    apart: list[Int] = []
    for key in one.by_key.keys() & other.by_key.keys():
        ends, others = one.by_key[key][1], other.by_key[key][1]
        lag = _lag(ends, others)
        begin, begin_other = max(lag, 0), max(-lag, 0)
        count = min(len(ends) - begin, len(others) - begin_other)
        pairs[key] = (begin, begin_other, count)
        apart.append(others[begin_other : begin_other + count] - ends[begin : begin + count])
    differences = np.concatenate(apart) if apart else np.empty(0, np.int64)
    if len(differences) < _FEWEST:
        return None
    offset = int(np.median(differences))
    residual = int(np.median(np.abs(differences - offset)))
    return _Match(pairs, offset, residual) if residual <= SAME_GROUP else None


def _lag(ends: Int, others: Int) -> int:
    """Return how many collectives the first rank recorded before the second one's first (negative: the other way round)."""
    best, best_spread = 0, float("inf")
    most = min(abs(len(ends) - len(others)) + _SLACK, _LAGS)
    for lag in sorted(range(-most, most + 1), key=abs):
        a, b = ends[max(lag, 0) :][:_SAMPLED], others[max(-lag, 0) :][:_SAMPLED]
        count = min(len(a), len(b))
        if count < min(len(ends), len(others)) // 2 or not count:
            continue
        apart = b[:count] - a[:count]
        deviation = float(np.median(np.abs(apart - np.median(apart))))
        if deviation < best_spread / 2:  # collectives of one kind come at regular times, so nearly as good is no better
            best, best_spread = lag, deviation
    return best


def _group(ranks: Sequence[Analysed], first: _Calls, others: list[_Calls], matches: dict[int, _Match]) -> Group:
    members = [first, *others]
    begins = np.concatenate([_common(key, first, others, matches) for key in first.by_key], axis=1)
    last = begins.max(axis=0)
    order = np.sort(begins, axis=0)
    margin = order[-1] - order[-2]
    waited = last - begins
    who = np.where(margin > NOISE, begins.argmax(axis=0), -1)
    offsets = [0, *(matches[calls.index].offset for calls in others)]
    arrivals = [_arrival(ranks[m.index], waited[i], margin[who == i], begins.shape[1]) for i, m in enumerate(members)]
    names = [ranks[m.index].measures.rank for m in members]
    residual = max(matches[calls.index].residual for calls in others)
    return Group(names, arrivals, {name: seconds(offset) for name, offset in zip(names, offsets, strict=True)}, seconds(residual))


def _common(key: Key, first: _Calls, others: list[_Calls], matches: dict[int, _Match]) -> Int:
    """Return the aligned begins of the collectives of one kind that all members have, a row for each member."""
    if any(key not in matches[calls.index].pairs for calls in others):
        return np.empty((len(others) + 1, 0), np.int64)
    pairs = [matches[calls.index].pairs[key] for calls in others]
    begin = max(p[0] for p in pairs)
    count = min(p[0] + p[2] for p in pairs) - begin
    rows = [first.by_key[key][0][begin : begin + count]]
    for calls, (own, theirs, _) in zip(others, pairs, strict=True):
        at = begin - own + theirs
        rows.append(calls.by_key[key][0][at : at + count] - matches[calls.index].offset)
    return np.vstack(rows)


def _arrival(rank: Analysed, waited: Int, late_by: Int, matched: int) -> Arrival:
    total = int(waited.sum())
    last = len(late_by)
    ratio = total / rank.work.wall if rank.work.wall else 0.0
    return Arrival(rank.measures.rank, matched, last, last / matched if matched else 0.0, spread(late_by), seconds(total), ratio)


def bubbles(ranks: Sequence[Analysed], skew: dict[str, float]) -> dict[str, float]:
    """Return for each rank the share of the run in which it computed nothing while another rank did.

    Only for runs that pass data from stage to stage; elsewhere every wait for a collective would count.
    """
    if len(ranks) < 2 or not any(bool(rank.talk.point_to_point.any()) for rank in ranks):
        return {}
    busy = [_aligned(rank, skew.get(rank.measures.rank, 0.0)) for rank in ranks]
    some = [one for one in busy if len(one.start)]
    if not some:
        return {}
    start, end = min(int(one.start[0]) for one in some), max(int(one.end[-1]) for one in some)
    shares = {}
    for i, rank in enumerate(ranks):
        others = [one for j, one in enumerate(busy) if j != i]
        elsewhere = union(np.concatenate([o.start for o in others]), np.concatenate([o.end for o in others]))
        shares[rank.measures.rank] = (elsewhere.length - elsewhere.common(busy[i])) / (end - start)
    return shares


def _aligned(rank: Analysed, skew: float) -> Union:
    shift = rank.trace.base_ns - round(skew * 1e9)
    compute = rank.talk.compute
    return Union(compute.start + shift, compute.end + shift, compute.before)
