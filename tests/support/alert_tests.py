"""Writes `alerts/tests/LAYER.yaml`: for each alert of the catalogue a story that promtool checks. Run it to bring the files up to date.

A story has three pods. `bad` stays on the silent side of a threshold, stands exactly on it (where rounding does not decide), goes past
it, and comes back. `healthy` stays on the silent side all the time. `idle` has the signals of the firing case and no work.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heptascope.model import Layer
from heptascope.rules.load import load
from heptascope.rules.rule import Rule
from heptascope.surfaces.alerts.model import Alert
from heptascope.surfaces.alerts.render import rule_files
from heptascope.surfaces.alerts.settings import RenderSettings
from heptascope.surfaces.alerts.yaml_text import to_yaml
from support.alert_oracle import Firing, timeline
from support.promtool_series import MINUTE, Key, Situation, Steady, Written, on_pod, situation, window_of, written
from support.rule_cases import Case, boundary_cases, entries

FOLDER = Path(__file__).parents[2] / "alerts" / "tests"
SETTLE_MINUTES = 7
"""One window of the rules and a little."""

NUDGE = 1e-7
"""A part of a level by which rounding may be off, and much more."""

WORK = ("heptascope_engine_has_work", "heptascope_gpu_has_work")


def catalogue_alerts() -> dict[str, Alert]:
    """Return the alerts of the catalogue as they are rendered by default."""
    names = {rule.name for rule in load()}
    return {alert.name: alert for file in rule_files(load(), RenderSettings()) for alert in file.alerts if alert.name in names}


@dataclass
class Story:
    """The series of one story, when its chapters begin, what must fire at each minute, and the minutes in which rounding decides."""

    alert: Alert
    rows: list[Written]
    past: int
    back: int
    fires: list[Firing]
    unsure: set[int]

    def of(self, pod: str) -> list[bool]:
        """Whether the alert fires for a pod, by minute."""
        return [any(("pod", pod) in labels for labels in firing) for firing in self.fires]

    def faults(self) -> list[str]:
        """Say what is wrong with the story: nothing, if the alert behaves."""
        bad, lasts = self.of("bad"), range(self.past, len(self.fires))
        firing = [minute for minute in lasts if bad[minute]]
        found = []
        if any(bad[: self.past + int(self.alert.hold // MINUTE)]):
            found.append("it fires on the silent side, or without waiting")
        if not firing or firing != list(range(firing[0], firing[-1] + 1)) or firing[-1] < self.back or bad[-1]:
            found.append(f"it does not fire in one go and end ({firing} of {self.past} to {self.back})")
        elif self.unsure & {self.past - 1, self.back, len(bad) - 1}:
            found.append("rounding decides whether it fires")
        return found + [f"it fires for {pod}" for pod in ("healthy",) if any(self.of(pod))]

    def moments(self) -> list[int]:
        """Return the minutes that promtool looks at: the ends of chapters, and both sides of each change."""
        bad = self.of("bad")
        sure = [minute for minute in range(len(bad)) if minute not in self.unsure]
        firing = [minute for minute in sure if bad[minute]]
        before = max(minute for minute in sure if minute < firing[0])
        after = min(minute for minute in sure if minute > firing[-1])
        return sorted({self.past - 1, before, firing[0], self.back, firing[-1], after, len(bad) - 1})


def story(alert: Alert, silent: Sequence[Case], past: Case) -> Story:
    """Return the story of one threshold."""
    short = [situation(case.entries, [alert.expr]) for case in silent]
    beyond = situation(past.entries, [alert.expr])
    wait = SETTLE_MINUTES + int(alert.hold // MINUTE) + 2
    phases: list[tuple[Situation, int]] = [(one, SETTLE_MINUTES) for one in short]
    begin, back = SETTLE_MINUTES * len(short), SETTLE_MINUTES * len(short) + wait
    whole = back + SETTLE_MINUTES + int(alert.keep // MINUTE) + 3
    phases += [(beyond, wait), (short[0], whole - back)]
    bad = written([(on_pod("bad", one), minutes) for one, minutes in phases])
    beside = written([({**on_pod("healthy", short[0]), **on_pod("idle", idle(beyond))}, whole)])
    rows = [*bad, *beside]
    fires = timeline(alert, window_of(rows), whole)
    exact = [one for one, case in zip([*short, beyond], [*silent, past], strict=True) if str(case).endswith("-edge")]
    moved = {key for key in beyond if beyond[key] != short[0].get(key)}
    nudged = [
        written([(on_pod("bad", one if one in exact else _nudged(one, moved, by)), minutes) for one, minutes in phases])
        for by in (1 + NUDGE, 1 - NUDGE)
    ]
    others = [timeline(alert, window_of([*other, *beside]), whole) for other in nudged]
    return Story(alert, rows, begin, back, fires, {i for i in range(whole) if any(other[i] != fires[i] for other in others)})


def _nudged(one: Situation, moved: Collection[Key], by: float) -> Situation:
    """Return a situation in which the series that cross the threshold are off by as much as rounding could be."""
    return {
        key: Steady(steady.level * by, steady.slope, None if steady.rate is None else steady.rate * by) if key in moved else steady
        for key, steady in one.items()
    }


def idle(one: Situation) -> dict[Key, Steady]:
    """Return a situation in which nothing moves and nobody works."""
    quiet = {key: Steady(rate=0.0) if steady.rate is not None else steady for key, steady in one.items()}
    return {key: Steady(0.0) if key[0] in WORK else steady for key, steady in quiet.items()}


def stories(alert: Alert) -> Iterator[Story]:
    """Yield the story of each threshold of an alert that has both sides."""
    cases = list(boundary_cases(alert.name))
    for threshold in entries()[alert.name].get("thresholds", {}):
        own = [case for case in cases if str(case).startswith(f"{alert.name}-{threshold}-")]
        silent, past = [case for case in own if not case.fires], [case for case in own if case.fires]
        if silent and past:
            yield story(alert, silent, past[0])


def told(alert: Alert) -> Story:
    """Return the first story in which an alert behaves: where a threshold depends on the window's length, another one tells it."""
    found = []
    for one in stories(alert):
        found.append(one.faults())
        if not found[-1]:
            return one
    raise AssertionError(f"{alert.name}: {found}")


def as_test(one: Story) -> dict[str, Any]:
    """Return a story as promtool reads it."""
    looks = []
    for minute in one.moments():
        look: dict[str, Any] = {"eval_time": f"{minute}m", "alertname": one.alert.name}
        if one.fires[minute]:
            look["exp_alerts"] = list(one.fires[minute].values())
        looks.append(look)
    series = [{"series": row.series, "values": row.text} for row in one.rows]
    return {"name": one.alert.name, "interval": "1m", "input_series": series, "alert_rule_test": looks}


def document(layer: Layer, alerts: Mapping[str, Alert], rules: Sequence[Rule]) -> str:
    """Return the file of one layer."""
    own = [rule for rule in rules if rule.layer is layer and rule.name in alerts and not rule.needs_baseline]
    tests = [as_test(told(alerts[rule.name])) for rule in own]
    about = f"Stories of the alerts of the {layer.value} layer; written by tests/support/alert_tests.py from tests/rules/data."
    return to_yaml({"rule_files": [f"../rules/{layer.value}.yaml"], "evaluation_interval": "1m", "tests": tests}, about)


def documents() -> dict[Path, str]:
    """Return every file by its path."""
    alerts, rules = catalogue_alerts(), load()
    return {FOLDER / f"{layer.value}.yaml": document(layer, alerts, rules) for layer in Layer}


if __name__ == "__main__":
    for path, text in documents().items():
        path.write_text(text, encoding="utf-8")
