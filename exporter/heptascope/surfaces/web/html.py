"""The body of the page, from the same objects that the JSON API sends."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from heptascope.model import Layer
from heptascope.signals.schema import SCHEMA
from heptascope.surfaces.views import IDENTITY, Object
from heptascope.surfaces.words import LAYER_WORDS, headline

_ACTIVITY = {row.integral for row in SCHEMA.values() if row.integral}
_HIDDEN = (
    {"heptascope_source_up", "heptascope_source_age_seconds", "heptascope_source_duration_seconds", "heptascope_source_failures_total"}
    | {"heptascope_source_info", "heptascope_signal_unavailable", "heptascope_build_info"}
    | {"heptascope_verdict", "heptascope_limiter", "heptascope_layer_state"}
    | {"heptascope_finding", "heptascope_finding_root", "heptascope_finding_unknown"}
    | _ACTIVITY
    | {name.replace("_seconds_total", "_sampled_seconds_total") for name in _ACTIVITY}
)
"""Signals that the page shows in another form: those of the sources and of the verdict, and counters that integrate a ratio."""
_FACTS = (("heptascope_engine_info", "kind", "{version} {model}"), ("heptascope_gpu_info", "model", "driver {driver}"))
"""What the page names first: the info signal, the label in bold, and the rest."""
_MANY = 3  # values of a gauge; more of them stand below the name, several in a row
_OWN_TITLE, _OWN_WORDS = "heptascope itself", "What it costs, what it watches, and how it came by some of the signals."


def text(value: object) -> str:
    """Return `value` escaped for HTML text and quoted attributes."""
    return escape(str(value), quote=True)


def main(signals: Object, sources: Object, unavailable: Object, verdict: Mapping[str, Any] | None) -> str:
    """Return the page's main part."""
    rows = signals["signals"]
    alone = _alone(rows)
    parts = [_verdict(verdict), _about(rows), _sources(sources["sources"])]
    for layer in (*Layer, None):
        found = [row for row in rows if row["layer"] == layer and row["name"] not in _HIDDEN]
        title, words = (layer.value, LAYER_WORDS[layer]) if layer else (_OWN_TITLE, _OWN_WORDS)
        parts.append(_section(title, words, "".join(_signal(row, alone) for row in found)))
    parts.append(_unavailable(unavailable["unavailable"]))
    return "\n".join(part for part in parts if part)


def key(name: str, labels: Mapping[str, str]) -> str:
    """Return the key under which the script finds the cell of a series."""
    return f"{name}{{{','.join(f'{k}={v}' for k, v in labels.items())}}}"


def raw(name: str, labels: Mapping[str, str], value: object) -> str:
    """Return a series as Prometheus shows it."""
    pairs = ", ".join(f'{k}="{v}"' for k, v in labels.items())
    return f"{name}{{{pairs}}} {value}"


def _verdict(verdict: Mapping[str, Any] | None) -> str:
    if verdict is None:
        return ""
    state, sentence, details = headline(verdict)
    more = "".join(f"<small>{text(line)}</small>" for line in details)
    return f'<section class="verdict {text(state)}" aria-label="Verdict"><h2>{text(state)}</h2><p>{text(sentence)}{more}</p></section>'


def _about(rows: Iterable[Object]) -> str:
    """Return one line on what is watched: engines, then cards."""
    found = {row["name"]: row["values"] for row in rows}
    parts: Counter[str] = Counter()
    for name, main_fact, more in _FACTS:
        for value in found.get(name, ()):
            labels = defaultdict(lambda: "?", value["labels"])
            parts[f"<b>{text(labels[main_fact])}</b> {text(more.format_map(labels))}"] += 1
    shown = " · ".join(part if count == 1 else f"{count} × {part}" for part, count in parts.items())
    return f'<p class="about">Watching {shown}</p>' if parts else ""


def _sources(rows: Iterable[Object]) -> str:
    lines = "".join(_source(row) for row in rows)
    if not lines:
        return "<section><h2>Sources</h2><p>No source has been read yet.</p></section>"
    head = "<thead><tr><th>Source<th>State<th>Age<th>Takes<th>Failures<th>Why</tr></thead>"
    return f"<section><h2>Sources</h2><table>{head}<tbody>{lines}</tbody></table></section>"


def _source(row: Object) -> str:
    state = '<td class="n up">up</td>' if row["up"] else '<td class="n down">down</td>'
    why = " – ".join(part for part in ((row["reason"] or "").replace("_", " "), row["message"]) if part)
    numbers = (
        ("age_seconds", row["age_text"], "age"),
        ("duration_seconds", row["duration_text"], "takes"),
        ("failures_total", row["failures"], "failures"),
    )
    cells = "".join(
        f'<td class="n" data-unit="{word}"><span data-k="heptascope_source_{what}{{source={text(row["name"])}}}">{text(shown)}</span></td>'
        for what, shown, word in numbers
    )
    return f"<tr><th scope=row>{text(row['name'])}</th>{state}{cells}<td>{text(why)}</td></tr>"


def _section(title: str, words: str, rows: str) -> str:
    if not rows:
        return ""
    return f'<section class="searched"><h2>{text(title)}</h2><p>{text(words)}</p><dl class="list">{rows}</dl></section>'


def _alone(rows: Iterable[Object]) -> set[str]:
    """Return the identity labels that tell nothing apart on this page: one engine, one GPU, one rank."""
    seen: dict[str, set[str]] = {}
    for row in rows:
        for value in row["values"]:
            for label in IDENTITY:
                if label in value["labels"]:
                    seen.setdefault(label, set()).add(value["labels"][label])
    return {label for label, values in seen.items() if len(values) < 2} | {"uuid"}


def _signal(row: Object, alone: set[str]) -> str:
    name = row["name"]
    look = "wide" if row["kind"] == "info" else "ratio" if row["unit"] == "ratio" else row["kind"]
    look += " many" if row["kind"] == "gauge" and len(row["values"]) > _MANY else ""
    values = "".join(_value(row, value, alone) for value in row["values"])
    link = f'<a href="api/v1/signals?name={text(name)}" title="{text(name)}">{_short(name)}</a>'
    return f'<div class="s {look}"><dt>{link}</dt><dd>{values}</dd><dd class="help">{text(row["help"])}</dd></div>'


def _short(name: str) -> str:
    """Return a name without our prefix, which may break after each underscore."""
    return text(name.removeprefix("heptascope_")).replace("_", "_<wbr>")


def _value(row: Object, value: Object, alone: set[str]) -> str:
    labels = value["labels"]
    exact = value.get("value", value.get("count"))
    meter = f'<meter min=0 max=1 value="{exact}" aria-hidden=true></meter>' if row["unit"] == "ratio" and exact is not None else ""
    rate = f"<i>{text(value.get('rate_text') or '')}</i>" if row["kind"] == "counter" else ""
    cell = f'<b data-k="{text(key(row["name"], labels))}" title="{text(raw(row["name"], labels, exact))}">{text(value["text"])}</b>'
    parts = (_where(row, labels, alone), meter, cell, rate)
    return f"<div>{' '.join(part for part in parts if part)}</div>"


def _where(row: Object, labels: Mapping[str, str], alone: set[str]) -> str:
    """Return the labels that tell the values of a signal apart; the facts of an info signal are its value."""
    told = {k: v for k, v in labels.items() if k not in alone and (k in IDENTITY or row["kind"] != "info")}
    shown = " ".join(v if k == "engine" else f"{k} {v}" for k, v in told.items())
    return f'<span class="where">{text(shown)}</span>' if shown else ""


def _unavailable(rows: Iterable[Object]) -> str:
    groups: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        groups.setdefault((row["reason"], row["reason_text"], row["detail"]), []).append(row["signal"])
    lines = []
    for (reason, words, detail), names in groups.items():
        codes = " ".join(f"<code>{_short(name)}</code>" for name in dict.fromkeys(names))
        about = f"<b>{text(reason.replace('_', ' '))}</b>: {text(detail or words)}"
        lines.append(f'<div class="gap"><p>{about}</p><p>{codes}</p></div>')
    if not lines:
        return ""
    return f'<section class="searched"><h2>Unavailable</h2><p>What cannot be had here, and why.</p>{"".join(lines)}</section>'
