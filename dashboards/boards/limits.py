"""Lines on panels: the catalogue's thresholds, with the colour of what happens beyond them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from grafana_foundation_sdk.models.dashboard import Threshold

from heptascope.model import RuleKind
from heptascope.rules.load import load
from heptascope.rules.rule import Rule
from heptascope.surfaces import units

RED: Final = "red"
ORANGE: Final = "orange"
YELLOW: Final = "yellow"
BLUE: Final = "blue"
GREEN: Final = "green"
GREY: Final = "#8e8e8e"
PURPLE: Final = "purple"
CLEAR: Final = "transparent"

_SEVERITY: Final = {"critical": RED, "warning": ORANGE, "info": YELLOW}


@cache
def rules() -> dict[str, Rule]:
    """Return the catalogue by name."""
    return {rule.name: rule for rule in load()}


def threshold(rule: str, name: str) -> float:
    """Return a threshold of the catalogue. Raises KeyError for an unknown rule or name."""
    return rules()[rule].threshold(name)


def number(rule: str, name: str) -> str:
    """Return a threshold as text for an expression."""
    return f"{threshold(rule, name):.12g}"


@dataclass(frozen=True, slots=True)
class Limit:
    """One threshold of one rule on a panel. `below`: the rule fires under it. `unit` is the signal table's, for the words."""

    rule: str
    name: str
    below: bool = False
    unit: str = "ratio"

    @property
    def value(self) -> float:
        """The number, from the catalogue."""
        return threshold(self.rule, self.name)

    @property
    def color(self) -> str:
        """Blue for what merely limits, else by severity: red only where someone has to act at once."""
        rule = rules()[self.rule]
        return BLUE if rule.kind is RuleKind.LIMITER else _SEVERITY[rule.severity]

    def words(self) -> str:
        """Return what the line means, with a link to the rule's runbook if it has one."""
        rule = rules()[self.rule]
        name = rule.name if rule.kind is RuleKind.LIMITER else f"[{rule.name}](${{runbooks}}/{rule.name}.md)"
        side = "below" if self.below else "above"
        return f"{self.color} line, {side} {units.text(self.value, self.unit)}: {name}. {rule.summary}"


def steps(limits: Sequence[Limit], base: str = CLEAR) -> list[Threshold]:
    """Return Grafana's steps for limits that all lie on one side. `base` colours what is on the good side.

    Raises ValueError for a mixture: with steps alone Grafana cannot draw both.
    """
    if len({limit.below for limit in limits}) > 1:
        raise ValueError("limits on one panel must all be above or all be below")
    rows = sorted({(limit.value, limit.color) for limit in limits})
    if limits and limits[0].below:
        colors = [color for _, color in rows] + [base]
        return [Threshold(None, colors[0]), *(Threshold(value, color) for (value, _), color in zip(rows, colors[1:], strict=True))]
    return [Threshold(None, base), *(Threshold(value, color) for value, color in rows)]
