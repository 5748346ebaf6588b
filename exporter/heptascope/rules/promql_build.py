"""From the parser's tree to runs: selectors, operators, aggregations. Whatever is not supported is refused here."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import promql_parser as syntax

from heptascope.errors import UserError
from heptascope.rules import promql_aggregations as aggregations
from heptascope.rules import promql_operators as operators
from heptascope.rules.promql_calls import build_call
from heptascope.rules.promql_functions import map_values
from heptascope.rules.promql_model import Matcher, SelectorInfo, label_test, projection
from heptascope.rules.promql_needs import Need, all_of, any_of, waive
from heptascope.rules.promql_operators import Matching
from heptascope.rules.promql_parse import check_label_names, check_metric_name
from heptascope.rules.promql_selectors import instant_selector, range_selector
from heptascope.rules.promql_trees import RangeTree, ScalarTree, Tree, VectorTree, key_of, number_tree, scalar, shared, vector, vector_tree

_MATCH_OPS = [
    (syntax.MatchOp.Equal, "="),
    (syntax.MatchOp.NotEqual, "!="),
    (syntax.MatchOp.Re, "=~"),
    (syntax.MatchOp.NotRe, "!~"),
]
_MANY_SIDES = [
    (syntax.VectorMatchCardinality.ManyToOne, "left"),
    (syntax.VectorMatchCardinality.OneToMany, "right"),
]


def build(expr: object) -> Tree:
    """Return the runs of a parsed expression; UserError for anything unsupported."""
    builder = _BUILDERS.get(type(expr))
    if builder is None:
        raise UserError(f"{type(expr).__name__} is not supported")
    return builder(expr)


def _number(expr: syntax.NumberLiteral) -> Tree:
    return number_tree(float(expr.val))


def _string(expr: syntax.StringLiteral) -> Tree:
    raise UserError(f"the string {expr.val!r} is not an expression")


def _subquery(_expr: syntax.SubqueryExpr) -> Tree:
    raise UserError("subqueries are not supported")


def _paren(expr: syntax.ParenExpr) -> Tree:
    return build(expr.expr)


def _call(expr: syntax.Call) -> Tree:
    return build_call(expr, build)


def _minus(expr: syntax.UnaryExpr) -> Tree:
    inner = build(expr.expr)
    if isinstance(inner, ScalarTree):
        number = inner.run
        return ScalarTree(key_of("minus", inner.key), lambda this: -number(this), inner.need)
    operand = vector(inner)
    return vector_tree(("minus", operand.key), map_values(operand.run, lambda value: -value, operand.mixed), operand.need)


def _instant(expr: syntax.VectorSelector) -> Tree:
    info = _selector(expr, None)
    key = key_of("selector", info)
    return VectorTree(key, shared(key, instant_selector(info)), Need(info), selector=info)


def _range(expr: syntax.MatrixSelector) -> Tree:
    info = _selector(expr.vector_selector, expr.range.total_seconds())
    key = key_of("selector", info)
    return RangeTree(key, shared(key, range_selector(info)), Need(info), info)


def _selector(expr: syntax.VectorSelector, seconds: float | None) -> SelectorInfo:
    if expr.at is not None:
        raise UserError("the @ modifier is not supported")
    if expr.matchers.or_matchers:
        raise UserError("`or` between matchers is not supported")
    matchers = [Matcher(m.name, _lookup(_MATCH_OPS, m.op), m.value) for m in expr.matchers.matchers]
    names = [m for m in matchers if m.label == "__name__"]
    name = expr.name or (names[0].value if len(names) == 1 and names[0].op == "=" else "")
    if not name:
        raise UserError("a selector needs one metric name")
    check_metric_name(name)
    others = tuple(m for m in matchers if m.label != "__name__")
    check_label_names(m.label for m in others)
    label_test(others)
    return SelectorInfo(name, others, seconds, _seconds(expr.offset), required=True)


def _lookup(table: list[tuple[Any, str]], value: object) -> str:
    # The parser's enumerations compare but do not hash.
    return next((text for member, text in table if member == value), "")


def _seconds(duration: timedelta | None) -> float | None:
    return duration.total_seconds() if duration else None


def _aggregate(expr: syntax.AggregateExpr) -> Tree:
    name = str(expr.op)
    if name not in (*aggregations.AGGREGATIONS, "quantile", "topk", "bottomk"):
        raise UserError(f"the aggregation {name} is not supported")
    operand = vector(build(expr.expr))
    labels = frozenset(expr.modifier.labels) if expr.modifier else frozenset[str]()
    check_label_names(labels)
    keep = expr.modifier is None or expr.modifier.type == syntax.AggModifierType.By
    group = projection(labels, keep)
    structure = ("aggregate", name, labels, keep, operand.key)
    if name in aggregations.AGGREGATIONS:
        return vector_tree(structure, aggregations.aggregate(operand.run, aggregations.AGGREGATIONS[name], group), operand.need)
    number = scalar(build(expr.param))
    need = all_of(number.need, operand.need)
    if name == "quantile":
        return vector_tree((*structure, number.key), aggregations.aggregate_quantile(operand.run, number.run, group), need)
    run = aggregations.select_extremes(operand.run, number.run, group, largest=name == "topk")
    return vector_tree((*structure, number.key), run, need, mixed=operand.mixed)


def _binary(expr: syntax.BinaryExpr) -> Tree:
    op = str(expr.op)
    left, right = build(expr.lhs), build(expr.rhs)
    returns_bool = expr.modifier is not None and expr.modifier.return_bool
    if op in operators.SETS:
        return _set(op, vector(left), vector(right), _matching(expr.modifier))
    if op not in operators.ARITHMETIC and op not in operators.COMPARISONS:
        raise UserError(f"the operator {op} is not supported")
    compare = operators.COMPARISONS.get(op)
    operation = operators.ARITHMETIC[op] if compare is None else operators.truth(compare)
    keep = None if returns_bool else compare
    key = ("binary", op, returns_bool, left.key, right.key)
    need = all_of(left.need, right.need)
    if isinstance(left, ScalarTree) and isinstance(right, ScalarTree):
        return ScalarTree(key_of(*key), operators.scalars(operation, left.run, right.run), need)
    if isinstance(left, ScalarTree) or isinstance(right, ScalarTree):
        swapped = isinstance(left, ScalarTree)
        operand, number = vector(right if swapped else left), scalar(left if swapped else right)
        if keep is not None:
            return vector_tree(key, operators.filter_by_scalar(keep, operand.run, number.run, swapped), need, mixed=operand.mixed)
        return vector_tree(key, operators.map_with_scalar(operation, operand.run, number.run, swapped, operand.mixed), need)
    matching = _matching(expr.modifier)
    return _vectors(key, _kept_value(keep, operation), keep, vector(left), vector(right), matching)


def _kept_value(keep: operators.Comparison | None, operation: operators.Operation) -> operators.Operation:
    # A comparison that filters shows the left value.
    return operation if keep is None else lambda left, _right: left


def _vectors(
    key: tuple[object, ...],
    operation: operators.Operation,
    keep: operators.Comparison | None,
    left: VectorTree,
    right: VectorTree,
    matching: Matching,
) -> Tree:
    join = operators.many_to_one if matching.many else operators.one_to_one
    run = join(operation, keep, left.run, right.run, matching)
    mixed = keep is not None and (right if matching.many == "right" else left).mixed
    return vector_tree((*key, matching.shape), run, all_of(left.need, right.need), mixed=mixed)


def _set(op: str, left: VectorTree, right: VectorTree, matching: Matching) -> Tree:
    run = operators.SETS[op](left.run, right.run, matching.signature)
    structure = (op, left.key, right.key, matching.shape)
    if op == "or":
        return vector_tree(structure, run, any_of(left.need, right.need), mixed=True)
    need = all_of(left.need, right.need if op == "and" else waive(right.need))
    return vector_tree(structure, run, need, mixed=left.mixed)


def _matching(modifier: syntax.BinModifier | None) -> Matching:
    if modifier is None:
        return Matching(projection(frozenset(), keep=False))
    fill = modifier.fill_values
    if fill is not None and (fill.lhs is not None or fill.rhs is not None):
        raise UserError("fill values are not supported")
    include = tuple(modifier.group_labels or ())
    on = modifier.matching is not None and modifier.matching.type == syntax.LabelModifierType.Include
    names = frozenset(modifier.matching.labels) if modifier.matching else frozenset[str]()
    check_label_names([*names, *include])
    return Matching(projection(names, on), on, _lookup(_MANY_SIDES, modifier.card), include)


_BUILDERS: dict[type, Callable[[Any], Tree]] = {
    syntax.NumberLiteral: _number,
    syntax.StringLiteral: _string,
    syntax.ParenExpr: _paren,
    syntax.UnaryExpr: _minus,
    syntax.VectorSelector: _instant,
    syntax.MatrixSelector: _range,
    syntax.SubqueryExpr: _subquery,
    syntax.AggregateExpr: _aggregate,
    syntax.BinaryExpr: _binary,
    syntax.Call: _call,
}
