"""Metrics pages in short hand, for engines and releases of which no capture can be had: names, types and labels are the engine's own."""

from __future__ import annotations

import re

_LINE = re.compile(r"(?P<type>\w+) (?P<name>[^\s{]+)(?P<labels>\{.*?\})? (?P<values>.+)")


def page(short: str) -> str:
    """Return the page for lines `TYPE name{labels} value`; a histogram's values are `bound=count ... sum=seconds`.

    A counter's name is written as it stands on the wire.
    """
    lines: list[str] = []
    declared: set[str] = set()
    for line in filter(None, (line.strip() for line in short.splitlines())):
        found = _LINE.fullmatch(line)
        assert found is not None, line
        kind, name, labels, values = found["type"], found["name"], found["labels"] or "", found["values"]
        if name not in declared:
            declared.add(name)
            lines.append(f"# TYPE {name} {kind}")
        if kind in ("histogram", "summary"):
            lines += _distribution(name, labels, dict(pair.split("=") for pair in values.split()))
        else:
            lines.append(f"{name}{labels} {values}")
    return "\n".join(lines) + "\n"


def _distribution(name: str, labels: str, values: dict[str, str]) -> list[str]:
    """Return buckets, sum and count; a summary gives its count itself."""
    total = values.pop("sum")
    count = values.pop("count", "") or list(values.values())[-1]
    inner = labels[1:-1] + "," if labels else ""
    buckets = [f'{name}_bucket{{{inner}le="{bound}"}} {number}' for bound, number in values.items()]
    return [*buckets, f"{name}_sum{labels} {total}", f"{name}_count{labels} {count}"]
