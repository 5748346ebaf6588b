"""Rules that no panel of their layer's board draws, and why: `undrawn.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import yaml

from boards.limits import Sign
from heptascope.model import Layer
from heptascope.rules.load import load


@cache
def undrawn() -> Mapping[str, str]:
    """Return the reason why a rule is not drawn, by its name."""
    reasons: dict[str, str] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    return reasons


def signs(layer: Layer) -> tuple[Sign, ...]:
    """Return the rules of a layer that only the table of findings shows."""
    names = (rule.name for rule in load() if rule.layer is layer)
    return tuple(Sign(name, f"in this table only ({undrawn()[name]})") for name in names if name in undrawn())
