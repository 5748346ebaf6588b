"""Alerts on the sidecars' own findings: for fleets in which evaluating every expression again costs Prometheus too much."""

from __future__ import annotations

from heptascope.errors import UserError
from heptascope.model import Layer
from heptascope.quantities import format_duration, prometheus_duration
from heptascope.rules.rule import Rule
from heptascope.surfaces.alerts.model import POD, Recording
from heptascope.surfaces.alerts.overrides import Override
from heptascope.surfaces.alerts.settings import RenderSettings
from heptascope.surfaces.alerts.words import describe

SHARE = 0.8
"""Share of the window's scrapes in which a rule must have fired in the sidecar (own choice: a condition that dips for a moment counts)."""

_ENTITY = ("engine", "rank", "gpu")


def _pod(settings: RenderSettings) -> str:
    return ", ".join((*POD, settings.workload_label))


def _name(settings: RenderSettings) -> str:
    return f"pod_rule:heptascope_finding:share{prometheus_duration(settings.window)}"


def share(layer: Layer, settings: RenderSettings) -> Recording:
    """Return the recording that all alerts of a layer read: in what share of its scrapes each rule has fired."""
    window, pod = prometheus_duration(settings.window), _pod(settings)
    by = ", ".join((pod, "rule", "layer", *_ENTITY))
    return Recording(
        _name(settings),
        f'sum by ({by}) (sum_over_time(heptascope_finding{{layer="{layer.value}"}}[{window}]))\n'
        f"/ on ({pod}) group_left ()\n"
        f"max by ({pod}) (count_over_time(heptascope_build_info[{window}]))",
    )


def expression(rule: Rule, settings: RenderSettings, changes: Override) -> str:
    """Return the PromQL of an alert. Raises UserError for a threshold or window, which only the sidecars could change."""
    lost = next(iter(changes.thresholds), "window" if changes.window is not None else "")
    if lost:
        raise UserError(
            f"{rule.name}.{lost} is judged in the sidecars",
            where=settings.origin(rule.name, lost),
            hint="set rules.overrides in their configuration, or render with judge=prometheus",
        )
    by = ", ".join((_pod(settings), *_ENTITY))
    return f'max by ({by}) ({_name(settings)}{{rule="{rule.name}"}} >= {SHARE})'


def description(rule: Rule, settings: RenderSettings) -> str:
    """Return what a notification says: the rule, for how much of the window, and where."""
    summary = rule.summary.rstrip(".")
    return describe(f"{summary}, in {{%}} of the last {format_duration(settings.window)}", rule.entity)
