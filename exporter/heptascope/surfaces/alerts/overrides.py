"""Changes to one alert: thresholds, severity, times, or off."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from heptascope.errors import UserError
from heptascope.quantities import parse_duration
from heptascope.rules.load import SEVERITIES

_OWN = ("severity", "for", "window", "enabled")


@dataclass(frozen=True, slots=True)
class Override:
    """What is changed; None: as the rule has it."""

    thresholds: Mapping[str, float] = field(default_factory=dict)
    severity: str | None = None
    hold: float | None = None
    window: float | None = None
    enabled: bool = True


def override(name: str, given: Mapping[str, Any], thresholds: list[str], origin: Callable[[str, str], str]) -> Override:
    """Return the changes `given` for the alert `name`. Raises UserError with the `origin` of the change, the key and what is allowed."""
    numbers: dict[str, float] = {}
    for key, value in given.items():
        if key in _OWN:
            continue
        if key not in thresholds:
            raise UserError(f"{name} has no {key!r}", where=origin(name, key), hint=_suggest(key, [*thresholds, *_OWN]))
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
            raise UserError(f"{name}.{key}: {value!r} is not a number", where=origin(name, key))
        numbers[key] = float(value)
    severity = given.get("severity")
    if severity is not None and severity not in SEVERITIES:
        raise UserError(f"no such severity {severity!r}", where=origin(name, "severity"), hint=f"allowed: {', '.join(SEVERITIES)}")
    enabled = given.get("enabled", True)
    if not isinstance(enabled, bool):
        raise UserError(f"{name}.enabled: {enabled!r} is neither true nor false", where=origin(name, "enabled"))
    return Override(numbers, severity, _seconds(name, given, "for", origin), _seconds(name, given, "window", origin), enabled)


def _seconds(name: str, given: Mapping[str, Any], key: str, origin: Callable[[str, str], str]) -> float | None:
    if key not in given:
        return None
    try:
        return parse_duration(given[key])
    except ValueError as exc:
        raise UserError(f"{name}.{key}: {given[key]!r} is {exc}", where=origin(name, key)) from exc


def _suggest(word: str, allowed: list[str]) -> str:
    close = difflib.get_close_matches(word, allowed, n=1)
    return f"did you mean {close[0]}?" if close else f"allowed: {', '.join(allowed)}"
