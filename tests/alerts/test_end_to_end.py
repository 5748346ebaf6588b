"""From the engine's load to the person: recordings at real speed, through heptascope, Prometheus and Alertmanager, to a webhook.

One run of a minute and a half for all tests of this module. Pod `kv` is healthy, then its KV cache is too small, then it is healthy
again; `eager` runs without CUDA graphs until its heptascope is killed; `busy` serves well all the time, scraped by the same Prometheus.
Rules are rendered with the window and the hold that the sidecar itself uses.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest

from heptascope.rules.load import load
from heptascope.surfaces.alerts.catalogue import alerting
from support.alert_world import HOLD_SECONDS, INTERVAL_SECONDS, WINDOW_SECONDS, World, demo, go_on, playing, world
from support.alertmanager import Notice
from support.heptascope_process import until

pytestmark = pytest.mark.timeout(300)

WARM_SECONDS = WINDOW_SECONDS + HOLD_SECONDS + 2 * INTERVAL_SECONDS
"""After this the windows are full, in-process and in Prometheus."""

WAIT_SECONDS = 90.0
RULES = {rule.name for rule in load()}
ALERTING = {rule.name for rule in alerting(load())}


@dataclass
class Run:
    """What happened: notices in the end, Alertmanager's view while all was bad, and what Prometheus recorded."""

    notices: list[Notice] = field(default_factory=list)
    silenced: dict[str, list[str]] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    alerts: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    findings: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    scrapes: dict[str, list[float]] = field(default_factory=dict)
    unhealthy: list[str] = field(default_factory=list)
    turned: float = 0.0
    killed: float = 0.0
    back: float = 0.0

    def told(self, pod: str, status: str = "firing") -> set[str]:
        """Return the alerts that someone was told about a pod."""
        return {notice.name for notice in self.notices if notice.labels.get("pod") == pod and notice.status == status}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Let it all happen once."""
    folder = tmp_path_factory.mktemp("world")
    for name in ("kv", "watch"):
        (folder / name).mkdir()
    with (
        playing("decode-c64", "kv-severe", folder=folder / "kv") as kv,
        demo("eager-b8", folder / "eager") as eager,
        demo("prefix-hot", folder / "busy") as busy,
        world(folder / "watch", {"kv": kv, "eager": eager, "busy": busy}) as watched,
    ):
        yield happen(watched)


def happen(watched: World) -> Run:
    """Go through the story and write down what is seen."""
    run, began = Run(), time.time()
    until(lambda: watched.values('heptascope_engine_has_work{pod="kv-0"} == 1'))
    time.sleep(max(0.0, began + WARM_SECONDS - time.time()))
    run.turned = go_on(watched.daemons["kv"])
    _wait(watched, "eager-0", "LaunchOverhead", "firing")
    _wait(watched, "kv-0", "KVCachePreemption", "firing")
    until(lambda: _silenced(watched, "kv-0"))
    run.silenced = {pod: _silenced(watched, pod) for pod in ("kv-0", "eager-0")}
    run.states = _states(watched)
    watched.daemons["eager"].process.send_signal(signal.SIGKILL)
    run.killed = time.time()
    run.back = go_on(watched.daemons["kv"])
    _wait(watched, "eager-0", "HeptascopeDown", "firing")
    _wait(watched, "kv-0", "KVCachePreemption", "resolved")
    run.notices = watched.webhook.notices()
    run.alerts = _samples(watched, 'ALERTS{component="heptascope", alertstate="firing"}', "alertname")
    run.findings = _samples(watched, "heptascope_finding", "rule")
    run.scrapes = {pod: times for (pod, _), times in _samples(watched, "up", "job").items()}
    groups = watched.prometheus.api("/api/v1/rules")["data"]["groups"]
    run.unhealthy = [f"{rule['name']}: {rule['lastError']}" for group in groups for rule in group["rules"] if rule["health"] == "err"]
    return run


def _wait(watched: World, pod: str, name: str, status: str) -> None:
    until(lambda: any((n.name, n.status) == (name, status) for n in watched.webhook.notices(pod)), WAIT_SECONDS)


def _silenced(watched: World, pod: str) -> list[str]:
    """Return the alerts of a pod that Alertmanager keeps back."""
    known = [alert for alert in watched.alertmanager.alerts() if alert["labels"].get("pod") == pod]
    return sorted(alert["labels"]["alertname"] for alert in known if alert["status"]["inhibitedBy"])


def _states(watched: World) -> dict[str, str]:
    """Return each pod's verdict, from the sidecar."""
    return {pod: daemon.json("/api/v1/verdict")["state"] for pod, daemon in watched.daemons.items()}


def _samples(watched: World, series: str, label: str) -> dict[tuple[str, str], list[float]]:
    """Return the times of all samples of some series, by pod and a label."""
    result: list[dict[str, Any]] = watched.prometheus.query(f"{series}[10m]", time.time())["data"]["result"]
    found: dict[tuple[str, str], list[float]] = {}
    for item in result:
        key = (item["metric"].get("pod", ""), item["metric"].get(label, ""))
        found.setdefault(key, []).extend(float(t) for t, _ in item["values"])
    return {key: sorted(times) for key, times in found.items()}


def _begins(times: list[float], after: float) -> float:
    return next(t for t in times if t > after)


def test_the_root_reaches_the_person_and_nothing_else_does(run: Run) -> None:
    """KV pressure is one alert, and so is eager mode; what follows from them is known to Alertmanager and kept back."""
    assert ({"KVCachePreemption"}, {"KVCachePreemption"}) == (run.told("kv-0"), run.told("kv-0", "resolved"))
    assert {"LaunchOverhead", "HeptascopeDown"} == run.told("eager-0")
    assert {"RecomputeTax"} <= set(run.silenced["kv-0"])
    assert {"EngineCoreSaturated"} <= set(run.silenced["eager-0"])


def test_a_ticket_is_written_for_a_warning(run: Run) -> None:
    """Each notice came in at the receiver of its severity, with a description that was filled in and a page to read."""
    assert {"ticket"} == {notice.receiver for notice in run.notices}
    for notice in run.notices:
        assert notice.annotations["runbook_url"].endswith(f"/{notice.name}.md")
        assert ("{{" in notice.annotations["description"], notice.labels["pod"] in notice.annotations["description"]) == (False, True)


def test_a_healthy_busy_server_pages_nobody(run: Run) -> None:
    """A pod that serves well beside the others is told about to nobody, and no rule of the catalogue fires for it."""
    assert set() == run.told("busy-0")
    assert [] == sorted(name for pod, name in run.alerts if pod == "busy-0" and name in RULES)


def test_before_it_turned_the_pod_paged_nobody(run: Run) -> None:
    """The same pod under a healthy load had no alert."""
    assert [] == sorted(name for (pod, name), times in run.alerts.items() if pod == "kv-0" and name in RULES and times[0] < run.turned)


def test_the_sidecars_agree(run: Run) -> None:
    """What the page said at that moment is what was alerted."""
    assert {"kv": "degraded", "eager": "degraded", "busy": "healthy"} == run.states


def test_finding_and_alert_begin_together(run: Run) -> None:
    """Each fault that the sidecar found after the turn is an alert of the same name, within two intervals of each other."""
    found = {name: times for (pod, name), times in run.findings.items() if pod == "kv-0" and any(t > run.turned for t in times)}
    alerted = {name: times for (pod, name), times in run.alerts.items() if pod == "kv-0" and name in RULES}
    assert {"KVCachePreemption", "RecomputeTax"} <= set(found) & set(alerted)
    assert set() == set(alerted) - set(found)
    lasting = {name for name, times in found.items() if name in ALERTING and times[-1] - _begins(times, run.turned) > WARM_SECONDS}
    assert set() == lasting - set(alerted)
    for name in set(found) & set(alerted):
        ours, theirs = _begins(found[name], run.turned), _begins(alerted[name], run.turned)
        assert abs(theirs - ours) <= 2 * _interval(run, "kv-0", min(ours, theirs)), f"{name}: found at {ours}, alerted at {theirs}"


def _interval(run: Run, pod: str, at: float) -> float:
    """Return the interval at which the pod was really scraped around a moment: on a busy machine it can be longer than asked for."""
    times = [t for t in run.scrapes[pod] if abs(t - at) < WINDOW_SECONDS]
    return max([INTERVAL_SECONDS, *(b - a for a, b in pairwise(times))]) + 0.5


def test_a_dead_exporter_is_one_alert(run: Run) -> None:
    """After the kill there is one new alert about the pod; what fired before is called off or lingers, and nothing new is told."""
    after = {
        n.name for n in run.notices if n.labels.get("pod") == "eager-0" and n.status == "firing" and n.t > run.killed + INTERVAL_SECONDS
    }
    assert {"HeptascopeDown"} == after - {"LaunchOverhead"}


def test_rules_evaluate_without_errors(run: Run) -> None:
    """No rule met samples that it could not join, on any pod."""
    assert [] == run.unhealthy
