"""Every rule's state for every engine and GPU, for surfaces that show more than the verdict. Reads only, from any thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from heptascope.model import Evidence, Missing
from heptascope.rules.evidence import gather
from heptascope.rules.judge import Finding
from heptascope.rules.rule import Rule
from heptascope.rules.verdict import evidence_json
from heptascope.signals.window import Window

T = TypeVar("T")
_TRIES = 5


def finding_key(f: Finding) -> str:
    """Return a text that names the rule and the engine or GPU of a finding."""
    return claim_key(f.rule.name, f.instance.pairs)


def claim_key(rule: str, pairs: Iterable[tuple[str, str]]) -> str:
    """Return the key of what `rule` says about the engine rank or GPU with these labels."""
    return "|".join((rule, *(f"{name}={value}" for name, value in pairs if name != "uuid")))


def finding_json(f: Finding) -> dict[str, Any]:
    """Return one finding as JSON-ready data, without its evidence."""
    return {
        "key": finding_key(f),
        "rule": f.rule.name,
        "layer": f.rule.layer.value,
        "kind": f.rule.kind.value,
        "entity": dict(f.instance.pairs),
        "state": f.state.value,
        "since": f.since,
        "missing": [missing_json(m) for m in f.missing],
    }


def missing_json(m: Missing) -> dict[str, str]:
    """Return a missing signal and its reason as JSON-ready data."""
    return {"signal": m.signal, "reason": m.reason.value, "detail": m.detail}


def findings_json(findings: Iterable[Finding], window: Window, now: float, span: float) -> list[dict[str, Any]]:
    """Return findings with the values that their rules look at in the `span` seconds up to `now`, the end of what `window` holds."""
    return [{**finding_json(f), "evidence": [evidence_json(e) for e in _evidence(f, window, now, span)]} for f in findings]


def rule_json(rule: Rule, rules: Iterable[Rule], window: str) -> dict[str, Any]:
    """Return what the catalogue says of a rule, its PromQL filled in for the range `window`."""
    return {
        "rule": rule.name,
        "layer": rule.layer.value,
        "topic": rule.topic,
        "kind": rule.kind.value,
        "entity": rule.entity,
        "severity": rule.severity,
        "confidence": rule.confidence.value,
        "summary": rule.summary,
        "promql": rule.text(window),
        "hold_seconds": rule.hold,
        "thresholds": {name: rule.threshold(name) for name in rule.thresholds},
        "source": dict(rule.source),
        "actions": [{"when": action.when, "do": action.do} for action in rule.actions],
        "explains": list(rule.explains),
        "explained_by": [other.name for other in rules if rule.name in other.explains],
        "needs_baseline": rule.needs_baseline,
    }


def _evidence(f: Finding, window: Window, now: float, span: float) -> list[Evidence]:
    return steady(lambda: gather(f.rule, f.instance, window, now, span)) or []


def steady(read: Callable[[], T]) -> T | None:
    """Return what `read` finds in the history, which another thread may be changing: it is tried again then, None if that never ends."""
    for _ in range(_TRIES):
        try:
            return read()
        except (RuntimeError, ValueError, IndexError):  # a dict changed size, or two arrays differed in length for a moment
            continue
    return None


def of_engine(f: Finding, engine: str) -> bool:
    """Return whether a finding is about `engine`, or about a GPU that serves it or may serve it."""
    rows = (f.instance.pairs, *f.instance.related)
    if f.instance.kind == "gpu":
        return not f.instance.related or any(dict(row).get("engine") == engine for row in rows)
    return dict(f.instance.pairs).get("engine", "") == engine
