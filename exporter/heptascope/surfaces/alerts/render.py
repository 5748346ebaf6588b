"""Everything that is rendered, as texts by path below the output folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from heptascope.rules.rule import Rule
from heptascope.surfaces.alerts.catalogue import layer_files
from heptascope.surfaces.alerts.model import RuleFile
from heptascope.surfaces.alerts.routing import alertmanager
from heptascope.surfaces.alerts.settings import RenderSettings
from heptascope.surfaces.alerts.slo import slo_file
from heptascope.surfaces.alerts.written import written_files
from heptascope.surfaces.alerts.yaml_text import to_yaml

_HEAD = "{about}\nRendered by `heptascope rules render` from the catalogue; change that, or render with --set or --values."


def rule_files(rules: Iterable[Rule], settings: RenderSettings) -> list[RuleFile]:
    """Return every rule file. Raises UserError for a change that names no alert or threshold."""
    rules = list(rules)
    files = [*layer_files(rules, settings), *written_files(rules, settings), slo_file(settings)]
    settings.check_names(_every_alert(rules, files, settings))
    return files


def _every_alert(rules: list[Rule], files: list[RuleFile], settings: RenderSettings) -> list[str]:
    """Return the names of all alerts, those that are switched off included."""
    if settings.switched_off():
        return _every_alert(rules, rule_files(rules, RenderSettings()), RenderSettings())
    return list(dict.fromkeys(alert.name for file in files for alert in file.alerts))


def render(rules: Iterable[Rule], settings: RenderSettings) -> dict[Path, str]:
    """Return the rule files and Alertmanager's configuration."""
    rules = list(rules)
    files = rule_files(rules, settings)
    texts = {Path("rules", f"{file.name}.yaml"): to_yaml(file.as_dict(), _HEAD.format(about=file.about)) for file in files}
    texts[Path("alertmanager.yaml")] = alertmanager(rules, files, settings)
    return texts
