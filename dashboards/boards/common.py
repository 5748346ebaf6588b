"""What every layer's board starts with: the layer's state, what was found in it, and the load in which it was found."""

from __future__ import annotations

from typing import Final

from boards import undrawn
from boards.limits import BLUE, GREEN, GREY, ORANGE, PURPLE, Limit, Sign
from boards.panel import Column, Panel, Query, Row, State
from boards.promql import ENGINE_NAME, PLACE, POD_NAME, by, coded, exact, findings, of_model, rate, sel, worst
from heptascope.model import Layer
from heptascope.rules.export import LAYER_STATES
from heptascope.surfaces.words import LAYER_WORDS

LAYER_COLORS: Final = {
    Layer.HARDWARE: "semi-dark-blue",
    Layer.OPERATOR: "semi-dark-purple",
    Layer.MEMORY: "semi-dark-green",
    Layer.SCHEDULING: "semi-dark-orange",
    Layer.PARALLEL: "#5aa6a6",
    Layer.SPECULATIVE: "#b877d9",
    Layer.APPLICATION: "dark-yellow",
}
_STATE_COLORS: Final = {"clear": GREEN, "limiting": BLUE, "symptom": PURPLE, "faulty": ORANGE, "cannot-tell": GREY}
STATES: Final[tuple[State, ...]] = tuple((state, _STATE_COLORS[state]) for state in LAYER_STATES)
EACH_ENGINE: Final = (*PLACE, "engine")

_KEPT: Final = ("datasource", "cluster", "namespace", "workload", "job", "model")
"""Variables that a drill-down carries on; the narrow ones are chosen by the link."""

RUNBOOK: Final = ("Runbook", "${runbooks}/${__data.fields.Rule}.md")


def uid(layer: str) -> str:
    """Return the fixed name of a layer's board."""
    return f"heptascope-{layer}"


def drill(board: str, **values: str) -> str:
    """Return the URL of a board at the same time and place, narrowed by `values`."""
    kept = [f"${{{name}:queryparam}}" for name in _KEPT if name not in values]
    return f"/d/{board}?{'&'.join((*kept, *(f'var-{name}={value}' for name, value in values.items())))}&${{__url_time_range}}"


def state_row(layer: Layer, *beside: Panel) -> Row:
    """Return the first row of a layer's board; `beside` stand below the state (the load and the GPUs unless given)."""
    return Row(f"Is it the {layer} layer?", ((_state(layer), findings_table(layer)), beside or (load_panel(), gpu_panel())))


def _state(layer: Layer) -> Panel:
    states = coded("heptascope_layer_state", "state", LAYER_STATES, EACH_ENGINE, layer=layer)
    trouble = sel("heptascope_layer_state", layer=layer, state="=~faulty|symptom")
    return Panel(
        "timeline",
        f"State of the {layer} layer",
        (Query(f"{states}\nand on ({by(EACH_ENGINE)}) {worst(20, trouble, EACH_ENGINE)}", f"{POD_NAME} {{{{engine}}}}"),),
        "short",
        shows=f"{LAYER_WORDS[layer]} What the rules of this layer say of each engine; of more than twenty, of those in trouble longest.",
        normal="clear, or limiting: a server at work always has one layer that limits it.",
        act="faulty or symptom: read the table beside it. cannot-tell: the board heptascope / Exporter names the missing signals.",
        empty="No verdict: heptascope is not scraped, or finds no engine.",
        states=STATES,
    )


def findings_table(layer: Layer) -> Panel:
    """Return what the rules of a layer say now, each with its runbook."""
    labels = ("rule", "kind", "severity", "namespace", "pod", "instance", "engine", "rank", "gpu")
    return Panel(
        "table",
        f"Found in the {layer} layer now",
        (Query(f"max by ({by(labels)}) ({findings(layer=layer, kind='=~fault|symptom')})", ""),),
        "short",
        shows="Faults and symptoms of this layer at the end of the time range. What merely limits is in the state beside it.",
        normal="nothing.",
        act="open the runbook behind the rule's name; mend faults before symptoms.",
        signs=undrawn.signs(layer),
        empty="No fault and no symptom in this layer.",
        columns=(
            Column("rule", "Rule", link=RUNBOOK, width=200),
            Column("kind", "Kind", width=80),
            Column("severity", "Severity", width=90),
            Column("namespace", "Namespace"),
            Column("pod", "Pod"),
            Column("instance", "Instance"),
            Column("engine", "Engine", width=90),
            Column("rank", "Rank", width=60),
            Column("gpu", "GPU", width=60),
        ),
        hidden=("Value",),
    )


def load_panel(width: int = 12, signs: tuple[Sign, ...] = ()) -> Panel:
    """Return running and waiting requests."""
    running, waiting, limit = (f"heptascope_engine_{what}" for what in ("requests_running", "requests_waiting", "sequence_limit"))
    return Panel(
        "timeseries",
        "Requests in the engine",
        (
            Query(of_model(sel(running)), f"running · {ENGINE_NAME}"),
            Query(of_model(sel(waiting)), f"waiting · {ENGINE_NAME}"),
            Query(of_model(sel(limit)), f"most that may run · {ENGINE_NAME}", dashed=True),
        ),
        "short",
        shows="How many requests the engine works on, how many wait, and how many may run at once.",
        normal="running below the dashed line, waiting at 0 or gone again soon.",
        act="waiting with running at the dashed line: the sequence cap. Waiting below it: see Memory and Scheduling.",
        width=width,
        signs=signs,
        empty="No engine is read here.",
    )


def gpu_panel(width: int = 12) -> Panel:
    """Return what the GPUs do, to be read beside the engine's panels."""
    names = (("graphics_engine_active", "any kernel"), ("dram_active", "DRAM"), ("tensor_active", "tensor cores"))
    where = ("pod", "instance")
    queries = tuple(
        Query(f"avg by ({by(where)}) ({exact(f'heptascope_gpu_{name}_ratio')})", f"{words} · {POD_NAME}") for name, words in names
    )
    return Panel(
        "timeseries",
        "What the GPUs do",
        queries,
        "percentunit",
        shows="Mean over the GPUs of each pod: time with any kernel, DRAM bandwidth, tensor cores. Exact means over each step.",
        normal="decode fills DRAM (60 % and more), prefill the tensor cores (60 % and more); any kernel near 100 %.",
        act="any kernel far below 100 % while requests run: the host is late, see Operator and Scheduling.",
        width=width,
        top=1.0,
        empty="No GPU here with profiling counters (GPM from Hopper on, or DCGM profiling).",
    )


def resource_limits(*rules: str) -> tuple[Limit, ...]:
    """Return the floor above which a resource may be named as limiter, for each of its rules."""
    return tuple(Limit(rule, "pressure") for rule in rules)


def tokens_panel(width: int = 12) -> Panel:
    """Return what comes out of the engine."""
    return Panel(
        "timeseries",
        "Tokens per second",
        (
            Query(of_model(rate("heptascope_engine_generation_tokens_total")), f"generated · {ENGINE_NAME}"),
            Query(of_model(sel("heptascope_engine_prompt_computed_tokens_per_second")), f"prompt, computed · {ENGINE_NAME}"),
        ),
        "count:tokens/s",
        shows="Tokens generated, and prompt tokens computed (those from a cache left out).",
        normal="follows the load; generated tokens rise with the batch until a resource is full.",
        act="a fall at the same number of running requests is a slower step: see Scheduling.",
        width=width,
        empty="No engine is read here.",
    )
