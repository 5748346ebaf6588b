"""An example configuration for Alertmanager: routes by severity, and inhibition from the causal graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from heptascope.quantities import prometheus_duration
from heptascope.rules.graph import closure
from heptascope.rules.rule import Rule
from heptascope.surfaces.alerts.catalogue import alerting
from heptascope.surfaces.alerts.model import COMPONENT, RuleFile
from heptascope.surfaces.alerts.settings import RenderSettings
from heptascope.surfaces.alerts.words import listed
from heptascope.surfaces.alerts.written import EXPLAINED_LIKE, INHIBITOR, MUTES, written_alerts
from heptascope.surfaces.alerts.yaml_text import Flow, to_yaml

EQUAL: Final = ("cluster", "namespace", "pod", "instance")
"""What cause and consequence must have in common: the pod, so that a GPU's alert reaches those of the engine on it. A label that both
lack counts as equal; every alert that takes part here has `instance`, so that alerts without a pod do not silence each other."""

_PAGE_WAIT_SECONDS = 30.0
_SEVERITIES: Final = (("critical", "page", "4h"), ("warning", "ticket", "12h"), ("info", "context", "24h"))

_ABOUT = """\
Example configuration of Alertmanager for heptascope's alerts; merge it into yours and put your receivers in.
Rendered by `heptascope rules render`: the inhibitions are the `explains` edges of the catalogue, direct and through others.

A cause silences what it explains on the same pod. A consequence may show first, so whatever is not critical waits one window of the
rules before it is sent: by then its cause fires too. A consequence may also end last, so HeptascopeInhibitor, which is sent to nobody,
stands for each cause one window longer. Grouped by deployment, one notification holds what is wrong there."""


def inhibitions(rules: Iterable[Rule], files: Iterable[RuleFile]) -> dict[str, list[str]]:
    """Return for each alert the alerts that it silences on its pod, in the order of the rule files.

    A trace is a sample of minutes ago: what it shows explains symptoms in a verdict, but silences nobody.
    """
    by_name = {rule.name: rule for rule in rules}
    known = [alert.name for file in files for alert in file.alerts]
    names = list(dict.fromkeys(known))
    found: dict[str, list[str]] = {}
    for rule in (rule for rule in alerting(by_name.values()) if not rule.about_trace):
        explained = {*closure(rule.name, by_name), *_like(closure(rule.name, by_name))}
        found[rule.name] = [name for name in names if name in explained and name != rule.name]
    for source, entry in written_alerts().items():
        if entry.get(MUTES) == "pod":
            found[source] = [name for name in names if name != source and _of_pod(name, by_name)]
    return {source: targets for source, targets in found.items() if source in names and targets}


def _like(explained: Iterable[str]) -> set[str]:
    """Return the fleet's alerts that have the causes of something that is explained."""
    return {name for name, entry in written_alerts().items() if entry.get(EXPLAINED_LIKE) in set(explained)}


def _of_pod(name: str, by_name: Mapping[str, Rule]) -> bool:
    """Return whether an alert is about one pod."""
    return name in by_name or (name != INHIBITOR and "place" in written_alerts().get(name, {}))


def alertmanager(rules: Iterable[Rule], files: Iterable[RuleFile], settings: RenderSettings) -> str:
    """Return the configuration as YAML."""
    return to_yaml(
        {
            "route": _route(settings),
            "inhibit_rules": list(_inhibit(inhibitions(rules, files), settings.workload_label)),
            "receivers": list(_receivers(settings)),
        },
        _ABOUT,
    )


def _route(settings: RenderSettings) -> dict[str, Any]:
    window = prometheus_duration(settings.window)
    soon = prometheus_duration(min(settings.window, _PAGE_WAIT_SECONDS))
    routes: list[dict[str, Any]] = [{"matchers": [f'component="{COMPONENT}"', 'severity="none"'], "receiver": "nobody"}]
    routes += [
        {
            "matchers": [f'component="{COMPONENT}"', f'severity="{severity}"'],
            "receiver": receiver,
            "group_wait": soon if severity == "critical" else window,
            "repeat_interval": repeat,
        }
        for severity, receiver, repeat in _SEVERITIES
    ]
    return {
        "receiver": "ticket",
        "group_by": Flow(["cluster", "namespace", settings.workload_label]),
        "group_wait": soon,
        "group_interval": window,
        "repeat_interval": "12h",
        "routes": routes,
    }


def _inhibit(silences: Mapping[str, list[str]], workload: str) -> Iterator[dict[str, Any]]:
    for source, targets in silences.items():
        yield _silence(f'alertname="{source}"', targets)
    for source, targets in silences.items():
        if source not in written_alerts():
            yield _silence(f'alertname="{INHIBITOR}",cause="{source}"', targets)
    # of one budget, the faster burn speaks
    yield {
        "source_matchers": [f'component="{COMPONENT}"', 'severity="critical"', 'alertname=~".+ErrorBudgetBurn"'],
        "target_matchers": [f'component="{COMPONENT}"', 'severity="warning"', 'alertname=~".+ErrorBudgetBurn"'],
        "equal": Flow(["alertname", "cluster", "namespace", workload, "model"]),
    }


def _silence(source: str, targets: list[str]) -> dict[str, Any]:
    return {
        "source_matchers": [f'component="{COMPONENT}"', *source.split(",")],
        "target_matchers": [f'component="{COMPONENT}"', f'alertname=~"{listed(targets)}"'],
        "equal": Flow(EQUAL),
    }


def _receivers(settings: RenderSettings) -> Iterator[dict[str, Any]]:
    yield {"name": "nobody"}
    for _, receiver, _ in _SEVERITIES:
        url = getattr(settings.receivers, receiver)
        yield {"name": receiver, "webhook_configs": [{"url": url, "send_resolved": True}]}
