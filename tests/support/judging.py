"""Small rules and hand-fed stores, to look at the rules room without a catalogue."""

from __future__ import annotations

from typing import Any

from heptascope.model import Confidence, FindingState, Labels, Layer, Missing, Reading, RuleKind, Sample, labels
from heptascope.rules.diagnose import Diagnoser
from heptascope.rules.judge import JudgeSettings
from heptascope.rules.rule import EvidenceItem, Rule
from heptascope.rules.verdict import Verdict
from heptascope.signals.store import Store

RUNNING, WAITING, KV = (f"heptascope_engine_{name}" for name in ("requests_running", "requests_waiting", "kv_cache_usage_ratio"))
WORK, POWER = "heptascope_engine_has_work", "heptascope_gpu_power_watts"
A = labels(engine="a", rank="0")
START = 1_700_000_000.0


def rule(name: str = "Full", expr: str = f"{KV} > 0.9", **other: Any) -> Rule:
    """Return a rule; by default a fault of an engine without a guard."""
    made: dict[str, Any] = {
        "layer": Layer.MEMORY,
        "topic": "capacity",
        "kind": RuleKind.FAULT,
        "entity": "engine",
        "guard": "none",
        "thresholds": {},
        "source": {},
        "hold": 60.0,
        "severity": "warning",
        "confidence": Confidence.INFERRED,
        "summary": f"{name} holds.",
    }
    return Rule(name=name, expr=expr, **{**made, **other})


def limiter(name: str, expr: str, **other: Any) -> Rule:
    """Return a limiter of the hardware layer; what its expression gives is its score."""
    made = {"layer": Layer.HARDWARE, "topic": "dram", "confidence": Confidence.DIRECT, **other}
    return rule(name, expr, kind=RuleKind.LIMITER, **made)


def resource_limiter(name: str, resource: str, **other: Any) -> Rule:
    """Return a limiter that is about one resource."""
    signal = "heptascope_engine_resource_pressure_ratio"
    shown = EvidenceItem(signal, only=("resource", resource))
    return limiter(name, f'max by ($entity) ({signal}{{resource="{resource}"}}) > 0.3', evidence=(shown,), **other)


class Room:
    """A store that is fed by hand, and the rules room over it; a pass a second."""

    def __init__(self, *rules: Rule, hold: float = 3.0) -> None:
        """Judge with `rules`."""
        self.store = Store()
        self.judge = Diagnoser(rules, JudgeSettings(hold=hold))
        self.t = START

    def see(self, *values: tuple[str, Labels, float], missing: tuple[Missing, ...] = ()) -> Verdict:
        """Take a reading of these values, which is all there is; judge; return the verdict."""
        self.t += 1.0
        self.store.ingest(Reading("source", self.t, [Sample(*value) for value in values], missing=list(missing)))
        self.judge.step(self.store, self.t)
        assert self.judge.latest is not None
        return self.judge.latest

    def state(self, name: str = "Full", pairs: Labels = A) -> FindingState:
        """Return the state of one rule for one engine or GPU."""
        return next(f.state for f in self.judge.findings if (f.rule.name, f.instance.pairs) == (name, pairs))

    def why(self, name: str = "Full", pairs: Labels = A) -> tuple[Missing, ...]:
        """Return why a rule cannot be judged."""
        return next(f.missing for f in self.judge.findings if (f.rule.name, f.instance.pairs) == (name, pairs))
