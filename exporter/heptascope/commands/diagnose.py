"""Say in one shot what the server waits on: live, or for signal values from a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from heptascope import logs
from heptascope.commands._options import SOURCES, config_options, configuration, duration
from heptascope.given import read_given, readings
from heptascope.model import SourceStatus
from heptascope.offline import judge_readings
from heptascope.service import Live, stop_signals
from heptascope.surfaces.report import verdict_lines

EXIT = {"healthy": 0, "idle": 0, "degraded": 1, "cannot-tell": 3}


@click.command()
@click.option("--for", "seconds", default="30s", callback=duration, metavar="TIME", show_default=True, help="How long to watch.")
@click.option("--signals", metavar="FILE", type=click.Path(path_type=Path), help="Judge steady signal values from a YAML file instead.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Text or one JSON object.")
@config_options(*SOURCES)
def command(seconds: float, signals: Path | None, form: str, **options: Any) -> int:
    """Watch for a while and print the verdict, evidence, next steps, and what could not be judged.

    Exit status: 0 healthy or idle, 1 degraded, 3 cannot tell, 2 usage error.

    FILE has the form `signals: [{name: heptascope_..., labels: {}, value: 1}]`; counters take `rate` (per second), histograms
    `distribution: {p50, p99, mean, rate}`. docs/metrics.md lists the names and the values of labels.
    """
    settings = configuration(**options).settings
    logs.set_up(settings.log)
    down: list[SourceStatus] = []
    if signals is not None:
        verdict: Mapping[str, Any] = judge_readings(readings(read_given(signals)), settings)
    else:
        verdict, down = _watch(Live(settings), seconds)
    if form == "json":
        click.echo(json.dumps(verdict, indent=2))
    else:
        for line in verdict_lines(verdict, down):
            click.echo(line)
    return EXIT[verdict["state"]]


def _watch(live: Live, seconds: float) -> tuple[Mapping[str, Any], list[SourceStatus]]:
    with stop_signals() as stopped:
        live.start()
        stopped.wait(seconds)
        verdict = live.daemon.verdict()
        down = [status for status in live.daemon.statuses() if not status.up]
        live.stop()
    if verdict is None:
        raise click.ClickException("stopped before anything was read")
    return verdict, down
