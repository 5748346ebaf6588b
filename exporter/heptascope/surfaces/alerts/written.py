"""Rules that no catalogue entry stands for: heptascope's watch over itself, the fleet, fleet aggregates. Read from `written/`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from string import Template
from typing import Any, Final

import yaml

from heptascope.quantities import parse_duration
from heptascope.rules.rule import Rule
from heptascope.surfaces.alerts.catalogue import alerting, first
from heptascope.surfaces.alerts.model import COMPONENT, POD, Alert, Group, Recording, RuleFile
from heptascope.surfaces.alerts.settings import RenderSettings
from heptascope.surfaces.alerts.words import describe, listed, with_value

FOLDER = Path(__file__).with_name("written")
NAMES: Final = ("recording", "fleet", "heptascope")

MUTES, EXPLAINED_LIKE, LINGERS = "mutes", "explained_like", "lingers"
"""Keys of an alert: it mutes all others of its pod; it has the causes of this catalogue rule; it outlives what it stands for."""

INHIBITOR: Final = "HeptascopeInhibitor"
_USUAL_HOLD_SECONDS = 60.0


@cache
def read(name: str) -> dict[str, Any]:
    """Return one file as it is written."""
    found: dict[str, Any] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    return found


def entries(name: str) -> Iterator[dict[str, Any]]:
    """Yield every rule of one file as it is written."""
    for group in read(name)["groups"]:
        yield from group["rules"]


def written_alerts() -> dict[str, dict[str, Any]]:
    """Return every alert of these files by name."""
    return {entry["alert"]: entry for name in NAMES for entry in entries(name) if "alert" in entry}


def written_files(rules: Iterable[Rule], settings: RenderSettings) -> list[RuleFile]:
    """Return the files. Raises UserError for a change that an alert does not know."""
    words = _words(rules, settings)
    return [RuleFile(name, read(name)["about"], tuple(_groups(name, settings, words))) for name in NAMES]


def _groups(name: str, settings: RenderSettings, words: Mapping[str, str]) -> Iterator[Group]:
    for group in read(name)["groups"]:
        rules = [rule for entry in group["rules"] for rule in _rules(entry, settings, words)]
        yield Group(group["name"], tuple(rules), parse_duration(group["interval"]) if "interval" in group else 0.0)


def _words(rules: Iterable[Rule], settings: RenderSettings) -> dict[str, str]:
    workload = ("cluster", "namespace", settings.workload_label)
    return {
        "job": settings.job,
        "pod": ", ".join((*POD, settings.workload_label)),
        "workload": ", ".join(workload),
        "baseline": listed(rule.name for rule in alerting(rules) if rule.needs_baseline),
    }


def _rules(entry: Mapping[str, Any], settings: RenderSettings, words: Mapping[str, str]) -> Iterator[Alert | Recording]:
    if "alert" in entry:
        alert = _alert(entry, settings, words)
        if alert is not None:
            yield alert
        return
    for level in entry.get("for_levels", [""]):
        filled = {**words, "level": level, "labels": _labels_of(level, words)}
        yield Recording(_fill(entry["record"], filled), _fill(entry["expr"], filled))


def _labels_of(level: str, words: Mapping[str, str]) -> str:
    """Return the labels behind a level such as `cluster_namespace_workload` or `cluster_model`."""
    return words["workload"] if level == "cluster_namespace_workload" else ", ".join(level.split("_"))


def _alert(entry: Mapping[str, Any], settings: RenderSettings, words: Mapping[str, str]) -> Alert | None:
    name, thresholds = entry["alert"], entry.get("thresholds", {})
    changes = settings.override(name, thresholds)
    if not changes.enabled:
        return None
    numbers = {key: f"{value:.12g}" for key, value in {**thresholds, **changes.thresholds}.items()}
    hold = first(changes.hold, parse_duration(entry["for"]))
    text = entry["description"].replace("$labels.workload", f"$labels.{settings.workload_label}")
    return Alert(
        name=name,
        expr=_fill(entry["expr"], {**words, **numbers}),
        hold=hold,
        keep=settings.window + 2 * first(settings.hold, _USUAL_HOLD_SECONDS) if entry.get(LINGERS) else 0.0,
        labels={"severity": changes.severity or entry["severity"], "component": COMPONENT},
        annotations={
            "summary": entry["summary"],
            "description": describe(text, entry["place"]) if "place" in entry else with_value(text),
            "runbook_url": f"{settings.runbooks}/{name}.md",
        },
    )


def _fill(text: str, words: Mapping[str, str]) -> str:
    return Template(text).substitute(words).strip()
