"""JSON that an engine answers beside its metrics: whatever it holds, it is a value or no JSON, and no number is none."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

_MOST_DIGITS = 300  # what a double holds


def parsed(text: str) -> Any:
    """Return what a JSON text holds; NaN, infinities and numbers beyond a double are None. Raises ValueError for what is no JSON."""
    try:
        return json.loads(text, parse_constant=lambda _word: None, parse_float=_fraction, parse_int=_whole)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _fraction(text: str) -> float | None:
    value = float(text)
    return value if isfinite(value) else None


def _whole(text: str) -> int | None:
    return int(text) if len(text) <= _MOST_DIGITS else None
