"""The boards as data: Grafana's classic JSON model, as far as queries need it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple

from heptascope.errors import UserError

Json = Mapping[str, Any]


class Target(NamedTuple):
    """One query of a panel. `interval` is its least step as text, "" for the panel's."""

    ref: str
    expr: str
    legend: str
    instant: bool
    table: bool
    interval: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel; `raw` is all of it as Grafana reads it."""

    id: int
    title: str
    kind: str
    targets: tuple[Target, ...]
    raw: Json


class Variable(NamedTuple):
    """One variable. `query` is PromQL or label_values(…), `all_value` what All stands for ("": every option)."""

    name: str
    kind: str
    query: str
    regex: str
    multi: bool
    include_all: bool
    all_value: str
    options: tuple[str, ...]


class Annotation(NamedTuple):
    """One query whose results are drawn as marks."""

    name: str
    expr: str
    step: str


@dataclass(frozen=True, slots=True)
class Board:
    """One dashboard, with the panels of collapsed rows among its own."""

    uid: str
    title: str
    panels: tuple[Panel, ...]
    variables: tuple[Variable, ...]
    annotations: tuple[Annotation, ...]
    raw: Json


@cache
def load_boards() -> tuple[Board, ...]:
    """Return the boards of this package, the overview first. Raises UserError if they are not there."""
    for folder in _folders():
        if folder.is_dir():
            return tuple(read_boards(folder))
    raise UserError("the dashboards are not in this installation", hint="install heptascope from a wheel, or run it from a checkout")


def read_boards(folder: Traversable) -> list[Board]:
    """Return the boards of a folder of JSON files, the overview first, then by name."""
    paths = sorted((path for path in folder.iterdir() if path.name.endswith(".json")), key=lambda path: path.name)
    boards = [board_of(json.loads(path.read_text(encoding="utf-8"))) for path in paths]
    return sorted(boards, key=lambda board: not board.uid.endswith("overview"))


def _folders() -> tuple[Traversable, ...]:
    """Return where boards may be: in the package, or beside it in a checkout."""
    return files("heptascope") / "dashboards", Path(__file__).parents[4] / "dashboards" / "json"


def board_of(model: Json) -> Board:
    """Return the board in a JSON model."""
    return Board(
        model["uid"],
        model["title"],
        tuple(_panel(panel) for panel in _flat(model.get("panels", ())) if panel["type"] != "row"),
        tuple(_variable(variable) for variable in model.get("templating", {}).get("list", ())),
        tuple(_annotations(model)),
        model,
    )


def _flat(panels: Iterable[Json]) -> Iterator[Json]:
    for panel in panels:
        yield panel
        yield from _flat(panel.get("panels") or ())


def _panel(panel: Json) -> Panel:
    least = panel.get("interval") or ""
    targets = tuple(_target(target, least) for target in panel.get("targets", ()) if target.get("expr") and not target.get("hide"))
    return Panel(panel.get("id", 0), panel.get("title", ""), panel["type"], targets, panel)


def _target(target: Json, least: str) -> Target:
    return Target(
        target.get("refId", ""),
        target["expr"],
        target.get("legendFormat", ""),
        bool(target.get("instant")) and not target.get("range"),
        target.get("format") == "table",
        target.get("interval") or least,
    )


def _variable(variable: Json) -> Variable:
    query = variable.get("query", "")
    return Variable(
        variable["name"],
        variable["type"],
        query.get("query", "") if isinstance(query, Mapping) else str(query),
        variable.get("regex") or "",
        bool(variable.get("multi")),
        bool(variable.get("includeAll")),
        variable.get("allValue") or "",
        tuple(str(option["value"]) for option in variable.get("options") or () if option["value"] != "$__all"),
    )


def _annotations(model: Json) -> Iterator[Annotation]:
    for item in model.get("annotations", {}).get("list", ()):
        expr = item.get("expr") or (item.get("target") or {}).get("expr")
        if expr:
            yield Annotation(item["name"], expr, item.get("step") or "")
