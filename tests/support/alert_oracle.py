"""What Prometheus must make of an alerting rule, worked out here: states by minute, labels, annotations.

The expression is evaluated by heptascope's own evaluator, the states follow the documentation of Prometheus' alerting rules,
templates are filled as its `humanize` functions do. promtool is then asked whether it sees the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import floor, isinf, isnan
from typing import Any

from heptascope.model import Labels
from heptascope.rules import promql
from heptascope.signals.window import Window
from heptascope.surfaces.alerts.model import Alert

Firing = dict[Labels, dict[str, Any]]
"""Labels of the result to the alert as promtool's `exp_alerts` has it."""


@dataclass
class _Active:
    since: float
    firing: bool = False
    gone_since: float | None = None
    value: float = 0.0


def timeline(alert: Alert, window: Window, evaluations: int, interval: float = 60.0) -> list[Firing]:
    """Return what fires after each of so many evaluations, the first of them at time 0."""
    expression = promql.compile(alert.expr)
    active: dict[Labels, _Active] = {}
    found = []
    for number in range(evaluations):
        now = number * interval
        result = expression.evaluate(window, now, mode=promql.Mode.PROMETHEUS_2)
        assert not isinstance(result, float)
        true = {tuple(p for p in item.labels if p[0] != "__name__"): item.value for item in result}
        _advance(alert, active, true, now)
        found.append({labels: _shown(alert, labels, one.value) for labels, one in active.items() if one.firing})
    return found


def _advance(alert: Alert, active: dict[Labels, _Active], true: Mapping[Labels, float], now: float) -> None:
    for labels, value in true.items():
        one = active.setdefault(labels, _Active(now))
        one.value, one.gone_since = value, None
        one.firing = one.firing or now - one.since >= alert.hold
    for labels in [labels for labels in active if labels not in true]:
        one = active[labels]
        one.gone_since = now if one.gone_since is None else one.gone_since
        if not one.firing or now - one.gone_since >= alert.keep:
            del active[labels]


def _shown(alert: Alert, labels: Labels, value: float) -> dict[str, Any]:
    fill = {name: expand(text, dict(labels), value) for name, text in alert.annotations.items()}
    return {"exp_labels": {**dict(labels), **alert.labels}, "exp_annotations": fill}


_WITH = re.compile(r"\{\{ with \$labels\.(\w+) \}\}(.*?)\{\{ end \}\}", re.DOTALL)
_LABEL = re.compile(r"\{\{ \$labels\.(\w+) \}\}")
_VALUE = re.compile(r"\{\{ \$value \| (\w+) \}\}")


def expand(template: str, labels: Mapping[str, str], value: float) -> str:
    """Return a template of ours filled in."""
    text = _WITH.sub(lambda m: m[2].replace("{{ . }}", labels[m[1]]) if labels.get(m[1]) else "", template)
    text = _LABEL.sub(lambda m: labels.get(m[1], ""), text)
    text = _VALUE.sub(lambda m: _FUNCTIONS[m[1]](value), text)
    assert "{{" not in text, f"this template is not understood: {text}"
    return text


def _general(value: float) -> str:
    """Return `%.4g` as Go writes it."""
    text = f"{value:.4g}"
    return re.sub(r"e([+-])0?(\d\d)$", r"e\g<1>\g<2>", text)


def humanize(value: float) -> str:
    """Return a number with a metric prefix."""
    if value == 0 or isnan(value) or isinf(value):
        return _general(value)
    prefix = ""
    if abs(value) >= 1:
        for candidate in "kMGTPEZY":
            if abs(value) < 1000:
                break
            prefix, value = candidate, value / 1000
    else:
        for candidate in "mµnpfazy".replace("µ", "u"):
            if abs(value) >= 1:
                break
            prefix, value = candidate, value * 1000
    return _general(value) + prefix


def humanize1024(value: float) -> str:
    """Return a number with a binary prefix."""
    if abs(value) <= 1 or isnan(value) or isinf(value):
        return _general(value)
    prefix = ""
    for candidate in ("ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi"):
        if abs(value) < 1024:
            break
        prefix, value = candidate, value / 1024
    return _general(value) + prefix


def humanize_duration(value: float) -> str:
    """Return seconds as days to milliseconds."""
    if isnan(value) or isinf(value):
        return _general(value)
    if value == 0:
        return "0s"
    if abs(value) >= 1:
        sign, value = ("-", -value) if value < 0 else ("", value)
        whole = floor(value)
        days, hours, minutes, seconds = whole // 86400, whole // 3600 % 24, whole // 60 % 60, whole % 60
        if days:
            return f"{sign}{days}d {hours}h {minutes}m {seconds}s"
        if hours:
            return f"{sign}{hours}h {minutes}m {seconds}s"
        if minutes:
            return f"{sign}{minutes}m {seconds}s"
        return f"{sign}{_general(value)}s"
    return humanize(value) + "s"


_FUNCTIONS = {
    "humanize": humanize,
    "humanize1024": humanize1024,
    "humanizeDuration": humanize_duration,
    "humanizePercentage": lambda value: _general(value * 100) + "%",
}
