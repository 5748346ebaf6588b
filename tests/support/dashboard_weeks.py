"""Five weeks of deployments whose load grew, fell, stayed or is new: an hour by day and one by night, of what recordings really had."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from heptascope.sources.prometheus_api import PrometheusApi
from heptascope.surfaces.prometheus import number_text
from support.dashboard_fleet import END, Pod, head, target, write
from support.dashboard_rounds import Frame, round_of
from support.dashboard_world import evaluated, running, stages, store

HOUR, DAY, WEEK = 3600, 86400, 7 * 86400
NIGHT = 12 * HOUR
"""How long before END the hour of the night ends."""

_SAMPLE_SECONDS = 60
_SATURATION = "heptascope_saturation_ratio"
_KEPT = (_SATURATION, "heptascope_engine_info", "heptascope_build_info")
_LONG_BLOCKS = "--max-block-duration=1200h"
_YESTERDAY_SECONDS = 600

LOADS = ("decode-b1", "eager-b8", "decode-c64", "tp2-straggler", "mixed-near-sat")
"""Regimes in the order of load: of each the next one is saturated more."""


class Deployment(NamedTuple):
    """A deployment of one pod: what it played by day in each week, the oldest week first and this one last."""

    workload: str
    weeks: tuple[str, ...]

    @property
    def pod(self) -> Pod:
        """Its pod."""
        return Pod("plan", self.workload, 0, ())


DEPLOYMENTS = (
    Deployment("growing", LOADS),
    Deployment("falling", LOADS[::-1]),
    Deployment("level", ("decode-c64",) * 5),
    Deployment("young", LOADS[2:4]),
    Deployment("new", LOADS[-1:]),
)
SINCE_YESTERDAY = (Pod("chat", "copilot", 0, (("ngram-high", 0),)), Pod("chat", "assistant", 0, (("prefix-hot", 0),)))
"""Pods of which all series are there, ten minutes of today and the same ten minutes of yesterday."""

OLDER = {
    ("heptascope-capacity", "First to fill up", "A"),
    ("heptascope-capacity", "Days to saturation", "A"),
    ("heptascope-capacity", "Saturation by deployment", "B"),
    ("heptascope-memory", "Hit ratio, and the recompute trap", "C"),
    ("heptascope-scheduling", "Step time: GPU and host", "D"),
    ("heptascope-speculative", "Acceptance against break-even", "C"),
}
"""Queries, by board, panel and letter, that look further back than the fleet's hour; these weeks fill them."""


def saturation(name: str) -> float:
    """Return the mean saturation of a recording."""
    return fmean(value for frame in round_of(name).frames for (metric, _), value in frame.items() if metric == _SATURATION)


def hours() -> Iterator[tuple[int, int]]:
    """Yield the end of each hour with samples, by night and by day, the oldest first, and in which week it lies; this week is 0."""
    for days in reversed(range(7 * len(LOADS))):
        yield END - days * DAY - NIGHT, days // 7
        yield END - days * DAY, days // 7


def by_day(end: int) -> bool:
    """Whether an hour is one of the day."""
    return (END - end) % DAY == 0


@contextmanager
def weeks(folder: Path) -> Iterator[PrometheusApi]:
    """Fill a Prometheus with the weeks, and with what the rules record of their saturation; run it."""
    source, storage = folder / "weeks.om", folder / "storage"
    with source.open("w", encoding="utf-8") as file:
        for index, deployment in enumerate(DEPLOYMENTS):
            file.writelines(_samples(deployment, index))
        file.write("# EOF\n")
    store(source, storage, _LONG_BLOCKS)
    for start in (END - DAY - _YESTERDAY_SECONDS, END - _YESTERDAY_SECONDS):
        with source.open("w", encoding="utf-8") as file:
            write(file, SINCE_YESTERDAY, start, start + _YESTERDAY_SECONDS)
        store(source, storage)
    for stage in stages():
        rules = [rule for rule in stage if _SATURATION in rule.name]
        with running(folder, storage) as api:
            lines = [line for end, _ in hours() for line in evaluated(api, rules, end - HOUR, end)]
        source.write_text("".join([*lines, "# EOF\n"]), encoding="utf-8")
        if lines:
            store(source, storage, _LONG_BLOCKS)
    with running(folder, storage) as api:
        yield api


def _samples(deployment: Deployment, index: int) -> Iterator[str]:
    """Yield the lines of a deployment: by day what it played in that week, by night always the emptiest regime."""
    for end, ago in hours():
        if ago < len(deployment.weeks):
            frames = round_of(deployment.weeks[-1 - ago] if by_day(end) else LOADS[0]).frames
            for number in range(HOUR // _SAMPLE_SECONDS + 1):  # all frames in turn, so that the hour's mean is the recording's
                yield from _page(frames[number % len(frames)], deployment, index, end - HOUR + number * _SAMPLE_SECONDS)


def _page(frame: Frame, deployment: Deployment, index: int, t: int) -> Iterator[str]:
    for (metric, labels), value in frame.items():
        if metric in _KEPT:
            yield f"{head(metric, {**target(deployment.pod, index), **dict(labels)})} {number_text(value)} {t}\n"
