"""Rendering: what is committed is current, everything can be changed, and a mistake is one line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from heptascope import cli
from heptascope.errors import UserError
from heptascope.model import Layer, RuleKind
from heptascope.quantities import prometheus_duration
from heptascope.rules.load import load
from heptascope.surfaces.alerts.model import POD, Alert
from heptascope.surfaces.alerts.render import render, rule_files
from heptascope.surfaces.alerts.settings import RenderSettings, load_settings
from heptascope.surfaces.alerts.words import phrases
from support.prometheus import promtool

REPOSITORY = Path(__file__).parents[2]
RULES = {rule.name: rule for rule in load()}
JOINED = ", ".join((*POD, "workload"))


def _alerts(*changes: str) -> dict[str, Alert]:
    return {alert.name: alert for file in rule_files(load(), load_settings(None, changes)) for alert in file.alerts}


def test_what_is_committed_is_current(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """`heptascope rules render` in the repository would change nothing, pages and index included."""
    monkeypatch.chdir(REPOSITORY)
    assert (0, "") == (cli.run(["rules", "render", "--check"]), capsys.readouterr().out)


def test_there_is_a_file_for_each_layer_and_purpose() -> None:
    """Seven layers, recordings, objectives, the fleet, heptascope itself, and Alertmanager."""
    names = {*(layer.value for layer in Layer), "recording", "slo", "fleet", "heptascope"}
    assert {Path("rules", f"{name}.yaml") for name in names} | {Path("alertmanager.yaml")} == set(render(load(), RenderSettings()))


def test_faults_and_symptoms_alert_and_limiters_do_not() -> None:
    """Each fault and symptom is an alert of its own name, in its layer's file, those that need a baseline too; a limiter is none."""
    wanted = {(rule.layer.value, rule.name) for rule in RULES.values() if rule.kind is not RuleKind.LIMITER}
    assert wanted == {
        (file.name, alert.name) for file in rule_files(load(), RenderSettings()) for alert in file.alerts if alert.name in RULES
    }
    assert {"PrefixCacheCollapsed", "StepTimeRegression", "AcceptanceCollapsed"} <= {name for _, name in wanted}


def test_the_expression_is_the_one_that_runs_in_process() -> None:
    """But for the window and the pod's labels an alert asks exactly what the sidecar asks."""
    for name, alert in _alerts("window=10s").items():
        if name in RULES:
            assert alert.expr.replace(f"{JOINED}, ", "").replace(JOINED, "") == RULES[name].text("10s"), name


def test_labels_and_times_are_the_rules() -> None:
    """Severity, layer, topic and kind come from the catalogue; an alert ends as slowly as it begins."""
    for name, alert in _alerts().items():
        if name not in RULES:
            continue
        rule = RULES[name]
        wanted = {"severity": rule.severity, "component": "heptascope", "layer": rule.layer, "topic": rule.topic, "kind": rule.kind}
        assert (wanted, rule.hold, rule.hold, rule.summary) == (dict(alert.labels), alert.hold, alert.keep, alert.annotations["summary"])


def test_every_rule_has_its_phrase() -> None:
    """What the value of each alert says is written for each rule, and for no other."""
    assert [name for name, rule in RULES.items() if rule.kind is not RuleKind.LIMITER] == list(phrases())


def test_windows_are_minutes() -> None:
    """By default every range of a catalogue alert is five minutes: four scrape intervals of a minute and a little."""
    found = {window for name, alert in _alerts().items() if name in RULES for window in re.findall(r"\[(\d+[a-z]+)\]", alert.expr)}
    assert {"5m"} == found


CHANGES = {
    "KVCachePreemption.preemptions_per_second=0.25": lambda a: "> 0.25" in a["KVCachePreemption"].expr,
    "KVCachePreemption.severity=critical": lambda a: a["KVCachePreemption"].labels["severity"] == "critical",
    "KVCachePreemption.for=5m": lambda a: (a["KVCachePreemption"].hold, a["KVCachePreemption"].keep) == (300.0, 300.0),
    "KVCachePreemption.window=10m": lambda a: "[10m]" in a["KVCachePreemption"].expr and "[5m]" in a["RecomputeTax"].expr,
    "KVCachePreemption.enabled=false": lambda a: "KVCachePreemption" not in a and "RecomputeTax" in a,
    "window=2m": lambda a: "[2m]" in a["RecomputeTax"].expr,
    "hold=30s": lambda a: a["StepTimeRegression"].hold == 30.0,
    "job=llm": lambda a: 'up{job="llm"}' in a["HeptascopeDown"].expr,
    "workload_label=deployment": lambda a: (
        "instance, deployment, engine" in a["RecomputeTax"].expr
        and "$labels.deployment" in a["EngineVersionSkew"].annotations["description"]
    ),
    "runbooks=https://wiki.example/r": lambda a: a["GpuLost"].annotations["runbook_url"] == "https://wiki.example/r/GpuLost.md",
    "ReplicaImbalance.factor=3": lambda a: "3 * avg" in a["ReplicaImbalance"].expr,
    "HeptascopeDown.for=10m": lambda a: a["HeptascopeDown"].hold == 600.0,
    "AvailabilityErrorBudgetBurn.events_per_second=1": lambda a: "> 1" in a["AvailabilityErrorBudgetBurn"].expr,
}


@pytest.mark.parametrize("change", CHANGES)
def test_everything_can_be_changed(change: str) -> None:
    """A threshold, a severity, a time, a window, a name: `--set` reaches it, and it was otherwise before."""
    assert (True, False) == (CHANGES[change](_alerts(change)), CHANGES[change](_alerts()))


def test_objectives_can_be_changed(tmp_path: Path) -> None:
    """A promise moves the bucket, an objective the limit; promtool still likes the file."""
    settings = load_settings(None, ["slo.time_to_first_token.seconds=2.5", "slo.availability.objective=0.95"])
    text = render(load(), settings)[Path("rules/slo.yaml")]
    assert (True, True) == ('time_to_first_token_seconds_bucket{le="2.5"}' in text, "vector(0.95)" in text)
    (tmp_path / "slo.yaml").write_text(text, encoding="utf-8")
    done = promtool("check", "rules", "--lint=all", "--lint-fatal", tmp_path / "slo.yaml")
    assert 0 == done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0, "0ms"), (0.25, "250ms"), (1.5, "1500ms"), (1.0, "1s"), (90.0, "90s"), (300.0, "5m"), (7200.0, "2h")]
)
def test_durations_have_no_fractions(seconds: float, text: str) -> None:
    """Prometheus reads whole numbers only, whatever people write."""
    assert text == prometheus_duration(seconds)


def test_times_with_fractions_are_rendered_as_prometheus_reads_them(tmp_path: Path) -> None:
    """`for`, windows and recorded names hold no fractions, so that promtool takes every file, whoever judges."""
    for judge in ("prometheus", "sidecar"):
        settings = load_settings(None, [f"judge={judge}", "window=2.5s", "hold=1.5s", "HeptascopeDown.for=0.5m"])
        texts = render(load(), settings)
        assert "for: 1500ms\n" in texts[Path("rules/memory.yaml")]
        assert "group_wait: 2500ms\n" in texts[Path("alertmanager.yaml")]
        paths = [tmp_path / path.name for path in texts if path.parent.name == "rules"]
        for path in paths:
            path.write_text(texts[Path("rules", path.name)], encoding="utf-8")
        done = promtool("check", "rules", "--lint=all", "--lint-fatal", *paths)
        assert 0 == done.returncode, done.stdout + done.stderr


def test_the_share_of_an_objective_can_be_changed_alone() -> None:
    """Who is content with fewer good events keeps the promise as it was, and the other way round."""
    usual, share, seconds = (
        load_settings(None, changes).slo.time_to_first_token
        for changes in ([], ["slo.time_to_first_token.objective=0.95"], ["slo.time_to_first_token.seconds=5s"])
    )
    assert (usual.seconds, 0.95, 5.0, usual.objective) == (share.seconds, share.objective, seconds.seconds, seconds.objective)


def test_set_goes_before_the_values_file(tmp_path: Path) -> None:
    """A values file holds changes to single alerts below `rules`; the command line has the last word."""
    values = tmp_path / "values.yaml"
    values.write_text("window: 10m\nrules:\n  Overload: {for: 7m, severity: critical}\n", encoding="utf-8")
    settings = load_settings(values, ["Overload.for=3m"])
    overload = next(alert for file in rule_files(load(), settings) for alert in file.alerts if alert.name == "Overload")
    assert (180.0, "critical", True) == (overload.hold, overload.labels["severity"], "[10m]" in overload.expr)


MISTAKES = {
    "KVCachePremption.for=5m": "--set KVCachePremption.for=5m: no such alert 'KVCachePremption'; did you mean KVCachePreemption?",
    "KVCachePreemption.rate=5": "--set KVCachePreemption.rate=5: KVCachePreemption has no 'rate'; allowed: ",
    "KVCachePreemption.severity=page": "no such severity 'page'; allowed: critical, warning, info",
    "KVCachePreemption.preemptions_per_second=many": "KVCachePreemption.preemptions_per_second: 'many' is not a number",
    "KVCachePreemption.preemptions_per_second=.inf": "KVCachePreemption.preemptions_per_second: inf is not a number",
    "KVCachePreemption.window=0s": "KVCachePreemption.window: '0s' is not between 1s and 6h",
    "KVCachePreemption.for=99999h": "KVCachePreemption.for: '99999h' is not between 0s and 720h",
    "hold=99999h": "hold: must be less than or equal to 2592000",
    "workload_label=pod": "workload_label: a label of something else; choose one that names the deployment",
    "receivers.page=https://": "receivers.page: not a URL; write https://...",
    "ReplicaImbalance.window=10m": "ReplicaImbalance has no 'window'; allowed: factor, requests, replicas, severity, for, enabled",
    "GpuLost.window=10m": "GpuLost has no 'window'",
    "AvailabilityErrorBudgetBurn.window=2h": "AvailabilityErrorBudgetBurn has no 'window'; ",
    "KVCachePreemption.for=soon": "KVCachePreemption.for: 'soon' is not a duration; write 100ms, 1s, 5m or 1h",
    "KVCachePreemption.enabled=3": "KVCachePreemption.enabled: 3 is neither true nor false",
    "windw=5m": "--set windw=5m: unknown key 'windw'; did you mean window?",
    "slo.availability.seconds=1": "unknown key 'slo.availability.seconds'; allowed: objective",
    "slo=3": "--set slo=3: slo is not a section; allowed below it: time_to_first_token, inter_token_latency, availability",
    "slo.availability.objective=1": "slo.availability.objective: must be less than 1",
    "receivers.page=nobody": "receivers.page: not a URL; write https://...",
    "window": "--set window: cannot read this change; write RULE.threshold=number or key=value",
    "window=[": "--set window=[: cannot read the value '['",
    "window.x.y=1": "window: not a duration",
}


@pytest.mark.parametrize("change", MISTAKES)
def test_a_mistake_is_one_line(change: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """What is wrong, where, and what to do; exit status 2, and nothing is written."""
    assert 2 == cli.run(["rules", "render", "--out", str(tmp_path / "out"), "--set", change])
    said = capsys.readouterr().err
    assert (1, True, False) == (said.count("\n"), MISTAKES[change] in said, (tmp_path / "out").exists()), said


def test_a_mistake_in_a_file_has_its_line(tmp_path: Path) -> None:
    """The line of the values file is named."""
    values = tmp_path / "values.yaml"
    values.write_text("rules:\n  Overload:\n    fro: 7m\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"values.yaml:3: Overload has no 'fro'; did you mean for\?"):
        rule_files(load(), load_settings(values))


def test_rendering_writes_and_says_how_much(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The first run writes every file, the second none; a changed file is written again, and `--check` names it before."""
    out = tmp_path / "alerts"
    assert 0 == cli.run(["rules", "render", "--out", str(out)])
    assert 0 == cli.run(["rules", "render", "--out", str(out)])
    assert [f"12 files in {out}, 12 of them written", f"12 files in {out}, 0 of them written"] == capsys.readouterr().out.splitlines()
    (out / "rules" / "slo.yaml").write_text("groups: []\n", encoding="utf-8")
    assert 1 == cli.run(["rules", "render", "--out", str(out), "--check"])
    assert f"{out / 'rules' / 'slo.yaml'} is not current\n" == capsys.readouterr().out


def test_a_place_that_cannot_be_written_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A file where a folder should be is a mistake of the user, not a traceback."""
    (tmp_path / "taken").write_text("", encoding="utf-8")
    assert 2 == cli.run(["rules", "render", "--out", str(tmp_path / "taken")])
    assert "cannot write: " in capsys.readouterr().err


def test_a_place_that_cannot_be_read_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A folder where a file should be is a mistake of the user, not a traceback."""
    (taken := tmp_path / "rules" / "slo.yaml").mkdir(parents=True)
    assert 2 == cli.run(["rules", "render", "--out", str(tmp_path)])
    assert f"heptascope: {taken}: cannot read: Is a directory\n" == capsys.readouterr().err


def test_annotations_survive_yaml() -> None:
    """What Prometheus reads from a file is what was meant: templates, quotes, and expressions of several lines."""
    for path, text in render(load(), RenderSettings()).items():
        read: dict[str, Any] = yaml.safe_load(text)
        if path.parent.name == "rules":
            file = next(f for f in rule_files(load(), RenderSettings()) if f.name == path.stem)
            assert file.as_dict() == read
