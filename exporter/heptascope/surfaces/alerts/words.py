"""Text of alerts: what, where, how much, as Prometheus' templates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import yaml

PHRASES = Path(__file__).with_name("phrases.yaml")

_VALUES: Final[Mapping[str, str]] = {
    "{%}": "{{ $value | humanizePercentage }}",
    "{s}": "{{ $value | humanizeDuration }}",
    "{B}": "{{ $value | humanize1024 }}",
    "{#}": "{{ $value | humanize }}",
}
"""How a phrase shows the value of the expression."""

_POD = "{{ $labels.instance }}{{ with $labels.pod }} (pod {{ $labels.namespace }}/{{ . }}){{ end }}"
_PLACE: Final[Mapping[str, str]] = {
    "gpu": "GPU {{ $labels.gpu }} of " + _POD,
    "engine": "engine {{ $labels.engine }}, rank {{ $labels.rank }}, of " + _POD,
    "pod": _POD,
}


@cache
def phrases() -> dict[str, str]:
    """Return the phrase of each catalogue rule."""
    found: dict[str, str] = yaml.safe_load(PHRASES.read_text(encoding="utf-8"))
    return found


def with_value(phrase: str) -> str:
    """Return `phrase` with the template for the value put in."""
    for mark, template in _VALUES.items():
        phrase = phrase.replace(mark, template)
    return phrase


def describe(phrase: str, place: str) -> str:
    """Return a description: the phrase, and where (`gpu`, `engine` or `pod`)."""
    return f"{with_value(phrase)}: {_PLACE[place]}."


def listed(names: Iterable[str]) -> str:
    """Return names as a regular expression that matches each of them and nothing else."""
    return "|".join(names)
