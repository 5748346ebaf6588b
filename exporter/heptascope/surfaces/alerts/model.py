"""The nouns of a rule file: alerts, recordings, groups, files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from heptascope.quantities import prometheus_duration

COMPONENT: Final = "heptascope"
"""Value of the label `component` of every alert, so that routes and inhibitions touch no others."""

POD: Final = ("cluster", "namespace", "pod", "job", "instance")
"""Labels that Prometheus gives to the series of one exporter: those of the pod, and of the scrape."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One alerting rule. `hold` and `keep` are seconds: the condition must stand so long to fire, and be gone so long to end."""

    name: str
    expr: str
    hold: float
    keep: float
    labels: Mapping[str, str]
    annotations: Mapping[str, str]

    def as_dict(self) -> dict[str, Any]:
        """Return the rule as Prometheus reads it."""
        keep = {"keep_firing_for": prometheus_duration(self.keep)} if self.keep else {}
        hold = {"for": prometheus_duration(self.hold)} if self.hold else {}
        return {"alert": self.name, "expr": self.expr, **hold, **keep, "labels": dict(self.labels), "annotations": dict(self.annotations)}


@dataclass(frozen=True, slots=True)
class Recording:
    """One recording rule."""

    name: str
    expr: str
    labels: Mapping[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the rule as Prometheus reads it."""
        return {"record": self.name, "expr": self.expr, **({"labels": dict(self.labels)} if self.labels else {})}


@dataclass(frozen=True, slots=True)
class Group:
    """Rules that are evaluated together, in order; `interval` in seconds (0: Prometheus' own)."""

    name: str
    rules: tuple[Alert | Recording, ...]
    interval: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return the group as Prometheus reads it."""
        interval = {"interval": prometheus_duration(self.interval)} if self.interval else {}
        return {"name": self.name, **interval, "rules": [rule.as_dict() for rule in self.rules]}


@dataclass(frozen=True, slots=True)
class RuleFile:
    """One file: its name without suffix, what it is about, its groups."""

    name: str
    about: str
    groups: tuple[Group, ...]

    @property
    def alerts(self) -> list[Alert]:
        """Every alerting rule of the file."""
        return [rule for group in self.groups for rule in group.rules if isinstance(rule, Alert)]

    @property
    def recordings(self) -> list[Recording]:
        """Every recording rule of the file."""
        return [rule for group in self.groups for rule in group.rules if isinstance(rule, Recording)]

    def as_dict(self) -> dict[str, Any]:
        """Return the file as Prometheus reads it."""
        return {"groups": [group.as_dict() for group in self.groups if group.rules]}
