"""What `heptascope check --dashboards` prints: panels that are empty, or stay so, and why."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

import click

from heptascope.signals.snapshot import Snapshot
from heptascope.sources.prometheus_api import PrometheusApi
from heptascope.surfaces.dashboards import empty, here
from heptascope.surfaces.dashboards.board import load_boards
from heptascope.surfaces.dashboards.empty import Cause, Looked
from heptascope.surfaces.dashboards.report import as_object, lines
from heptascope.surfaces.dashboards.scope import Scope

RANGE_SECONDS: Final = 3600.0
"""What the boards show at first."""


def show_here(snapshot: Snapshot, form: str) -> None:
    """Print the panels that can never be filled where `snapshot` is all that can be read; `form` is text or json."""
    _print(here.look(load_boards(), snapshot), form, "can never be filled here")


def show_there(url: str, form: str, until: float) -> int:
    """Print the panels that are empty in a Prometheus in the hour before `until` (Unix seconds).

    Return 1 if heptascope is not scraped there, or a query is refused. Raises UserError if that Prometheus cannot be asked.
    """
    with PrometheusApi(url) as api:
        looked: list[Looked] = []
        found = empty.look(load_boards(), api, Scope(until - RANGE_SECONDS, until))
        _print(_kept(found, looked), form, "are empty")
    return int(any(gap.cause in (Cause.NOT_SCRAPED, Cause.QUERY) for one in looked for gap in one.empty))


def _kept(found: Iterable[Looked], kept: list[Looked]) -> Iterable[Looked]:
    for one in found:
        kept.append(one)
        yield one


def _print(found: Iterable[Looked], form: str, what: str) -> None:
    if form == "json":
        click.echo(json.dumps(as_object(found), indent=2))
        return
    for line in lines(found, what):
        click.echo(line)
