"""Both NVML sources beside cards of scenario files: blanks, errors, calls that hang, a card that goes, a new MIG layout, an XID."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from heptascope.model import Reading
from support.gpu_rows import reasons, values
from support.nvml_scenario import NAMES, Scenario

_ABOUT = ("gpu", "instance", "xid")


@pytest.fixture(params=NAMES)
def scenario(request: pytest.FixtureRequest) -> Iterator[Scenario]:
    """Give each scenario in turn."""
    found = Scenario(request.param)
    yield found
    found.close()


def test_what_the_sources_say(scenario: Scenario) -> None:
    """At each time of the file each signal has the value that it says, or the reason for having none."""
    open_entries = list(scenario.expect)
    for second, *readings in scenario.play():
        due = [entry for entry in open_entries if entry["at"] == second]
        open_entries = [entry for entry in open_entries if entry["at"] != second]
        for entry in due:
            assert _wanted(entry) == _said(entry, [reading for reading in readings if reading is not None]), entry
    assert [] == open_entries


def _wanted(entry: dict[str, Any]) -> Any:
    return pytest.approx(entry["value"]) if "value" in entry else entry.get("reason", "absent")


def _said(entry: dict[str, Any], readings: list[Reading]) -> Any:
    """Return the value, else the reason, else that there is nothing of the signal."""
    pairs = {(label, entry[label]) for label in _ABOUT if label in entry}
    for reading in readings:
        for labels, value in values(reading, entry["signal"]).items():
            if pairs <= set(labels):
                return value
    whys = [str(m.reason) for reading in readings for m in reasons(reading, entry["signal"]) if pairs <= set(m.labels)]
    return whys[0] if whys else "absent"
