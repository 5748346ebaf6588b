"""Each rule just on the silent side of each of its thresholds, exactly on it, and just past it."""

from __future__ import annotations

import pytest

from heptascope.model import FindingState
from support.rule_cases import JUDGED, RULES, Case, boundary_cases, entries, findings, fires, firing_case


def _states(case: Case) -> dict[str, str]:
    return {str(f.instance.pairs): f"{f.state} {[m.signal for m in f.missing]}" for f in findings(case)}


def test_every_rule_has_its_data() -> None:
    """A rule without data for its boundaries, and data without a rule, fail here; files are named like the catalogue's."""
    assert sorted(JUDGED) == sorted(entries())
    assert [] == [name for name, entry in entries().items() if not RULES[name].where.startswith(entry["file"])]


@pytest.mark.parametrize("name", JUDGED)
def test_every_threshold_has_its_cases(name: str) -> None:
    """A threshold without a case on each side of it fails here."""
    assert sorted(RULES[name].thresholds) == sorted(entries()[name].get("thresholds", {}))


@pytest.mark.parametrize("name", JUDGED)
def test_fires(name: str) -> None:
    """With the signals of its data a rule fires."""
    case = firing_case(name)
    assert fires(case), _states(case)


@pytest.mark.parametrize("name", JUDGED)
def test_boundaries(name: str) -> None:
    """Around each threshold a rule is silent, silent, firing, in the direction that its data names; and it is judged, not unknown."""
    wrong = [str(case) for case in boundary_cases(name) if fires(case) is not case.fires]
    assert [] == wrong, [(str(case), case.fires, _states(case)) for case in boundary_cases(name) if str(case) in wrong]


@pytest.mark.parametrize("name", JUDGED)
def test_silence_is_known(name: str) -> None:
    """On the silent side of a threshold a rule is clear, for its signals are there; what stands in for absent ones does not clear it."""
    silent = [case for case in boundary_cases(name) if not case.fires]
    unknown = [str(case) for case in silent if all(f.state is FindingState.CANNOT_TELL for f in findings(case))]
    assert [str(case) for case in silent if case.unknown] == unknown
