"""The causal graph's own arithmetic."""

from __future__ import annotations

import pytest

from heptascope.errors import UserError
from heptascope.rules.graph import Node, check_acyclic, closure, roots
from heptascope.rules.rule import Rule
from support.judging import rule


def graph(**edges: str) -> dict[str, Rule]:
    """Return rules that explain the rules in these words."""
    return {name: rule(name, explains=tuple(words.split())) for name, words in edges.items()}


def test_closure_follows_the_edges() -> None:
    """Everything that a rule explains, through others too, each once, the nearest first."""
    assert ["B", "C", "D"] == closure("A", graph(A="B C", B="D", C="D", D=""))


def test_a_diamond_is_no_circle() -> None:
    """Two ways to one effect are allowed."""
    check_acyclic(graph(A="B C", B="D", C="D", D=""))


@pytest.mark.parametrize(("edges", "circle"), [({"A": "A"}, "A -> A"), ({"X": "A", "A": "B", "B": "C", "C": "A"}, "A -> B -> C -> A")])
def test_a_circle_is_refused(edges: dict[str, str], circle: str) -> None:
    """A circle is shown as it runs, without the way to it."""
    with pytest.raises(UserError, match=f"in a circle: {circle};"):
        check_acyclic(graph(**edges))


def test_several_causes_are_all_named() -> None:
    """An effect names each firing rule that explains it directly, and no one that does so only through others."""
    nodes = [Node(name, ()) for name in "ABCD"]
    found = roots(nodes, graph(A="B", B="D", C="D", D=""), lambda *_: True)
    assert {"A": "", "B": "A", "C": "", "D": "BC"} == {node.rule: "".join(c.rule for c in causes) for node, causes in found.items()}
