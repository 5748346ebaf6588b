"""The one verdict object that every command and the API print."""

from __future__ import annotations

import json

from heptascope.model import Missing, Reason, labels
from heptascope.rules.rule import TOPICS, EvidenceItem
from support.judging import KV, RUNNING, WAITING, WORK, A, Room, limiter, rule
from support.replays import verdict

CLAIM = {"rule", "layer", "topic", "kind", "severity", "entity", "confidence", "summary", "since", "evidence", "actions", "because"}
TOP = {"state", "confidence", "engine", "since", "time", "limiter", "faults", "consequences", "symptoms", "cannot_tell"}


def room() -> Room:
    """Return a room with a limiter, a fault with evidence, and a rule that cannot be judged."""
    shown = EvidenceItem(KV, ">", "full")
    fault = rule(expr=f"{KV} > $full", thresholds={"full": 0.9}, evidence=(shown, EvidenceItem(WAITING)), gain=KV, gain_text="of it")
    return Room(limiter("Dram", f"{RUNNING} > 0"), fault, rule("Cap", "heptascope_engine_sequence_limit > 0"), hold=0.0)


def test_the_object() -> None:
    """State, limiter, claims with evidence and next steps, and what could not be judged with its reasons; all of it is JSON."""
    lacking = Missing("heptascope_engine_sequence_limit", Reason.ENGINE, "the page does not tell it", A)
    made = room()
    made.see((RUNNING, A, 1.0), (WORK, A, 1.0), (KV, A, 0.95), (WAITING, A, 3.0), missing=(lacking,))
    found = json.loads(json.dumps(made.judge.verdict()))
    assert TOP == set(found)
    assert (("degraded", "a"), "Dram") == ((found["state"], found["engine"]), found["limiter"]["rule"])
    (fault,) = found["faults"]
    assert CLAIM | {"gain"} == set(fault)
    assert ("memory", "capacity", {"engine": "a", "rank": "0"}, "95% of it") == (
        fault["layer"],
        fault["topic"],
        fault["entity"],
        fault["gain"],
    )
    assert [
        {"signal": KV, "value": 0.95, "unit": "ratio", "threshold": 0.9, "comparison": ">"},
        {"signal": WAITING, "value": 3.0, "unit": ""},
    ] == fault["evidence"]
    (unknown,) = found["cannot_tell"]
    assert {"rule", "layer", "topic", "kind", "entity", "missing"} == set(unknown)
    assert [{"signal": lacking.signal, "reason": "engine", "detail": "the page does not tell it"}] == unknown["missing"]


def test_no_limiter_is_null() -> None:
    """An idle engine's limiter is null, not absent."""
    made = room()
    made.see((RUNNING, A, 0.0), (WORK, A, 0.0), (KV, A, 0.1))
    found = made.judge.verdict()
    assert found is not None
    assert ("idle", None) == (found["state"], found["limiter"])


def test_several_engines_add_a_list() -> None:
    """With several engines there is one such object for each inside."""
    made = room()
    made.see((RUNNING, A, 1.0), (WORK, A, 1.0), (RUNNING, labels(engine="b", rank="0"), 1.0))
    found = made.judge.verdict()
    assert found is not None
    assert TOP | {"engines"} == set(found)
    assert ["a", "b"] == [each["engine"] for each in found["engines"]]


def test_claims_of_recordings_have_topics_of_the_closed_list() -> None:
    """What real load gives has a topic of its layer, an entity, a summary, evidence with finite numbers."""
    for name in ("kv-severe", "tp2-straggler", "stream-flood", "mixed-over-sat"):
        found = verdict(name)
        claims = [found["limiter"], *found["faults"], *found["consequences"], *found["symptoms"]]
        allowed = {layer.value: topics for layer, topics in TOPICS.items()}
        assert [] == [c["rule"] for c in claims if c["topic"] not in allowed[c["layer"]] or not c["entity"] or not c["evidence"]]
        assert all(isinstance(e["value"], float) for c in claims for e in c["evidence"])
