"""From the parser's tree to runs: function calls."""

from __future__ import annotations

from collections.abc import Callable

import promql_parser as syntax

from heptascope.errors import UserError
from heptascope.rules import promql_functions as functions
from heptascope.rules import promql_ranges as ranges
from heptascope.rules.promql_histogram import histogram_quantile
from heptascope.rules.promql_needs import NOTHING, all_of, waive
from heptascope.rules.promql_parse import check_label_names
from heptascope.rules.promql_regex import compile_regex
from heptascope.rules.promql_selectors import timestamp_selector
from heptascope.rules.promql_trees import Build, RangeTree, ScalarTree, Tree, key_of, number_tree, scalar, vector, vector_tree

_OF_RANGES = {"rate", "increase", "delta", *ranges.STEPS, *ranges.REDUCTIONS}


def build_call(call: syntax.Call, build: Build) -> Tree:
    """Return the runs of a function call; `build` makes its arguments. UserError if it is not supported."""
    name = call.func.name
    if name in _OF_RANGES:
        return _of_range(name, _range(call, 0, build))
    if name in functions.VALUE_FUNCTIONS:
        operand = vector(build(call.args[0]))
        run = functions.map_values(operand.run, functions.VALUE_FUNCTIONS[name], operand.mixed)
        return vector_tree((name, operand.key), run, operand.need)
    builder = _CALLS.get(name)
    if builder is None:
        raise UserError(f"the function {name} is not supported")
    return builder(call, build)


def _range(call: syntax.Call, index: int, build: Build) -> RangeTree:
    tree = build(call.args[index])
    if not isinstance(tree, RangeTree):
        raise UserError(f"{call.func.name} needs a range vector")
    return tree


def _of_range(name: str, operand: RangeTree) -> Tree:
    if name in ranges.STEPS:
        run = ranges.step_range(operand.run, ranges.STEPS[name])
    elif name in ranges.REDUCTIONS:
        run = ranges.reduce_range(operand.run, ranges.REDUCTIONS[name], operand.selector.metric if name == "last_over_time" else "")
    else:
        run = ranges.extrapolated(operand.run, counter=name != "delta", per_second=name == "rate")
    return vector_tree((name, operand.key), run, operand.need)


def _quantile_over_time(call: syntax.Call, build: Build) -> Tree:
    q, operand = scalar(build(call.args[0])), _range(call, 1, build)
    run = ranges.quantile_over_range(operand.run, q.run)
    return vector_tree((call.func.name, q.key, operand.key), run, all_of(q.need, operand.need))


def _histogram_quantile(call: syntax.Call, build: Build) -> Tree:
    q, buckets = scalar(build(call.args[0])), vector(build(call.args[1]))
    run = histogram_quantile(q.run, buckets.run, buckets.mixed)
    return vector_tree((call.func.name, q.key, buckets.key), run, all_of(q.need, buckets.need))


def _clamp(call: syntax.Call, build: Build) -> Tree:
    operand = vector(build(call.args[0]))
    bounds = [scalar(build(arg)) for arg in call.args[1:]]
    low = None if call.func.name == "clamp_max" else bounds[0].run
    high = None if call.func.name == "clamp_min" else bounds[-1].run
    structure = (call.func.name, operand.key, *(bound.key for bound in bounds))
    need = all_of(operand.need, *(bound.need for bound in bounds))
    return vector_tree(structure, functions.clamp(operand.run, low, high, operand.mixed), need)


def _round(call: syntax.Call, build: Build) -> Tree:
    operand = vector(build(call.args[0]))
    nearest = scalar(build(call.args[1])) if len(call.args) > 1 else number_tree(1.0)
    run = functions.round_to(operand.run, nearest.run, operand.mixed)
    return vector_tree(("round", operand.key, nearest.key), run, all_of(operand.need, nearest.need))


def _absent(call: syntax.Call, build: Build) -> Tree:
    operand = vector(build(call.args[0]))
    pairs = functions.absent_labels(operand.selector.matchers) if operand.selector else ()
    return vector_tree(("absent", operand.key), functions.absent(operand.run, pairs), waive(operand.need))


def _absent_over_time(call: syntax.Call, build: Build) -> Tree:
    operand = _range(call, 0, build)
    run = functions.absent_over_range(operand.run, functions.absent_labels(operand.selector.matchers))
    return vector_tree(("absent_over_time", operand.key), run, waive(operand.need))


def _timestamp(call: syntax.Call, build: Build) -> Tree:
    operand = vector(build(call.args[0]))
    run = timestamp_selector(operand.selector) if operand.selector else functions.timestamp_of(operand.run, operand.mixed)
    return vector_tree(("timestamp", operand.key), run, operand.need)


def _time(_call: syntax.Call, _build: Build) -> Tree:
    return ScalarTree(key_of("time"), lambda this: this.t, NOTHING)


def _scalar(call: syntax.Call, build: Build) -> Tree:
    operand = vector(build(call.args[0]))
    return ScalarTree(key_of("scalar", operand.key), functions.to_scalar(operand.run), operand.need)


def _vector(call: syntax.Call, build: Build) -> Tree:
    operand = scalar(build(call.args[0]))
    return vector_tree(("vector", operand.key), functions.to_vector(operand.run), operand.need)


def _sort(call: syntax.Call, build: Build) -> Tree:
    operand = vector(build(call.args[0]))
    return vector_tree(("sort", operand.key), functions.sort_values(operand.run), operand.need, mixed=operand.mixed)


def _label_replace(call: syntax.Call, build: Build) -> Tree:
    operand = vector(build(call.args[0]))
    target, template, source, regex = (_text(arg) for arg in call.args[1:])
    check_label_names([target, source])
    run = functions.relabel(operand.run, functions.replace_label(target, template, source, compile_regex(regex)))
    structure = ("label_replace", operand.key, target, template, source, regex)
    return vector_tree(structure, run, operand.need, mixed=operand.mixed)


def _label_join(call: syntax.Call, build: Build) -> Tree:
    operand = vector(build(call.args[0]))
    target, separator, *sources = (_text(arg) for arg in call.args[1:])
    check_label_names([target, *sources])
    run = functions.relabel(operand.run, functions.join_labels(target, separator, sources))
    return vector_tree(("label_join", operand.key, target, separator, *sources), run, operand.need, mixed=operand.mixed)


def _text(expr: object) -> str:
    while isinstance(expr, syntax.ParenExpr):
        expr = expr.expr
    if not isinstance(expr, syntax.StringLiteral):
        raise UserError("a string is needed")
    return expr.val


_CALLS: dict[str, Callable[[syntax.Call, Build], Tree]] = {
    "absent": _absent,
    "absent_over_time": _absent_over_time,
    "clamp": _clamp,
    "clamp_max": _clamp,
    "clamp_min": _clamp,
    "histogram_quantile": _histogram_quantile,
    "label_join": _label_join,
    "label_replace": _label_replace,
    "quantile_over_time": _quantile_over_time,
    "round": _round,
    "scalar": _scalar,
    "sort": _sort,
    "time": _time,
    "timestamp": _timestamp,
    "vector": _vector,
}

SUPPORTED = {*_OF_RANGES, *functions.VALUE_FUNCTIONS, *_CALLS}
"""The names of all functions that can be called."""
