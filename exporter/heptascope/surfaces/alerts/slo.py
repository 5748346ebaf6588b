"""Service level objectives: error ratios over the standard windows, budgets, and burn-rate alerts.

The indicator of a latency is the share of events in a bucket that ends exactly at the promise. An engine without such a bucket has
no indicator: its pods count in neither part of the ratio, and SloBucketMissing says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from heptascope.quantities import format_duration
from heptascope.surfaces.alerts.catalogue import first
from heptascope.surfaces.alerts.model import COMPONENT, POD, Alert, Group, Recording, RuleFile
from heptascope.surfaces.alerts.overrides import Override
from heptascope.surfaces.alerts.settings import LatencyObjective, RenderSettings
from heptascope.surfaces.alerts.words import with_value
from heptascope.surfaces.prometheus import number_text

LEVEL: Final = "cluster_namespace_workload_model_slo"
ERRORS, TOTAL = f"{LEVEL}:heptascope_sli_error", f"{LEVEL}:heptascope_sli_total"
OBJECTIVE: Final = "slo:heptascope_slo_objective:ratio"
BUDGET: Final = f"{LEVEL}:heptascope_error_budget_remaining:ratio30d"
SHORT, LONG = ("30m", "1h", "2h", "6h"), ("1d", "3d")
PERIOD: Final = "30d"
SHORT_SECONDS, LONG_SECONDS = 60.0, 120.0
"""Evaluation intervals; a result must not be older than the five minutes of the look-back."""


class Burn(NamedTuple):
    """One pair of windows: how fast the budget burns, and who must know. Factor = budget share x 30 days / long window."""

    severity: str
    long: str
    short: str
    factor: float
    hold: float


BURNS: Final = (
    Burn("critical", "1h", "5m", 14.4, 120.0),
    Burn("critical", "6h", "30m", 6, 900.0),
    Burn("warning", "1d", "2h", 3, 3600.0),
    Burn("warning", "3d", "6h", 1, 10800.0),
)
"""The standard four windows for a period of 30 days: 2, 5, 10 and 10 per cent of the budget."""


class Indicator(NamedTuple):
    """One objective: its name, the stem of its alert, what a bad event is."""

    slo: str
    alert: str
    bad: str


INDICATORS: Final = (
    Indicator("time_to_first_token", "TimeToFirstTokenErrorBudgetBurn", "first tokens come later than promised"),
    Indicator("inter_token_latency", "InterTokenLatencyErrorBudgetBurn", "gaps between tokens are longer than promised"),
    Indicator("availability", "AvailabilityErrorBudgetBurn", "requests end in an error of the server"),
)
BUCKET_MISSING: Final = "SloBucketMissing"
MINIMUM: Final = "events_per_second"
THRESHOLDS: Final[Mapping[str, float]] = {MINIMUM: 0.01}
SOURCE: Final[Mapping[str, str]] = {MINIMUM: "below 36 events an hour a single bad one looks like a fire (own choice)"}


def slo_file(settings: RenderSettings) -> RuleFile:
    """Return the file. Raises UserError for a change that an alert does not know."""
    groups = (
        Group("heptascope-slo-long", (*_ratios(LONG), *_budget()), LONG_SECONDS),
        Group("heptascope-slo", (*_objectives(settings), *_base(settings), *_ratios(SHORT), *_burns(settings)), SHORT_SECONDS),
        Group("heptascope-slo-buckets", tuple(_missing(settings)), SHORT_SECONDS),
    )
    return RuleFile("slo", "Objectives for latency and availability: indicators, error budgets, burn rates.", groups)


def latency(settings: RenderSettings, slo: str) -> LatencyObjective | None:
    """Return the objective of a latency; None for availability."""
    found = getattr(settings.slo, slo)
    return found if isinstance(found, LatencyObjective) else None


def _level(settings: RenderSettings) -> str:
    return f"cluster, namespace, {settings.workload_label}, model"


def _pod(settings: RenderSettings) -> str:
    return ", ".join((*POD, settings.workload_label))


def _objectives(settings: RenderSettings) -> Iterator[Recording]:
    for indicator in INDICATORS:
        yield Recording(OBJECTIVE, f"vector({getattr(settings.slo, indicator.slo).objective:g})", {"slo": indicator.slo})


def _base(settings: RenderSettings) -> Iterator[Recording]:
    for indicator in INDICATORS:
        promise = latency(settings, indicator.slo)
        total, errors = _availability(settings) if promise is None else _latency(settings, indicator.slo, promise)
        yield Recording(f"{TOTAL}:rate5m", total, {"slo": indicator.slo})
        yield Recording(f"{ERRORS}:rate5m", errors, {"slo": indicator.slo})
    yield Recording(f"{ERRORS}:ratio_rate5m", f"{ERRORS}:rate5m\n/\n({TOTAL}:rate5m > 0)")


def _summed(settings: RenderSettings, inner: str) -> str:
    """Return the sum of a rate per engine, by deployment and model."""
    rank = f"{_pod(settings)}, engine, rank"
    return f"sum by ({_level(settings)}) (\n  {inner}\n  * on ({rank}) group_left (model) heptascope_engine_info\n)"


def _latency(settings: RenderSettings, slo: str, promise: LatencyObjective) -> tuple[str, str]:
    metric = f"heptascope_engine_{slo}_seconds"
    rank = f"{_pod(settings)}, engine, rank"
    bucket = f'{metric}_bucket{{le="{number_text(promise.seconds)}"}}'
    total = f"(rate({metric}_count[5m]) and on ({rank}) {bucket})"
    slow = f"(rate({metric}_count[5m]) - on ({rank}) rate({bucket}[5m]))"
    return _summed(settings, total), _summed(settings, slow)


def _availability(settings: RenderSettings) -> tuple[str, str]:
    """Return answers that count (not those that the client is to blame for) and those that are errors of the server."""
    rank = f"{_pod(settings)}, engine, rank"
    metric = "heptascope_engine_http_requests_total"
    total = f'sum by ({rank}) (rate({metric}{{status!="4xx"}}[5m]))'
    failed = f'(sum by ({rank}) (rate({metric}{{status="5xx"}}[5m])) or 0 * {total})'
    return _summed(settings, total), _summed(settings, failed)


def _ratios(windows: tuple[str, ...]) -> Iterator[Recording]:
    for window in windows:
        if window == "1h":
            yield Recording(f"{TOTAL}:rate1h", f"avg_over_time({TOTAL}:rate5m[1h])")
            yield Recording(f"{ERRORS}:rate1h", f"avg_over_time({ERRORS}:rate5m[1h])")
        yield Recording(
            f"{ERRORS}:ratio_rate{window}", f"sum_over_time({ERRORS}:rate5m[{window}])\n/\n(sum_over_time({TOTAL}:rate5m[{window}]) > 0)"
        )


def _budget() -> Iterator[Recording]:
    """Return the ratio of the whole period, from hourly points, and what is left of the budget (below 0: overspent)."""
    yield Recording(
        f"{ERRORS}:ratio_rate{PERIOD}",
        f"sum_over_time({ERRORS}:rate1h[{PERIOD}:1h])\n/\n(sum_over_time({TOTAL}:rate1h[{PERIOD}:1h]) > 0)",
    )
    yield Recording(BUDGET, f"1 - {ERRORS}:ratio_rate{PERIOD}\n/ on (slo) group_left ()\n(1 - {OBJECTIVE})")


def _burns(settings: RenderSettings) -> Iterator[Alert]:
    for indicator in INDICATORS:
        changes = settings.override(indicator.alert, THRESHOLDS)
        if changes.enabled:
            yield from (_burn(settings, indicator, burn, changes) for burn in BURNS)


def _burn(settings: RenderSettings, indicator: Indicator, burn: Burn, changes: Override) -> Alert:
    only = f'{{slo="{indicator.slo}"}}'
    on = f"{_level(settings)}, slo"
    limit = f"{burn.factor:g} * (1 - {OBJECTIVE}{only})"
    minimum = {**THRESHOLDS, **changes.thresholds}[MINIMUM]
    expr = (
        f"(\n  {ERRORS}:ratio_rate{burn.long}{only}\n  > on (slo) group_left () {limit}\n)\n"
        f"and on ({on}) (\n  {ERRORS}:ratio_rate{burn.short}{only}\n  > on (slo) group_left () {limit}\n)\n"
        f"and on ({on})\n  {TOTAL}:rate1h{only} > {minimum:.12g}"
    )
    return Alert(
        name=indicator.alert,
        expr=expr,
        hold=first(changes.hold, burn.hold),
        keep=0.0,
        labels={"severity": changes.severity or burn.severity, "component": COMPONENT, "long": burn.long, "short": burn.short},
        annotations={
            "summary": f"The error budget burns: too many {indicator.bad}.",
            "description": _description(settings, indicator, burn),
            "causes": _causes(settings),
            "runbook_url": f"{settings.runbooks}/{indicator.alert}.md",
        },
    )


def _description(settings: RenderSettings, indicator: Indicator, burn: Burn) -> str:
    where = f"{{{{ $labels.model }}}} in {{{{ $labels.namespace }}}}/{{{{ $labels.{settings.workload_label} }}}}"
    return with_value(f"{where}: {{%}} of {indicator.bad} over {burn.long}, more than {burn.factor:g} times what the objective allows.")


def _causes(settings: RenderSettings) -> str:
    """Return a template that names the faults that fire in the same deployment, so that the page carries the cause."""
    label = settings.workload_label
    query = (
        f'count by (alertname) (ALERTS{{component=\\"{COMPONENT}\\", kind=\\"fault\\", alertstate=\\"firing\\", '
        f'namespace=\\"%s\\", {label}=\\"%s\\"}})'
    )
    found = f'{{{{ range printf "{query}" $labels.namespace $labels.{label} | query | sortByLabel "alertname" }}}}'
    return f"Faults that fire there now:{found} {{{{ .Labels.alertname }}}}{{{{ else }}}} none{{{{ end }}}}."


def _missing(settings: RenderSettings) -> Iterator[Alert]:
    changes = settings.override(BUCKET_MISSING, ())
    if not changes.enabled:
        return
    rank = f"{_pod(settings)}, engine, rank"
    level = f"cluster, namespace, {settings.workload_label}"
    for indicator in INDICATORS:
        promise = latency(settings, indicator.slo)
        if promise is None:
            continue
        metric = f"heptascope_engine_{indicator.slo}_seconds"
        bound = number_text(promise.seconds)
        text = (
            f"{{#}} engines of {{{{ $labels.namespace }}}}/{{{{ $labels.{settings.workload_label} }}}} have no bucket of "
            f"{indicator.slo} that ends at {format_duration(promise.seconds)}, so this objective is not watched there."
        )
        yield Alert(
            name=BUCKET_MISSING,
            expr=f'count by ({level}) (\n  {metric}_count\n  unless on ({rank}) {metric}_bucket{{le="{bound}"}}\n) > 0',
            hold=first(changes.hold, 900.0),
            keep=0.0,
            labels={"severity": changes.severity or "info", "component": COMPONENT, "slo": indicator.slo},
            annotations={
                "summary": "The engine's histogram has no bucket at the objective, so the objective is not watched.",
                "description": with_value(text),
                "runbook_url": f"{settings.runbooks}/{BUCKET_MISSING}.md",
            },
        )
