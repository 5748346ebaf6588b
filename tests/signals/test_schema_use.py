"""The rules and the derivation use only what the table of signals has."""

from __future__ import annotations

from heptascope.rules import promql
from heptascope.signals.schema import SCHEMA, signal_of
from heptascope.signals.schema_row import Kind
from support.rule_cases import RULES

EXPRESSIONS = [promql.compile(rule.text("10s"), where=rule.where) for rule in RULES.values()]
SELECTORS = [(expression.where, selector) for expression in EXPRESSIONS for selector in expression.selectors]


def test_every_metric_of_a_rule_is_a_signal() -> None:
    """A rule that reads a name that does not exist would be unknown for ever."""
    assert [] == [(where, s.metric) for where, s in SELECTORS if signal_of(s.metric) is None]


def test_every_matcher_is_on_a_label_of_its_signal() -> None:
    """Nor could a rule that matches a label which its signal lacks ever fire."""
    allowed = {name: {*row.labels, "le"} for name, row in SCHEMA.items()}
    wrong = []
    for where, selector in SELECTORS:
        row = signal_of(selector.metric)
        wrong += [(where, m.label) for m in selector.matchers if row is None or m.label not in allowed[row.name]]
    assert [] == wrong


def test_ranges_fit_kinds() -> None:
    """Rates are taken of counters and histograms, averages of gauges: a rate of a gauge is nonsense."""
    texts = [(rule.name, rule.text("10s")) for rule in RULES.values()]
    wrong = []
    for name, row in SCHEMA.items():
        for function, kind in (("rate", Kind.GAUGE), ("increase", Kind.GAUGE), ("avg_over_time", Kind.COUNTER), ("deriv", Kind.COUNTER)):
            used = f"{function}({name}"
            wrong += [(rule, used) for rule, text in texts if row.kind is kind and (f"{used}[" in text or f"{used}{{" in text)]
    assert [] == wrong


def test_each_signal_of_a_rule_has_a_supplier() -> None:
    """Every signal that a rule reads is made by some source, or derived."""
    assert [] == [s.metric for _, s in SELECTORS if not (row := signal_of(s.metric)) or not row.suppliers]
