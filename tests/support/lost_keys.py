"""What a typed model of an object leaves out: a model that ignores keys it does not know accepts a typing error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def lost_keys(given: Any, read: Any, at: str = "") -> Iterator[str]:
    """Yield the places of `given` that `read` lacks."""
    if isinstance(given, dict):
        for key, value in given.items():
            if not isinstance(read, dict) or key not in read:
                yield f"{at}.{key}"
            else:
                yield from lost_keys(value, read[key], f"{at}.{key}")
    elif isinstance(given, list):
        for number, (one, other) in enumerate(zip(given, read, strict=True)):
            yield from lost_keys(one, other, f"{at}.{number}")
