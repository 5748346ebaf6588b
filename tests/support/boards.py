"""The committed boards as data, and what tests ask of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import promql_parser

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "dashboards" / "json"
Object = dict[str, Any]

_BUILT_IN = {"$__rate_interval": "1m", "$__interval": "15s", "$__range": "1h"}
_NUMBER = re.compile(r"\$price_[a-z_]+")
VARIABLE = re.compile(r"\$\{?([a-z_]+)")


class Target(NamedTuple):
    """One query of one panel."""

    panel: Object
    ref: str
    expr: str


@cache
def boards() -> dict[str, Object]:
    """Return every board by its uid."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))]
    return {board["uid"]: board for board in found}


def panels(board: Object) -> list[Object]:
    """Return every panel, those of collapsed rows included, without the rows."""
    return [panel for top in board["panels"] for panel in (top, *top.get("panels", ())) if panel["type"] != "row"]


def targets(board: Object) -> Iterator[Target]:
    """Yield every query of every panel."""
    for panel in panels(board):
        for target in panel["targets"]:
            yield Target(panel, target["refId"], target["expr"])


def parsed(expr: str) -> Any:
    """Return the tree of a query; variables inside quotes are left as they are. Raises ValueError for bad PromQL."""
    for name, duration in _BUILT_IN.items():
        expr = expr.replace(name, duration)
    return promql_parser.parse(_NUMBER.sub("1", expr))


def texts(value: Any) -> Iterator[str]:
    """Yield every text inside a piece of JSON."""
    if isinstance(value, str):
        yield value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts(child)
