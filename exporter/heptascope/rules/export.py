"""The verdict as series, so that it has a history in Prometheus and can page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from heptascope.model import FindingState, Labels, Layer, RuleKind, VerdictState, labels
from heptascope.rules.judge import Finding
from heptascope.rules.verdict import Claim, Verdict

Values = Mapping[str, tuple[tuple[Labels, float], ...]]

LAYER_STATES = ("clear", "limiting", "symptom", "faulty", "cannot-tell")
"""States of a layer in `heptascope_layer_state`, the later one wins except that cannot-tell gives way to anything seen."""


def _finding_labels(f: Finding) -> dict[str, str]:
    row = dict(f.instance.pairs)
    return {
        "rule": f.rule.name,
        "layer": f.rule.layer.value,
        "kind": f.rule.kind.value,
        "engine": row.get("engine", ""),
        "rank": row.get("rank", ""),
        "gpu": row.get("gpu", ""),
    }


def _root_labels(c: Claim) -> Labels:
    row = dict(c.entity)
    about = {label: row.get(label, "") for label in ("engine", "rank", "gpu")}
    return labels(rule=c.rule, layer=c.layer.value, severity=c.severity, **about)


def layer_states(verdict: Verdict, findings: Iterable[Finding]) -> dict[Layer, str]:
    """Return the state of each layer: faulty, symptom, limiting, clear, or cannot-tell if none of its rules could be judged.

    Neither that no trace says anything makes a layer clear, nor rules that one known condition settles while signals are missing.
    """
    firing: dict[Layer, set[RuleKind]] = {}
    judged: dict[Layer, bool] = {}
    for f in findings:
        known = f.state is not FindingState.CANNOT_TELL and not f.rule.about_trace and not f.spared
        judged[f.rule.layer] = judged.get(f.rule.layer, False) or known
        if f.state is FindingState.FIRING:
            firing.setdefault(f.rule.layer, set()).add(f.rule.kind)
    out = {}
    for layer in Layer:
        kinds = firing.get(layer, set())
        if RuleKind.FAULT in kinds:
            out[layer] = "faulty"
        elif RuleKind.SYMPTOM in kinds:
            out[layer] = "symptom"
        elif verdict.limiter is not None and verdict.limiter.layer is layer:
            out[layer] = "limiting"
        else:
            out[layer] = "clear" if judged.get(layer, False) else "cannot-tell"
    return out


def each_engine(verdict: Verdict) -> tuple[Verdict, ...]:
    """Return the verdict of each engine; of one engine that is the verdict itself."""
    return verdict.engines or (verdict,)


def verdict_values(verdict: Verdict, findings: list[Finding]) -> Values:
    """Return `heptascope_finding`, `_finding_root`, `_finding_unknown`, `_limiter`, `_layer_state` and `_verdict`."""
    each = each_engine(verdict)
    firing = [(labels(severity=f.rule.severity, **_finding_labels(f)), 1.0) for f in findings if f.state is FindingState.FIRING]
    unknown = [(labels(**_finding_labels(f)), 1.0) for f in findings if f.state is FindingState.CANNOT_TELL]
    root = [(pairs, 1.0) for pairs in dict.fromkeys(_root_labels(claim) for v in each for claim in v.faults)]
    limiter, layer, state = [], [], []
    for v in each:
        mine = [f for f in findings if dict(f.instance.pairs).get("engine", v.engine) == v.engine]
        if v.limiter is not None:
            limiter.append((labels(layer=v.limiter.layer.value, rule=v.limiter.rule, engine=v.engine), 1.0))
        for name, now in layer_states(v, mine).items():
            layer += [(labels(layer=name.value, state=s, engine=v.engine), float(s == now)) for s in LAYER_STATES]
        state += [(labels(state=s.value, engine=v.engine), float(s is v.state)) for s in VerdictState]
    return {
        "heptascope_finding": tuple(firing),
        "heptascope_finding_root": tuple(root),
        "heptascope_finding_unknown": tuple(unknown),
        "heptascope_limiter": tuple(limiter),
        "heptascope_layer_state": tuple(layer),
        "heptascope_verdict": tuple(state),
    }
