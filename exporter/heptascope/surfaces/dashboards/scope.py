"""What a board is looked at with: a stretch of time, a resolution, and a choice for every variable."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from heptascope.quantities import format_duration, parse_duration
from heptascope.sources.prometheus_api import Series
from heptascope.surfaces.dashboards.board import Annotation, Board, Panel, Target, Variable
from heptascope.surfaces.dashboards.variables import Choice, put_in

PANEL_POINTS: Final = 600
"""Points that Grafana asks for on a panel of middling width: one a pixel."""

_STEPS: Final = (1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
_LABEL_VALUES: Final = re.compile(r"^label_values\(\s*(?:(?P<match>.+?)\s*,\s*)?(?P<label>\w+)\s*\)\s*$", re.DOTALL)
_QUERY_RESULT: Final = re.compile(r"^query_result\((?P<expr>.+)\)\s*$", re.DOTALL)


class Ask(Protocol):
    """Asks a Prometheus."""

    def instant(self, expr: str, t: float) -> list[Series]:
        """Return the answer to an instant query."""
        ...

    def range(self, expr: str, start: float, end: float, step: float) -> list[Series]:
        """Return the answer to a range query."""
        ...

    def label_values(self, label: str, match: str, start: float, end: float) -> list[str]:
        """Return the values of a label, of series that match a selector ("": all)."""
        ...


@dataclass(frozen=True, slots=True)
class Scope:
    """A look from `start` to `end` (Unix seconds) at a Prometheus that scrapes each `scrape` seconds."""

    start: float
    end: float
    scrape: float = 15.0
    choices: Mapping[str, Choice] = field(default_factory=dict)

    def step(self, least: str = "") -> float:
        """Return the step that Grafana takes for a panel; `least` is the panel's least step as text."""
        floor = parse_duration(least.removeprefix(">").strip()) if least else self.scrape
        wanted = (self.end - self.start) / PANEL_POINTS
        return max(float(next((step for step in _STEPS if step >= wanted), _STEPS[-1])), floor)

    def put_in(self, text: str, least: str = "") -> str:
        """Return a query with all variables replaced, Grafana's own among them."""
        step, length = self.step(least), self.end - self.start
        rate = max(step + self.scrape, 4 * self.scrape)
        times = {"__interval": step, "__rate_interval": rate, "__range": length}
        own = {name: _plain(_seconds(value)) for name, value in times.items()}
        own |= {
            f"{name}_{unit}": _plain(f"{value * scale:.0f}") for name, value in times.items() for unit, scale in (("s", 1), ("ms", 1000))
        }
        own |= {"__from": _plain(f"{self.start * 1000:.0f}"), "__to": _plain(f"{self.end * 1000:.0f}")}
        return put_in(text, {**self.choices, **own})


def _seconds(value: float) -> str:
    return format_duration(math.ceil(value))


def _plain(text: str) -> Choice:
    return Choice((text,), plain=True)


def choose(board: Board, ask: Ask, scope: Scope, wanted: Mapping[str, tuple[str, ...]] | None = None) -> tuple[Scope, dict[str, list[str]]]:
    """Return the scope with a choice for each variable of a board, and what each could be.

    What `wanted` does not name is left at All, or at its first value.
    """
    choices: dict[str, Choice] = dict(scope.choices)
    options: dict[str, list[str]] = {}
    for variable in board.variables:
        seen = Scope(scope.start, scope.end, scope.scrape, choices)
        options[variable.name] = found = options_of(variable, ask, seen)
        choices[variable.name] = _choice(variable, found, (wanted or {}).get(variable.name))
    return Scope(scope.start, scope.end, scope.scrape, choices), options


def _choice(variable: Variable, options: list[str], wanted: tuple[str, ...] | None) -> Choice:
    plain = not variable.multi and not variable.include_all
    if wanted is not None:
        return Choice(wanted, plain)
    if variable.include_all:
        return Choice(tuple(options), verbatim=variable.all_value)
    return Choice(tuple(options[:1]), plain)


def options_of(variable: Variable, ask: Ask, scope: Scope) -> list[str]:
    """Return what a variable can be, in Grafana's order of values."""
    if variable.kind == "custom":
        return list(variable.options) or [part.strip() for part in variable.query.split(",")]
    if variable.kind != "query":
        return [variable.query]
    found = _asked(scope.put_in(variable.query), ask, scope)
    return sorted({kept for value in found if (kept := _filtered(value, variable.regex)) is not None})


def _asked(query: str, ask: Ask, scope: Scope) -> list[str]:
    if (labels := _LABEL_VALUES.match(query)) is not None:
        return ask.label_values(labels["label"], labels["match"] or "", scope.start, scope.end)
    result = _QUERY_RESULT.match(query)
    series = ask.instant(result["expr"] if result is not None else query, scope.end)
    return [f"{_selector(one.labels)} {one.points[-1][1]:g} {one.points[-1][0] * 1000:.0f}" for one in series]


def _selector(labels: Mapping[str, str]) -> str:
    pairs = ",".join(f'{key}="{value}"' for key, value in labels.items() if key != "__name__")
    return f"{labels.get('__name__', '')}{{{pairs}}}"


def _filtered(value: str, regex: str) -> str | None:
    """Return what a variable's regular expression (/…/) leaves of a value; None if it does not match."""
    if not regex:
        return value
    found = re.search(regex.strip("/").replace("(?<", "(?P<"), value)
    if found is None:
        return None
    return str(found.groupdict().get("value") or (found[1] if found.groups() else value))


def answer(target: Target, ask: Ask, scope: Scope) -> list[Series]:
    """Return what a panel's query gives."""
    expr = scope.put_in(target.expr, target.interval)
    return ask.instant(expr, scope.end) if target.instant else ask.range(expr, scope.start, scope.end, scope.step(target.interval))


def answers(panel: Panel, ask: Ask, scope: Scope) -> list[tuple[Target, list[Series]]]:
    """Return what each query of a panel gives."""
    return [(target, answer(target, ask, scope)) for target in panel.targets]


def marks(annotation: Annotation, ask: Ask, scope: Scope) -> list[Series]:
    """Return what an annotation's query gives."""
    step = annotation.step or "60s"
    return ask.range(scope.put_in(annotation.expr, step), scope.start, scope.end, scope.step(step))
