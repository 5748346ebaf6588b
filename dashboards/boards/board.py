"""A board as Grafana's JSON: layout, numbers, variables, links and annotations."""

from __future__ import annotations

import json
from typing import Any, Final

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.builders import prometheus
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as model

from boards.draw import draw
from boards.limits import BLUE, ORANGE, PURPLE, RED
from boards.panel import Board, Panel, Row
from boards.promql import by, findings
from boards.variables import SOURCE, variable
from heptascope.model import RuleKind
from heptascope.rules.load import load

TAG: Final = "heptascope"
TIMEZONE: Final = "browser"
COLUMNS: Final = 24
HEIGHTS: Final = {"timeseries": 9, "stat": 4, "timeline": 6, "table": 8, "bars": 8}
"""Rows of the grid for each kind of panel; a line of panels is as high as its highest."""

SCHEMA_VERSION: Final = 39
"""Grafana 10.4's version of the model. Newer ones bring it up to date when they load it; none can go back."""

_WHERE: Final = ("namespace", "pod", "instance", "engine", "gpu")
_MENU: Final = "placement"


def to_json(board: Board) -> str:
    """Return the text of a board's file. Raises ValueError where panels do not fill a line."""
    text = json.dumps(_model(board), sort_keys=True, indent=2, cls=JSONEncoder, ensure_ascii=False)
    return json.dumps(without_menu(json.loads(text)), sort_keys=True, indent=2, ensure_ascii=False) + "\n"


def without_menu(board: dict[str, Any]) -> dict[str, Any]:
    """Take out the constant that hides links and annotations in a menu of new Grafanas."""
    for entry in (*board["links"], *board["annotations"]["list"]):
        entry.pop(_MENU, None)
    return board


def _model(board: Board) -> model.Dashboard:
    made = (
        build.Dashboard(board.title)
        .uid(board.uid)
        .description(board.about)
        .tags([TAG])
        .readonly()
        .timezone(TIMEZONE)
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .time(board.start, "now")
        .refresh(board.refresh)
    )
    for name in (*board.variables, "runbooks"):
        made.with_variable(variable(name, board.variables))
    made.link(
        build.DashboardLink("Overview").type(model.DashboardLinkType.LINK).url("/d/heptascope-overview").include_vars(True).keep_time(True)
    )
    boards = build.DashboardLink("Boards").type(model.DashboardLinkType.DASHBOARDS).tags([TAG]).as_dropdown(True)
    made.link(boards.include_vars(True).keep_time(True))
    for annotation in _annotations(board.layer, marks=board.marks):
        made.annotation(annotation)
    done = made.build()
    done.panels = _panels(board.rows)
    done.schema_version = SCHEMA_VERSION
    for one in done.templating.list_val or []:
        if one.type_val == model.VariableType.CONSTANT:
            one.hide = model.VariableHide.HIDE_VARIABLE
    return done


def _panels(rows: tuple[Row, ...]) -> list[model.Panel | model.RowPanel]:
    """Return the panels with their numbers and places, row after row."""
    done: list[model.Panel | model.RowPanel] = []
    y, number = 0, 0
    for row in rows:
        number += 1
        title = model.RowPanel(title=row.title, id_val=number, collapsed=row.collapsed, grid_pos=model.GridPos(h=1, w=COLUMNS, x=0, y=y))
        y += 1
        inside: list[model.Panel] = []
        for line in row.lines:
            height = max(HEIGHTS[panel.kind] for panel in line)
            x = 0
            for panel in line:
                number += 1
                inside.append(_placed(panel, number, model.GridPos(h=height, w=panel.width, x=x, y=y)))
                x += panel.width
            if x != COLUMNS:
                raise ValueError(f"the line of {line[0].title!r} is {x} columns wide, not {COLUMNS}")
            y += height
        if row.collapsed:
            title.panels = inside
            done.append(title)
        else:
            done += [title, *inside]
    return done


def _placed(panel: Panel, number: int, place: model.GridPos) -> model.Panel:
    return draw(panel).id(number).grid_pos(place).build()


def _annotations(layer: str, *, marks: bool) -> list[build.AnnotationQuery]:
    """Return what the rules found: on a layer's board its own faults, on the others those that wake someone; more can be switched on."""
    if not layer:
        critical = _annotation("Critical faults", RED, marks, kind="fault", severity="critical")
        return [critical, _annotation("All faults", ORANGE, False, kind="fault"), _annotation("Symptoms", PURPLE, False, kind="symptom")]
    found = [_annotation("Faults here", RED, True, kind="fault", layer=layer)]
    kinds = {rule.kind for rule in load() if rule.layer == layer}
    if RuleKind.SYMPTOM in kinds:
        found.append(_annotation("Symptoms here", PURPLE, True, kind="symptom", layer=layer))
    if RuleKind.LIMITER in kinds:
        found.append(_annotation("Limiters here", BLUE, False, kind="limiter", layer=layer))
    return [*found, _annotation("Faults elsewhere", ORANGE, False, kind="fault", layer=f"!={layer}")]


def _annotation(name: str, color: str, enable: bool, **fixed: str) -> build.AnnotationQuery:
    expr = f"max by (rule, layer, severity, {by(_WHERE)}) ({findings(**fixed)})"
    return (
        build.AnnotationQuery()
        .name(name)
        .datasource(SOURCE)
        .enable(enable)
        .icon_color(color)
        .expr(expr)
        .target(prometheus.Dataquery().expr(expr).ref_id("Anno").range().datasource(SOURCE))
        .title_format("{{rule}}")
        .text_format("{{layer}} · {{severity}} · {{pod}} {{instance}} {{engine}} {{gpu}}")
        .tag_keys("layer,severity")
        .step("30s")
    )
