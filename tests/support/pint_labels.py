"""Which labels a PromQL expression's result can have: what joins and templates may rely on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import promql_parser as syntax

from heptascope.signals.schema import signal_of
from heptascope.surfaces.alerts.model import POD

TARGET = frozenset({*POD, "workload"})
"""Labels that service discovery gives to every series of an exporter."""

KNOWN = {"up": TARGET, "ALERTS": TARGET | {"alertname", "alertstate", "component", "kind", "severity", "engine", "rank", "gpu"}}
COMPARISONS = ("==", "!=", ">", "<", ">=", "<=")
SETS = ("and", "or", "unless")


class ImpossibleJoinError(Exception):
    """A join on a label that one side cannot have."""


def children(expr: Any) -> list[Any]:
    """Return the parts of an expression."""
    if isinstance(expr, syntax.BinaryExpr):
        return [expr.lhs, expr.rhs]
    if isinstance(expr, syntax.AggregateExpr):
        return [expr.expr, *([expr.param] if expr.param is not None else [])]
    if isinstance(expr, syntax.Call):
        return list(expr.args)
    if isinstance(expr, syntax.MatrixSelector):
        return [expr.vector_selector]
    return [expr.expr] if hasattr(expr, "expr") else []


def walk(expr: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield every part of an expression with the parts around it, the outermost first."""
    yield expr, above
    for child in children(expr):
        yield from walk(child, (*above, expr))


def operator(expr: Any) -> str:
    """Return the operator of a binary expression as text."""
    return str(expr.op).strip()


def labels_of(expr: Any) -> frozenset[str] | None:
    """Return the labels that the result can have, None for a scalar. Raises ImpossibleJoinError for a join that cannot match."""
    if isinstance(expr, syntax.NumberLiteral | syntax.StringLiteral):
        return None
    if isinstance(expr, syntax.VectorSelector):
        return _selected(expr)
    if isinstance(expr, syntax.MatrixSelector):
        return _selected(expr.vector_selector)
    if isinstance(expr, syntax.AggregateExpr):
        return _aggregated(expr)
    if isinstance(expr, syntax.Call):
        return _called(expr)
    if isinstance(expr, syntax.BinaryExpr):
        return _joined(expr)
    return labels_of(expr.expr)


def _selected(selector: Any) -> frozenset[str]:
    name = selector.name
    signal = signal_of(name)
    if signal is not None:
        return frozenset({*signal.labels, *TARGET} | ({"le"} if name.endswith("_bucket") else set()))
    if name in KNOWN:
        return KNOWN[name]
    return recorded_labels(name)


def recorded_labels(name: str) -> frozenset[str]:
    """Return the labels that the level of a recording rule's name promises."""
    level = name.partition(":")[0]
    words = set(level.split("_"))
    return frozenset((words - {"pod"}) | (TARGET if "pod" in words else frozenset()))


def _aggregated(expr: Any) -> frozenset[str]:
    inner = labels_of(expr.expr) or frozenset()
    if str(expr.op).strip() in ("topk", "bottomk"):  # they choose elements and leave them as they are
        return inner
    if expr.modifier is None:
        return frozenset()
    named = frozenset(expr.modifier.labels)
    if expr.modifier.type == syntax.AggModifierType.Without:
        return inner - named
    if named - inner - TARGET:
        raise ImpossibleJoinError(f"{sorted(named - inner)} in `by`, but the operand has {sorted(inner)}")
    return named & (inner | TARGET)


def _called(expr: Any) -> frozenset[str] | None:
    name = expr.func.name
    if name in ("scalar", "time"):
        return None
    if name == "vector":
        return frozenset()
    if name == "absent":
        return frozenset(m.name for m in expr.args[0].matchers.matchers if m.op == syntax.MatchOp.Equal)
    inner = next((found for found in (labels_of(arg) for arg in expr.args) if found is not None), None)
    if name in ("label_replace", "label_join") and inner is not None:
        return inner | {expr.args[1].val}
    return inner - {"le"} if name == "histogram_quantile" and inner is not None else inner


def _joined(expr: Any) -> frozenset[str] | None:
    left, right = labels_of(expr.lhs), labels_of(expr.rhs)
    if left is None or right is None:
        return left if right is None else right
    matching = expr.modifier.matching if expr.modifier is not None else None
    op = operator(expr)
    if matching is None:
        if left != right and op not in SETS:
            raise ImpossibleJoinError(f"{op} without `on` between {sorted(left)} and {sorted(right)}")
        return left & right if op == "or" else left
    on = frozenset(matching.labels)
    assert matching.type == syntax.LabelModifierType.Include, "`ignoring` is not used in our rules"
    for side in (left, right):
        if on - side - TARGET:
            raise ImpossibleJoinError(f"{op} on {sorted(on)}, but one side has only {sorted(side)}")
    if op in SETS:
        return left & right if op == "or" else left
    return _arithmetic(expr.modifier, left, right, on)


def _arithmetic(modifier: Any, left: frozenset[str], right: frozenset[str], on: frozenset[str]) -> frozenset[str]:
    added = _texts(modifier.group_labels)
    if modifier.card == syntax.VectorMatchCardinality.ManyToOne:
        return left | added
    if modifier.card == syntax.VectorMatchCardinality.OneToMany:
        return right | added
    return on & (left | right | TARGET)


def _texts(modifier: Any) -> frozenset[str]:
    if modifier is None:
        return frozenset()
    return frozenset(getattr(modifier, "labels", modifier))
