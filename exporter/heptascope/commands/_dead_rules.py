"""What `heptascope check --rules` prints: alerts that can never fire here, and why."""

from __future__ import annotations

import json

import click

from heptascope.config import SloSettings
from heptascope.rules.load import load
from heptascope.signals.snapshot import Snapshot
from heptascope.surfaces.alerts.dead import as_object, lines, looked_at
from heptascope.surfaces.alerts.settings import RenderSettings, promised


def show(snapshot: Snapshot, form: str, slo: SloSettings) -> None:
    """Print the alerts that can never fire where `snapshot` is all that can be read; `form` is text or json, `slo` what is promised."""
    looked = looked_at(load(), snapshot, RenderSettings(slo=promised(slo)))
    found = [one for one in looked if one.missing]
    click.echo(json.dumps(as_object(found, len(looked)), indent=2) if form == "json" else "\n".join(lines(found, len(looked))))
