"""An example configuration for Alertmanager: routes by severity, and inhibition from the causal graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from heptascope.quantities import prometheus_duration
from heptascope.rules.graph import closure
from heptascope.rules.load import SEVERITIES
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

EQUAL_OF_ENGINE: Final = (*EQUAL, "engine")
"""The same where both are about an engine: of two engines in a pod none silences the other. Ranks of one engine wait for each other."""

_PAGE_WAIT_SECONDS = 30.0
_SEVERITIES: Final = (("critical", "page", "4h"), ("warning", "ticket", "12h"), ("info", "context", "24h"))

_ABOUT = """\
Example configuration of Alertmanager for heptascope's alerts; merge it into yours and put your receivers in.
Rendered by `heptascope rules render`: the inhibitions are the `explains` edges of the catalogue, direct and through others.

A cause silences what it explains on the same pod and, if both are about an engine, on that engine; but never what is more severe than
itself: who is woken is woken, whatever else fires. A consequence may show first, so whatever is not critical waits one window of the
rules before it is sent: by then its cause fires too. A consequence may also end last, so HeptascopeInhibitor, which is sent to nobody,
stands for each cause one window longer. Grouped by deployment, one notification holds what is wrong there."""


def inhibitions(rules: Iterable[Rule], files: Iterable[RuleFile]) -> dict[str, list[str]]:
    """Return for each alert the alerts that it silences on its pod, in the order of the rule files: none that is more severe.

    A trace is a sample of minutes ago: what it shows explains symptoms in a verdict, but silences nobody.
    """
    by_name = {rule.name: rule for rule in rules}
    names = _severities(files)
    found: dict[str, list[str]] = {}
    for rule in (rule for rule in alerting(by_name.values()) if not rule.about_trace):
        explained = {*closure(rule.name, by_name), *_like(closure(rule.name, by_name))}
        found[rule.name] = [name for name in names if name in explained and name != rule.name]
    for source, entry in written_alerts().items():
        if entry.get(MUTES) == "pod":
            found[source] = [name for name in names if name != source and _of_pod(name, by_name)]
    mild = {source: [n for n in targets if names[n] in _down_from(names[source])] for source, targets in found.items() if source in names}
    return {source: targets for source, targets in mild.items() if targets}


def _severities(files: Iterable[RuleFile]) -> dict[str, str]:
    """Return the severity of each alert, in the order of the files; of one that has several, the last."""
    return {alert.name: alert.labels["severity"] for file in files for alert in file.alerts}


def _down_from(severity: str) -> tuple[str, ...]:
    """Return a severity and those below it: what a cause of that severity may silence."""
    return SEVERITIES[SEVERITIES.index(severity) :]


def _like(explained: Iterable[str]) -> set[str]:
    """Return the fleet's alerts that have the causes of something that is explained."""
    return {name for name, entry in written_alerts().items() if entry.get(EXPLAINED_LIKE) in set(explained)}


def _of_pod(name: str, by_name: Mapping[str, Rule]) -> bool:
    """Return whether an alert is about one pod."""
    return name in by_name or (name != INHIBITOR and "place" in written_alerts().get(name, {}))


def alertmanager(rules: Iterable[Rule], files: Iterable[RuleFile], settings: RenderSettings) -> str:
    """Return the configuration as YAML."""
    rules, files = list(rules), list(files)
    silences = list(_silences(rules, files))
    return to_yaml(
        {
            "route": _route(settings),
            "inhibit_rules": [rule for about in (_of_cause, _of_inhibitor) for s in silences for rule in about(s)] + [_budget(settings)],
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


class _Silence(NamedTuple):
    """One cause, and what it silences where they have the labels `equal` in common."""

    source: str
    severity: str
    targets: list[str]
    equal: tuple[str, ...]

    def rule(self, *source: str) -> dict[str, Any]:
        """Return the inhibition from alerts with these labels. It asks for severities, as whoever installs the rules can change them."""
        return {
            "source_matchers": [f'component="{COMPONENT}"', *source],
            "target_matchers": [
                f'component="{COMPONENT}"',
                f'severity=~"{listed(_down_from(self.severity))}"',
                f'alertname=~"{listed(self.targets)}"',
            ],
            "equal": Flow(self.equal),
        }


def _silences(rules: Iterable[Rule], files: list[RuleFile]) -> Iterator[_Silence]:
    """Yield what each cause silences: on its own engine, and beyond engines."""
    rules, severities = list(rules), _severities(files)
    engines = {rule.name for rule in rules if rule.entity == "engine"}
    for source, targets in inhibitions(rules, files).items():
        own = [name for name in targets if source in engines and name in engines]
        for part, equal in ((own, EQUAL_OF_ENGINE), ([name for name in targets if name not in own], EQUAL)):
            if part:
                yield _Silence(source, severities[source], part, equal)


def _of_cause(silence: _Silence) -> Iterator[dict[str, Any]]:
    yield silence.rule(f'severity="{silence.severity}"', f'alertname="{silence.source}"')


def _of_inhibitor(silence: _Silence) -> Iterator[dict[str, Any]]:
    """Yield the same from what outlives the cause: that is there for the catalogue's rules."""
    if silence.source not in written_alerts():
        yield silence.rule(f'alertname="{INHIBITOR}"', f'cause="{silence.source}"', f'cause_severity="{silence.severity}"')


def _budget(settings: RenderSettings) -> dict[str, Any]:
    """Return the inhibition between the alerts of one budget: the faster burn speaks."""
    return {
        "source_matchers": [f'component="{COMPONENT}"', 'severity="critical"', 'alertname=~".+ErrorBudgetBurn"'],
        "target_matchers": [f'component="{COMPONENT}"', 'severity="warning"', 'alertname=~".+ErrorBudgetBurn"'],
        "equal": Flow(["alertname", "cluster", "namespace", settings.workload_label, "model"]),
    }


def _receivers(settings: RenderSettings) -> Iterator[dict[str, Any]]:
    yield {"name": "nobody"}
    for _, receiver, _ in _SEVERITIES:
        url = getattr(settings.receivers, receiver)
        yield {"name": receiver, "webhook_configs": [{"url": url, "send_resolved": True}]}
