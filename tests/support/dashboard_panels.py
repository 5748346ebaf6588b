"""The panels of a board as HTML: what Grafana would show in them, with legends, units, mappings and the text for no data."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from heptascope.sources.prometheus_api import Series
from heptascope.surfaces.dashboards.board import Panel, Target
from heptascope.surfaces.dashboards.scope import Scope
from support import dashboard_charts as charts
from support.dashboard_charts import Mark
from support.dashboard_fields import Field, fields, reduced
from support.dashboard_tables import table

HEADER = 32.0
LEGEND_ROW = 22.0
_LEGEND_SHARE = 0.35

Answers = Sequence[tuple[Target, list[Series]]]


@dataclass(frozen=True)
class Shown:
    """What a panel has to show, and where."""

    panel: Panel
    answers: Answers
    scope: Scope
    width: float
    height: float
    marks: tuple[Mark, ...] = ()

    @property
    def options(self) -> dict[str, Any]:
        """The panel's options."""
        return dict(self.panel.raw.get("options", {}))

    @property
    def step(self) -> float:
        """The step of its queries, in seconds."""
        return max((self.scope.step(target.interval) for target in self.panel.targets), default=self.scope.scrape)


def body(shown: Shown) -> str:
    """Return what lies below a panel's title."""
    kind = shown.panel.kind
    if kind == "text":
        return f'<div class="text">{_markdown(shown.options.get("content", ""))}</div>'
    if not any(series for _, series in shown.answers):
        message = shown.panel.raw.get("fieldConfig", {}).get("defaults", {}).get("noValue") or "No data"
        return f'<div class="nothing">{html.escape(message)}</div>'
    if kind == "table":
        return table(shown.panel, shown.answers)
    draw = {"timeseries": _time_series, "state-timeline": _states, "stat": _stat, "gauge": _bar_gauge, "bargauge": _bar_gauge}.get(kind)
    assert draw is not None, f"the preview does not know panels of the kind {kind}"
    return draw(shown, fields(shown.panel, shown.answers))


def _time_series(shown: Shown, found: list[Field]) -> str:
    legend, taken = _legend(shown, found)
    right = shown.options.get("legend", {}).get("placement") == "right"
    size = (shown.width * 0.68, shown.height) if right and legend else (shown.width, shown.height - taken)
    chart = charts.time_series(found, shown.scope, size, shown.marks, shown.step)
    return f'<div class="{"beside" if right else "below"}">{chart}{legend}</div>'


def _legend(shown: Shown, found: list[Field]) -> tuple[str, float]:
    """Return a legend and the height that it takes below a chart."""
    options = shown.options.get("legend", {})
    found = [field for field in found if not (field["custom.hideFrom"] or {}).get("legend")]
    found = _sorted(found, options)
    if not options.get("showLegend", True) or options.get("displayMode") == "hidden":
        return "", 0.0
    calcs = options.get("calcs", ())
    as_table = options.get("displayMode") == "table"
    rows = len(found) + 1 if as_table else 1 + sum(len(field.name) + 5 for field in found) * 6.5 // shown.width
    tall = min(rows * LEGEND_ROW, _LEGEND_SHARE * shown.height) if options.get("placement") != "right" else shown.height
    style = f'style="max-height:{tall:.0f}px"'
    if not as_table:
        items = "".join(f"<span>{_dash(field)}{html.escape(field.name)} {_calcs(field, calcs, ' ')}</span>" for field in found)
        return f'<div class="legend list" {style}>{items}</div>', tall
    head = "".join(f"<th>{reduced(calc, ())[0]}</th>" for calc in calcs)
    body_rows = "".join(f"<tr><td>{_dash(field)}{html.escape(field.name)}</td>{_calcs(field, calcs, 'td')}</tr>" for field in found)
    return f'<div class="legend" {style}><table><tr><th></th>{head}</tr>{body_rows}</table></div>', tall


def _sorted(found: list[Field], options: Mapping[str, Any]) -> list[Field]:
    """Return fields in the legend's order."""
    by = next((calc for calc in options.get("calcs", ()) if reduced(calc, ())[0] == options.get("sortBy")), None)
    if by is None:
        return found
    return sorted(found, key=lambda field: reduced(by, field.points)[1] or 0.0, reverse=bool(options.get("sortDesc")))


def _dash(field: Field) -> str:
    return f'<i style="background:{field.line_colour}"></i>'


def _calcs(field: Field, calcs: Iterable[str], around: str) -> str:
    values = [reduced(calc, field.points) for calc in calcs]
    texts = ["" if value is None else field.text(value) for _, value in values]
    if around == "td":
        return "".join(f"<td>{html.escape(text)}</td>" for text in texts)
    return " ".join(f"<b>{title}: {html.escape(text)}</b>" for (title, _), text in zip(values, texts, strict=True))


def _states(shown: Shown, found: list[Field]) -> str:
    most = shown.options.get("perPage") or 20
    pages = f'<div class="more">1 – {most} of {len(found)}</div>' if len(found) > most else ""
    seen = dict.fromkeys((field.text(value), field.colour(value)) for field in found for _, value in field.points)
    shows = shown.options.get("legend", {}).get("showLegend", True)
    legend = "".join(f'<span><i style="background:{colour}"></i>{html.escape(text)}</span>' for text, colour in seen) if shows else ""
    taken = (LEGEND_ROW if legend else 0.0) + (LEGEND_ROW if pages else 0.0)
    chart = charts.state_timeline(found[:most], shown.scope, (shown.width, shown.height - taken), shown.step)
    return f'<div class="below">{chart}{pages}<div class="legend list">{legend}</div></div>'


def _stat(shown: Shown, found: list[Field]) -> str:
    calc = next(iter(shown.options.get("reduceOptions", {}).get("calcs") or ()), "lastNotNull")
    wide = shown.width > shown.height * 1.5
    across = len(found) if wide else 1
    while across > 1 and shown.width / across < 90:  # pixels that a number needs
        across = -(-across // 2)
    down = -(-len(found) // across)
    size = (shown.width / across - 4, shown.height / down - 4)
    tiles = "".join(_tile(shown, field, reduced(calc, field.points)[1], size, len(found)) for field in found)
    return f'<div class="stats" style="grid-template-columns:repeat({across},1fr)">{tiles}</div>'


def _tile(shown: Shown, field: Field, value: float | None, size: tuple[float, float], count: int) -> str:
    text = "–" if value is None else field.text(value)
    colour = field.colour(value) if value is not None else "var(--text)"
    mode = shown.options.get("textMode", "auto")
    named = mode in ("name", "value_and_name") or (mode == "auto" and count > 1)
    font = max(10.0, min(size[1] * (0.4 if named else 0.55), size[0] / (0.62 * max(len(text), 3)), 64.0))
    name = f'<small style="font-size:{max(10.0, min(font * 0.5, 15.0)):.0f}px">{html.escape(field.name)}</small>' if named else ""
    filled = shown.options.get("colorMode") == "background"
    style = f"background:{colour};color:#fff" if filled else f"color:{colour}"
    line = charts.spark(field.points, colour, (size[0], size[1] * 0.4)) if shown.options.get("graphMode") == "area" else ""
    value_text = "" if mode == "name" else f'<b style="font-size:{font:.0f}px">{html.escape(text)}</b>'
    return f'<div class="tile" style="{style};height:{size[1]:.0f}px">{name}{value_text}{line}</div>'


def _bar_gauge(shown: Shown, found: list[Field]) -> str:
    calc = next(iter(shown.options.get("reduceOptions", {}).get("calcs") or ()), "lastNotNull")
    values = [(field, reduced(calc, field.points)[1]) for field in found]
    most = max((value for _, value in values if value is not None), default=1.0)
    rows = []
    for field, value in values:
        high = field["max"] if field["max"] is not None else most or 1.0
        share = 0.0 if value is None else min(max(value / high, 0.0), 1.0) * 100
        text = "–" if value is None else field.text(value)
        colour = "var(--text)" if value is None else field.colour(value)
        ink = colour if shown.options.get("valueMode", "color") == "color" else "var(--text)"
        rows.append(
            f'<div class="bar"><span>{html.escape(field.name)}</span><div><u style="width:{share:.1f}%;background:{colour}"></u></div>'
            f'<b style="color:{ink}">{html.escape(text)}</b></div>'
        )
    return f'<div class="bars">{"".join(rows)}</div>'


def _markdown(content: str) -> str:
    """Return simple Markdown as HTML: paragraphs, lists, bold, code, links, tables left as text."""
    text = html.escape(content)
    text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text)
    text = re.sub(r"`(.+?)`", r"<code>\1</code>", text)
    text = re.sub(r"\[(.+?)\]\((.+?)\)", r'<a href="\2">\1</a>', text)
    text = re.sub(r"^#+ (.+)$", r"<h4>\1</h4>", text, flags=re.MULTILINE)
    text = re.sub(r"^[-*] (.+)$", r"<li>\1</li>", text, flags=re.MULTILINE)
    return "".join(f"<p>{part}</p>" for part in text.split("\n\n"))
