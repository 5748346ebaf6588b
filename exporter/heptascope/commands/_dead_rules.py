"""What `heptascope check --rules` prints: alerts that can never fire here, and why."""

from __future__ import annotations

import json

import click

from heptascope.rules.load import load
from heptascope.signals.snapshot import Snapshot
from heptascope.surfaces.alerts.catalogue import alerting
from heptascope.surfaces.alerts.dead import as_object, dead_alerts, lines
from heptascope.surfaces.alerts.settings import load_settings
from heptascope.surfaces.alerts.slo import INDICATORS


def show(snapshot: Snapshot, form: str) -> None:
    """Print the alerts that can never fire where `snapshot` is all that can be read; `form` is text or json."""
    rules = load()
    total = len(alerting(rules)) + len(INDICATORS)
    found = dead_alerts(rules, snapshot, load_settings())
    click.echo(json.dumps(as_object(found, total), indent=2) if form == "json" else "\n".join(lines(found, total)))
