"""Alertmanager's example: who is woken, and what a cause silences."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from heptascope.rules.graph import closure
from heptascope.rules.load import load
from heptascope.surfaces.alerts.catalogue import alerting
from heptascope.surfaces.alerts.render import render, rule_files
from heptascope.surfaces.alerts.routing import EQUAL, EQUAL_OF_ENGINE, inhibitions
from heptascope.surfaces.alerts.settings import RenderSettings, load_settings
from heptascope.surfaces.alerts.written import INHIBITOR
from support.prometheus import program

RULES = {rule.name: rule for rule in load()}
CAUSES = [rule.name for rule in alerting(load()) if rule.explains and not rule.about_trace]
CONFIG: dict[str, Any] = yaml.safe_load(render(load(), RenderSettings())[Path("alertmanager.yaml")])


RANK = {"critical": 2, "warning": 1, "info": 0}
SEVERITY = {alert.name: alert.labels["severity"] for file in rule_files(load(), RenderSettings()) for alert in file.alerts}
INHIBITIONS: list[dict[str, Any]] = CONFIG["inhibit_rules"][:-1]
"""All but the one between the alerts of a budget."""


def _asked(rule: dict[str, Any], side: str, label: str) -> list[str]:
    """Return the values that an inhibition wants a label of its source or target to have."""
    found = [re.fullmatch(rf'{label}=~?"(.*)"', matcher) for matcher in rule[f"{side}_matchers"]]
    return [value for match in found if match for value in match[1].split("|")]


def _silences(source: str, equal: tuple[str, ...] | None = None) -> set[str]:
    """Return the targets of the inhibitions whose source is the alert `source`, of all or of those with these labels in common."""
    mine = [
        rule for rule in INHIBITIONS if [source] == _asked(rule, "source", "alertname") and rule["equal"] == list(equal or rule["equal"])
    ]
    return {name for rule in mine for name in _asked(rule, "target", "alertname")}


@pytest.mark.parametrize("cause", CAUSES)
def test_a_cause_silences_what_it_explains(cause: str) -> None:
    """Everything that it explains directly or through others and that is no more severe than itself; nothing that explains it."""
    explained = {rule.name for rule in alerting(load())} & set(closure(cause, RULES))
    mild = {name for name in explained if RANK[SEVERITY[name]] <= RANK[SEVERITY[cause]]}
    assert mild == _silences(cause) - {"PodSlowerThanPeers"}
    assert cause not in _silences(cause)


def test_nothing_silences_what_is_more_severe() -> None:
    """No inhibition lets a severity reach a higher one, whatever severities the alerts have got where they were installed."""
    for rule in INHIBITIONS:
        (source,) = _asked(rule, "source", "severity") or _asked(rule, "source", "cause_severity")
        assert {name for name in RANK if RANK[name] <= RANK[source]} == set(_asked(rule, "target", "severity"))
        assert [] == [name for name in _asked(rule, "target", "alertname") if RANK[SEVERITY[name]] > RANK[source]]
    assert ("warning", "critical") == (SEVERITY["GpusMissing"], SEVERITY["EngineErrors"])
    assert {"XidErrors", "GpuLost", "EccUncorrected"} == {name for name in CAUSES if "EngineErrors" in _silences(name)}


def test_a_changed_severity_changes_what_is_silenced() -> None:
    """Rendered as critical, a cause silences critical consequences; rendered as info it silences no warning."""
    settings = load_settings(None, ["GpusMissing.severity=critical", "KVCachePreemption.severity=info"])
    files = rule_files(load(), settings)
    found = inhibitions(load(), files)
    assert "EngineErrors" in found["GpusMissing"]
    assert {"info"} == {SEVERITY[name] for name in found["KVCachePreemption"]}


def test_an_engine_silences_itself_alone() -> None:
    """Where cause and consequence are both about an engine, it is the same engine; a GPU's cause reaches all of its pod."""
    for rule in INHIBITIONS:
        (source,) = _asked(rule, "source", "cause") or _asked(rule, "source", "alertname")
        both = {
            source in RULES and RULES[source].entity == "engine" == RULES[name].entity
            for name in _asked(rule, "target", "alertname")
            if name in RULES
        }
        assert both <= {rule["equal"] == list(EQUAL_OF_ENGINE)}
    assert (set(), {"BusyWithoutWork"}) == (
        _silences("GpuContention", EQUAL_OF_ENGINE),
        _silences("GpuContention", EQUAL) & {"BusyWithoutWork"},
    )
    assert {"QueueGrowing"} == _silences("Overload", EQUAL_OF_ENGINE) & {"QueueGrowing"}


def test_alerts_about_engines_carry_their_engine() -> None:
    """The alerts that must share an engine have the label where promtool shows them firing, and no other alert has it but the inhibitor."""
    folder = Path(__file__).parents[2] / "alerts" / "tests"
    shown: dict[str, set[bool]] = {}
    for path in sorted(folder.glob("*.yaml")):
        for case in (
            case for test in yaml.safe_load(path.read_text(encoding="utf-8"))["tests"] for case in test.get("alert_rule_test", [])
        ):
            shown.setdefault(case["alertname"], set()).update("engine" in alert["exp_labels"] for alert in case.get("exp_alerts") or [])
    engines = {rule.name for rule in alerting(load()) if rule.entity == "engine"}
    assert {name: {name in engines} for name in SEVERITY if name != INHIBITOR} == {n: s for n, s in shown.items() if n != INHIBITOR}


def test_a_trace_silences_nobody() -> None:
    """What a sample of minutes ago shows may be silenced by live causes, but keeps no alert from anyone."""
    traced = [rule.name for rule in alerting(load()) if rule.about_trace]
    assert [] == [name for name in traced if _silences(name)]
    assert {"TraceLaunchGaps"} <= _silences("LaunchOverhead")


def test_every_inhibition_is_about_one_pod() -> None:
    """Causes and consequences share the pod, and the engine if both have one; sources and targets are heptascope's."""
    assert [["cluster", "namespace", "pod", "instance"], ["cluster", "namespace", "pod", "instance", "engine"]] == [
        list(EQUAL),
        list(EQUAL_OF_ENGINE),
    ]
    assert {EQUAL, EQUAL_OF_ENGINE} == {tuple(rule["equal"]) for rule in INHIBITIONS}
    for rule in CONFIG["inhibit_rules"]:
        assert 'component="heptascope"' in rule["source_matchers"]
        assert 'component="heptascope"' in rule["target_matchers"]


def test_no_alert_silences_itself() -> None:
    """No alert is source and target of one inhibition: Alertmanager would let both pass."""
    for rule in INHIBITIONS:
        assert [] == sorted(set(_asked(rule, "source", "alertname")) & set(_asked(rule, "target", "alertname")))


def test_the_inhibitor_silences_as_its_cause_does() -> None:
    """For each inhibition of a cause there is a second one, from what outlives it, with the same targets and labels in common."""
    lasting, direct = (
        [
            (_asked(rule, "source", name), _asked(rule, "source", severity), rule["target_matchers"], rule["equal"])
            for rule in INHIBITIONS
            if (_asked(rule, "source", "alertname") == [INHIBITOR]) is inhibitor and _asked(rule, "source", name) != ["HeptascopeDown"]
        ]
        for name, severity, inhibitor in (("cause", "cause_severity", True), ("alertname", "severity", False))
    )
    assert direct == lasting
    assert set(CAUSES) >= {name for (name,), *_ in lasting}


def test_amtool_likes_it(tmp_path: Path) -> None:
    """The real amtool reads the committed configuration."""
    path = Path(__file__).parents[2] / "alerts" / "alertmanager.yaml"
    done = subprocess.run([program("amtool"), "check-config", str(path)], capture_output=True, text=True, check=False, timeout=30)
    assert (0, True) == (done.returncode, "SUCCESS" in done.stdout), done.stdout + done.stderr


@pytest.mark.parametrize(("severity", "receiver"), [("critical", "page"), ("warning", "ticket"), ("info", "context"), ("none", "nobody")])
def test_severities_go_where_they_belong(severity: str, receiver: str) -> None:
    """The real amtool says who gets an alert of each severity."""
    path = Path(__file__).parents[2] / "alerts" / "alertmanager.yaml"
    labels = [f"severity={severity}", "component=heptascope", "alertname=X"]
    command = [program("amtool"), "config", "routes", "test", f"--config.file={path}", f"--verify.receivers={receiver}", *labels]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert 0 == done.returncode, done.stdout + done.stderr


def test_what_is_not_critical_waits_for_its_cause() -> None:
    """A window passes before a ticket is written, half a minute before someone is woken; groups are deployments."""
    waits = {route["receiver"]: route.get("group_wait") for route in CONFIG["route"]["routes"]}
    assert {"nobody": None, "page": "30s", "ticket": "5m", "context": "5m"} == waits
    assert ["cluster", "namespace", "workload"] == CONFIG["route"]["group_by"]
