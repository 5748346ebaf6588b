"""The numbers behind a claim: each evidence signal's value over the window, for one engine rank or GPU."""

from __future__ import annotations

from heptascope.model import Evidence, Labels
from heptascope.rules.instances import Instance, concerns
from heptascope.rules.rule import EvidenceItem, Rule
from heptascope.signals.rates import growth, mean
from heptascope.signals.schema import SCHEMA
from heptascope.signals.schema_row import Kind
from heptascope.signals.window import Series, Window

MOST_VALUES = 4
"""Values shown of one signal that has several series for an instance (reasons, processes, positions)."""


def _series(window: Window, name: str, instance: Instance) -> list[Series]:
    return [s for s in window.series(name) if s.live and concerns(s.pairs, instance)]


def _value(series: Series, now: float, span: float) -> float | None:
    if SCHEMA[series.name].kind is Kind.COUNTER:
        grown = growth(series, now, span)
        return grown.per_second if grown is not None else None
    return mean(series, now, span)


def _histogram_mean(window: Window, name: str, instance: Instance, now: float, span: float) -> float | None:
    total = count = 0.0
    for series in _series(window, f"{name}_sum", instance):
        number = growth(window.get(f"{name}_count", series.pairs), now, span)
        amount = growth(series, now, span)
        if number is not None and amount is not None:
            total, count = total + amount.amount, count + number.amount
    return total / count if count else None


def _extra(pairs: Labels) -> str:
    shown = [f"{k}={v}" for k, v in pairs if k not in ("engine", "rank", "uuid")]
    return " ".join(shown)


def gather(rule: Rule, instance: Instance, window: Window, now: float, span: float) -> list[Evidence]:
    """Return the evidence of one claim: means of gauges, rates of counters, means of histograms."""
    return [e for item in rule.evidence for e in _item(rule, item, instance, window, now, span)]


def _item(rule: Rule, item: EvidenceItem, instance: Instance, window: Window, now: float, span: float) -> list[Evidence]:
    threshold = rule.threshold(item.threshold) if item.threshold else None
    kind = SCHEMA[item.signal].kind
    if kind is Kind.HISTOGRAM:
        value = _histogram_mean(window, item.signal, instance, now, span)
        return [] if value is None else [Evidence(item.signal, value, threshold, item.comparison, "mean")]
    note = "per second" if kind is Kind.COUNTER else ""
    out = []
    for series in _series(window, item.signal, instance):
        value = _value(series, now, span) if item.only is None or item.only in series.pairs else None
        if value is not None:
            text = " ".join(t for t in (_extra(series.pairs), note) if t)
            out.append(Evidence(item.signal, value, threshold, item.comparison, text))
    out.sort(key=lambda e: -(e.value or 0.0))
    return [e for e in out[:MOST_VALUES] if e.value or e is out[0]]
