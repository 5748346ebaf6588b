"""A verdict against a recording's label: right, a wrong page, a miss, no answer."""

from __future__ import annotations

from typing import Any

import pytest

from heptascope.labels import Match, compare

RIGHT, WRONG, MISSED, UNKNOWN = Match.RIGHT, Match.WRONG_PAGE, Match.MISSED, Match.CANNOT_TELL


def label(*state: str, **other: Any) -> dict[str, Any]:
    """Return a label; what is not said is empty."""
    return {"state": list(state), "limiter": [], "fault": [], "must_not": [], "miss_ok": False, **other}


def verdict(state: str, limiter: str = "", *faults: str) -> dict[str, Any]:
    """Return a verdict with claims as layer/topic."""
    rows = [dict(zip(("layer", "topic"), claim.split("/"), strict=True)) for claim in (limiter, *faults) if claim]
    return {"state": state, "limiter": rows[0] if limiter else None, "faults": rows[1:] if limiter else rows}


DECODE = label("healthy", limiter=["hardware/dram"], must_not=["memory", "operator"])
CAPPED = label("degraded", limiter=["scheduling", "hardware/dram"], fault=["scheduling/sequence-cap"], must_not=["memory"])
EITHER = label("healthy", "degraded", fault=["speculative"], miss_ok=True)
IDLE = label("idle", must_not=["*"])


@pytest.mark.parametrize(
    ("found", "by", "match"),
    [
        (verdict("healthy", "hardware/dram"), DECODE, RIGHT),
        (verdict("healthy", "hardware/compute"), DECODE, MISSED),
        (verdict("healthy"), DECODE, MISSED),
        (verdict("idle"), DECODE, MISSED),
        (verdict("cannot-tell"), DECODE, UNKNOWN),
        (verdict("cannot-tell", "hardware/compute"), DECODE, UNKNOWN),
        (verdict("degraded", "hardware/dram", "hardware/thermal"), DECODE, WRONG),
        (verdict("healthy", "memory/capacity"), DECODE, WRONG),
        (verdict("cannot-tell", "memory/capacity"), DECODE, WRONG),
        (verdict("degraded", "scheduling/sequence-cap", "scheduling/sequence-cap"), CAPPED, RIGHT),
        (verdict("degraded", "hardware/dram", "scheduling/sequence-cap"), CAPPED, RIGHT),
        (verdict("degraded", "", "scheduling/sequence-cap"), CAPPED, RIGHT),
        (verdict("degraded", "hardware/dram", "scheduling/overload"), CAPPED, WRONG),
        (verdict("degraded", "hardware/dram", "scheduling/sequence-cap", "memory/capacity"), CAPPED, WRONG),
        (verdict("degraded", "hardware/dram"), CAPPED, MISSED),
        (verdict("healthy", "hardware/dram"), CAPPED, MISSED),
        (verdict("healthy", "hardware/dram"), EITHER, RIGHT),
        (verdict("degraded", "", "speculative/overhead"), EITHER, RIGHT),
        (verdict("degraded"), EITHER, RIGHT),
        (verdict("degraded", "", "memory/capacity"), EITHER, WRONG),
        (verdict("idle"), IDLE, RIGHT),
        (verdict("idle", "hardware/dram"), IDLE, WRONG),
        (verdict("healthy"), IDLE, MISSED),
    ],
)
def test_matches(found: dict[str, Any], by: dict[str, Any], match: Match) -> None:
    """A claim is accepted by layer or by layer and topic; a forbidden or unexpected one is a wrong page, whatever the state."""
    assert match is compare(found, by)


def test_a_label_that_says_little() -> None:
    """What a label leaves out asks for nothing and forbids nothing, but a fault is still unexpected."""
    assert (RIGHT, WRONG) == (
        compare(verdict("healthy", "a/b"), {"state": ["healthy"]}),
        compare(verdict("degraded", "", "a/b"), {"state": ["degraded"]}),
    )
