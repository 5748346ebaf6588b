"""The grid: no panel lies on another, and no hole is left."""

from __future__ import annotations

import pytest

from support.boards import Object, boards

each_board = pytest.mark.parametrize("uid", sorted(boards()))
WIDTH = 24


def cells(panel: Object) -> set[tuple[int, int]]:
    """Return the cells of the grid that a panel covers."""
    place = panel["gridPos"]
    return {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}


def filled(panels: list[Object]) -> None:
    """Assert that panels cover a whole number of the grid's rows, each cell once."""
    every = [cell for panel in panels for cell in cells(panel)]
    assert len(every) == len(set(every)), "panels overlap"
    lines = {y for _, y in every}
    assert set(range(min(lines), max(lines) + 1)) == lines, "a line is empty"
    assert {(x, y) for x in range(WIDTH) for y in lines} == set(every), "a hole, or a panel beyond the edge"


@each_board
def test_the_grid_is_full(uid: str) -> None:
    """Rows and the panels of open rows fill the grid from the top."""
    panels = boards()[uid]["panels"]
    filled(panels)
    assert 0 == min(panel["gridPos"]["y"] for panel in panels)


@each_board
def test_collapsed_rows_come_last_and_are_full_inside(uid: str) -> None:
    """A collapsed row holds its panels, which fill the grid below it when it is opened; nothing comes after it."""
    panels = boards()[uid]["panels"]
    for index, panel in enumerate(panels):
        if panel["type"] == "row" and panel["collapsed"]:
            assert index == len(panels) - 1
            filled(panel["panels"])
            assert panel["gridPos"]["y"] + 1 == min(inner["gridPos"]["y"] for inner in panel["panels"])


@each_board
def test_every_panel_stands_below_a_row(uid: str) -> None:
    """A board starts with a row, and each row has panels."""
    kinds = [panel["type"] for panel in boards()[uid]["panels"]]
    assert "row" == kinds[0]
    for first, second in zip(kinds, [*kinds[1:], "row"], strict=True):
        assert not (first == second == "row") or boards()[uid]["panels"][-1].get("collapsed")


@each_board
def test_panels_are_large_enough_to_read(uid: str) -> None:
    """A graph is at least a quarter of the width, a table a third."""
    least = {"timeseries": 6, "state-timeline": 8, "table": 8, "bargauge": 8, "stat": 4}
    for panel in boards()[uid]["panels"]:
        if panel["type"] != "row":
            assert least[panel["type"]] <= panel["gridPos"]["w"], panel["title"]
