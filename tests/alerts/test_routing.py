"""Alertmanager's example: who is woken, and what a cause silences."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from heptascope.rules.graph import closure
from heptascope.rules.load import load
from heptascope.surfaces.alerts.catalogue import alerting
from heptascope.surfaces.alerts.render import render
from heptascope.surfaces.alerts.routing import EQUAL
from heptascope.surfaces.alerts.settings import RenderSettings, load_settings
from support.alertmanager import Alertmanager, Webhook, running_alertmanager
from support.heptascope_process import until
from support.prometheus import program

RULES = {rule.name: rule for rule in load()}
CAUSES = [rule.name for rule in alerting(load()) if rule.explains and not rule.about_trace]
CONFIG: dict[str, Any] = yaml.safe_load(render(load(), RenderSettings())[Path("alertmanager.yaml")])
POD = {"cluster": "c", "namespace": "llm", "pod": "a-0", "instance": "10.0.0.1:17007", "job": "heptascope", "workload": "a"}


def _silences(source: str) -> list[set[str]]:
    """Return the targets of each inhibition whose source is the alert `source`."""
    mine = [rule for rule in CONFIG["inhibit_rules"] if f'alertname="{source}"' in rule["source_matchers"]]
    return [
        set(matcher.partition("=~")[2].strip('"').split("|"))
        for rule in mine
        for matcher in rule["target_matchers"]
        if "alertname" in matcher
    ]


@pytest.mark.parametrize("cause", CAUSES)
def test_a_cause_silences_what_it_explains(cause: str) -> None:
    """One inhibition per cause, with everything that it explains directly or through others, and nothing that explains it."""
    explained = {name for name in closure(cause, RULES) if name in RULES and name not in {r.name for r in load() if r.kind == "limiter"}}
    (targets,) = _silences(cause)
    assert explained == targets - {"PodSlowerThanPeers"}
    assert cause not in targets


def test_a_trace_silences_nobody() -> None:
    """What a sample of minutes ago shows may be silenced by live causes, but keeps no alert from anyone."""
    traced = [rule.name for rule in alerting(load()) if rule.about_trace]
    assert [] == [name for name in traced if _silences(name)]
    assert {"TraceLaunchGaps"} <= _silences("LaunchOverhead")[0]


def test_every_inhibition_is_about_one_pod() -> None:
    """Causes and consequences share the pod, whatever GPU or engine they are about; sources and targets are heptascope's."""
    pods = [rule for rule in CONFIG["inhibit_rules"] if rule["equal"] == list(EQUAL)]
    assert ["cluster", "namespace", "pod", "instance"] == list(EQUAL)
    assert len(CONFIG["inhibit_rules"]) == len(pods) + 1
    for rule in CONFIG["inhibit_rules"]:
        assert 'component="heptascope"' in rule["source_matchers"]
        assert 'component="heptascope"' in rule["target_matchers"]


def test_no_alert_silences_itself() -> None:
    """No alert is source and target of one inhibition: Alertmanager would let both pass."""
    for rule in CONFIG["inhibit_rules"][:-1]:
        source = next(m.partition("=")[2].strip('"') for m in rule["source_matchers"] if m.startswith("alertname"))
        target = next(m.partition("=~")[2].strip('"') for m in rule["target_matchers"] if m.startswith("alertname"))
        assert not re.fullmatch(target, source)


def test_the_inhibitor_silences_as_its_cause_does() -> None:
    """For each cause there is a second inhibition, from what outlives it, with the same targets."""
    lasting = {
        next(m for m in rule["source_matchers"] if m.startswith("cause=")): rule["target_matchers"]
        for rule in CONFIG["inhibit_rules"]
        if 'alertname="HeptascopeInhibitor"' in rule["source_matchers"]
    }
    direct = {
        f'cause="{name}"': rule["target_matchers"]
        for name in CAUSES
        for rule in CONFIG["inhibit_rules"]
        if f'alertname="{name}"' in rule["source_matchers"]
    }
    assert direct == lasting


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


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Alertmanager, Webhook]]:
    """Run the real Alertmanager with the rendered configuration, waits cut to a second, and a webhook."""
    with Webhook() as webhook:
        receivers = [f"receivers.{name}={webhook.url}/{name}" for name in ("page", "ticket", "context")]
        config = render(load(), load_settings(None, ["window=1s", *receivers]))[Path("alertmanager.yaml")]
        with running_alertmanager(tmp_path_factory.mktemp("alertmanager"), config) as server:
            yield server, webhook


def _alert(name: str, severity: str = "warning", **labels: str) -> dict[str, Any]:
    return {
        "labels": {**POD, "alertname": name, "severity": severity, "component": "heptascope", **labels},
        "annotations": {"summary": "s"},
    }


def _status(manager: Alertmanager, pod: str) -> dict[str, str]:
    """Return the state of each alert of a pod, as Alertmanager sees it."""
    return {alert["labels"]["alertname"]: alert["status"]["state"] for alert in manager.alerts() if alert["labels"].get("pod", "") == pod}


def test_a_gpu_silences_its_engine_and_no_other_pod(manager: tuple[Alertmanager, Webhook]) -> None:
    """The alert of a GPU reaches the engine on its pod, through others too; the same alert of another pod is sent."""
    server, webhook = manager
    gpu, engine = {"gpu": "0", "kind": "fault"}, {"engine": "vllm", "rank": "0"}
    other = {"pod": "b-0", "instance": "10.0.0.2:17007"}
    consequences = [_alert("InterTokenLatencyHigh", **engine), _alert("HostStepBound", "info", **engine)]
    server.post([_alert("GpuContention", **gpu), *consequences, _alert("InterTokenLatencyHigh", **engine, **other)])
    sent = until(lambda: [n for n in webhook.notices() if n.labels["pod"] in ("a-0", "b-0")] if len(webhook.notices()) > 1 else [])
    assert {("GpuContention", "a-0"), ("InterTokenLatencyHigh", "b-0")} == {(n.name, n.labels["pod"]) for n in sent}
    assert {"GpuContention": "active", "InterTokenLatencyHigh": "suppressed", "HostStepBound": "suppressed"} == _status(server, "a-0")


def test_alerts_without_a_pod_do_not_silence_each_other(manager: tuple[Alertmanager, Webhook]) -> None:
    """Outside of Kubernetes nothing has cluster, namespace or pod, which counts as equal: the instance still tells servers apart."""
    server, _ = manager
    bare = {"cluster": "", "namespace": "", "pod": ""}
    server.post(
        [
            _alert("KVCachePreemption", **bare, instance="x:1", engine="vllm", rank="0"),
            _alert("QueueGrowing", **bare, instance="x:1", engine="vllm", rank="0"),
            _alert("QueueGrowing", **bare, instance="y:1", engine="vllm", rank="0"),
        ]
    )
    states = until(lambda: found if len(found := [a for a in server.alerts() if "pod" not in a["labels"]]) == 3 else [])
    until(lambda: any(a["status"]["state"] == "suppressed" for a in server.alerts() if "pod" not in a["labels"]))
    shown = {(a["labels"]["alertname"], a["labels"]["instance"]): a["status"]["state"] for a in server.alerts() if "pod" not in a["labels"]}
    assert 3 == len(states)
    assert {("KVCachePreemption", "x:1"): "active", ("QueueGrowing", "x:1"): "suppressed", ("QueueGrowing", "y:1"): "active"} == shown


def test_the_inhibitor_holds_a_consequence_that_outlives_its_cause(manager: tuple[Alertmanager, Webhook]) -> None:
    """The cause has ended, its consequence fires on, and stays silent while the inhibitor stands; nobody hears of the inhibitor."""
    server, webhook = manager
    there = {"pod": "c-0", "instance": "10.0.0.3:17007"}
    server.post(
        [_alert("HeptascopeInhibitor", "none", cause="KVCachePreemption", **there), _alert("KVCacheExhausted", engine="vllm", **there)]
    )
    until(lambda: _status(server, "c-0") == {"HeptascopeInhibitor": "active", "KVCacheExhausted": "suppressed"})
    server.post([_alert("KVCacheExhausted", engine="vllm", **{**there, "pod": "d-0"})])
    until(lambda: [n for n in webhook.notices("d-0") if n.name == "KVCacheExhausted"])
    assert [] == webhook.notices("c-0")


def test_a_dead_exporter_silences_its_pod(manager: tuple[Alertmanager, Webhook]) -> None:
    """HeptascopeDown is all that is sent about a pod, though other alerts linger; a page about the deployment's budget is not touched."""
    server, webhook = manager
    there = {"pod": "e-0", "instance": "10.0.0.5:17007", "workload": "e"}
    budget = _alert(
        "TimeToFirstTokenErrorBudgetBurn", "critical", workload="e", slo="time_to_first_token", model="m", long="1h", short="5m"
    )
    for label in ("pod", "instance", "job"):
        del budget["labels"][label]
    server.post([_alert("HeptascopeDown", **there), _alert("GpuLost", "critical", gpu="0", **there), budget])

    def told() -> set[tuple[str, str]]:
        return {(n.receiver, n.name) for n in webhook.notices() if n.labels.get("workload") == "e"}

    until(lambda: len(told()) > 1)
    assert {("ticket", "HeptascopeDown"), ("page", "TimeToFirstTokenErrorBudgetBurn")} == told()
    assert {"HeptascopeDown": "active", "GpuLost": "suppressed"} == _status(server, "e-0")
