"""The list of queries that no recording of ours can fill, and why: `unfilled.yaml`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import yaml

from heptascope.surfaces.dashboards.board import Board, Panel, Target


class Unfilled(NamedTuple):
    """One entry: a board's uid, a panel's title, a query's letter ("": all of them), and the reason."""

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
    rows: Iterable[dict[str, Any]] = yaml.safe_load(text) or ()
    return tuple(Unfilled(row["board"], row["panel"], row.get("query", ""), row["why"]) for row in rows)


def why(board: Board, panel: Panel, target: Target) -> str:
    """Return why no recording fills a query; "" if one does."""
    return next((entry.why for entry in unfilled() if entry.about(board, panel, target)), "")
