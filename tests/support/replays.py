"""Verdicts of recordings, whole or with something taken away, each worked out once in a test run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from heptascope.config import Settings
from heptascope.labels import Match, compare
from heptascope.model import FindingState
from heptascope.offline import judge_recording, passes
from heptascope.rules.diagnose import Diagnoser
from heptascope.rules.findings import finding_key
from heptascope.sources.recording import Recording
from heptascope.sources.replay import replay_readings
from heptascope.wiring import build_pipeline
from support.dashboard_told import told
from support.degrade import DEGRADATIONS, degraded
from support.recordings import all_recordings
from support.untraced import untraced

WHOLE = "whole"
TOLD = "told"
"""With the server's command line, which the recordings themselves leave out."""
Json = Mapping[str, Any]


@cache
def verdict(name: str, change: str = WHOLE) -> Json:
    """Return the verdict of a recording's steady window, as it is or degraded by one of DEGRADATIONS."""
    with untraced():
        return judge_recording(opened(name, change), Settings())


def opened(name: str, change: str = WHOLE) -> Recording:
    """Open a recording, as it is, with the server's command line, or degraded."""
    if change == TOLD:
        return told(name)
    source = all_recordings()[name]
    return Recording.open(source) if change == WHOLE else degraded(source, DEGRADATIONS[change])


@cache
def states(name: str, change: str = WHOLE) -> Mapping[int, Mapping[str, tuple[FindingState, bool]]]:
    """Return by second and finding the state, and whether it stands although signals are missing, of a recording or a degraded one."""
    pipeline = build_pipeline(Settings(), {})
    judge = pipeline.judge
    assert isinstance(judge, Diagnoser)
    with untraced():
        return {
            round(found.t): {finding_key(f): (f.state, bool(f.spared)) for f in judge.findings}
            for found in passes(replay_readings(opened(name, change)), pipeline)
        }


def match(name: str, change: str = WHOLE) -> Match:
    """Return how the verdict compares with the recording's label."""
    label = Recording.open(all_recordings()[name]).label
    assert label is not None
    return compare(verdict(name, change), label)


def claims(found: Json) -> set[str]:
    """Return every rule that a verdict names: as limiter, fault, consequence or symptom."""
    limiter = [found["limiter"]] if found["limiter"] else []
    return {claim["rule"] for claim in (*limiter, *found["faults"], *found["consequences"], *found["symptoms"])}


def unknown(found: Json) -> dict[str, set[str]]:
    """Return the reasons why rules could not be judged, by rule."""
    reasons: dict[str, set[str]] = {}
    for rule in found["cannot_tell"]:
        reasons.setdefault(rule["rule"], set()).update(m["reason"] for m in rule["missing"])
    return reasons
