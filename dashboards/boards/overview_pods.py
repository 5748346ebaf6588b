"""The lower half of the first board: what is done, and the pods that need a look."""

from __future__ import annotations

from typing import Final

from boards.common import LAYER_COLORS, drill
from boards.limits import ORANGE, Mark, number
from boards.panel import Column, Panel, Query, Row, State
from boards.promql import DEPLOYMENT, DEPLOYMENT_NAME, PLACE, POD_NAME, by, coded, of_places, quantile, rec, sel, worst
from heptascope.model import Layer

_WHERE: Final = ("cluster", "namespace", "workload", "pod", "instance")
_E: Final = "heptascope_engine_"
_NO_RULES: Final = "Load alerts/rules/*.yaml into Prometheus: this is recorded there."
_DEGRADED: Final = sel("heptascope_verdict", state="degraded")
_LAYERS: Final[tuple[State, ...]] = tuple((str(layer), color) for layer, color in LAYER_COLORS.items())


def _labels(*names: str) -> dict[str, str]:
    """Return Grafana's placeholders for labels of the series that is clicked."""
    return {name: f"${{__field.labels.{name}}}" for name in names}


_POD_LINK: Final = ("This pod", drill("heptascope-overview", **_labels("namespace", "workload", "pod", "instance")))


def _among(expr: str, many: int) -> str:
    return f"({expr})\nand on ({by(_WHERE)}) {worst(many, _DEGRADED, _WHERE)}"


def _work() -> Row:
    tokens = Panel(
        "timeseries",
        "Tokens per second",
        tuple(
            Query(
                f"sum by ({by(DEPLOYMENT)}) ({of_places(rec(f'cluster_namespace_workload_model:{_E}{what}_tokens:rate5m'))})",
                f"{words} · {DEPLOYMENT_NAME}",
            )
            for what, words in (("generation", "generated"), ("prompt", "prompt"))
        ),
        "count:tokens/s",
        shows="What each deployment does: tokens generated, and prompt tokens.",
        normal="follows the load.",
        act="a fall without a fall of the load: see the verdicts above.",
        empty=_NO_RULES,
        links=(("Capacity", drill("heptascope-capacity", workload="${__field.labels.workload}")),),
    )
    saturation = Panel(
        "timeseries",
        "Saturation",
        (
            Query(of_places(rec("cluster_namespace_workload:heptascope_saturation_ratio:max5m")), f"fullest pod · {DEPLOYMENT_NAME}"),
            Query(of_places(rec("cluster_namespace_workload:heptascope_saturation_ratio:avg5m")), f"mean · {DEPLOYMENT_NAME}"),
        ),
        "percentunit",
        shows="Use of what binds first: KV cache, sequence slots, tensor cores, or the objectives.",
        normal="below 80 %; both lines near each other.",
        act="fullest far above mean: the balancer is uneven. Both high: more replicas; see Capacity.",
        top=1.0,
        limits=(Mark(0.9, ORANGE, "orange line at 90 %: the next burst will wait"),),
        empty=_NO_RULES,
        links=(("Capacity", drill("heptascope-capacity", workload="${__field.labels.workload}")),),
    )
    return Row("Work", ((tokens, saturation),))


def _table(states: tuple[State, ...], verdicts: tuple[str, ...]) -> Panel:
    tail = number("TimeToFirstTokenHigh", "quantile")
    limiter = coded("heptascope_limiter", "layer", tuple(str(layer) for layer in Layer), _WHERE)
    return Panel(
        "table",
        "Worst five pods",
        (
            Query(worst(5, _DEGRADED, _WHERE), ""),
            Query(_among(coded("heptascope_verdict", "state", verdicts, _WHERE), 5), ""),
            Query(_among(limiter, 5), ""),
            Query(_among(f"max by ({by(_WHERE)}) ({sel('heptascope_saturation_ratio')})", 5), ""),
            Query(_among(quantile(tail, _E + "time_to_first_token_seconds", _WHERE), 5), ""),
            Query(_among(f"max by ({by(_WHERE)}) ({sel(_E + 'step_seconds')})", 5), ""),
        ),
        "short",
        shows="The pods that were degraded for the largest part of the time range, and how they do at its end.",
        normal="degraded for 0 % of the time; then the five are any five.",
        act="the pod leads to this board with that pod alone; choose the limiting layer's board from the menu.",
        width=24,
        empty="heptascope is not scraped here.",
        columns=(
            Column(
                "pod",
                "Pod",
                link=("This pod", drill("heptascope-overview", workload="${__data.fields.Deployment}", pod="${__data.fields.Pod}")),
            ),
            Column("instance", "Instance"),
            Column("workload", "Deployment"),
            Column(
                "Value #A", "Time degraded", "percentunit", limits=(Mark(0.1, ORANGE, "orange from a tenth of the time on"),), width=130
            ),
            Column("Value #B", "Verdict now", states=states, width=120),
            Column("Value #C", "Limited by", states=_LAYERS, width=120),
            Column("Value #D", "Saturation", "percentunit", width=110),
            Column("Value #E", f"First token p{float(tail) * 100:.0f}", "s", width=130),
            Column("Value #F", "Step", "s", width=100),
        ),
        hidden=("cluster", "namespace"),
    )


def _timelines(states: tuple[State, ...], verdicts: tuple[str, ...]) -> tuple[Panel, Panel]:
    chosen = f"\nand on ({by(_WHERE)}) {worst(10, _DEGRADED, _WHERE)}"
    engine = f"{POD_NAME} {{{{engine}}}}"
    labels = (*PLACE, "engine")
    verdict = Panel(
        "timeline",
        "Verdict of the ten worst pods",
        (Query(coded("heptascope_verdict", "state", verdicts, labels) + chosen, engine),),
        "short",
        shows="What the verdict on each engine was, in the ten pods that were degraded longest.",
        normal="healthy, or idle without load.",
        act="click for the pod alone.",
        states=states,
        empty="heptascope is not scraped here.",
        links=(_POD_LINK,),
    )
    limiter = Panel(
        "timeline",
        "Limiting layer of the ten worst pods",
        (Query(coded("heptascope_limiter", "layer", tuple(str(layer) for layer in Layer), labels) + chosen, engine),),
        "short",
        shows="Which layer limited each engine; nothing is drawn while it is idle.",
        normal="hardware.",
        act="click for the pod alone, then choose that layer's board.",
        states=_LAYERS,
        empty="No engine works.",
        links=(_POD_LINK,),
    )
    return verdict, limiter


def pods_row(states: tuple[State, ...], verdicts: tuple[str, ...]) -> tuple[Row, ...]:
    """Return the rows about work and pods; `states` are the texts and colours of `verdicts`."""
    return _work(), Row("Pods", (_timelines(states, verdicts), (_table(states, verdicts),)))
