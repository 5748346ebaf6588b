"""Inhibition in a real Alertmanager: what a cause silences there, and what is sent all the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from heptascope.rules.load import load
from heptascope.surfaces.alerts.render import render
from heptascope.surfaces.alerts.settings import load_settings
from support.alertmanager import Alertmanager, Webhook, running_alertmanager
from support.heptascope_process import until

POD = {"cluster": "c", "namespace": "llm", "pod": "a-0", "instance": "10.0.0.1:17007", "job": "heptascope", "workload": "a"}


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
        [
            _alert("HeptascopeInhibitor", "none", cause="KVCachePreemption", cause_severity="warning", engine="vllm", **there),
            _alert("KVCacheExhausted", engine="vllm", **there),
        ]
    )
    until(lambda: _status(server, "c-0") == {"HeptascopeInhibitor": "active", "KVCacheExhausted": "suppressed"})
    server.post([_alert("KVCacheExhausted", engine="vllm", **{**there, "pod": "d-0"})])
    until(lambda: [n for n in webhook.notices("d-0") if n.name == "KVCacheExhausted"])
    assert [] == webhook.notices("c-0")


def test_a_warning_keeps_no_page_back(manager: tuple[Alertmanager, Webhook]) -> None:
    """A missing GPU explains the errors of its engine, but is a ticket: the page is sent beside it, and milder consequences are not."""
    server, webhook = manager
    there = {"pod": "f-0", "instance": "10.0.0.6:17007", "workload": "f", "engine": "vllm", "rank": "0"}
    mild = [_alert("InterTokenLatencyHigh", **there), _alert("QueueGrowing", "info", **there)]
    server.post([_alert("GpusMissing", **there), _alert("EngineErrors", "critical", **there), *mild])
    until(lambda: {("ticket", "GpusMissing"), ("page", "EngineErrors")} <= {(n.receiver, n.name) for n in webhook.notices("f-0")})
    suppressed = {"GpusMissing": "active", "EngineErrors": "active", "InterTokenLatencyHigh": "suppressed", "QueueGrowing": "suppressed"}
    assert suppressed == _status(server, "f-0")


def test_a_severity_changed_at_the_installation_is_heeded(manager: tuple[Alertmanager, Webhook]) -> None:
    """A consequence that was made critical is sent; a cause that was made info silences no warning, nor does what outlives it."""
    server, webhook = manager
    raised = {"pod": "g-0", "instance": "10.0.0.7:17007", "workload": "g", "engine": "vllm", "rank": "0"}
    server.post([_alert("KVCachePreemption", **raised), _alert("TimeToFirstTokenHigh", "critical", **raised)])
    lowered = {**raised, "pod": "h-0", "instance": "10.0.0.8:17007", "workload": "h"}
    outlives = _alert("HeptascopeInhibitor", "none", **{**lowered, "cause": "KVCachePreemption", "cause_severity": "info"})
    server.post([_alert("KVCachePreemption", "info", **lowered), outlives, _alert("TimeToFirstTokenHigh", **lowered)])
    until(lambda: {"page"} == {n.receiver for n in webhook.notices("g-0") if n.name == "TimeToFirstTokenHigh"})
    until(lambda: {"ticket"} == {n.receiver for n in webhook.notices("h-0") if n.name == "TimeToFirstTokenHigh"})
    assert {"active"} == {*_status(server, "g-0").values(), *_status(server, "h-0").values()}


def test_two_engines_of_a_pod_do_not_silence_each_other(manager: tuple[Alertmanager, Webhook]) -> None:
    """An engine's cause, and what outlives it, silence the consequences on all ranks of that engine; the other engine's are sent."""
    server, webhook = manager
    pod = {"pod": "i-0", "instance": "10.0.0.9:17007", "workload": "i"}
    first, second = {**pod, "engine": "vllm-8000"}, {**pod, "engine": "vllm-8001"}
    outlives = _alert("HeptascopeInhibitor", "none", cause="LaunchOverhead", cause_severity="warning", **first)
    consequences = [
        _alert(name, rank=rank, **engine)
        for name in ("RecomputeTax", "EngineCoreSaturated")
        for rank, engine in (("1", first), ("0", second))
    ]
    server.post([_alert("KVCachePreemption", rank="0", **first), outlives, *consequences])
    until(lambda: len([n for n in webhook.notices("i-0") if n.labels["engine"] == "vllm-8001"]) > 1)
    shown = {
        (alert["labels"]["engine"], alert["status"]["state"])
        for alert in server.alerts()
        if "rank" in alert["labels"] and alert["labels"].get("pod") == "i-0" and alert["labels"]["alertname"] != "KVCachePreemption"
    }
    assert {("vllm-8000", "suppressed"), ("vllm-8001", "active")} == shown


def test_a_gpu_silences_every_engine_of_its_pod(manager: tuple[Alertmanager, Webhook]) -> None:
    """An alert about a GPU does not say whose it is, and silences the consequences on both engines of its pod."""
    server, _ = manager
    pod = {"pod": "j-0", "instance": "10.0.0.10:17007", "workload": "j"}
    server.post([_alert("GpuContention", gpu="0", **pod), *(_alert("Overload", engine=f"vllm-800{i}", rank="0", **pod) for i in (0, 1))])
    until(lambda: {"GpuContention": "active", "Overload": "suppressed"} == _status(server, "j-0"))
    shown = [a["status"]["state"] for a in server.alerts() if (a["labels"].get("pod"), a["labels"]["alertname"]) == ("j-0", "Overload")]
    assert ["suppressed", "suppressed"] == shown


def test_a_dead_exporter_silences_its_pod(manager: tuple[Alertmanager, Webhook]) -> None:
    """HeptascopeDown silences the warnings of its pod, which linger; a page is sent all the same, the pod's and the deployment's."""
    server, webhook = manager
    there = {"pod": "e-0", "instance": "10.0.0.5:17007", "workload": "e"}
    budget = _alert(
        "TimeToFirstTokenErrorBudgetBurn", "critical", workload="e", slo="time_to_first_token", model="m", long="1h", short="5m"
    )
    for label in ("pod", "instance", "job"):
        del budget["labels"][label]
    server.post([_alert("HeptascopeDown", **there), _alert("GpuLost", "critical", gpu="0", **there), _alert("EagerMode", **there), budget])

    def told() -> set[tuple[str, str]]:
        return {(n.receiver, n.name) for n in webhook.notices() if n.labels.get("workload") == "e"}

    until(lambda: len(told()) > 2)
    assert {("ticket", "HeptascopeDown"), ("page", "GpuLost"), ("page", "TimeToFirstTokenErrorBudgetBurn")} == told()
    assert {"HeptascopeDown": "active", "GpuLost": "active", "EagerMode": "suppressed"} == _status(server, "e-0")
