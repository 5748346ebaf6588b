"""The state of every rule at an instant that has passed."""

from __future__ import annotations

import pytest

from heptascope.model import FindingState, Missing, Reason
from heptascope.rules.instances import Instance
from heptascope.rules.judge import Finding
from heptascope.rules.load import load
from heptascope.surfaces.web import states
from heptascope.surfaces.web.states import States


def test_states_are_those_of_the_instant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes are kept, a detail that counts seconds is none, and past the limit the oldest go with the time before them."""
    rule, nobody = load()[0], Instance("gpu", (), ())
    kept = States()

    def note(t: float, state: FindingState, detail: str = "", *, gone: bool = False) -> None:
        missing = (Missing("signal", Reason.STALE, detail),) if detail else ()
        kept.note([] if gone else [Finding(rule, nobody, state, since=t if not detail else 0.0, missing=missing)], t)
        kept.forget(t - 600)

    note(100.0, FindingState.CANNOT_TELL, "1 s old")
    note(101.0, FindingState.CANNOT_TELL, "2 s old")
    note(102.0, FindingState.FIRING)
    note(103.0, FindingState.FIRING, gone=True)
    assert [] == kept.at(99.9)
    assert [(FindingState.CANNOT_TELL, "1 s old")] == [(f.state, f.missing[0].detail) for f in kept.at(101.9)]
    assert [FindingState.FIRING] == [f.state for f in kept.at(102.0)]
    assert [] == kept.at(103.0)
    note(702.5, FindingState.CLEAR)
    assert [FindingState.FIRING] == [f.state for f in kept.at(102.7)]
    assert [] == kept.at(101.9)
    monkeypatch.setattr(states, "MOST_CHANGES", 2)
    for t in range(710, 720):
        note(float(t), FindingState.CLEAR)
    assert [717.0] == [f.since for f in kept.at(717.5)]
    assert [] == kept.at(716.5)
