"""Pictures of boards without a Grafana: `python dashboard_preview.py FOLDER [BOARD…]` draws each in several regimes, dark and light.

A board is drawn from its JSON and from what a real Prometheus answers to its queries. It shows what the board says: not each pixel of
Grafana. The pictures are labelled as previews.
"""

from __future__ import annotations

import html
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from heptascope.surfaces.dashboards.board import Board, load_boards
from heptascope.surfaces.dashboards.scope import Ask, Scope, answers, choose, marks
from support import dashboard_units as units
from support.dashboard_charts import Mark
from support.dashboard_fleet import ACTIVE, END
from support.dashboard_panels import HEADER, Shown, body

WIDTH = 1600
_FOR_READERS = {"overview": ("fleet", 1345), "hardware": ("fault", 1160)}
"""Pictures in the documentation: the regime, and how many pixels from the top."""

_CELL, _GAP, _COLUMNS = 30, 8, 24
_CSS = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")


Take = Callable[[str, str, int | None], Path]


class Regime(NamedTuple):
    """What is looked at: a name for the file, when the hour ends, and what is chosen."""

    name: str
    until: float
    chosen: Mapping[str, tuple[str, ...]]


def regimes(board: Board) -> list[Regime]:
    """Return how a board is looked at: the whole fleet, a pod with a fault of its layer, one that serves well, and one that is idle."""
    layer = next((layer for layer in ACTIVE if board.uid.endswith(layer)), "memory")
    pod, t = ACTIVE[layer]
    return [
        Regime("fleet", END, {}),
        Regime("fault", t, {"pod": (pod,)}),
        Regime("busy", END, {"pod": ("research-0",)}),
        Regime("idle", END, {"pod": ("spare-0",)}),
    ]


def page(board: Board, ask: Ask, scope: Scope, chosen: Mapping[str, tuple[str, ...]] | None = None, theme: str = "dark") -> str:
    """Return a board as an HTML page."""
    look, _ = choose(board, ask, scope, chosen)
    found = tuple(_marks(board, ask, look))
    panels = "".join(_panel(raw, board, ask, look, found) for raw in _unfolded(board.raw["panels"]))
    tall = max(_top(raw["gridPos"]) + _tall(raw["gridPos"]) for raw in _unfolded(board.raw["panels"]))
    picked = "".join(_picked(variable, chosen or {}) for variable in board.raw.get("templating", {}).get("list", ()))
    links = "".join(f"<a>{html.escape(link['title'])}</a>" for link in board.raw.get("links", ()))
    times = " – ".join(datetime.fromtimestamp(t, UTC).strftime("%H:%M") for t in (scope.start, scope.end))
    return (
        f'<!doctype html><html data-theme="{theme}"><meta charset="utf-8"><title>{html.escape(board.title)}</title><style>{_CSS}</style>'
        f"<body><header><em>preview, not Grafana · {times} UTC</em><h1>{html.escape(board.title)}</h1>{picked}<nav>{links}</nav></header>"
        f'<main style="height:{tall}px">{panels}</main></body></html>'
    )


def _picked(variable: Mapping[str, Any], chosen: Mapping[str, tuple[str, ...]]) -> str:
    if variable["type"] == "datasource" or variable.get("hide"):
        return ""
    value = ", ".join(chosen.get(variable["name"], ("All",))) if variable["type"] == "query" else str(variable["query"])
    return f"<span>{html.escape(variable.get('label') or variable['name'])} <b>{html.escape(value)}</b></span>"


def _unfolded(panels: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield panels with those of collapsed rows opened below everything else."""
    shift = 0
    for raw in panels:
        yield {**raw, "gridPos": {**raw["gridPos"], "y": raw["gridPos"]["y"] + shift}}
        inside = raw.get("panels") or ()
        if inside:
            top = raw["gridPos"]["y"] + 1
            first = min(one["gridPos"]["y"] for one in inside)
            for one in inside:
                yield {**one, "gridPos": {**one["gridPos"], "y": one["gridPos"]["y"] - first + top + shift}}
            shift += max(one["gridPos"]["y"] + one["gridPos"]["h"] for one in inside) - first


def _top(place: Mapping[str, int]) -> int:
    return place["y"] * (_CELL + _GAP)


def _tall(place: Mapping[str, int]) -> int:
    return place["h"] * (_CELL + _GAP) - _GAP


def _panel(raw: dict[str, Any], board: Board, ask: Ask, look: Scope, found: tuple[Mark, ...]) -> str:
    place = raw["gridPos"]
    column = (WIDTH - 16) / _COLUMNS
    width, height = place["w"] * column - _GAP, _tall(place)
    title = html.escape(raw.get("title") or "")
    style = f'style="left:{place["x"] * column:.0f}px;top:{_top(place)}px;width:{width:.0f}px;height:{height}px"'
    if raw["type"] == "row":
        return f'<section class="row" {style}>⌄ {title}</section>'
    panel = next(one for one in board.panels if one.raw["id"] == raw["id"])
    shown = Shown(panel, answers(panel, ask, look), look, width - 18, height - HEADER - 10, found)
    return f"<section {style}><h2>{title}</h2>{_div(body(shown))}</section>"


def _div(content: str) -> str:
    return f'<div style="height:100%">{content}</div>'


def _marks(board: Board, ask: Ask, look: Scope) -> Iterator[Mark]:
    """Yield where each annotation that is switched on begins to be true."""
    for raw, note in zip(
        [one for one in board.raw["annotations"]["list"] if one.get("expr") or one.get("target")], board.annotations, strict=True
    ):
        if raw.get("enable", True):
            for series in marks(note, ask, look):
                last = look.start
                for t, _ in series.points:
                    if t - last > 2 * look.step(note.step):
                        yield Mark(t, units.colour(raw.get("iconColor", "red")), series.labels.get("rule", note.name))
                    last = t


@contextmanager
def pictures(folder: Path) -> Iterator[Take]:
    """Give what takes a picture: of a page's text, to a name in `folder`, of so many pixels from the top (None: all)."""
    from support.browser import chromium

    with chromium() as browser:
        context = browser.new_context(viewport={"width": WIDTH, "height": 900})
        tab = context.new_page()

        def take(text: str, name: str, most: int | None) -> Path:
            tab.set_content(text)
            path = folder / f"{name}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            clip = None if most is None else {"x": 0, "y": 0, "width": WIDTH, "height": most}
            tab.screenshot(path=path, full_page=True, clip=clip)
            return path

        yield take


def main() -> None:
    """Draw the boards that are named, or all; those for the documentation also as docs/dashboard-NAME.png."""
    from support.dashboard_world import world

    folder, wanted = Path(sys.argv[1]), sys.argv[2:]
    boards = {board.uid.removeprefix("heptascope-"): board for board in load_boards()}
    with tempfile.TemporaryDirectory() as temporary, world(Path(temporary)) as api, pictures(folder) as take:
        for name in wanted or boards:
            for regime in regimes(boards[name]):
                _draw(name, boards[name], regime, api, take)


def _draw(name: str, board: Board, regime: Regime, ask: Ask, take: Take) -> None:
    for theme in ("dark", "light") if regime.name == "fleet" else ("dark",):
        text = page(board, ask, Scope(regime.until - 3600, regime.until), regime.chosen, theme)
        print(take(text, f"{name}-{regime.name}{'-light' * (theme == 'light')}", None))
        wanted, tall = _FOR_READERS.get(name, ("", 0))
        if (regime.name, theme) == (wanted, "dark"):
            print(take(text, f"docs/dashboard-{name}", tall))


if __name__ == "__main__":
    main()
