"""Thresholds that one rule takes from another: one number, one source, one place to change it."""

from __future__ import annotations

from pathlib import Path

import pytest

from heptascope.errors import UserError
from heptascope.rules.load import load, load_folder
from heptascope.rules.references import changed
from heptascope.surfaces.alerts.catalogue import layer_files
from heptascope.surfaces.alerts.settings import load_settings

TWO = """\
rules:
  - rule: Full
    layer: memory
    topic: capacity
    kind: fault
    entity: engine
    expr: heptascope_engine_kv_cache_usage_ratio > $full
    thresholds: {full: 0.9}
    source: {full: a guess}
    summary: It is full.
    evidence: [heptascope_engine_kv_cache_usage_ratio > full]
  - rule: Filling
    layer: memory
    topic: capacity
    kind: limiter
    entity: engine
    expr: heptascope_engine_kv_cache_usage_ratio > $full and heptascope_engine_kv_cache_usage_ratio > $most
    thresholds: {full: Full.full, most: 0.5}
    source: {most: half}
    summary: It fills.
    evidence: [heptascope_engine_kv_cache_usage_ratio > full]
"""


def _refusal(folder: Path, text: str) -> str:
    (folder / "3-memory.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        load_folder(folder)
    return str(caught.value).replace(f"{folder}/", "")


def test_number_and_source_are_those_of_the_other_rule(tmp_path: Path) -> None:
    """The source says whose it is."""
    (tmp_path / "3-memory.yaml").write_text(TWO, encoding="utf-8")
    filling = load_folder(tmp_path)[1]
    assert {"full": 0.9, "most": 0.5} == filling.thresholds
    assert {"full": "as Full: a guess", "most": "half"} == filling.source


THRESHOLD = "3-memory.yaml:12: rule Filling: threshold 'full' is that of"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("Full.full", "Ful.full", f"{THRESHOLD} Ful.full, and there is no such rule; did you mean 'Full'?"),
        ("Full.full", "Full.ful", f"{THRESHOLD} Full.ful, and that rule has no such threshold; did you mean 'full'?"),
        ("Full.full", "Filling.full", f"{THRESHOLD} Filling.full, and that rule takes it from another itself"),
        (
            "Full.full",
            "full",
            "3-memory.yaml:18: rule Filling: thresholds must be `name: number` or `name: OtherRule.threshold` lines",
        ),
        (
            "{most: half}",
            "{most: half, full: mine}",
            "3-memory.yaml:19: rule Filling: source must say where each threshold comes from: most",
        ),
    ],
)
def test_one_line_for_what_is_not_there(tmp_path: Path, old: str, new: str, line: str) -> None:
    """File, line, rule and remedy."""
    assert line == _refusal(tmp_path, TWO.replace(old, new))


def test_a_change_reaches_who_takes_the_threshold() -> None:
    """A limiter and its fault move together; the limiter's own change goes before."""
    rules = {rule.name: rule for rule in changed(load(), {"LaunchOverhead": {"gap": 0.7, "cores": 0.5}, "LaunchLimit": {"cores": 0.6}})}
    assert (0.7, 0.5) == tuple(rules["LaunchOverhead"].threshold(name) for name in ("gap", "cores"))
    assert (0.7, 0.6) == tuple(rules["LaunchLimit"].threshold(name) for name in ("gap", "cores"))


def test_an_alert_is_rendered_with_a_change() -> None:
    """The number is in the alert's expression."""
    files = layer_files(load(), load_settings(None, ["LaunchOverhead.gap=0.71"]))
    (found,) = (alert.expr for file in files for alert in file.alerts if alert.name == "LaunchOverhead")
    assert "> 0.71\n" in found


def test_no_limiter_types_a_threshold_of_its_fault_again() -> None:
    """Same topic, same name, same number: then one of the two refers to the other."""
    faults = {
        (rule.topic, name): value
        for rule in load()
        if rule.kind == "fault"
        for name, value in rule.thresholds.items()
        if name not in rule.shared
    }
    typed = {
        f"{rule.name}.{name}"
        for rule in load()
        if rule.kind == "limiter"
        for name, value in rule.thresholds.items()
        if name not in rule.shared and faults.get((rule.topic, name)) == value
    }
    assert set() == typed
