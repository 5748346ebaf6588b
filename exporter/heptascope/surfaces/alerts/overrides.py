"""Changes to one alert: thresholds, severity, times, or off."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from heptascope.errors import UserError
from heptascope.quantities import parse_duration
from heptascope.rules.load import SEVERITIES

_OWN = ("severity", "for", "enabled")
_WINDOW = "window"
OTHERS = (*_OWN, _WINDOW)
"""What can be changed of an alert beside its thresholds."""

LONGEST_HOLD_SECONDS = 30 * 86400.0
_WINDOW_SECONDS = (1.0, 21600.0)
"""Shortest and longest range, as for the window of all alerts."""


@dataclass(frozen=True, slots=True)
class Override:
    """What is changed; None: as the rule has it."""

    thresholds: Mapping[str, float] = field(default_factory=dict)
    severity: str | None = None
    hold: float | None = None
    window: float | None = None
    enabled: bool = True


def override(name: str, given: Mapping[str, Any], thresholds: list[str], origin: Callable[[str, str], str], *, window: bool) -> Override:
    """Return the changes `given` for the alert `name`; `window`: it looks at the window of the rules, which can then be changed.

    Raises UserError with the `origin` of the change, the key and what is allowed.
    """
    own = OTHERS if window else _OWN
    numbers: dict[str, float] = {}
    for key, value in given.items():
        if key in own:
            continue
        if key not in thresholds:
            raise UserError(f"{name} has no {key!r}", where=origin(name, key), hint=_suggest(key, [*thresholds, *own]))
        if not _is_finite(value):
            raise UserError(f"{name}.{key}: {value!r} is not a number", where=origin(name, key))
        numbers[key] = float(value)
    severity = given.get("severity")
    if severity is not None and severity not in SEVERITIES:
        raise UserError(f"no such severity {severity!r}", where=origin(name, "severity"), hint=f"allowed: {', '.join(SEVERITIES)}")
    enabled = given.get("enabled", True)
    if not isinstance(enabled, bool):
        raise UserError(f"{name}.enabled: {enabled!r} is neither true nor false", where=origin(name, "enabled"))
    hold = _seconds(name, given, "for", origin, (0.0, LONGEST_HOLD_SECONDS), "0s and 720h")
    return Override(numbers, severity, hold, _seconds(name, given, _WINDOW, origin, _WINDOW_SECONDS, "1s and 6h"), enabled)


def _is_finite(value: Any) -> bool:
    try:
        return not isinstance(value, bool) and isinstance(value, int | float) and math.isfinite(value)
    except OverflowError:
        return False


def _seconds(
    name: str, given: Mapping[str, Any], key: str, origin: Callable[[str, str], str], between: tuple[float, float], words: str
) -> float | None:
    if key not in given:
        return None
    try:
        seconds = parse_duration(given[key])
    except ValueError as exc:
        raise UserError(f"{name}.{key}: {given[key]!r} is {exc}", where=origin(name, key)) from exc
    if not between[0] <= seconds <= between[1]:
        raise UserError(f"{name}.{key}: {given[key]!r} is not between {words}", where=origin(name, key))
    return seconds


def _suggest(word: str, allowed: list[str]) -> str:
    close = difflib.get_close_matches(word, allowed, n=1)
    return f"did you mean {close[0]}?" if close else f"allowed: {', '.join(allowed)}"
