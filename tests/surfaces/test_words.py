"""The verdict in one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from heptascope.surfaces.words import headline

LIMITER = {
    "rule": "DramBandwidth",
    "layer": "hardware",
    "topic": "dram",
    "summary": "DRAM bandwidth bounds the engine.",
    "actions": ["Quantise."],
}
FAULT = {
    "rule": "KVCachePreemption",
    "layer": "memory",
    "topic": "preemption",
    "summary": "Requests are preempted.",
    "actions": ["More blocks.", "x"],
}
SYMPTOM = {"rule": "TimeToFirstTokenHigh", "layer": "application", "topic": "slo", "summary": "First tokens come late."}


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        ({"state": "healthy", "limiter": LIMITER}, ("healthy", "DRAM bandwidth bounds the engine.", ["Next: Quantise."])),
        (
            {"state": "degraded", "limiter": LIMITER, "faults": [FAULT], "symptoms": [SYMPTOM]},
            ("degraded", "Requests are preempted.", ["Next: More blocks.", "Limiter: DRAM bandwidth bounds the engine."]),
        ),
        ({"state": "degraded", "symptoms": [SYMPTOM]}, ("degraded", "First tokens come late.", [])),
        (
            {"state": "degraded", "faults": [FAULT, SYMPTOM]},
            ("degraded", "Requests are preempted.", ["Next: More blocks.", "Also: First tokens come late."]),
        ),
        ({"state": "idle", "limiter": None, "faults": []}, ("idle", "No requests are running.", [])),
        (
            {"state": "cannot-tell", "cannot_tell": [{}, {}]},
            ("cannot-tell", "Too little can be read to judge.", ["2 rules could not be judged, because signals are missing."]),
        ),
        ({"state": "healthy", "limiter": {"rule": "R", "layer": "memory", "topic": "t"}}, ("healthy", "R (memory/t)", [])),
    ],
)
def test_headline(verdict: dict[str, Any], expected: tuple[str, str, list[str]]) -> None:
    """Faults come before the limiter, symptoms only stand alone, and the first claim gives the next step."""
    assert expected == headline(verdict)
