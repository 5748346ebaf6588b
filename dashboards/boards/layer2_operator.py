"""Board of layer 2: kernels, their launches, CUDA graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from boards import facts
from boards.common import EACH_ENGINE, state_row, uid
from boards.limits import GREEN, ORANGE, Limit, Sign, amount, number
from boards.panel import Board, Panel, Query, Row
from boards.promql import ENGINE_NAME, GPU_NAME, POD_NAME, by, exact, named, of_model, quantile, rate, sel, worst
from boards.variables import PLACES
from heptascope.model import Layer

_E: Final = "heptascope_engine_"
_T: Final = "heptascope_trace_"
_ITL: Final = _E + "inter_token_latency_seconds"
_NO_TRACE: Final = "No trace: set trace.dir and record one (heptascope capture)."


def _launches() -> Row:
    gap = Panel(
        "timeseries",
        "Part of a step without any kernel",
        (Query(of_model(sel(_E + "step_host_gap_ratio")), ENGINE_NAME),),
        facts.unit(_E + "step_host_gap_ratio"),
        shows="While requests run: the share of time in which the engine's GPUs had nothing to do. It is what the host costs.",
        normal="1 to 15 % with CUDA graphs for models of 8B and more; up to 60 % for very small ones.",
        act="above the lines: CUDA graphs off or not covering the batch (this board), or a late host (Scheduling).",
        width=8,
        limits=tuple(Limit(rule, "gap") for rule in ("EagerMode", "LaunchOverhead", "LaunchLimit", "BatchBeyondGraphs")),
        top=1.0,
        empty="Defined only while requests run, for an engine whose GPUs are known.",
    )
    budget = (
        f"{number('LaunchOverhead', 'base_seconds')} + {number('LaunchOverhead', 'seconds_per_sequence')} * {sel(_E + 'requests_running')}"
    )
    seconds = Panel(
        "timeseries",
        "Host time of a step",
        (
            Query(of_model(sel(_E + "step_host_seconds")), ENGINE_NAME),
            Query(of_model(budget), f"more than graphs need · {ENGINE_NAME}", dashed=True),
        ),
        facts.unit(_E + "step_host_seconds"),
        shows="The part of the mean step in which no kernel ran, and what LaunchOverhead allows for this number of requests.",
        normal="1 to 2 ms with CUDA graphs, plus 0.01 ms for each running request.",
        act="above the dashed line kernels are launched one by one: turn eager mode off, raise the captured batch sizes.",
        width=8,
        empty="Defined only while requests run, for an engine whose GPUs are known.",
    )
    cores = Panel(
        "timeseries",
        "CPU of the launching process",
        (
            Query(
                f"max by ({by(EACH_ENGINE)}) ({rate('heptascope_host_process_cpu_seconds_total', role='=~engine_core|worker')})",
                f"{POD_NAME} {{{{engine}}}}",
            ),
        ),
        "short",
        shows="Cores used by the busiest of engine core and workers. One thread launches kernels, so 1 is full.",
        normal="0.2 to 0.8.",
        act="at 1 with a large gap: the launching thread is the limit.",
        width=8,
        limits=(Limit("LaunchOverhead", "cores", unit=""), Limit("LaunchLimit", "cores", unit="")),
        empty="The engine's processes are not visible here (share the PID namespace).",
    )
    return Row("Does the GPU wait for launches?", ((gap, seconds, cores),))


def _graphs() -> Row:
    eager = Panel(
        "timeline",
        "CUDA graphs on or off",
        (
            Query(
                f"1 + max by ({by(EACH_ENGINE)}) ({of_model(sel(_E + 'eager_mode'))})\n"
                f"and on ({by(EACH_ENGINE)}) {worst(20, sel(_E + 'eager_mode'), EACH_ENGINE)}",
                f"{POD_NAME} {{{{engine}}}}",
            ),
        ),
        "short",
        shows=(
            "Whether the engine replays captured CUDA graphs or launches each kernel (eager mode); "
            "of more than twenty engines, those without graphs first."
        ),
        normal="on.",
        act="remove --enforce-eager (vLLM), --disable-cuda-graph (SGLang).",
        width=8,
        states=(("on", GREEN), ("off (eager)", ORANGE)),
        empty="Not known for this engine.",
    )
    batch = Panel(
        "timeseries",
        "Batch against captured graphs",
        (
            Query(of_model(sel(_E + "requests_running")), f"running · {ENGINE_NAME}"),
            Query(of_model(sel(_E + "graph_batch_limit")), f"largest captured batch · {ENGINE_NAME}", dashed=True),
        ),
        "short",
        shows="Running requests, and the largest batch that a captured graph covers.",
        normal="below the dashed line.",
        act="above it steps run kernel by kernel: raise the largest capture size.",
        width=16,
        signs=(Sign("BatchBeyondGraphs", "running above the dashed line of its engine"),),
    )
    return Row("CUDA graphs", ((eager, batch),))


def _kernels() -> Row:
    occupancy = Panel(
        "timeseries",
        "Warps held by a busy SM",
        (Query(f"({exact('heptascope_gpu_sm_occupancy_ratio')}) / ({exact('heptascope_gpu_sm_active_ratio')})", GPU_NAME),),
        "percentunit",
        shows="Occupancy as a share of the time in which SMs are active: how many of their warp slots are filled then.",
        normal="10 to 20 % for matrix products and decode kernels; low is no fault while tensor cores or DRAM are busy.",
        act="below the line with idle tensor cores and DRAM: kernels wait on latency; look at a trace below.",
        width=8,
        limits=(Limit("LowOccupancy", "occupancy", below=True),),
    )
    prefill = Panel(
        "timeseries",
        "What the engine's GPUs do",
        (
            Query(of_model(sel(_E + "gpu_active_ratio")), f"any kernel · {ENGINE_NAME}"),
            Query(of_model(sel(_E + "gpu_sm_active_ratio")), f"SMs · {ENGINE_NAME}"),
            Query(of_model(sel(_E + "gpu_tensor_active_ratio")), f"tensor cores · {ENGINE_NAME}"),
        ),
        "percentunit",
        shows="What the engine's GPUs do with their SMs.",
        normal="in prefill both high; in decode SMs high and tensor cores low.",
        act="prefill with full SMs and tensor cores under the line: a fallback kernel; check the attention backend and the data type.",
        width=8,
        limits=(
            Limit("TensorIdleInPrefill", "tensor_active", below=True, of="tensor cores in prefill"),
            Limit("OccupancyLimit", "pressure", below=True, of="tensor cores, with DRAM no busier,"),
        ),
        top=1.0,
    )
    stalls = Panel(
        "timeseries",
        "Stalls: gaps between tokens",
        (
            Query(of_model(quantile("0.99", _ITL)), f"p99 · {ENGINE_NAME}"),
            Query(of_model(quantile("0.5", _ITL)), f"median · {ENGINE_NAME}"),
        ),
        facts.unit(_ITL),
        shows="The usual gap and the longest ones.",
        normal="p99 within a few times the median.",
        act="single gaps of a second with an idle GPU: kernels compiled or graphs captured during traffic; warm up before serving.",
        width=8,
        limits=(Limit("Recompilation", "stall_seconds", unit="seconds"),),
        empty="No tokens in this time, or the engine has no histogram of them.",
    )
    return Row("Are the kernels good ones?", ((occupancy, prefill, stalls),))


def _passes() -> Panel:
    return Panel(
        "timeseries",
        facts.title(_E + "graph_passes_total"),
        (Query(f"sum by (mode) ({rate(_E + 'graph_passes_total')})", "{{mode}}"),),
        facts.rate_unit(_E + "graph_passes_total"),
        shows="Forward passes of all chosen engines, by whether a graph ran them.",
        normal="decode passes all with a graph; prefill without.",
        act="decode without graph: the batch is beyond the captured sizes.",
        width=16,
        stacked=True,
        empty="Only engines that count their passes (SGLang) show this.",
    )


def _trace() -> Row:
    def bars(title: str, name: str, label: str, shows: str, normal: str, act: str, *limits: Limit) -> Panel:
        query = Query(f"max by ({label}) ({sel(_T + name)})", f"{{{{{label}}}}}")
        return Panel("bars", title, (query,), facts.unit(_T + name), shows, normal, act, width=8, limits=limits, top=1.0, empty=_NO_TRACE)

    gaps = bars(
        "Time without a kernel, by cause",
        "gap_ratio",
        "cause",
        "Why no kernel ran, over the newest trace.",
        "a few per cent.",
        "launch: graphs. sync: host calls that wait. idle: no work was there.",
        Limit("TraceLaunchGaps", "gap", bar="launch"),
        Limit("TraceSyncGaps", "gap", bar="sync"),
        Limit("TraceCopies", "uncovered", bar="copy"),
    )
    classes = bars(
        "GPU work by class",
        "class_ratio",
        "class",
        "What kernels did, over the newest trace.",
        "matrix products and attention first.",
        "copies, or kernels of other classes, at the top: look at `heptascope trace` for their names.",
    )
    share = _numbers(
        "Shares of the newest trace",
        "percentunit",
        {
            "work, but no kernel": "work_gap_ratio",
            "kernel time from graphs": "graph_time_ratio",
            "kernels under 5 µs": "tiny_kernel_ratio",
            "host waits for the GPU": "host_sync_ratio",
            "copies": "copy_ratio",
        },
        "Measured by `heptascope trace`; the largest value over the ranks.",
        "kernel time from graphs above 90 %, the others small.",
        "compare with a trace of a good day: heptascope trace NEW --compare OLD.",
        (
            Limit("TraceGapLimit", "gap", bar="work, but no kernel"),
            Limit("TraceLaunchGaps", "graphs", below=True, bar="kernel time from graphs"),
            Limit("TraceCopies", "copies", bar="copies"),
        ),
    )
    events = _numbers(
        "What interrupted the newest trace",
        "short",
        {"compilations": "compilations", "graph captures": "graph_captures", "modules loaded": "module_loads"},
        "Things that should be over when traffic starts; the largest number over the ranks.",
        "0.",
        "warm the server up with prompts and batches of all sizes before it takes traffic.",
        signs=(Sign("TraceCompilation", f"compilations and graph captures, more than {amount('TraceCompilation', 'most', '')} together"),),
    )
    bound = bars(
        "What profiled kernels are bound by",
        "profiled_bound_ratio",
        "bound",
        "Share of profiled kernel time bound by compute, memory or latency (Nsight Compute).",
        "memory in decode, compute in prefill.",
        "latency at the top: small or serial kernels.",
        Limit("ProfiledLatencyLimit", "share", bar="latency"),
        Limit("ProfiledOccupancyLimit", "share", bar="latency"),
        Limit("ProfiledDramLimit", "share", bar="memory"),
        Limit("ProfiledCacheLimit", "share", bar="memory"),
    )
    profiled = _numbers(
        "Profiled kernels, of peak",
        "percentunit",
        {
            "SM throughput": "profiled_sm_ratio",
            "DRAM": "profiled_dram_ratio",
            "L2": "profiled_l2_ratio",
            "memory": "profiled_memory_ratio",
            "tensor pipes": "profiled_tensor_ratio",
            "occupancy": "profiled_occupancy_ratio",
        },
        "How near profiled kernels come to what the card can do (Nsight Compute).",
        "one of them above 60 %.",
        "all low: latency inside the kernels; look at stall reasons in the profile.",
    )
    return Row(
        "From the newest trace, and what only some engines tell",
        ((gaps, classes, share), (events, bound, profiled), (_age(), _passes())),
        collapsed=True,
    )


def _numbers(
    title: str,
    unit: str,
    names: Mapping[str, str],
    shows: str,
    normal: str,
    act: str,
    limits: tuple[Limit, ...] = (),
    signs: tuple[Sign, ...] = (),
) -> Panel:
    query = Query(named([(words, f"max ({sel(_T + name)})") for words, name in names.items()]), "{{what}}")
    top = 1.0 if unit == "percentunit" else None
    return Panel("bars", title, (query,), unit, shows, normal, act, width=8, limits=limits, signs=signs, top=top, empty=_NO_TRACE)


def _age() -> Panel:
    fresh = amount("TraceGapLimit", "fresh_seconds", "seconds")
    return Panel(
        "timeseries",
        "Age of the newest trace",
        (Query(sel(_T + "age_seconds"), POD_NAME),),
        facts.unit(_T + "age_seconds"),
        shows=f"Time since the newest trace was recorded; rules about traces speak only of those younger than {fresh}.",
        normal="whatever you need; a trace costs the engine some speed while it is recorded.",
        act="too old to be judged: heptascope capture records a new one.",
        width=8,
        empty=_NO_TRACE,
    )


def board() -> Board:
    """Return the board."""
    return Board(
        uid(Layer.OPERATOR),
        "heptascope / 2 Operator",
        "Do kernels follow each other without gaps, and are they good kernels?",
        (*PLACES, "engine", "gpu"),
        (state_row(Layer.OPERATOR), _launches(), _graphs(), _kernels(), _trace()),
        layer=Layer.OPERATOR,
    )
