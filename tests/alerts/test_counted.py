"""`judge=sidecar`: alerts that count the sidecars' findings instead of evaluating every expression again."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from heptascope.errors import UserError
from heptascope.rules.load import load
from heptascope.surfaces.alerts.catalogue import alerting
from heptascope.surfaces.alerts.render import render, rule_files
from heptascope.surfaces.alerts.settings import load_settings
from support.prometheus import promtool

ENTITY = 'engine="vllm", rank="0", gpu=""'
POD = 'cluster="c", namespace="llm", pod="a", job="heptascope", instance="a:17007", workload="chat"'
FINDING = f'heptascope_finding{{rule="EagerMode", layer="operator", kind="fault", severity="warning", {ENTITY}, {POD}}}'


def _rules() -> dict[Path, str]:
    return render(load(), load_settings(None, ["judge=sidecar", "window=5m"]))


def test_every_alert_is_there_and_reads_its_layers_recording() -> None:
    """The same alerts as with Prometheus as the judge, in the same files; nothing but comparisons with earlier days is evaluated anew."""
    for file in rule_files(load(), load_settings(None, ["judge=sidecar"])):
        mine = [rule for rule in alerting(load()) if rule.layer.value == file.name]
        assert [rule.name for rule in mine] == [alert.name for alert in file.alerts if alert.name in {rule.name for rule in mine}]
        read = [f'share5m{{rule="{rule.name}"}}' in alert.expr for rule, alert in zip(mine, file.alerts, strict=False)]
        assert [not rule.needs_baseline for rule in mine] == read


def test_what_compares_with_earlier_days_is_left_to_prometheus() -> None:
    """No sidecar remembers a day, so that an alert on its finding could never fire: these are as with the other judge."""
    baseline = {rule.name for rule in alerting(load()) if rule.needs_baseline}
    found, usual = (
        {alert.name: alert for file in rule_files(load(), load_settings(None, changes)) for alert in file.alerts if alert.name in baseline}
        for changes in (["judge=sidecar", "StepTimeRegression.window=10m"], ["StepTimeRegression.window=10m"])
    )
    assert {"PrefixCacheCollapsed", "StepTimeRegression", "AcceptanceCollapsed"} == set(found)
    assert usual == found


def test_prometheus_reads_every_file(tmp_path: Path) -> None:
    """Promtool finds no fault in any of the files."""
    for path, text in _rules().items():
        if path.parent.name == "rules":
            (tmp_path / path.name).write_text(text, encoding="utf-8")
    done = promtool("check", "rules", "--lint=all", "--lint-fatal", *sorted(tmp_path.iterdir()))
    assert 0 == done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("findings", "alerts"), [("1x40", 1), ("_x40", 0), ("1x9 _ 1x9 _ 1x9 _ 1x9", 1), ("1 _ 1 _ 1 _ 1 _ 1 _ 1 _ 1 _ 1 _ 1 _ 1", 0)]
)
def test_a_rule_alerts_that_fires_for_most_of_the_window(tmp_path: Path, findings: str, alerts: int) -> None:
    """A dip is no end and a flicker is no beginning; the value is the share of the window's scrapes."""
    text = _rules()[Path("rules", "operator.yaml")]
    (tmp_path / "rules.yaml").write_text(text, encoding="utf-8")
    series = [
        {"series": FINDING, "values": findings},
        {"series": f'heptascope_build_info{{version="1", python="3.11", {POD}}}', "values": "1x60"},
    ]
    query = {"expr": 'count(ALERTS{alertname="EagerMode", alertstate="firing", engine="vllm", pod="a"})', "eval_time": "9m"}
    query["exp_samples"] = [{"labels": "{}", "value": 1}] if alerts else []
    story = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "15s",
        "tests": [{"interval": "15s", "input_series": series, "promql_expr_test": [query]}],
    }
    (tmp_path / "story.yaml").write_text(yaml.safe_dump(story), encoding="utf-8")
    done = promtool("test", "rules", tmp_path / "story.yaml")
    assert 0 == done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("change", ["EagerMode.window=10m", "KVCachePreemption.preemptions_per_second=1"])
def test_what_only_a_sidecar_can_change_is_refused(change: str) -> None:
    """A threshold that is rendered nowhere would be a silent nothing."""
    key = change.partition("=")[0]
    with pytest.raises(UserError, match=rf"--set {change}: {key} is judged in the sidecars"):
        rule_files(load(), load_settings(None, ["judge=sidecar", change]))


def test_severity_and_times_can_be_changed() -> None:
    """These are Prometheus' own."""
    changes = ["judge=sidecar", "EagerMode.severity=critical", "EagerMode.for=7m"]
    found = next(a for file in rule_files(load(), load_settings(None, changes)) for a in file.alerts if a.name == "EagerMode")
    assert ("critical", 420.0) == (found.labels["severity"], found.hold)
