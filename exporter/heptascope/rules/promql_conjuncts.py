"""The parts of an expression that must all hold. Where one is known to fail for an engine or GPU, the others need not be known.

`A and on (x) B unless on (y) C` needs A and B: its result has the labels of A, and an element of it stays only while B has one with the
same x. So nothing is left for an engine if A has no element of that engine, or if B has none that could match it, whatever the other
parts are. Nothing else is taken apart: a comparison of two vectors, a sum, an `or` is one part.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

import promql_parser as syntax

from heptascope.rules.promql_build import build
from heptascope.rules.promql_model import Pass, SelectorInfo
from heptascope.rules.promql_trees import VectorTree


class Conjunct(NamedTuple):
    """One part that must hold; `on` are the labels by which it is matched, None for the part whose labels the result has."""

    tree: VectorTree
    on: frozenset[str] | None

    @property
    def cost(self) -> int:
        """How much there is to read: a range holds about ten points, an instant one (own measure, only for the order of trying)."""
        return sum(10 if selector.range else 1 for selector in self.tree.need.selectors())

    def known(self, has: Callable[[SelectorInfo], bool]) -> bool:
        """Return whether everything that could make the part hold is there."""
        return self.tree.need.complete(has)

    def fails(self, mine: Mapping[str, str], own: Collection[str], this: Pass) -> bool:
        """Return whether the part has no element that can belong to an entity with the labels `mine`, of which `own` name it.

        Raises EvaluationError where Prometheus would refuse the samples. An element that lacks a label can belong to anyone.
        """
        found = self.tree.run(this)
        if not found:
            return True
        names = own if self.on is None else self.on & mine.keys()
        return not any(all(value == mine.get(name) for name, value in pairs if name in names) for pairs, _, _ in found)


def conjuncts(expr: object) -> Iterator[Conjunct]:
    """Yield the parts of a parsed expression that must all hold."""
    if isinstance(expr, syntax.ParenExpr):
        yield from conjuncts(expr.expr)
    elif isinstance(expr, syntax.BinaryExpr) and str(expr.op) in ("and", "unless"):
        yield from conjuncts(expr.lhs)
        on = _on(expr.modifier)
        if str(expr.op) == "and" and on is not None:
            yield from _parts(expr.rhs, on)
    else:
        yield from _parts(expr, None)


def _parts(expr: object, on: frozenset[str] | None) -> Iterator[Conjunct]:
    tree = build(expr)
    if isinstance(tree, VectorTree):
        yield Conjunct(tree, on)


def _on(modifier: syntax.BinModifier | None) -> frozenset[str] | None:
    """Return the labels of `on (...)`; None for `ignoring` and for neither, where elements match by labels that are not known here."""
    matching = modifier.matching if modifier is not None else None
    return frozenset(matching.labels) if matching is not None and matching.type == syntax.LabelModifierType.Include else None
