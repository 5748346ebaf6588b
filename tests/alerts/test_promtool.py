"""Every alert under the real promtool: its story, both sides of each threshold, and each of its signals missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from heptascope.model import Layer
from heptascope.rules import promql
from heptascope.rules.load import load
from heptascope.surfaces.alerts.catalogue import alerting
from heptascope.surfaces.alerts.model import Alert, RuleFile
from heptascope.surfaces.alerts.render import render, rule_files
from heptascope.surfaces.alerts.settings import RenderSettings, load_settings
from heptascope.surfaces.alerts.yaml_text import to_yaml
from support.alert_oracle import timeline
from support.alert_tests import FOLDER, documents
from support.prometheus import promtool
from support.promtool_series import Situation, on_pod, situation, window_of, written
from support.rule_cases import JUDGED, RULES, boundary_cases, firing_case

BY_HAND = ("baseline", "fleet", "heptascope", "recording", "slo")
IN_PROCESS = ("window=10s", "hold=3s")
SAMPLES = 32
"""Seconds that the in-process cases last, and one more: ranges of Prometheus 2 reach one sample further back."""

HARDWARE_STATE = ("GpuLost", "GpuRecoveryWanted", "GpusMissing", "KVCacheSmallerThanRequest", "ProfilingStuck", "RowRemapPending")
"""Alerts about a state that is wrong whether anybody works or not."""

FILES = rule_files(load(), load_settings(None, IN_PROCESS))
ALERTS: dict[str, Alert] = {alert.name: alert for file in FILES for alert in file.alerts}
CATALOGUE = [rule.name for rule in alerting(load())]


@cache
def _committed() -> dict[str, Any]:
    return {path.stem: yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader) for path in sorted(FOLDER.glob("*.yaml"))}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_committed_tests_pass(path: Path) -> None:
    """The rule files as committed pass the tests that are committed beside them."""
    done = promtool("test", "rules", path)
    assert 0 == done.returncode, done.stdout + done.stderr


def test_stories_are_current() -> None:
    """`make reference` makes them so."""
    assert {} == {path.name: "not current" for path, text in documents().items() if path.read_text(encoding="utf-8") != text}
    assert sorted([*(layer.value for layer in Layer), *BY_HAND]) == sorted(path.stem for path in FOLDER.glob("*.yaml"))


def test_every_alert_is_seen_silent_and_firing() -> None:
    """Each alert of each rule file has looks at which it must be silent, and others at which it must fire."""
    looks = [look for content in _committed().values() for test in content["tests"] for look in test.get("alert_rule_test", ())]
    names = {alert.name for file in rule_files(load(), RenderSettings()) for alert in file.alerts}
    assert names == {look["alertname"] for look in looks if look.get("exp_alerts")}
    assert names == {look["alertname"] for look in looks if not look.get("exp_alerts")} | (names & set(HARDWARE_STATE))


def test_stories_show_that_an_idle_server_pages_nobody() -> None:
    """Of the pods without work only those have an alert whose hardware or configuration is wrong by itself."""
    fired = {
        look["alertname"]
        for layer in Layer
        for test in _committed()[layer.value]["tests"]
        for look in test["alert_rule_test"]
        for alert in look.get("exp_alerts", ())
        if alert["exp_labels"]["pod"] == "idle"
    }
    assert set(HARDWARE_STATE) == fired


def _cases(alert: Alert) -> Iterator[tuple[str, Situation, bool]]:
    """Yield pod name, situation, and whether the alert must fire: each side of each threshold, and each signal missing."""
    for number, case in enumerate([firing_case(alert.name), *boundary_cases(alert.name)]):
        yield f"case-{number}", situation(case.entries, [alert.expr]), case.fires
    whole = situation(firing_case(alert.name).entries, [alert.expr])
    expression = promql.compile(alert.expr)
    for metric in dict.fromkeys(name for name, _ in whole):
        needed = bool(expression.missing(lambda selector, gone=metric: selector.metric != gone))
        if needed:
            yield f"without-{metric.removeprefix('heptascope_')}", {key: one for key, one in whole.items() if key[0] != metric}, False


def _as_test(alert: Alert, cases: Sequence[tuple[str, Situation, bool]]) -> dict[str, Any]:
    """Return one promtool test in which each case is a pod of its own; what must fire is worked out here, by pod."""
    rows = written([({key: one for pod, situation, _ in cases for key, one in on_pod(pod, situation).items()}, SAMPLES)], 1.0)
    firing = timeline(alert, window_of(rows, 1.0), SAMPLES, 1.0)[-1]
    fired = {dict(labels)["pod"] for labels in firing}
    assert {pod for pod, _, fires in cases if fires} == fired, f"{alert.name}: {fired}"
    look = {"eval_time": f"{SAMPLES - 1}s", "alertname": alert.name, "exp_alerts": list(firing.values())}
    series = [{"series": row.series, "values": row.text} for row in rows]
    return {"name": alert.name, "interval": "1s", "input_series": series, "alert_rule_test": [look]}


@pytest.mark.parametrize("file", [file for file in FILES if file.name in set(Layer)], ids=lambda file: file.name)
def test_thresholds_and_missing_signals(file: RuleFile, tmp_path: Path) -> None:
    """On each side of each threshold an alert does as the rule in-process; without a signal it is silent; pods do not mix."""
    text = render(load(), load_settings(None, IN_PROCESS))[Path("rules", f"{file.name}.yaml")]
    (tmp_path / "rules.yaml").write_text(text, encoding="utf-8")
    alerts = [alert for alert in file.alerts if alert.name in JUDGED]
    tests = [_as_test(alert, list(_cases(alert))) for alert in alerts]
    document = {"rule_files": ["rules.yaml"], "evaluation_interval": "1s", "tests": tests}
    (tmp_path / "tests.yaml").write_text(to_yaml(document), encoding="utf-8")
    done = promtool("test", "rules", tmp_path / "tests.yaml")
    assert 0 == done.returncode, done.stdout + done.stderr


def test_every_catalogue_alert_has_boundary_data() -> None:
    """Only rules that compare with earlier days are left to the tests written by hand."""
    assert [name for name in CATALOGUE if not RULES[name].needs_baseline] == [
        name for name in CATALOGUE if name in JUDGED and name in ALERTS
    ]
