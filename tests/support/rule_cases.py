"""The boundary cases of rules: steady signals in which a rule fires, and for each of its thresholds the values on both sides of it.

A data file holds blocks of signals that several rules share, and one entry for each rule of a layer:

    - rule: SomeRule
      with: [some_block]
      signals: [{name: heptascope_..., value: 1.0}, ...]        # with these it fires
      thresholds:
        some_threshold: {fires: above, at: [{name: heptascope_..., rate: $some_threshold}]}

Signals have the form of `heptascope diagnose --signals`. Numbers may be expressions over the rule's thresholds (`$name`) and over what a
resource can give (`$dram`, `$tensor`). The signals of `at` replace those of the same name and labels. Around a threshold they are worked
out for it and for values 3 % above and below, or `step` above and below. `fires` says on which side the rule must fire: above, below or
equal. Exactly on the threshold it must be silent; `edge: fires` says otherwise, `edge: near` that rounding decides. Silent means clear;
`silence: unknown` says that a part of the rule which only stands in for absent signals was asked, and cannot clear it. A threshold on the
number of series has the signals of both sides, `past` and `short` of it, instead of `at`.
A gauge may have a `slope` (change a second); `drop: true` takes a signal away.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from heptascope.config import Settings
from heptascope.given import SECONDS, START, read_given, readings
from heptascope.model import FindingState, Reading
from heptascope.pipeline import Pipeline
from heptascope.rules import promql
from heptascope.rules.diagnose import Diagnoser
from heptascope.rules.judge import Finding
from heptascope.rules.load import load
from heptascope.rules.rule import Rule
from heptascope.signals.ceilings import ACHIEVABLE
from heptascope.signals.derive import DeriveSettings
from heptascope.signals.window import Window

DATA = Path(__file__).parents[1] / "rules" / "data"
MARGIN = 0.03
RULES: Mapping[str, Rule] = {rule.name: rule for rule in load()}
JUDGED = tuple(name for name, rule in RULES.items() if not rule.needs_baseline)
Entry = dict[str, Any]
_NAME = re.compile(r"\$([a-z_0-9]+)")
_SIDES = {"above": (True, False), "below": (False, True), "equal": (False, False)}


@dataclass(frozen=True)
class Case:
    """Signals, and whether the rule fires with them."""

    rule: str
    what: str
    entries: tuple[Entry, ...]
    fires: bool
    unknown: bool = False

    def __str__(self) -> str:
        return f"{self.rule}-{self.what}"


@cache
def entries() -> Mapping[str, Entry]:
    """Return the entry of each rule, its blocks of signals put in."""
    found: dict[str, Entry] = {}
    for path in sorted(DATA.glob("[1-7]-*.yaml")):
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        blocks = content.get("blocks", {})
        for entry in content["rules"]:
            assert entry["rule"] not in found, f"{entry['rule']} is in the data twice"
            signals = [signal for block in entry.get("with", ()) for signal in blocks[block]]
            found[entry["rule"]] = {**entry, "signals": [*signals, *entry.get("signals", ())], "file": path.name}
    return found


def firing_case(name: str) -> Case:
    """Return the signals with which a rule fires, clear of its thresholds."""
    return Case(name, "fires", merged(entries()[name]["signals"], RULES[name].thresholds), True)


def boundary_cases(name: str) -> Iterator[Case]:
    """Yield the cases around each threshold of a rule."""
    entry, limits = entries()[name], RULES[name].thresholds
    for threshold, around in entry.get("thresholds", {}).items():
        if "past" in around:
            yield Case(name, f"{threshold}-past", merged([*entry["signals"], *around["past"]], limits), True)
            yield Case(name, f"{threshold}-short", merged([*entry["signals"], *around["short"]], limits), False)
            continue
        signals = [*entry["signals"], *around["at"]]
        assert f"${threshold}" in str(around["at"]), f"{name}: the signals at {threshold} do not depend on it"
        limit = limits[threshold]
        step = around.get("step", MARGIN * abs(limit))
        assert step > 0, f"{name}: {threshold} is 0 and needs a step"
        above, below = _SIDES[around["fires"]]
        for what, value, fires in (("above", limit + step, above), ("below", limit - step, below)):
            if value >= 0 or limit < 0:
                yield Case(name, f"{threshold}-{what}", merged(signals, {**limits, threshold: value}), fires, "silence" in around)
        edge = around.get("edge", "fires" if around["fires"] == "equal" else "silent")
        if edge != "near":
            yield Case(name, f"{threshold}-edge", merged(signals, limits), edge == "fires", "silence" in around)


def merged(signals: Sequence[Entry], limits: Mapping[str, float]) -> tuple[Entry, ...]:
    """Return signals with their numbers worked out, the last of each name and labels, without dropped ones."""
    last = {(s["name"], tuple(sorted(s.get("labels", {}).items()))): s for s in signals}
    known = {**limits, "dram": ACHIEVABLE.dram, "tensor": ACHIEVABLE.tensor}
    return tuple(_worked_out(signal, known) for signal in last.values() if not signal.get("drop"))


def _worked_out(value: Any, known: Mapping[str, float]) -> Any:
    if isinstance(value, dict):
        return {k: v if k == "labels" else _worked_out(v, known) for k, v in value.items()}
    if not isinstance(value, str) or "$" not in value:
        return value
    result = promql.compile(_NAME.sub(lambda m: f"({known[m[1]]!r})", value)).evaluate(Window(), 0.0)
    assert isinstance(result, float), value
    return result


def played(signals: tuple[Entry, ...]) -> list[Reading]:
    """Return the readings of these signals, read from a file as the command does; slopes are added to what it gives."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "signals.yaml"
        plain = [{k: v for k, v in s.items() if k != "slope"} for s in signals]
        path.write_text(yaml.safe_dump({"signals": plain}), encoding="utf-8")
        given = read_given(path)
    slopes = {(g.signal.name, g.pairs): s["slope"] for g, s in zip(given, signals, strict=True) if "slope" in s}
    found = list(readings(given))
    for reading in found:
        second = reading.t - START
        reading.samples[:] = [s._replace(value=s.value + slopes.get((s.name, s.labels), 0.0) * second) for s in reading.samples]
    return found


def diagnosed(signals: tuple[Entry, ...], rules: tuple[Rule, ...]) -> Diagnoser:
    """Return the rules room after the real pipeline has taken these signals; it steps only through the last hold."""
    judge = Diagnoser(rules)
    slo = Settings().slo.model_dump(exclude_none=True)
    pipeline = Pipeline(DeriveSettings(slo_seconds=slo), judge)
    first = SECONDS - judge.judge.settings.hold - 1
    for reading in played(signals):
        pipeline.ingest(reading)
        if reading.t - START >= first:
            pipeline.step(reading.t)
    return judge


def findings(case: Case) -> list[Finding]:
    """Return what one rule, judged alone, finds in a case."""
    return [f for f in diagnosed(case.entries, (RULES[case.rule],)).findings if f.rule.name == case.rule]


def fires(case: Case) -> bool:
    """Whether a rule fires in a case, for whichever engine or GPU."""
    return any(f.state is FindingState.FIRING for f in findings(case))
