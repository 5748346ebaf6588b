"""The catalogue's faults and symptoms as alerts: the same expressions, over minutes, joined by pod.

Where the sidecars judge, Prometheus counts instead in what share of the window a rule has fired there: one recording a layer. What
compares with earlier days no sidecar can judge, so Prometheus does in either case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from heptascope.model import Layer, RuleKind
from heptascope.quantities import prometheus_duration
from heptascope.rules.references import changed
from heptascope.rules.rule import Rule
from heptascope.surfaces.alerts import counted
from heptascope.surfaces.alerts.model import COMPONENT, POD, Alert, Group, RuleFile
from heptascope.surfaces.alerts.overrides import Override
from heptascope.surfaces.alerts.settings import RenderSettings
from heptascope.surfaces.alerts.words import describe, phrases

_BUCKETS = "_bucket["


def alerting(rules: Iterable[Rule]) -> list[Rule]:
    """Return the rules that alert: faults and symptoms. What merely limits is no reason to wake anyone."""
    return [rule for rule in rules if rule.kind is not RuleKind.LIMITER]


def layer_files(rules: Iterable[Rule], settings: RenderSettings) -> list[RuleFile]:
    """Return one file for each layer. Raises UserError for a change that a rule does not know."""
    found: dict[Layer, list[Alert]] = {layer: [] for layer in Layer}
    every = {rule.name: settings.override(rule.name, rule.thresholds, window="$window" in rule.expr) for rule in alerting(rules)}
    for rule in changed(alerting(rules), {name: changes.thresholds for name, changes in every.items()}):
        changes = every[rule.name]
        if changes.enabled:
            found[rule.layer].append(alert_of(rule, settings, changes))
    about = "Faults and symptoms of the {} layer."
    return [RuleFile(layer.value, about.format(layer.value), _groups(layer, found[layer], settings)) for layer in Layer]


def _groups(layer: Layer, alerts: Iterable[Alert], settings: RenderSettings) -> tuple[Group, ...]:
    """Return the alerts of a layer as two groups, which Prometheus evaluates beside each other: histograms are dear, all else is quick."""
    name = f"{COMPONENT}-{layer.value}"
    if settings.judge == "sidecar":
        return (Group(name, (counted.share(layer, settings), *alerts)),)
    dear, quick = (tuple(alert for alert in alerts if (_BUCKETS in alert.expr) is which) for which in (True, False))
    return tuple(group for group in (Group(name, quick), Group(f"{name}-histograms", dear)) if group.rules)


def alert_of(rule: Rule, settings: RenderSettings, changes: Override) -> Alert:
    """Return one rule as an alert: it ends as slowly as it begins, as in-process."""
    hold = first(changes.hold, settings.hold, rule.hold)
    sidecar = settings.judge == "sidecar" and not rule.needs_baseline
    return Alert(
        name=rule.name,
        expr=counted.expression(rule, settings, changes) if sidecar else expression(rule, settings, changes),
        hold=hold,
        keep=hold,
        labels=_labels(rule, changes),
        annotations={
            "summary": rule.summary,
            "description": counted.description(rule, settings) if sidecar else describe(phrases()[rule.name], rule.entity),
            "runbook_url": f"{settings.runbooks}/{rule.name}.md",
        },
    )


def expression(rule: Rule, settings: RenderSettings, changes: Override) -> str:
    """Return a rule's PromQL as Prometheus evaluates it."""
    window = prometheus_duration(first(changes.window, settings.window))
    pod = ", ".join((*POD, settings.workload_label))
    return rule.text(window, pod)


def first(*values: float | None) -> float:
    """Return the first value that is set."""
    return next(value for value in values if value is not None)


def _labels(rule: Rule, changes: Override) -> Mapping[str, str]:
    return {
        "severity": changes.severity or rule.severity,
        "component": COMPONENT,
        "layer": rule.layer.value,
        "topic": rule.topic,
        "kind": rule.kind.value,
    }
