"""Each edge of the causal graph: cause and effect hold together, the cause is the root, the effect is explained."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from heptascope.model import RuleKind
from heptascope.rules.graph import Node, roots
from heptascope.rules.verdict import Verdict
from support.rule_cases import DATA, RULES, diagnosed, firing_case, merged

EDGES = [(cause.name, effect) for cause in RULES.values() for effect in cause.explains]
SPECIAL: dict[tuple[str, str], dict[str, Any]] = {
    (row["cause"], row["effect"]): row for row in yaml.safe_load((DATA / "edges.yaml").read_text(encoding="utf-8"))
}
BASELINE = {name for name, rule in RULES.items() if rule.needs_baseline}
LIVE = [edge for edge in EDGES if "exclusive" not in SPECIAL.get(edge, {}) and not set(edge) & BASELINE]


def _verdict(cause: str, effect: str) -> Verdict:
    """Return the verdict where the signals of both rules hold, judged by these two alone."""
    special = SPECIAL.get((cause, effect), {})
    order = (cause, effect) if special.get("wins") == "effect" else (effect, cause)
    signals = [entry for name in order for entry in firing_case(name).entries]
    verdict = diagnosed(merged([*signals, *special.get("signals", ())], {}), (RULES[cause], RULES[effect])).latest
    assert verdict is not None
    return verdict


def test_special_edges_are_edges() -> None:
    """The data speaks of no edge that the catalogue lacks."""
    assert [] == [edge for edge in SPECIAL if edge not in EDGES]


def test_both_firing_leaves_one_root() -> None:
    """In the graph, a firing effect beside its firing cause is no root, and the cause is; unrelated, both are."""
    for cause, effect in EDGES:
        nodes = [Node(effect, ()), Node(cause, ())]
        assert {nodes[0]: (nodes[1],), nodes[1]: ()} == roots(nodes, RULES, lambda *_: True)
        assert {nodes[0]: (), nodes[1]: ()} == roots(nodes, RULES, lambda *_: False)


def test_most_edges_are_shown_at_work() -> None:
    """Only few edges join rules that cannot hold at once; the others are tested from signals to verdict."""
    assert len(LIVE) > 0.9 * len(EDGES)


@pytest.mark.parametrize(("cause", "effect"), [edge for edge in LIVE if RULES[edge[0]].kind is not RuleKind.LIMITER])
def test_from_signals_to_verdict(cause: str, effect: str) -> None:
    """With the signals of both, the verdict names the cause and shows the effect as explained by it."""
    verdict = _verdict(cause, effect)
    claimed = verdict.symptoms if RULES[cause].kind is RuleKind.SYMPTOM else verdict.faults
    explained = [*verdict.consequences, *(s for s in verdict.symptoms if s.because)]
    assert ([cause], [(effect, (cause,))]) == (
        sorted({c.rule for c in claimed if not c.because}),
        sorted({(c.rule, c.because) for c in explained}),
    )


@pytest.mark.parametrize(("cause", "effect"), [edge for edge in LIVE if RULES[edge[0]].kind is RuleKind.LIMITER])
def test_limiters_explain_limiters(cause: str, effect: str) -> None:
    """Of two limiters of which one explains the other, the cause is the limiter, whatever their scores."""
    verdict = _verdict(cause, effect)
    assert cause == (verdict.limiter.rule if verdict.limiter else None)
