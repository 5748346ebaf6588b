"""Tell what can be read here: each source, what it supplies, and why the rest is unavailable."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from heptascope import logs
from heptascope.checkup import Report, look
from heptascope.commands._options import SOURCES, config_options, configuration
from heptascope.config import LogSettings
from heptascope.errors import UserError
from heptascope.service import stop_signals

PREFIX = "heptascope_"
LATEST_SECONDS = 2.0**33
"""A moment in the year 2242: later ones are milliseconds by mistake."""

_NO_TIME = "not a time; write it as 2026-11-29T17:05:00Z or as Unix seconds"


def _moment(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:  # noqa: ARG001  # click's signature
    """Return the Unix time in an option: seconds, or ISO 8601 with a zone."""
    if value is None:
        return None
    seconds = _unix_seconds(value)
    if not 0 < seconds < LATEST_SECONDS:  # which also refuses what is no number
        raise click.BadParameter(f"{value}: {_NO_TIME}")
    return seconds


def _unix_seconds(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(value)
    except ValueError as exc:
        raise click.BadParameter(f"{value}: {_NO_TIME}") from exc
    if moment.tzinfo is None:
        raise click.BadParameter(f"{value}: the time zone is missing; write Z for UTC at the end")
    return moment.timestamp()


def _check_options(*, rules: bool, dashboards: bool, prometheus: str | None, until: float | None) -> None:
    if rules and dashboards:
        raise UserError("--rules and --dashboards exclude each other", hint="give one of them")
    if prometheus is not None and not dashboards:
        raise UserError("--prometheus does nothing by itself", hint="give --dashboards too")
    if until is not None and prometheus is None:
        raise UserError("--until does nothing by itself", hint="give --prometheus too")


@click.command()
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="For people or for machines."
)
@click.option("--rules", is_flag=True, help="Instead, name the alerts that can never fire here, and why.")
@click.option("--dashboards", is_flag=True, help="Instead, name the panels that can never be filled here, and why.")
@click.option("--prometheus", metavar="URL", help="With --dashboards: name the panels that are empty in this Prometheus, and why.")
@click.option("--until", metavar="TIME", callback=_moment, help="With --prometheus: look at the hour before this time. Default: now.")
@config_options(*SOURCES)
def command(form: str, rules: bool, dashboards: bool, prometheus: str | None, until: float | None, **options: Any) -> int:
    """Look at every source for a few seconds. Exit 0 if everything that is configured could be read, and an engine was found; else 1.

    With --prometheus no source is read, but that Prometheus is asked. Exit 0 if it has series of heptascope; else 1.
    """
    _check_options(rules=rules, dashboards=dashboards, prometheus=prometheus, until=until)
    if prometheus is not None:
        from heptascope.commands._dead_panels import show_there

        return show_there(prometheus, form, time.time() if until is None else until)
    settings = configuration(**options).settings
    logs.set_up(LogSettings(level="error", format=settings.log.format))  # the report says what the log would
    with stop_signals() as stopped:
        report = look(settings, stopped)
    if rules:
        from heptascope.commands._dead_rules import show as show_rules

        show_rules(report.snapshot, form, settings.slo)
    elif dashboards:
        from heptascope.commands._dead_panels import show_here

        show_here(report.snapshot, form)
    elif form == "json":
        click.echo(json.dumps(as_object(report), indent=2))
    else:
        show(report, Console(highlight=False, soft_wrap=False))
    return 0 if report.ok else 1


def as_object(report: Report) -> dict[str, Any]:
    """Return the report as JSON-ready data."""
    sources = [
        {
            "name": status.name,
            "kind": status.kind,
            "up": status.up,
            "reason": status.reason,
            "message": status.message,
            "duration_seconds": status.duration,
            "signals": report.supplied.get(status.name, []),
        }
        for status in report.statuses
    ]
    gaps = [
        {"signal": gap.signal, "reason": gap.reason, "detail": gap.detail, "labels": dict(gap.labels)} for gap in report.snapshot.missing
    ]
    gpus = {"choice": report.gpu_choice, "scope": report.gpu_scope}
    return {"ok": report.ok, "failed": report.failed, "sources": sources, "gpus": gpus, "unavailable": gaps}


def show(report: Report, console: Console) -> None:
    """Print the report for people."""
    state_column = Column("state", overflow="fold")  # a path may be longer than the column
    sources = Table("source", state_column, "read in", "supplies", box=None, pad_edge=False, title="Sources", title_justify="left")
    for status in report.statuses:
        state = Text("up", "green") if status.up else Text(f"down: {status.reason}: {status.message}", "red")
        took = "" if status.duration is None else f"{status.duration * 1000:.1f} ms"
        sources.add_row(status.name, state, took, _count(report.supplied.get(status.name, ())))
    console.print(sources)
    if report.gpu_choice:
        console.print(f"\n[bold]GPUs[/bold] read through {escape(report.gpu_choice)}")
        console.print(Padding(f"shown as {escape(report.gpu_scope or 'not read yet')}", (0, 0, 0, 4)))
    for name, signals in report.supplied.items():
        if signals:
            console.print(f"\n[bold]{name}[/bold] supplies")
            console.print(Padding(_short(signals), (0, 0, 0, 4)))
    gaps = report.unavailable
    if gaps:
        console.print("\n[bold]Unavailable[/bold]")
    for (reason, detail), signals in gaps.items():
        console.print(Padding(Text(f"{reason}{': ' + detail if detail else ''}", "yellow"), (0, 0, 0, 2)))
        console.print(Padding(_short(signals), (0, 0, 0, 4)))
    console.print(f"\nNot read: {', '.join(report.failed)}" if report.failed else "\nEverything that is configured can be read.")


def _count(signals: Iterable[str]) -> str:
    number = len(list(signals))
    return f"{number} signals" if number else ""


def _short(signals: Iterable[str]) -> str:
    return ", ".join(name.removeprefix(PREFIX) for name in signals)
