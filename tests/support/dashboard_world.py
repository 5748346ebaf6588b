"""A real Prometheus that holds the fleet's hour and everything that our recording rules make of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from heptascope.sources.prometheus_api import PrometheusApi
from heptascope.surfaces.alerts.model import Recording
from heptascope.surfaces.dashboards.needs import metrics, recordings
from heptascope.surfaces.prometheus import number_text
from support.dashboard_fleet import END, FLEET, START, Pod, head, write
from support.prometheus import promtool, running_prometheus

RULE_SECONDS = 60.0
LOOKBACK = ("--query.lookback-delta=80s",)
"""Blocks that are written afterwards hold no staleness markers: a short lookback ends series that are gone."""


def stages() -> list[list[Recording]]:
    """Return every recording rule, in stages: each needs nothing but scraped series and earlier stages."""
    left = [rule for same in recordings().values() for rule in same]
    found: list[list[Recording]] = []
    while left:
        waiting = {rule.name for rule in left}
        stage = [rule for rule in left if not waiting & set(metrics(rule.expr))]
        assert stage, f"recording rules wait for each other: {sorted(waiting)}"
        found.append(stage)
        left = [rule for rule in left if rule not in stage]
    return found


@contextmanager
def world(folder: Path, fleet: Sequence[Pod] = FLEET, start: int = START, *, rules: bool = True) -> Iterator[PrometheusApi]:
    """Fill a Prometheus with what a fleet does from `start` to END, and with what the rules record of it; run it."""
    source, storage = folder / "fleet.om", folder / "storage"
    with source.open("w", encoding="utf-8") as file:
        write(file, fleet, start)
    store(source, storage)
    for stage in stages() if rules else ():
        with running(folder, storage) as api:
            source.write_text("".join(evaluated(api, stage, start, END)) + "# EOF\n", encoding="utf-8")
        store(source, storage)
    source.unlink()
    with running(folder, storage) as api:
        yield api


@contextmanager
def running(folder: Path, storage: Path) -> Iterator[PrometheusApi]:
    """Run a Prometheus over a storage."""
    with running_prometheus(folder, storage=storage, flags=LOOKBACK) as server, PrometheusApi(server.url) as api:
        yield api


def evaluated(api: PrometheusApi, rules: list[Recording], start: int, end: int) -> Iterator[str]:
    """Yield what the rules record each minute from `start` to `end`, as lines of OpenMetrics."""
    for rule in rules:
        for series in api.range(rule.expr, start, end, RULE_SECONDS):
            pairs = {**{key: value for key, value in series.labels.items() if key != "__name__"}, **rule.labels}
            line = head(rule.name, pairs)
            yield from (f"{line} {number_text(value)} {t:.0f}\n" for t, value in series.points)


def store(source: Path, storage: Path, *options: str) -> None:
    """Write a file of OpenMetrics as blocks of a storage."""
    done = promtool("tsdb", "create-blocks-from", *options, "openmetrics", source, storage)
    assert done.returncode == 0, done.stdout + done.stderr
