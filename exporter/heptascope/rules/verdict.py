"""The verdict as everyone prints it: `diagnose`, `replay`, `--signals` and `/api/v1/verdict` share this object."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from heptascope.model import Confidence, Evidence, Labels, Layer, Missing, RuleKind, VerdictState
from heptascope.signals.schema import signal_of


@dataclass(frozen=True, slots=True)
class Claim:
    """One thing that the verdict says.

    `since` is Unix seconds; `because` names the rules that explain it, `corroborated_by` the rules about a fresh trace that say the same.
    """

    rule: str
    layer: Layer
    topic: str
    kind: RuleKind
    severity: str
    entity: Labels
    confidence: Confidence
    summary: str
    since: float
    score: float
    evidence: tuple[Evidence, ...] = ()
    actions: tuple[str, ...] = ()
    because: tuple[str, ...] = ()
    gain: str = ""
    corroborated_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unknown:
    """One rule that could not be judged, and what it lacks."""

    rule: str
    layer: Layer
    topic: str
    kind: RuleKind
    entity: Labels
    missing: tuple[Missing, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer for one engine (or for all: `engine` empty) at one moment."""

    state: VerdictState
    confidence: Confidence
    engine: str = ""
    limiter: Claim | None = None
    faults: tuple[Claim, ...] = ()
    consequences: tuple[Claim, ...] = ()
    symptoms: tuple[Claim, ...] = ()
    cannot_tell: tuple[Unknown, ...] = ()
    since: float = 0.0
    t: float = 0.0
    engines: tuple[Verdict, ...] = field(default=())


def evidence_json(e: Evidence) -> dict[str, Any]:
    """Return one piece of evidence as JSON-ready data."""
    row = signal_of(e.signal)
    out: dict[str, Any] = {"signal": e.signal, "value": e.value, "unit": row.unit if row is not None else ""}
    if e.threshold is not None:
        out |= {"threshold": e.threshold, "comparison": e.comparison}
    if e.text:
        out["text"] = e.text
    return out


def claim_json(c: Claim) -> dict[str, Any]:
    """Return one claim as JSON-ready data."""
    return {
        "rule": c.rule,
        "layer": c.layer.value,
        "topic": c.topic,
        "kind": c.kind.value,
        "severity": c.severity,
        "entity": dict(c.entity),
        "confidence": c.confidence.value,
        "summary": c.summary,
        "since": c.since,
        "evidence": [evidence_json(e) for e in c.evidence],
        "actions": list(c.actions),
        "because": list(c.because),
        **({"gain": c.gain} if c.gain else {}),
        **({"corroborated_by": list(c.corroborated_by)} if c.corroborated_by else {}),
    }


def unknown_json(u: Unknown) -> dict[str, Any]:
    """Return one rule that could not be judged as JSON-ready data."""
    return {
        "rule": u.rule,
        "layer": u.layer.value,
        "topic": u.topic,
        "kind": u.kind.value,
        "entity": dict(u.entity),
        "missing": [{"signal": m.signal, "reason": m.reason.value, "detail": m.detail} for m in u.missing],
    }


def verdict_json(v: Verdict) -> dict[str, Any]:
    """Return the verdict as JSON-ready data; `engines` holds one verdict for each engine where there are several."""
    return {
        "state": v.state.value,
        "confidence": v.confidence.value,
        "engine": v.engine,
        "since": v.since,
        "time": v.t,
        "limiter": claim_json(v.limiter) if v.limiter is not None else None,
        "faults": [claim_json(c) for c in v.faults],
        "consequences": [claim_json(c) for c in v.consequences],
        "symptoms": [claim_json(c) for c in v.symptoms],
        "cannot_tell": [unknown_json(u) for u in v.cannot_tell],
        **({"engines": [verdict_json(e) for e in v.engines]} if v.engines else {}),
    }
