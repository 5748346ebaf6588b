"""Time series and state timelines as SVG, drawn the way Grafana draws them, so that a board can be looked at without one."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from heptascope.surfaces.dashboards.scope import Scope
from support import dashboard_units as units
from support.dashboard_fields import Field

LEFT, RIGHT, TOP, BOTTOM = 58.0, 8.0, 6.0, 18.0
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Mark:
    """Something found at a time: a vertical line."""

    t: float
    colour: str
    title: str


@dataclass(frozen=True)
class Area:
    """Where a chart is drawn, in pixels, and what it spans."""

    width: float
    height: float
    start: float
    end: float
    low: float = 0.0
    high: float = 1.0
    left: float = LEFT
    log: bool = False

    def x(self, t: float) -> float:
        """Return where a time lies."""
        return self.left + (t - self.start) / (self.end - self.start) * (self.width - self.left - RIGHT)

    def y(self, value: float) -> float:
        """Return where a value lies."""
        low, high, value = (math.log10(one) for one in (self.low, self.high, value)) if self.log else (self.low, self.high, value)
        share = (value - low) / ((high - low) or 1.0)
        return self.height - BOTTOM - share * (self.height - TOP - BOTTOM)


def time_series(fields: Sequence[Field], scope: Scope, size: tuple[float, float], marks: Iterable[Mark] = (), step: float = 15.0) -> str:
    """Return a chart of lines."""
    stacked = _stacked(fields)
    area = _area(fields, stacked, scope, size)
    parts = [*_grid(area, fields), *_thresholds(fields, area)]
    for field, (points, base) in zip(fields, stacked, strict=True):
        parts += _bars(field, points, area, step) if field["custom.drawStyle"] == "bars" else _line(field, points, base, area, step)
    parts += _marks(marks, area)
    return _svg(area, parts)


def _stacked(fields: Sequence[Field]) -> list[tuple[Points, Points]]:
    """Return each field's points with those that lie below it in its stack, and these alone."""
    sums: dict[str, dict[float, float]] = {}
    found = []
    for field in fields:
        stacking = field["custom.stacking"] or {}
        if stacking.get("mode", "none") == "none":
            found.append((field.points, ()))
            continue
        below = sums.setdefault(stacking.get("group", "A"), {})
        base = tuple((t, below.get(t, 0.0)) for t, _ in field.points)
        for t, value in field.points:
            below[t] = below.get(t, 0.0) + (value if value == value else 0.0)
        found.append((tuple((t, below[t]) for t, _ in field.points), base))
    return found


def _area(fields: Sequence[Field], stacked: Sequence[tuple[Points, Points]], scope: Scope, size: tuple[float, float]) -> Area:
    one = fields[0] if fields else None
    log = one is not None and (one["custom.scaleDistribution"] or {}).get("type") == "log"
    values = [value for points, _ in stacked for _, value in points if math.isfinite(value) and (value > 0 or not log)]
    low, high = (min(values), max(values)) if values else (0.1, 1.0)
    if one is not None:
        soft_low, soft_high = one["custom.axisSoftMin"], one["custom.axisSoftMax"]
        low, high = min(low, low if soft_low is None else soft_low), max(high, high if soft_high is None else soft_high)
        low, high = low if one["min"] is None else one["min"], high if one["max"] is None else one["max"]
    if high <= low:
        high = low + (abs(low) or 1.0)
    room = 0.0 if one is not None and one["max"] is not None else 0.05 * (high - low)
    if log:
        low, high, room = 10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(high)), 0.0
    flat = Area(*size, scope.start, scope.end, low, high + room, log=log)
    return replace(flat, left=max(34.0, 14 + 6.2 * max((len(label) for _, label in _ticks(flat, fields)), default=0)))


def _ticks(area: Area, fields: Sequence[Field]) -> list[tuple[float, str]]:
    first = fields[0] if fields else None
    if area.log:
        powers = [10.0**power for power in range(round(math.log10(area.low)), round(math.log10(area.high)) + 1)]
        return [(value, units.text(value, first.unit, first["decimals"]) if first is not None else f"{value:g}") for value in powers]
    base = 2.0 if first is not None and first.unit == "bytes" else 10.0
    values = units.ticks(area.low, area.high, max(2, int(area.height / 40)), base)
    return [(value, f"{value:g}" if first is None else units.text(value, first.unit, first["decimals"])) for value in values]


def _grid(area: Area, fields: Sequence[Field]) -> Iterator[str]:
    for value, label in _ticks(area, fields):
        y = area.y(value)
        yield f'<line class="grid" {_across(area, y)}/>'
        yield _label(area.left - 6, y + 4, label)
    yield from _times(area)


def _times(area: Area) -> Iterator[str]:
    span = area.end - area.start
    step = next(one for one in (60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 86400) if span / one <= max(3, area.width / 70))
    t = area.start - area.start % step + step
    while t < area.end:
        label = datetime.fromtimestamp(t, UTC).strftime("%H:%M")
        yield f'<line class="grid" {_upright(area, t)}/>'
        yield f'<text class="axis" x="{area.x(t):.1f}" y="{area.height - 4}" text-anchor="middle">{label}</text>'
        t += step


def _thresholds(fields: Sequence[Field], area: Area) -> Iterator[str]:
    seen = set()
    for field in fields:
        mode = (field["custom.thresholdsStyle"] or {}).get("mode", "off")
        steps = tuple((one.get("value"), str(one["color"])) for one in (field["thresholds"] or {}).get("steps") or ())
        if mode != "off" and (mode, steps) not in seen:
            seen.add((mode, steps))
            yield from _threshold(mode, steps, area)


def _threshold(mode: str, steps: Sequence[tuple[float | None, str]], area: Area) -> Iterator[str]:
    """Yield areas and lines. Up to the first transparent step a line has the colour of what lies below it, after it of what lies above."""
    clear = next((i for i, (_, name) in enumerate(steps) if name == "transparent"), 0)
    for i, (value, above) in enumerate(steps):
        if "area" in mode:
            low, high = (area.low if value is None else value), (steps[i + 1][0] or 0.0 if i + 1 < len(steps) else area.high)
            bottom, top = area.y(_clamped(low, area)), area.y(_clamped(high, area))
            yield _box(area.left, top, area.width - RIGHT - area.left, bottom - top, units.colour(above), 0.1)
        if value is not None and mode != "area" and area.low <= value <= area.high:
            colour = units.colour(steps[i - 1][1] if clear >= i else above)
            dash = ' stroke-dasharray="8 6"' if "dashed" in mode else ""
            yield f'<line {_across(area, area.y(value))} stroke="{colour}" stroke-width="1.5"{dash}/>'


def _pieces(points: Points, step: float, span: bool) -> Iterator[list[tuple[float, float]]]:
    """Yield runs of points without a gap."""
    piece: list[tuple[float, float]] = []
    for t, value in points:
        if value != value or (piece and not span and t - piece[-1][0] > 1.5 * step):
            if piece:
                yield piece
            piece = []
        if value == value:
            piece.append((t, value))
    if piece:
        yield piece


def _line(field: Field, points: Points, base: Points, area: Area, step: float) -> Iterator[str]:
    colour, fill = field.line_colour, float(field["custom.fillOpacity"] or 0) / 100
    style = field["custom.lineStyle"] or {}
    dash = f' stroke-dasharray="{" ".join(f"{d:g}" for d in style.get("dash", (10, 10)))}"' if style.get("fill") == "dash" else ""
    width = 1 if field["custom.lineWidth"] is None else field["custom.lineWidth"]
    floor = dict(base)
    for piece in _pieces(points, step, bool(field["custom.spanNulls"])):
        path = " ".join(f"{area.x(t):.1f},{area.y(_clamped(value, area)):.1f}" for t, value in _placed(piece, field, step))
        if fill:
            ends = [(t, floor.get(t, max(area.low, 0.0) if area.high > 0 else area.high)) for t, _ in reversed(piece)]
            under = " ".join(f"{area.x(t):.1f},{area.y(_clamped(value, area)):.1f}" for t, value in ends)
            yield f'<polygon points="{path} {under}" fill="{colour}" opacity="{fill:g}"/>'
        if len(piece) == 1:
            yield f'<circle cx="{area.x(piece[0][0]):.1f}" cy="{area.y(_clamped(piece[0][1], area)):.1f}" r="2" fill="{colour}"/>'
        yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"{dash}/>'


def _placed(piece: list[tuple[float, float]], field: Field, step: float) -> Iterator[tuple[float, float]]:
    if field["custom.lineInterpolation"] != "stepAfter":
        yield from piece
        return
    for (t, value), (after, _) in zip(piece, [*piece[1:], (piece[-1][0] + step, 0.0)], strict=True):
        yield from ((t, value), (after, value))


def _clamped(value: float, area: Area) -> float:
    return min(max(value, area.low), area.high)


def _bars(field: Field, points: Points, area: Area, step: float) -> Iterator[str]:
    width = max(1.0, 0.7 * (area.x(area.start + step) - area.x(area.start)))
    for t, value in points:
        if value == value:
            y = area.y(_clamped(value, area))
            height = max(0.0, area.y(max(area.low, 0.0)) - y)
            yield _box(area.x(t) - width / 2, y, width, height, field.line_colour, 1.0)


def _marks(marks: Iterable[Mark], area: Area) -> Iterator[str]:
    for mark in marks:
        x = area.x(mark.t)
        title = f"<title>{html.escape(mark.title)}</title>"
        yield f'<line {_upright(area, mark.t)} stroke="{mark.colour}" stroke-dasharray="3 3">{title}</line>'
        yield f'<path d="M{x - 4:.1f},{area.height - BOTTOM + 5} h8 l-4,-6 z" fill="{mark.colour}"/>'


def state_timeline(fields: Sequence[Field], scope: Scope, size: tuple[float, float], step: float) -> str:
    """Return a chart of states, a row for each field."""
    width, height = size
    left = min(width * 0.35, 12 + 6.2 * max((len(field.name) for field in fields), default=0))
    area = Area(width, height, scope.start, scope.end, left=left)
    row = (height - BOTTOM - TOP) / max(len(fields), 1)
    parts = list(_times(area))
    for i, field in enumerate(fields):
        share = 0.9 if field["rowHeight"] is None else field["rowHeight"]
        y, tall = TOP + i * row + row * (1 - share) / 2, row * share
        parts.append(
            f'<text class="axis" x="{left - 6:.0f}" y="{y + tall / 2 + 4:.1f}" text-anchor="end">{html.escape(field.name[:60])}</text>'
        )
        parts += _states(field, area, y, tall, step)
    return _svg(area, parts)


def _states(field: Field, area: Area, y: float, tall: float, step: float) -> Iterator[str]:
    runs: list[list[float]] = []
    for t, value in field.points:
        if runs and runs[-1][2] == value and t - runs[-1][1] <= 1.5 * step:
            runs[-1][1] = t
        else:
            runs.append([t, t, value])
    for begin, end, value in runs:
        x, wide = area.x(begin), area.x(min(end + step, area.end)) - area.x(begin)
        yield _box(x, y, wide, tall, field.colour(value), 0.8)
        label = field.text(value)
        if wide > 7 * len(label) and tall >= 10:
            ink = units.ink(field.colour(value))
            yield f'<text class="state" fill="{ink}" x="{x + 5:.1f}" y="{y + tall / 2 + 4:.1f}">{html.escape(label)}</text>'


def spark(points: Points, colour: str, size: tuple[float, float]) -> str:
    """Return the area below the number of a stat."""
    values = [(t, value) for t, value in points if value == value]
    if len(values) < 2:  # a line needs two
        return ""
    low, high = min(v for _, v in values), max(v for _, v in values)
    (start, _), (end, _) = values[0], values[-1]
    place = [(size[0] * (t - start) / (end - start), size[1] * (1 - 0.9 * (v - low) / ((high - low) or 1.0))) for t, v in values]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in place)
    filled = f'<polygon points="0,{size[1]} {line} {size[0]},{size[1]}" fill="{colour}" opacity="0.2"/>'
    outline = f'<polyline points="{line}" fill="none" stroke="{colour}"/>'
    return f'<svg width="{size[0]:.0f}" height="{size[1]:.0f}">{filled}{outline}</svg>'


def _box(x: float, y: float, width: float, height: float, colour: str, opacity: float) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}" opacity="{opacity}"/>'


def _label(x: float, y: float, text: str) -> str:
    return f'<text class="axis" x="{x:.0f}" y="{y:.1f}" text-anchor="end">{html.escape(text)}</text>'


def _across(area: Area, y: float) -> str:
    return f'x1="{area.left:.0f}" x2="{area.width - RIGHT:.0f}" y1="{y:.1f}" y2="{y:.1f}"'


def _upright(area: Area, t: float) -> str:
    return f'x1="{area.x(t):.1f}" x2="{area.x(t):.1f}" y1="{TOP}" y2="{area.height - BOTTOM}"'


def _svg(area: Area, parts: Iterable[str]) -> str:
    return f'<svg width="{area.width:.0f}" height="{area.height:.0f}">{"".join(parts)}</svg>'
