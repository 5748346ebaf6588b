"""Panels as Grafana's own model, one function for each kind of panel.

Only options that Grafana 10.4 knows are used; newer ones keep their defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from grafana_foundation_sdk.builders import bargauge, common, prometheus, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.models import common as shared
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from boards.limits import CLEAR, GREEN, GREY, Line, steps
from boards.panel import Column, Kind, Panel, Query, State
from boards.promql import with_place
from boards.variables import SOURCE

Drawn = timeseries.Panel | stat.Panel | statetimeline.Panel | table.Panel | bargauge.Panel
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DASH: Final = [10.0, 8.0]
_MANY_SERIES: Final = 2


def draw(panel: Panel) -> Drawn:
    """Return the builder of a panel, without number and place."""
    drawn = _DRAW[panel.kind](panel)
    drawn.title(panel.title).description(panel.description()).datasource(SOURCE).unit(panel.unit).no_value(panel.empty)
    if panel.decimals is not None:
        drawn.decimals(panel.decimals)
    if panel.links:
        drawn.data_links([_link(title, url) for title, url in panel.links])
    for letter, query in zip(_LETTERS, panel.queries, strict=False):
        drawn.with_target(_target(panel, letter, query))
    return drawn


def _target(panel: Panel, letter: str, query: Query) -> prometheus.Dataquery:
    expr = with_place(query.expr) if "{{place}}" in query.legend else query.expr
    target = prometheus.Dataquery().expr(expr).legend_format(query.legend).ref_id(letter).datasource(SOURCE)
    if panel.kind in ("table", "bars"):
        target = target.instant()
        return target.format(PromQueryFormat.TABLE) if panel.kind == "table" else target
    return target.range()


def _link(title: str, url: str) -> build.DashboardLink:
    return build.DashboardLink(title).url(url)


def _thresholds(limits: Iterable[Line], base: str) -> build.ThresholdsConfig:
    return build.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps(tuple(limits), base))


def _color(mode: model.FieldColorModeId) -> build.FieldColor:
    return build.FieldColor().mode(mode)


def _mapping(states: Iterable[State]) -> list[model.ValueMapping]:
    rows = {str(code): model.ValueMappingResult(text=text, color=color, index=code) for code, (text, color) in enumerate(states, 1)}
    return [model.ValueMap(options=rows)]


def _tooltip() -> common.VizTooltipOptions:
    return common.VizTooltipOptions().mode(shared.TooltipDisplayMode.MULTI).sort(shared.SortOrder.DESCENDING)


def _timeseries(panel: Panel) -> timeseries.Panel:
    legend = common.VizLegendOptions().show_legend(True).display_mode(shared.LegendDisplayMode.TABLE)
    legend = legend.placement(shared.LegendPlacement.BOTTOM).calcs(["lastNotNull", "max"]).sort_by("Max").sort_desc(True)
    drawn = (
        timeseries.Panel()
        .legend(legend)
        .tooltip(_tooltip())
        .color_scheme(_color(model.FieldColorModeId.PALETTE_CLASSIC))
        .thresholds(_thresholds(panel.limits, CLEAR))
        .show_points(shared.VisibilityMode.NEVER)
        .span_nulls(False)
        .fill_opacity(60 if panel.stacked else 0)
        .line_width(1)
    )
    if panel.log:
        drawn.scale_distribution(common.ScaleDistributionConfig().type(shared.ScaleDistribution.LOG).log(10))
    else:
        drawn.min(0)
    if panel.limits and panel.top is None:
        drawn.axis_soft_max(max(limit.value for limit in panel.limits))
    if panel.limits:
        drawn.thresholds_style(common.GraphThresholdsStyleConfig().mode(shared.GraphThresholdsStyleMode.DASHED))
    if panel.stacked:
        drawn.stacking(common.StackingConfig().mode(shared.StackingMode.NORMAL).group("A"))
    if panel.top is not None:
        drawn.max(panel.top)
    for letter, query in zip(_LETTERS, panel.queries, strict=False):
        if query.dashed:
            drawn.override_by_query(letter, _dashed())
    for name, color in panel.colors.items():
        drawn.override_by_regexp(f"/^{name}/", [_property("color", {"mode": "fixed", "fixedColor": color})])
    return drawn


def _dashed() -> list[model.DynamicConfigValue]:
    return [
        _property("custom.lineStyle", {"fill": "dash", "dash": _DASH}),
        _property("custom.fillOpacity", 0),
        _property("custom.lineWidth", 2),
        _property("custom.stacking", {"mode": "none", "group": "B"}),
    ]


def _stat(panel: Panel) -> stat.Panel:
    drawn = (
        stat.Panel()
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False).fields(""))
        .color_scheme(_color(model.FieldColorModeId.THRESHOLDS))
        .thresholds(_thresholds(panel.limits, panel.base or ("text" if not panel.limits else GREEN)))
        .color_mode(shared.BigValueColorMode.VALUE)
        .graph_mode(shared.BigValueGraphMode.NONE if panel.states else shared.BigValueGraphMode.AREA)
        .justify_mode(shared.BigValueJustifyMode.AUTO)
        .text_mode(shared.BigValueTextMode.AUTO if len(panel.queries) < _MANY_SERIES else shared.BigValueTextMode.VALUE_AND_NAME)
        .orientation(shared.VizOrientation.AUTO)
    )
    return drawn.mappings(_mapping(panel.states)) if panel.states else drawn


def _timeline(panel: Panel) -> statetimeline.Panel:
    return (
        statetimeline.Panel()
        .mappings(_mapping(panel.states))
        .color_scheme(_color(model.FieldColorModeId.THRESHOLDS))
        .thresholds(_thresholds((), "text"))
        .merge_values(True)
        .show_value(shared.VisibilityMode.AUTO)
        .align_value(shared.TimelineValueAlignment.LEFT)
        .row_height(0.8)
        .fill_opacity(80)
        .line_width(0)
        .span_nulls(False)
        .tooltip(_tooltip())
        .legend(
            common.VizLegendOptions().show_legend(True).display_mode(shared.LegendDisplayMode.LIST).placement(shared.LegendPlacement.BOTTOM)
        )
    )


def _bars(panel: Panel) -> bargauge.Panel:
    """Draw bars: green up to their threshold, grey if they have none."""
    of_all = tuple(limit for limit in panel.limits if not limit.bar)
    drawn = (
        bargauge.Panel()
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False).fields(""))
        .color_scheme(_color(model.FieldColorModeId.THRESHOLDS))
        .thresholds(_thresholds(of_all, GREEN if of_all else GREY))
        .display_mode(shared.BarGaugeDisplayMode.BASIC)
        .value_mode(shared.BarGaugeValueMode.TEXT)
        .show_unfilled(True)
        .min(0)
        .orientation(shared.VizOrientation.HORIZONTAL)
    )
    for bar in dict.fromkeys(limit.bar for limit in panel.limits if limit.bar):
        drawn.override_by_name(bar, [_steps(tuple(limit for limit in panel.limits if limit.bar == bar), GREEN)])
    return drawn.max(panel.top) if panel.top is not None else drawn


def _table(panel: Panel) -> table.Panel:
    """Draw a table: the columns that are listed, in that order, and no others."""
    drawn = table.Panel().show_header(True).cell_height(shared.TableCellHeight.SM).filterable(True)
    drawn.thresholds(_thresholds((), "text"))
    if len(panel.queries) > 1:
        drawn.with_transformation(model.DataTransformerConfig(id_val="merge", options={}))
    drawn.with_transformation(
        model.DataTransformerConfig(
            id_val="organize",
            options={
                "excludeByName": dict.fromkeys(("Time", *panel.hidden), True),
                "indexByName": {column.source: index for index, column in enumerate(panel.columns)},
                "renameByName": {column.source: column.heading for column in panel.columns},
            },
        )
    )
    for column in panel.columns:
        properties = _column(column)
        if properties:
            drawn.override_by_name(column.heading, properties)
    return drawn


def _column(column: Column) -> list[model.DynamicConfigValue]:
    found = [_property("unit", column.unit)] if column.unit else []
    if column.width:
        found.append(_property("custom.width", column.width))
    if column.states:
        found.append(_property("mappings", _mapping(column.states)))
    if column.limits:
        found.append(_steps(column.limits, "text"))
    if column.states or column.limits:
        found.append(_property("custom.cellOptions", {"type": "color-text"}))
    if column.link is not None:
        title, url = column.link
        found.append(_property("links", [{"title": title, "url": url}]))
    return found


def _steps(limits: tuple[Line, ...], base: str) -> model.DynamicConfigValue:
    return _property("thresholds", model.ThresholdsConfig(mode=model.ThresholdsMode.ABSOLUTE, steps=steps(limits, base)))


def _property(name: str, value: Any) -> model.DynamicConfigValue:
    return model.DynamicConfigValue(id_val=name, value=value)


_DRAW: Final[Mapping[Kind, Callable[[Panel], Drawn]]] = {
    "timeseries": _timeseries,
    "stat": _stat,
    "timeline": _timeline,
    "table": _table,
    "bars": _bars,
}
