"""Which series a query needs, read off its PromQL; what recording rules make is followed to what they read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import cache
from typing import Any, Final

import promql_parser as syntax

from heptascope.rules.load import load as load_catalogue
from heptascope.rules.promql_model import Matcher, SelectorInfo
from heptascope.rules.promql_needs import NOTHING, Need, all_of, any_of, waive
from heptascope.rules.promql_parse import parse
from heptascope.surfaces.alerts.model import Recording
from heptascope.surfaces.alerts.render import rule_files
from heptascope.surfaces.alerts.settings import RenderSettings

_OPS: Final = (("=", syntax.MatchOp.Equal), ("!=", syntax.MatchOp.NotEqual), ("=~", syntax.MatchOp.Re), ("!~", syntax.MatchOp.NotRe))
_ALWAYS: Final = ("absent", "absent_over_time")


def needs(expr: str) -> Need:
    """Return what an expression needs in order to have a result. Raises UserError if it does not parse."""
    return _need(parse(expr), 0.0, 0.0)


def metrics(expr: str) -> list[str]:
    """Return the names of the series that an expression reads, each once. Raises UserError if it does not parse."""
    return list(dict.fromkeys(selector.metric for selector in needs(expr).selectors() if selector.metric))


def reach(expr: str) -> float:
    """Return how far back an expression has to look in order to have a result, in seconds, recorded series included.

    Of alternatives the one that looks back least counts. Raises UserError if the expression does not parse.
    """
    return _reach(needs(expr))


def _reach(need: Need) -> float:
    if need.selector is not None:
        return _back(need.selector)
    parts = [_reach(part) for part in need.parts]
    return (min if need.any_part else max)(parts, default=0.0)


def _back(selector: SelectorInfo) -> float:
    recorded = max((reach(rule.expr) for rule in recordings().get(selector.metric, ())), default=0.0)
    return (selector.range or 0.0) + (selector.offset or 0.0) + recorded


@cache
def recordings() -> Mapping[str, tuple[Recording, ...]]:
    """Return the recording rules that come with heptascope, by the name of what they record."""
    found: dict[str, tuple[Recording, ...]] = {}
    for rule in (rule for file in rule_files(load_catalogue(), RenderSettings()) for rule in file.recordings):
        found[rule.name] = (*found.get(rule.name, ()), rule)
    return found


@cache
def recorded_from(name: str) -> Need:
    """Return what a recorded series is made from: nothing but series that are scraped."""
    return any_of(*(scraped(needs(rule.expr)) for rule in recordings()[name]))


def scraped(need: Need) -> Need:
    """Return a need in which recorded series are replaced by what they are made from."""
    if need.selector is not None:
        return recorded_from(need.selector.metric) if need.selector.metric in recordings() else need
    return Need(None, tuple(scraped(part) for part in need.parts), need.any_part, need.waived)


def _need(node: Any, window: float, offset: float) -> Need:
    """Return the need of a node inside ranges of `window` seconds, `offset` seconds ago."""
    if isinstance(node, syntax.VectorSelector):
        return Need(_selector(node, window, offset + _seconds(node.offset)))
    if isinstance(node, syntax.MatrixSelector):
        return _need(node.vector_selector, window + _seconds(node.range), offset)
    if isinstance(node, syntax.SubqueryExpr):
        return _need(node.expr, window + _seconds(node.range), offset + _seconds(node.offset))
    if isinstance(node, syntax.BinaryExpr):
        return _binary(str(node.op), _need(node.lhs, window, offset), _need(node.rhs, window, offset))
    parts = all_of(*(_need(child, window, offset) for child in _children(node)))
    return waive(parts) if isinstance(node, syntax.Call) and node.func.name in _ALWAYS else parts


def _binary(op: str, left: Need, right: Need) -> Need:
    if op == "or":
        return NOTHING if NOTHING in (left, right) else any_of(left, right)
    return all_of(left, waive(right) if op == "unless" else right)


def _children(node: Any) -> Iterator[Any]:
    if isinstance(node, syntax.Call):
        yield from node.args
    elif isinstance(node, syntax.AggregateExpr | syntax.ParenExpr | syntax.UnaryExpr):
        yield node.expr


def _selector(node: Any, window: float, offset: float) -> SelectorInfo:
    matchers = tuple(Matcher(one.name, next(text for text, op in _OPS if op == one.op), one.value) for one in node.matchers.matchers)
    return SelectorInfo(node.name or "", matchers, window or None, offset or None, True)


def _seconds(span: timedelta | None) -> float:
    return span.total_seconds() if span is not None else 0.0
