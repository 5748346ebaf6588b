"""The useful checks of pint, ported: each takes a rule and yields complaints. `DISABLED` names what is wrong on purpose, and why."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import promql_parser as syntax

from heptascope.rules.load import SEVERITIES
from heptascope.signals.schema import signal_of
from heptascope.signals.schema_row import Kind
from heptascope.surfaces.alerts.model import Alert, Group, Recording
from support.pint_labels import COMPARISONS, KNOWN, TARGET, ImpossibleJoinError, labels_of, operator, recorded_labels, walk

Rule = Alert | Recording
Check = Callable[[Rule], Iterator[str]]

RATES = ("rate", "irate", "increase", "resets")
MOST_SECONDS = 24 * 3600.0
"""An alert that waits longer than a day is a report."""

MOST_INTERVAL_SECONDS = 300.0
RETENTION_SECONDS = 15 * 24 * 3600.0
"""Prometheus' own default."""

DISABLED: dict[tuple[str, str], str] = {
    ("for", "HeptascopeInhibitor"): "it stands beside what has waited already",
    ("severity", "HeptascopeInhibitor"): "it is for Alertmanager, as InfoInhibitor of kube-prometheus is",
    (
        "retention",
        "cluster_namespace_workload_model_slo:heptascope_sli_error:ratio_rate30d",
    ): "a budget of 30 days needs 30 days; docs say so",
    ("job", "cluster_model*"): "fleet levels name what is left; the job is that of the exporter, one and the same everywhere",
    ("job", "cluster_namespace_workload*"): "as above",
    ("job", "cluster:*"): "as above",
    ("job", "cluster_layer:*"): "as above",
    ("job", "slo:*"): "a constant",
}

_RECORD = re.compile(r"[a-z][a-z0-9_]*:[a-z][a-z0-9_]*:[a-z0-9_]+")
_LABELS = re.compile(r"\$labels\.(\w+)")
_VALUE = re.compile(r"\$value\b(?!\s*\|\s*humanize)")
_META = re.compile(r"[.*+?()|\[\]{}^$\\]")


def parsed(rule: Rule) -> Any:
    """Return the tree of a rule's expression."""
    return syntax.parse(rule.expr)


def disabled(check: str, name: str) -> bool:
    """Whether a check is switched off for a rule."""
    return any(c == check and re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), name) for c, pattern in DISABLED)


def comparison(rule: Rule) -> Iterator[str]:
    """Want an alert to compare with something, or to ask for what is absent; else it would always fire."""
    tree = parsed(rule)
    found = any(
        (isinstance(part, syntax.BinaryExpr) and operator(part) in COMPARISONS and not (part.modifier and part.modifier.return_bool))
        or (isinstance(part, syntax.Call) and part.func.name.startswith("absent"))
        or (isinstance(part, syntax.VectorSelector) and part.name in ("ALERTS", "heptascope_finding_unknown"))
        for part, _ in walk(tree)
    )
    if isinstance(rule, Alert) and not found:
        yield "no comparison"


def severity(rule: Rule) -> Iterator[str]:
    """Want a severity from the closed list."""
    if isinstance(rule, Alert) and rule.labels.get("severity") not in SEVERITIES:
        yield f"severity {rule.labels.get('severity')!r}"


def annotations(rule: Rule) -> Iterator[str]:
    """Want an alert to say what, where, how much, and where to read on; its summary is one fixed sentence."""
    if not isinstance(rule, Alert):
        return
    yield from (f"no {name}" for name in ("summary", "description", "runbook_url") if not rule.annotations.get(name))
    if "{{" in rule.annotations.get("summary", ""):
        yield "the summary changes"


def templates(rule: Rule) -> Iterator[str]:
    """Want templates to use labels that the result has, to show values as people read them, and no value in a label."""
    if not isinstance(rule, Alert):
        return
    has = (labels_of(parsed(rule)) or frozenset()) | set(rule.labels)
    for name, text in rule.annotations.items():
        yield from (f"{name} uses {label}, which the result has not" for label in _LABELS.findall(text) if label not in has)
        yield from (f"{name} shows a bare value" for _ in _VALUE.findall(text))
    yield from (f"label {name} holds a value" for name, text in rule.labels.items() if "$value" in text or "{{" in text)


def waits(rule: Rule) -> Iterator[str]:
    """Want an alert to wait a while, and not for days."""
    if isinstance(rule, Alert) and not 60 <= rule.hold <= MOST_SECONDS:
        yield f"waits {rule.hold} s"


def absent_waits(rule: Rule) -> Iterator[str]:
    """Want `absent()` to wait for several scrapes."""
    asks = any(isinstance(part, syntax.Call) and part.func.name == "absent" for part, _ in walk(parsed(rule)))
    if isinstance(rule, Alert) and asks and rule.hold < 120:
        yield f"absent() with {rule.hold} s"


def counters(rule: Rule) -> Iterator[str]:
    """Want counters to be rated before anything else, and only counters."""
    for part, above in walk(parsed(rule)):
        if not isinstance(part, syntax.VectorSelector):
            continue
        calls = [one.func.name for one in above if isinstance(one, syntax.Call)]
        if _is_counter(part.name) and not {*calls} & {*RATES, "count", "absent"} and not _only_asked_for(part, above):
            yield f"{part.name} without a rate"
        if {*calls[-1:]} & {"rate", "irate", "increase"} and not _is_counter(part.name):
            yield f"{calls[-1]} of {part.name}, which is no counter"


def _is_counter(name: str) -> bool:
    signal = signal_of(name)
    return signal is not None and signal.kind in (Kind.COUNTER, Kind.HISTOGRAM)


def _only_asked_for(part: Any, above: tuple[Any, ...]) -> bool:
    """Whether it only matters that the series is there: counted, or on the right of `and` or `unless`."""
    line = [*above, part]
    for outer, inner in pairwise(line):
        if isinstance(outer, syntax.AggregateExpr) and str(outer.op) == "count":
            return True
        if isinstance(outer, syntax.BinaryExpr) and operator(outer) in ("and", "unless") and outer.rhs is inner:
            return isinstance(inner, syntax.VectorSelector)
    return False


def possible(rule: Rule) -> Iterator[str]:
    """Want both sides of each match to have the labels that they are matched on."""
    try:
        labels_of(parsed(rule))
    except ImpossibleJoinError as exc:
        yield str(exc)


def steady(rule: Rule) -> Iterator[str]:
    """Want no sampling (`topk`), no division inside an aggregation (one empty series makes all NaN), no fragile quotient in an alert."""
    for part, above in walk(parsed(rule)):
        if isinstance(part, syntax.AggregateExpr) and str(part.op) in ("topk", "bottomk", "limitk"):
            yield str(part.op)
        if not isinstance(part, syntax.BinaryExpr) or operator(part) != "/":
            continue
        if any(isinstance(one, syntax.AggregateExpr) for one in above) and not _divides_by_known(part):
            yield "division inside an aggregation"
        if isinstance(rule, Alert) and all(isinstance(side, syntax.AggregateExpr) for side in (part.lhs, part.rhs)):
            yield "quotient of two aggregations, which jumps when one of them restarts"


def _divides_by_known(part: Any) -> bool:
    """Whether the divisor cannot be 0: a limit that an engine states, or a count."""
    names = [inner.name for inner, _ in walk(part.rhs) if isinstance(inner, syntax.VectorSelector)]
    counted = isinstance(part.rhs, syntax.AggregateExpr) and str(part.rhs.op) == "count"
    return counted or names == ["heptascope_engine_sequence_limit"]


def job(rule: Rule) -> Iterator[str]:
    """Want a recorded series to keep its job."""
    if isinstance(rule, Recording) and "job" not in (labels_of(parsed(rule)) or frozenset()):
        yield "the job is lost"


def record_name(rule: Rule) -> Iterator[str]:
    """Want a recorded name to be level:metric:operations; the level are the labels that are left, and the range stands in it."""
    if not isinstance(rule, Recording):
        return
    if not _RECORD.fullmatch(rule.name):
        yield "not level:metric:operations"
    left = (labels_of(parsed(rule)) or frozenset()) | set(rule.labels)
    promised = recorded_labels(rule.name)
    if left - promised - TARGET or promised - left - TARGET:
        yield f"the level promises {sorted(promised)}, the result has {sorted(left)}"
    windows = {m.group(1) for m in re.finditer(r"\[(\w+)(?::\w*)?\]", rule.expr)}
    yield from (f"{window} is not in the name" for window in windows if not rule.name.endswith(window))


def regexes(rule: Rule) -> Iterator[str]:
    """Want regular expressions only where they are some, and without anchors, which Prometheus adds."""
    for part, _ in walk(parsed(rule)):
        if isinstance(part, syntax.VectorSelector):
            for matcher in part.matchers.matchers:
                if matcher.op in (syntax.MatchOp.Re, syntax.MatchOp.NotRe) and (not _META.search(matcher.value) or matcher.value[0] == "^"):
                    yield f"{matcher.name}=~{matcher.value!r}"


def retention(rule: Rule) -> Iterator[str]:
    """Want ranges and offsets within what Prometheus keeps by default."""
    for part, _ in walk(parsed(rule)):
        reach = getattr(part, "range", None) or getattr(part, "offset", None)
        if reach is not None and reach.total_seconds() > RETENTION_SECONDS:
            yield f"reaches back {reach}"


def up_has_job(rule: Rule) -> Iterator[str]:
    """Want the job in selectors of `up`, which is everybody's."""
    for part, _ in walk(parsed(rule)):
        if isinstance(part, syntax.VectorSelector) and part.name == "up" and "job" not in {m.name for m in part.matchers.matchers}:
            yield "up without job"


CHECKS: dict[str, Check] = {
    "comparison": comparison,
    "severity": severity,
    "annotations": annotations,
    "templates": templates,
    "for": waits,
    "absent": absent_waits,
    "counters": counters,
    "possible": possible,
    "steady": steady,
    "job": job,
    "record": record_name,
    "regexes": regexes,
    "retention": retention,
    "up": up_has_job,
}


def complaints(rule: Rule) -> list[str]:
    """Return everything that is wrong with a rule."""
    return [
        f"{rule.name}: {name}: {text}"
        for name, check in CHECKS.items()
        if not disabled(name, rule.name)
        for text in dict.fromkeys(check(rule))
    ]


def used_names(expr: str) -> set[str]:
    """Return the metric names that an expression reads."""
    return {part.name for part, _ in walk(syntax.parse(expr)) if isinstance(part, syntax.VectorSelector)}


def unknown_names(expr: str, recorded: set[str]) -> list[str]:
    """Return the metric names that are neither in the signal table, nor recorded, nor Prometheus' own."""
    return sorted(name for name in used_names(expr) if signal_of(name) is None and name not in recorded and name not in KNOWN)


def slow_groups(groups: list[Group]) -> list[str]:
    """Return the groups whose results would vanish between two evaluations."""
    return [group.name for group in groups if group.interval >= MOST_INTERVAL_SECONDS]
