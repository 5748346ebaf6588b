"""A recording's label against a verdict: right, a wrong page, a miss, or no answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any


class Match(StrEnum):
    """How a verdict compares with a label."""

    RIGHT = "right"
    WRONG_PAGE = "wrong-page"
    MISSED = "missed"
    CANNOT_TELL = "cannot-tell"


def _claims(found: Any) -> list[str]:
    rows = [] if not found else found if isinstance(found, list) else [found]
    return [f"{row['layer']}/{row['topic']}" for row in rows]


def _accepted(claim: str, accepted: Sequence[str]) -> bool:
    return any(a in ("*", claim, claim.split("/")[0]) for a in accepted)


def compare(verdict: Mapping[str, Any], label: Mapping[str, Any]) -> Match:
    """Compare a verdict with a label (`state`, `limiter`, `fault`, `must_not`, `miss_ok`).

    A wrong page is a root fault that the label does not accept, or a fault or limiter that it forbids. A miss is another state, a
    limiter that is not accepted, no limiter on a healthy server, or no fault where one must be found.
    """
    faults, limiter = _claims(verdict.get("faults")), _claims(verdict.get("limiter"))
    forbidden = label.get("must_not", [])
    if any(not _accepted(c, label.get("fault", [])) for c in faults) or any(_accepted(c, forbidden) for c in faults + limiter):
        return Match.WRONG_PAGE
    state, states = verdict.get("state"), label.get("state", [])
    if state == "cannot-tell":
        return Match.CANNOT_TELL
    wanted = label.get("limiter", [])
    missed = (
        state not in states
        or (limiter and wanted and not _accepted(limiter[0], wanted))
        or (states == ["degraded"] and not faults and not label.get("miss_ok"))
        or (states == ["healthy"] and wanted and not limiter)
    )
    return Match.MISSED if missed else Match.RIGHT
