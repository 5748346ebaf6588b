"""Lines on panels: the catalogue's thresholds, with the colour of what happens beyond them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple, Protocol

from grafana_foundation_sdk.models.dashboard import Threshold

from heptascope.model import RuleKind
from heptascope.rules.load import load
from heptascope.surfaces import units
from heptascope.surfaces.alerts.written import written_alerts

RED: Final = "red"
ORANGE: Final = "orange"
YELLOW: Final = "yellow"
BLUE: Final = "blue"
GREEN: Final = "green"
GREY: Final = "#8e8e8e"
PURPLE: Final = "purple"
CLEAR: Final = "transparent"

_SEVERITY: Final = {"critical": RED, "warning": ORANGE, "info": YELLOW}
_RANK: Final = {BLUE: 1, YELLOW: 2, ORANGE: 3, RED: 4}
"""Of two lines at one value the graver one gives the colour."""


class _Known(NamedTuple):
    """What a line needs to know about a rule of the catalogue, or about an alert that no rule stands for."""

    thresholds: Mapping[str, float]
    limiter: bool
    severity: str
    summary: str


@cache
def _known() -> dict[str, _Known]:
    found = {rule.name: _Known(rule.thresholds, rule.kind is RuleKind.LIMITER, rule.severity, rule.summary) for rule in load()}
    for name, alert in written_alerts().items():
        found[name] = _Known(alert.get("thresholds", {}), False, alert["severity"], alert.get("summary", ""))
    return found


def threshold(rule: str, name: str) -> float:
    """Return a threshold of the catalogue or of an alert. Raises KeyError for an unknown rule or name."""
    return _known()[rule].thresholds[name]


def number(rule: str, name: str) -> str:
    """Return a threshold as text for an expression."""
    return f"{threshold(rule, name):.12g}"


class Line(Protocol):
    """A line on a panel: where, in which colour, which side of it is meant, and what it says."""

    @property
    def value(self) -> float:
        """Where it lies."""

    @property
    def color(self) -> str:
        """Grafana's name of its colour."""

    @property
    def below(self) -> bool:
        """Whether the values under it are meant."""

    @property
    def bar(self) -> str:
        """The only bar of a panel of bars that it colours; "": all."""

    def words(self, what: str = "line") -> str:
        """Return what it means; `what` is how it is drawn."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A line that no rule draws: the end of a scale, or a promise by definition."""

    value: float
    color: str
    about: str
    below: bool = False
    bar: str = ""

    def words(self, what: str = "line") -> str:  # noqa: ARG002  # what it says names the colour already
        """Return what the line means."""
        return self.about


@dataclass(frozen=True, slots=True)
class Limit:
    """One threshold of one rule on a panel. `below`: the rule fires under it. `unit` is the signal table's, for the words.

    `of` names the line or lines that are meant, where a panel has others too; `bar` the only bar of a panel of bars that it colours.
    """

    rule: str
    name: str
    below: bool = False
    unit: str = "ratio"
    of: str = ""
    bar: str = ""

    @property
    def value(self) -> float:
        """The number, from the catalogue."""
        return threshold(self.rule, self.name)

    @property
    def color(self) -> str:
        """Blue for what merely limits, else by severity: red only where someone has to act at once."""
        rule = _known()[self.rule]
        return BLUE if rule.limiter else _SEVERITY[rule.severity]

    def words(self, what: str = "line") -> str:
        """Return what the line means, with a link to the rule's runbook if it has one."""
        side = f"{self.of or self.bar} {'below' if self.below else 'above'}".strip()
        return f"{self.color} {what}, {side} {units.text(self.value, self.unit)}: {_named(self.rule)}"


@dataclass(frozen=True, slots=True)
class Sign:
    """A rule that a panel shows otherwise than by a line at one height. `when`: what of the panel is the sign of it."""

    rule: str
    when: str

    def words(self) -> str:
        """Return what the sign means, with a link to the rule's runbook if it has one. Raises KeyError for an unknown rule."""
        return f"{self.when}: {_named(self.rule)}"


def _named(rule: str) -> str:
    """Return a rule's name, with a link to its runbook if it has one, and its summary."""
    known = _known()[rule]
    name = rule if known.limiter else f"[{rule}](${{runbooks}}/{rule}.md)"
    return f"{name}. {known.summary}"


def amount(rule: str, name: str, unit: str = "ratio") -> str:
    """Return a threshold as text for people."""
    return units.text(threshold(rule, name), unit)


def steps(lines: Sequence[Line], base: str = CLEAR) -> list[Threshold]:
    """Return Grafana's steps for lines that all lie on one side. `base` colours what is on the good side.

    Raises ValueError for a mixture: with steps alone Grafana cannot draw both.
    """
    if len({line.below for line in lines}) > 1:
        raise ValueError("lines on one panel must all be above or all be below")
    rows = list({line.value: line.color for line in sorted(lines, key=lambda line: (line.value, _RANK.get(line.color, 0)))}.items())
    if lines and lines[0].below:
        colors = [color for _, color in rows] + [base]
        return [Threshold(None, colors[0]), *(Threshold(value, color) for (value, _), color in zip(rows, colors[1:], strict=True))]
    return [Threshold(None, base), *(Threshold(value, color) for value, color in rows)]
