"""The list of queries that no recording of ours can fill, and why: `unfilled.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import yaml

from heptascope.surfaces.dashboards.board import Board, Panel, Target


class Unfilled(NamedTuple):
    """One entry: its kind (event, recording), a board's uid, a panel's title, a query's letter ("": all), and the reason."""

    kind: str
    board: str
    panel: str
    query: str
    why: str

    def about(self, board: Board, panel: Panel, target: Target) -> bool:
        """Whether the entry speaks of this query."""
        return (self.board, self.panel) == (board.uid, panel.title) and self.query in ("", target.ref)


@cache
def unfilled() -> tuple[Unfilled, ...]:
    """Return the list."""
    text = (files("heptascope") / "surfaces" / "dashboards" / "unfilled.yaml").read_text(encoding="utf-8")
    kinds: Mapping[str, list[dict[str, str]]] = yaml.safe_load(text)
    return tuple(
        Unfilled(kind, row["board"], row["panel"], row.get("query", ""), row["why"]) for kind, rows in kinds.items() for row in rows
    )


def why(board: Board, panel: Panel, target: Target, kind: str) -> str:
    """Return why no recording fills a query, if the reason is of this kind; else ""."""
    return next((entry.why for entry in unfilled() if entry.kind == kind and entry.about(board, panel, target)), "")
