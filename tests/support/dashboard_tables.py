"""Table panels as HTML: the frames of the queries, through the transformations that our boards use, with cells as overrides say."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from heptascope.sources.prometheus_api import Series
from heptascope.surfaces.dashboards.board import Panel, Target
from support.dashboard_fields import Field, options_of

Row = dict[str, Any]
_MOST_ROWS = 40


def table(panel: Panel, answers: Sequence[tuple[Target, list[Series]]]) -> str:
    """Return a table panel."""
    rows = _rows(panel, answers)
    columns = list(dict.fromkeys(column for row in rows for column in row))
    made = {column: Field(column, options_of(panel, column, "", _kind(rows, column)), (), 0) for column in columns}
    columns = [column for column in columns if not made[column]["custom.hidden"]]
    head = "".join(f"<th{_width(made[column])}>{html.escape(made[column]['displayName'] or column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(_cell(made[column], row.get(column)) for column in columns) + "</tr>" for row in rows[:_MOST_ROWS])
    return f'<div class="table"><table><tr>{head}</tr>{body}</table></div>'


def _kind(rows: Sequence[Row], column: str) -> str:
    return "number" if any(isinstance(row.get(column), float) for row in rows) else "string"


def _width(field: Field) -> str:
    return f' style="width:{field["custom.width"]}px"' if field["custom.width"] else ""


def _cell(field: Field, value: Any) -> str:
    if value is None or value == "":
        return "<td></td>"
    if not isinstance(value, float):
        mapped = next((m["options"][value] for m in field["mappings"] or () if m["type"] == "value" and value in m["options"]), None)
        text = html.escape(str(mapped["text"] if mapped and mapped.get("text") else value))
        return f"<td>{f'<a>{text}</a>' if field['links'] else text}</td>"
    kind = (field["custom.cellOptions"] or {}).get("type", "auto")
    colour, text = field.colour(value), html.escape(field.text(value))
    style = {"color-background": f"background:{colour};color:#fff", "color-text": f"color:{colour}"}.get(kind, "")
    if kind == "gauge":
        share = 100 * min(max(value / (field["max"] or 1.0), 0.0), 1.0)
        return f'<td class="gauge"><u style="width:{share:.0f}%;background:{colour}"></u><span>{text}</span></td>'
    return f'<td class="number" style="{style}">{f"<a>{text}</a>" if field["links"] else text}</td>'


def _rows(panel: Panel, answers: Sequence[tuple[Target, list[Series]]]) -> list[Row]:
    frames = [[_row(one, target, len(answers) > 1) for one in series] for target, series in answers]
    for transformation in panel.raw.get("transformations", ()):
        if transformation.get("disabled"):
            continue
        transform = _TRANSFORMS.get(transformation["id"])
        assert transform is not None, f"the preview does not know the transformation {transformation['id']}"
        frames = transform(frames, transformation.get("options", {}))
    return frames[0] if frames else []


def _row(series: Series, target: Target, several: bool) -> Row:
    t, value = series.points[-1]
    labels = {key: text for key, text in sorted(series.labels.items()) if key != "__name__"}
    return {"Time": t * 1000, **labels, f"Value #{target.ref}" if several else "Value": value}


def _merge(frames: list[list[Row]], options: Mapping[str, Any]) -> list[list[Row]]:
    merged: dict[tuple[tuple[str, str], ...], Row] = {}
    for row in (row for frame in frames for row in frame):
        key = tuple(sorted((name, text) for name, text in row.items() if not isinstance(text, float)))
        merged.setdefault(key, {}).update(row)
    return [list(merged.values())]


def _join(frames: list[list[Row]], options: Mapping[str, Any]) -> list[list[Row]]:
    by = options.get("byField", "Time")
    joined: dict[Any, Row] = {}
    for number, frame in enumerate(frames):
        for row in frame:
            known = joined.setdefault(row.get(by), {})
            known.update({(name if name == by or name not in known else f"{name} {number + 1}"): value for name, value in row.items()})
    inner = options.get("mode") == "inner"
    keys = [{row.get(by) for row in frame} for frame in frames]
    return [[row for key, row in joined.items() if not inner or all(key in some for some in keys)]]


def _organize(frames: list[list[Row]], options: Mapping[str, Any]) -> list[list[Row]]:
    out, order, names = options.get("excludeByName", {}), options.get("indexByName", {}), options.get("renameByName", {})
    only = options.get("includeByName", {})

    def one(row: Row) -> Row:
        kept = [name for name in row if not out.get(name) and (not only or only.get(name))]
        return {names.get(name) or name: row[name] for name in sorted(kept, key=lambda name: order.get(name, 99))}

    organized = []
    for frame in frames:
        columns = sorted({name for row in frame for name in row}, key=lambda name: order.get(name, 99))
        organized.append([one({name: row.get(name, "") for name in columns}) for row in frame])
    return organized


def _sort(frames: list[list[Row]], options: Mapping[str, Any]) -> list[list[Row]]:
    rule = next(iter(options.get("sort", ())), None)
    if rule is None:
        return frames
    missing = float("-inf") if rule.get("desc") else float("inf")

    def key(row: Row) -> tuple[bool, Any]:
        value = row.get(rule["field"])
        return (isinstance(value, str), missing if value is None else value)

    return [sorted(frame, key=key, reverse=bool(rule.get("desc"))) for frame in frames]


def _limit(frames: list[list[Row]], options: Mapping[str, Any]) -> list[list[Row]]:
    return [frame[: int(options.get("limitField", 10))] for frame in frames]


def _filter(frames: list[list[Row]], options: Mapping[str, Any]) -> list[list[Row]]:
    names = options.get("include", {}).get("names")
    return frames if names is None else [[{name: row[name] for name in names if name in row} for row in frame] for frame in frames]


_TRANSFORMS = {
    "merge": _merge,
    "joinByField": _join,
    "organize": _organize,
    "sortBy": _sort,
    "limit": _limit,
    "filterFieldsByName": _filter,
}
