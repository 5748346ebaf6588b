"""The page of one trace: a single file without scripts or references, for mail and archives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from heptascope.sources.trace.measures import GapBucket, Measures
from heptascope.surfaces.trace_report import Report
from heptascope.surfaces.trace_sections import RANKS_SHOWN, Section, duration, percent, plain

# Colours that people with any kind of colour vision tell apart (the Okabe-Ito palette), and greys.
_COLOURS = {
    "attention_prefill": "#0072b2",
    "attention_decode": "#56b4e9",
    "attention": "#3a93cf",
    "gemm": "#009e73",
    "moe": "#b5cf3f",
    "norm_elementwise": "#e69f00",
    "sampling": "#f0e442",
    "copy": "#cc79a7",
    "collective": "#d55e00",
    "other": "#888888",
}
_WIDTH, _LANE, _AXIS = 960, 64, 18
_BARS_HEIGHT = 120
_META = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; }
html { background: Canvas; color: CanvasText; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1000px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.note { border-left: 4px solid #e69f00; padding-left: .7rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th.text, td.text { text-align: left; max-width: min(34rem, 45vw); overflow: hidden; text-overflow: ellipsis; }
tr.strong td { font-weight: 600; background: #e69f0026; } td.wrapped { white-space: normal; max-width: 44rem; }
caption { caption-side: bottom; text-align: left; opacity: .75; padding-top: .3rem; }
svg { width: 100%; height: auto; display: block; } svg text { fill: currentColor; font-size: 11px; }
.lane { fill: var(--soft); } .legend span { display: inline-block; margin-right: 1rem; }
.legend i { display: inline-block; width: .8rem; height: .8rem; margin-right: .3rem; vertical-align: -1px; }
.files { opacity: .75; }
"""


def page(report: Report) -> str:
    """Write a report as one HTML file."""
    ranks = report.run.ranks[:RANKS_SHOWN] if report.run is not None else []
    body = [
        f"<h1>{escape(report.headline)}</h1>",
        f'<p class="files">{"<br>".join(escape(plain(path)) for path in report.files)}</p>',
        *(f'<p class="note">{escape(note)}</p>' for note in report.notes),
        *(_table(section) for section in report.answers()),
        *_timeline(ranks),
        *_gaps(ranks),
        *(_table(section) for section in report.details()),
    ]
    head = f"{_META}<title>Trace</title><style>{_STYLE}</style>"
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n' + "\n".join(body) + "\n</body></html>\n"


def _timeline(ranks: Sequence[Measures]) -> Iterator[str]:
    shown = [rank for rank in ranks if rank.timeline]
    if not shown:
        return
    used = [name for name in _COLOURS if any(name in rank.timeline for rank in shown)]
    yield "<h2>Timeline</h2>"
    spans = "".join(f'<span><i style="background:{_COLOURS[name]}"></i>{escape(name)}</span>' for name in used)
    yield f'<p class="legend">{spans}</p>'
    for rank in shown:
        yield _lane(rank)


def _lane(rank: Measures) -> str:
    """Draw one rank: columns of equal time, filled by the share of each class; what stays empty was idle."""
    columns = len(next(iter(rank.timeline.values())))
    base = [0.0] * columns
    shapes = []
    for name in (name for name in _COLOURS if name in rank.timeline):
        top = [min(low + share, 1.0) for low, share in zip(base, rank.timeline[name], strict=True)]
        shapes.append(f'<path d="{_step_area(base, top)}" fill="{_COLOURS[name]}"><title>{escape(name)}</title></path>')
        base = top
    label = escape(f"rank {rank.rank}: share of time by class over {duration(rank.wall_seconds)}")
    axis = _LANE + _AXIS - 5
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_LANE + _AXIS}" role="img" aria-label="{label}">'
        f'<rect class="lane" width="{_WIDTH}" height="{_LANE}"/>{"".join(shapes)}'
        f'<text x="0" y="{axis}">rank {escape(rank.rank)}</text>'
        f'<text x="{_WIDTH}" y="{axis}" text-anchor="end">{duration(rank.wall_seconds)}</text></svg>'
    )


def _step_area(low: Sequence[float], high: Sequence[float]) -> str:
    width = _WIDTH / len(low)
    there = [f"L{i * width:.1f} {_LANE * (1 - y):.1f}H{(i + 1) * width:.1f}" for i, y in enumerate(high)]
    back = [f"L{(i + 1) * width:.1f} {_LANE * (1 - y):.1f}H{i * width:.1f}" for i, y in reversed(list(enumerate(low)))]
    return "M" + "".join([*there, *back])[1:] + "Z"


def _gaps(ranks: Sequence[Measures]) -> Iterator[str]:
    for rank in ranks:
        filled = [bucket for bucket in rank.gap_histogram if bucket.count]
        if filled:
            yield f"<h2>Idle gaps by length, rank {escape(rank.rank)}</h2>"
            yield _bars(_trimmed(rank.gap_histogram), rank.wall_seconds)


def _trimmed(buckets: Sequence[GapBucket]) -> Sequence[GapBucket]:
    """Leave out the empty buckets behind the last filled one."""
    last = max(i for i, bucket in enumerate(buckets) if bucket.count)
    return buckets[: last + 1]


def _bars(buckets: Sequence[GapBucket], wall: float) -> str:
    """Draw the idle time in gaps of each length; the number of gaps stands over its bar."""
    most = max(bucket.seconds for bucket in buckets) or 1.0
    width = min(_WIDTH / len(buckets), 80.0)
    parts = []
    for i, bucket in enumerate(buckets):
        height = _BARS_HEIGHT * bucket.seconds / most
        label = f"≤ {duration(bucket.upper)}" if bucket.upper is not None else "longer"
        share = percent(bucket.seconds / wall) if wall else ""
        x, middle = i * width, i * width + width / 2
        parts.append(
            f'<rect x="{x + 2:.1f}" y="{_AXIS + _BARS_HEIGHT - height:.1f}" width="{width - 4:.1f}" height="{height:.1f}" fill="#0072b2">'
            f"<title>{bucket.count} gaps, {duration(bucket.seconds)}, {share} of the wall time</title></rect>"
            f'<text x="{middle:.1f}" y="{_AXIS + _BARS_HEIGHT - height - 4:.1f}" text-anchor="middle">{bucket.count:,}</text>'
            f'<text x="{middle:.1f}" y="{2 * _AXIS + _BARS_HEIGHT - 5}" text-anchor="middle">{label}</text>'
        )
    box = f"0 0 {_WIDTH} {2 * _AXIS + _BARS_HEIGHT}"
    return f'<svg viewBox="{box}" role="img" aria-label="idle time by length of gap">{"".join(parts)}</svg>'


def _table(section: Section) -> str:
    kinds = [_kind(section, i) for i in range(len(section.columns))]
    head = "".join(f"<th {kind}>{escape(column)}</th>" for kind, column in zip(kinds, section.columns, strict=True))
    rows = "".join(_row(kinds, row, i in section.strong) for i, row in enumerate(section.rows))
    caption = f"<caption>{escape(section.note)}</caption>" if section.note else ""
    table = f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    title = escape(section.title)
    return f'<h2>{title}</h2><div class="scroll" tabindex="0" role="region" aria-label="{title}">{table}</div>'


def _row(kinds: Sequence[str], row: Sequence[str], strong: bool) -> str:
    cells = "".join(_cell(kind, value) for kind, value in zip(kinds, row, strict=True))
    return f"""<tr{' class="strong"' if strong else ""}>{cells}</tr>"""


def _kind(section: Section, column: int) -> str:
    if section.wrapped and column:
        return 'class="text wrapped"'
    return 'class="text"' if not column or section.columns[column] in section.words else ""


def _cell(kind: str, value: str) -> str:
    title = f' title="{escape(value)}"' if kind else ""
    return f"<td {kind}{title}>{escape(value)}</td>"
