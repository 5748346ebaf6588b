"""The parts of runbooks and of the index that are made from the rules; people write the rest.

A page lies in `runbooks/ALERT.md`, in another language than English in `runbooks/LANGUAGE/ALERT.md`. Generated parts stand between
`<!-- generated: NAME -->` and `<!-- end: NAME -->`; `heptascope rules render` renews what is between the marks and touches nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from heptascope.errors import UserError
from heptascope.model import Confidence
from heptascope.quantities import format_duration
from heptascope.rules.references import changed
from heptascope.rules.rule import Rule
from heptascope.surfaces.alerts.model import Alert, RuleFile
from heptascope.surfaces.alerts.render import rule_files
from heptascope.surfaces.alerts.routing import inhibitions
from heptascope.surfaces.alerts.settings import RenderSettings
from heptascope.surfaces.alerts.slo import SOURCE as SLO_SOURCE
from heptascope.surfaces.alerts.slo import THRESHOLDS as SLO_THRESHOLDS
from heptascope.surfaces.alerts.written import written_alerts

SECTIONS: Final = ("Meaning", "How sure", "Confirm", "Likely causes", "Fixes", "What not to do", "Links")
"""Headings of a page, in order."""

RUNBOOKS, INDEX = "runbooks", "README.md"
FACTS, LINKS, ALERTS = "facts", "links", "alerts"
_CONFIDENCE: Final[Mapping[Confidence, str]] = {
    Confidence.DIRECT: "direct: the signals show it",
    Confidence.INFERRED: "inferred from several signals",
    Confidence.WEAK: "weak: a hint, look before you act",
}


class About(NamedTuple):
    """What pages say of one alert. `explains` and `explained_by` are alerts that it silences, and that silence it.

    `changes` are thresholds that were given when it was rendered.
    """

    file: str
    alerts: tuple[Alert, ...]
    rule: Rule | None
    explains: tuple[str, ...]
    explained_by: tuple[str, ...]
    changes: Mapping[str, float]

    @property
    def summary(self) -> str:
        """One sentence."""
        return self.alerts[0].annotations["summary"]

    @property
    def severities(self) -> str:
        """The severities, the highest first."""
        return " and ".join(dict.fromkeys(alert.labels["severity"] for alert in self.alerts))


def about_all(rules: Iterable[Rule], files: Iterable[RuleFile], changes: Mapping[str, Mapping[str, float]]) -> dict[str, About]:
    """Return what there is to say of each alert, in the order of the files; `changes` are thresholds by alert and name."""
    rules, files = list(changed(rules, changes)), list(files)
    by_name = {rule.name: rule for rule in rules}
    silences = inhibitions(rules, files)
    found: dict[str, list[tuple[str, Alert]]] = {}
    for file in files:
        for alert in file.alerts:
            found.setdefault(alert.name, []).append((file.name, alert))
    return {
        name: About(
            same[0][0],
            tuple(alert for _, alert in same),
            by_name.get(name),
            tuple(silences.get(name, ())),
            tuple(source for source, targets in silences.items() if name in targets),
            by_name[name].overridden if name in by_name else changes.get(name, {}),
        )
        for name, same in found.items()
    }


def refreshed(out: Path, rules: Iterable[Rule], settings: RenderSettings) -> dict[Path, str]:
    """Return every page and index below `out` with its generated parts renewed. Raises UserError for a page of no alert.

    The page of an alert that is switched off stays as it is; the index leaves it out.
    """
    rules = list(rules)
    every = about_all(rules, rule_files(rules, settings), settings.thresholds())
    off = settings.switched_off()
    texts: dict[Path, str] = {}
    for path in sorted((out / RUNBOOKS).rglob("*.md")):
        about = every.get(path.stem)
        if about is None and path.stem in off:
            continue
        if about is None:
            raise UserError("there is no alert of this name", where=str(path), hint="rename or remove the page")
        texts[path] = _renew(path, {FACTS: _facts(about), LINKS: _links(about, path.relative_to(out).parent)})
    if (out / INDEX).exists():
        texts[out / INDEX] = _renew(out / INDEX, {ALERTS: index(every)})
    return texts


def _renew(path: Path, parts: Mapping[str, str]) -> str:
    text = path.read_text(encoding="utf-8")
    for name, part in parts.items():
        begin, end = f"<!-- generated: {name} -->", f"<!-- end: {name} -->"
        pattern = re.compile(rf"{re.escape(begin)}\n.*?{re.escape(end)}", re.DOTALL)
        if len(pattern.findall(text)) != 1:
            raise UserError(f"the page must hold one part {name!r}", where=str(path), hint=f"put {begin} and {end} where it belongs")
        text = pattern.sub(f"{begin}\n{part}{end}".replace("\\", r"\\"), text)
    return text


def index(every: Mapping[str, About]) -> str:
    """Return the table of all alerts as Markdown."""
    lines = []
    file = ""
    for name, about in every.items():
        if about.file != file:
            file = about.file
            lines += [f"\n### rules/{file}.yaml\n", "| alert | severity | says |", "| --- | --- | --- |"]
        lines.append(f"| [{name}]({RUNBOOKS}/{name}.md) | {about.severities} | {_cell(about.summary)} |")
    return "\n".join(lines).lstrip("\n") + "\n"


def _facts(about: About) -> str:
    rows = [("Severity", about.severities), ("Fires", _times(about.alerts))]
    if about.rule is not None:
        rows.insert(0, ("Layer, topic", f"{about.rule.layer.value}, {about.rule.topic}"))
        rows.append(("How sure", _CONFIDENCE[about.rule.confidence]))
    rows += [(f"`{name}` = {value:.12g}", source) for name, value, source in _thresholds(about)]
    table = "".join(f"| {left} | {_cell(right)} |\n" for left, right in rows)
    return f"> {about.summary}\n\n| | |\n| --- | --- |\n{table}"


def _times(alerts: Iterable[Alert]) -> str:
    return "; ".join(dict.fromkeys(_time(alert) for alert in alerts))


def _time(alert: Alert) -> str:
    keep = f", ends {format_duration(alert.keep)} after the condition does" if alert.keep else ""
    windows = f" ({alert.labels['long']} and {alert.labels['short']}, {alert.labels['severity']})" if "long" in alert.labels else ""
    return f"after {format_duration(alert.hold)}{windows}{keep}"


def _thresholds(about: About) -> Iterator[tuple[str, float, str]]:
    entry = written_alerts().get(about.alerts[0].name, {})
    numbers, sources = entry.get("thresholds", {}), entry.get("source", {})
    if about.rule is not None:
        numbers, sources = about.rule.thresholds, about.rule.source
    elif "long" in about.alerts[0].labels:
        numbers, sources = SLO_THRESHOLDS, SLO_SOURCE
    for name, usual in numbers.items():
        told = f"changed when it was rendered; else {usual:.12g}: {sources[name]}" if name in about.changes else sources[name]
        yield name, float(about.changes.get(name, usual)), told


def _links(about: About, folder: Path) -> str:
    up = "../" * len(folder.parts)
    board = about.rule.layer.value if about.rule is not None else "overview"
    lines = [
        f"- Board of the layer: `/d/heptascope-{board}` in Grafana" if about.rule else "- Board: `/d/heptascope-overview` in Grafana",
        f"- Rule: [`rules/{about.file}.yaml`]({up}rules/{about.file}.yaml); signals: [metric reference]({up}../docs/metrics.md)",
    ]
    if about.explained_by:
        lines.append(f"- Silenced on the same pod by: {_pages(about.explained_by)}")
    if about.explains:
        lines.append(f"- Silences on the same pod: {_pages(about.explains)}")
    return "".join(f"{line}\n" for line in lines)


def _pages(names: Iterable[str]) -> str:
    return ", ".join(f"[{name}]({name}.md)" for name in names)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
