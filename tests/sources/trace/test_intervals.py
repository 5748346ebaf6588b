"""Unions of intervals against the plain way: counting every nanosecond."""

from __future__ import annotations

import numpy as np
import pytest

from heptascope.sources.trace.intervals import percentile, union


def _marks(start: list[int], end: list[int]) -> set[int]:
    return {t for a, b in zip(start, end, strict=True) for t in range(a, b)}


def _random(seed: int) -> tuple[list[int], list[int]]:
    dice = np.random.default_rng(seed)
    start = dice.integers(0, 200, dice.integers(0, 12)).tolist()
    return start, [a + int(dice.integers(0, 20)) for a in start]


@pytest.mark.parametrize("seed", range(60))
def test_union_covers_what_any_interval_covers(seed: int) -> None:
    """Length, cover of ranges and common length agree with counting."""
    first, second = _random(seed), _random(seed + 1000)
    one, other = union(*(np.array(side, np.int64) for side in first)), union(*(np.array(side, np.int64) for side in second))
    marks, others = _marks(*first), _marks(*second)
    edges = np.arange(0, 230, 7)
    assert len(marks) == one.length
    assert [len([t for t in marks if a <= t < a + 7]) for a in edges] == one.within(edges, edges + 7).tolist()
    assert len(marks & others) == one.common(other)


def test_intervals_that_touch_become_one() -> None:
    """Two intervals that touch leave no hole between them."""
    merged = union(np.array([0, 10, 30]), np.array([10, 20, 40]))
    assert ([0, 30], [20, 40]) == (merged.start.tolist(), merged.end.tolist())
    assert ([20], [30]) == tuple(part.tolist() for part in merged.holes())


def test_bridge_closes_short_holes_only() -> None:
    """A hole of exactly the bridge's length is closed, a longer one is not."""
    merged = union(np.array([0, 15, 26]), np.array([10, 20, 30]), bridge=5)
    assert [0, 26] == merged.start.tolist()


@pytest.mark.parametrize(("q", "expected"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.0, 1)])
def test_percentile_is_the_nearest_rank(q: float, expected: int) -> None:
    """Of 1 to 100 the p-th percentile is p."""
    assert expected == percentile(np.arange(100, 0, -1), q)
