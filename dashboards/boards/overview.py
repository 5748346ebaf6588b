"""The first board: from the fleet to its deployments to their pods."""

from __future__ import annotations

from typing import Final

from boards.common import LAYER_COLORS, RUNBOOK, drill
from boards.limits import GREEN, GREY, ORANGE, PURPLE, RED, Mark, number
from boards.overview_pods import pods_row
from boards.panel import Board, Column, Panel, Query, Row, State
from boards.promql import DEPLOYMENT, DEPLOYMENT_NAME, PLACE, by, coded, matchers, of_places, quantile, rec, sel
from boards.variables import PLACES
from heptascope.model import VerdictState
from heptascope.surfaces.alerts.slo import BUDGET, BURNS, ERRORS, OBJECTIVE

_E: Final = "heptascope_engine_"
_TTFT, _ITL = _E + "time_to_first_token_seconds", _E + "inter_token_latency_seconds"
_NO_RULES: Final = "Load alerts/rules/*.yaml into Prometheus: this is recorded there."
_NO_BUDGET: Final = f"No requests in this time, or no rules. {_NO_RULES}"
_NO_EXPORTER: Final = "heptascope is not scraped here."
_VERDICT: Final = "heptascope_verdict"
VERDICTS: Final = (VerdictState.IDLE, VerdictState.HEALTHY, VerdictState.CANNOT_TELL, VerdictState.DEGRADED)
"""From what asks for least to what asks for most: of several pods the last one shows."""
_COLORS: Final = {
    VerdictState.IDLE: GREY,
    VerdictState.HEALTHY: GREEN,
    VerdictState.CANNOT_TELL: PURPLE,
    VerdictState.DEGRADED: ORANGE,
}
STATES: Final[tuple[State, ...]] = tuple((state.value, _COLORS[state]) for state in VERDICTS)
_DEPLOYMENT_LINK: Final = (
    "This deployment",
    drill("heptascope-overview", namespace="${__field.labels.namespace}", workload="${__field.labels.workload}"),
)


def _tile(title: str, expr: str, unit: str, shows: str, normal: str, act: str, board: str, mark: Mark, empty: str) -> Panel:
    words = board.removeprefix("heptascope-").capitalize()
    links = ((words, drill(board)),)
    return Panel("stat", title, (Query(expr, title),), unit, shows, normal, act, width=4, limits=(mark,), empty=empty, links=links)


def _tail(metric: str, latency: str, rule: str) -> str:
    promise = f"max by ({by(DEPLOYMENT)}) ({sel(_E + 'slo_seconds', latency=latency)})"
    return f"max ({quantile(number(rule, 'quantile'), metric, DEPLOYMENT)} / on ({by(DEPLOYMENT)}) {promise})"


def _now() -> Row:
    degraded = f"sum ({sel(_VERDICT, state=VerdictState.DEGRADED.value)})"
    roots = f"count (heptascope_finding_root{matchers(*PLACE)}) or 0 * count ({sel(_VERDICT, state=VerdictState.IDLE.value)})"
    return Row(
        "Is it fine?",
        (
            (
                _tile(
                    "Degraded engines",
                    degraded,
                    "short",
                    "Engines whose verdict is degraded.",
                    "0.",
                    "the table of root faults below.",
                    "heptascope-overview",
                    Mark(1, ORANGE, "orange from 1 on"),
                    _NO_EXPORTER,
                ),
                _tile(
                    "Root faults",
                    roots,
                    "short",
                    "Firing faults that no other fault explains, over all engines and GPUs.",
                    "0.",
                    "the table of root faults below; each has a runbook.",
                    "heptascope-overview",
                    Mark(1, ORANGE, "orange from 1 on"),
                    _NO_EXPORTER,
                ),
                _tile(
                    "First token, of objective",
                    _tail(_TTFT, "time_to_first_token", "TimeToFirstTokenHigh"),
                    "percentunit",
                    "95th percentile of the time to the first token, as a share of the objective, of the slowest deployment.",
                    "below 100 %.",
                    "Application shows which part of a request takes the time.",
                    "heptascope-application",
                    Mark(1, ORANGE, "orange from 100 % of the objective on"),
                    "No requests in this time.",
                ),
                _tile(
                    "Next token, of objective",
                    _tail(_ITL, "inter_token_latency", "InterTokenLatencyHigh"),
                    "percentunit",
                    "95th percentile of the time between tokens, as a share of the objective, of the slowest deployment.",
                    "below 100 %.",
                    "Scheduling shows where a step's time goes.",
                    "heptascope-application",
                    Mark(1, ORANGE, "orange from 100 % of the objective on"),
                    "No requests in this time.",
                ),
                _tile(
                    "Error budget left",
                    f"min ({of_places(rec(BUDGET))})",
                    "percentunit",
                    "What is left of 30 days' error budget, of the objective and deployment with the least.",
                    "above 0; it shrinks through the month.",
                    "below 0 the objective is broken: stop risky changes, look at what burns it.",
                    "heptascope-application",
                    Mark(0, RED, "red below 0", below=True),
                    _NO_BUDGET,
                ),
                _tile(
                    "Fullest pod",
                    f"max ({sel('heptascope_saturation_ratio')})",
                    "percentunit",
                    "The fullest pod: use of what binds it first.",
                    "below 80 %.",
                    "near 100 % the next request waits; Capacity shows headroom and trend.",
                    "heptascope-capacity",
                    Mark(0.9, ORANGE, "orange from 90 % on"),
                    _NO_EXPORTER,
                ),
            ),
        ),
    )


def _deployments() -> Row:
    verdict = Panel(
        "timeline",
        "Verdict by deployment",
        (Query(coded(_VERDICT, "state", VERDICTS, DEPLOYMENT), DEPLOYMENT_NAME),),
        "short",
        shows="The worst verdict among the engines of each deployment.",
        normal="healthy, or idle without load.",
        act="click for the deployment alone; the table below names the faults.",
        states=STATES,
        empty=_NO_EXPORTER,
        links=(_DEPLOYMENT_LINK,),
    )
    count = of_places(rec("cluster_namespace_workload_model_layer:heptascope_limiter:count"))
    limiter = Panel(
        "timeseries",
        "Which layer limits",
        (Query(f"sum by (layer) ({count}) / scalar(sum ({count}))", "{{layer}}"),),
        "percentunit",
        shows="Share of the working engines that each layer limits.",
        normal="mostly hardware: a well-run server waits for its card.",
        act="any other colour is work that the card could do and does not: click it for that layer's board.",
        stacked=True,
        top=1.0,
        colors={str(layer): color for layer, color in LAYER_COLORS.items()},
        empty=f"No engine works. {_NO_RULES}",
        links=(("Board of this layer", drill("heptascope-${__field.labels.layer}")),),
    )
    return Row("Deployments", ((verdict, limiter), (_roots(),)))


def _roots() -> Panel:
    labels = ("rule", "layer", "severity", "namespace", "workload", "pod", "instance", "engine", "rank", "gpu")
    here = {"workload": "${__data.fields.Deployment}", "pod": "${__data.fields.Pod}"}
    layer = ("Board of this layer", drill("heptascope-${__data.fields.Layer}", **here))
    return Panel(
        "table",
        "Root faults now",
        (Query(f"max by ({by(labels)}) (heptascope_finding_root{matchers(*PLACE)})", ""),),
        "short",
        shows="Faults that fire at the end of the time range and that no other fault explains: what to mend first.",
        normal="empty.",
        act="the rule leads to its runbook, the layer to its board, the pod to this board with that pod alone.",
        width=24,
        empty="No faults.",
        columns=(
            Column("rule", "Rule", link=RUNBOOK, width=230),
            Column("severity", "Severity", width=100),
            Column("layer", "Layer", link=layer, width=120),
            Column("namespace", "Namespace"),
            Column("workload", "Deployment"),
            Column("pod", "Pod", link=("This pod", drill("heptascope-overview", **here))),
            Column("instance", "Instance"),
            Column("engine", "Engine", width=110),
            Column("rank", "Rank", width=70),
            Column("gpu", "GPU", width=70),
        ),
        hidden=("Value",),
    )


def _latency(title: str, metric: str, latency: str, rule: str, act: str) -> Panel:
    tail = number(rule, "quantile")
    return Panel(
        "timeseries",
        title,
        (
            Query(quantile(tail, metric, DEPLOYMENT), f"p{float(tail) * 100:.0f} · {DEPLOYMENT_NAME}"),
            Query(f"min ({sel(_E + 'slo_seconds', latency=latency)})", "strictest objective", dashed=True),
        ),
        "s",
        shows=f"Over all pods of a deployment, and what the configuration promises. [{rule}](${{runbooks}}/{rule}.md) judges each engine.",
        normal="below the dashed line.",
        act=act,
        width=8,
        empty="No requests in this time, or the engine has no such histogram.",
        links=(("Application", drill("heptascope-application", workload="${__field.labels.workload}")),),
    )


def _users() -> Row:
    first = _latency("Time to first token", _TTFT, "time_to_first_token", "TimeToFirstTokenHigh", "click for where the time goes.")
    gap = _latency("Time between tokens", _ITL, "inter_token_latency", "InterTokenLatencyHigh", "click; then Scheduling for the step.")
    hour = next(burn for burn in BURNS if burn.long == "1h")
    burns = Panel(
        "timeseries",
        "Burn rate of the error budget, over an hour",
        (
            Query(
                f"max by ({by(DEPLOYMENT)}, slo) ({of_places(rec(f'{ERRORS}:ratio_rate1h'))} / on (slo) group_left () (1 - {OBJECTIVE}))",
                f"{{{{slo}}}} · {DEPLOYMENT_NAME}",
            ),
        ),
        "short",
        shows="How fast the budget is spent: at 1 it lasts exactly 30 days.",
        normal="below 1.",
        act="at the line two per cent of the month's budget go in an hour; the alerts about the budget page.",
        width=8,
        limits=(Mark(hour.factor, RED, f"red line at {hour.factor}: pages"),),
        empty=_NO_BUDGET,
        links=(("Application", drill("heptascope-application", workload="${__field.labels.workload}")),),
    )
    return Row("What users feel", ((first, gap, burns),))


def board() -> Board:
    """Return the board."""
    return Board(
        "heptascope-overview",
        "heptascope / Overview",
        "Which layer does each LLM server wait on, what is wrong, and what do users feel?",
        (*PLACES, "engine"),
        (_now(), _deployments(), _users(), *pods_row(STATES, VERDICTS)),
    )
