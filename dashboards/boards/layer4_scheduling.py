"""Board of layer 4: the engine's loop, its batch and queue, and the host that drives it."""

from __future__ import annotations

from typing import Final

from boards import facts
from boards.common import EACH_ENGINE, gpu_panel, load_panel, state_row, uid
from boards.limits import Limit, Sign, amount, number
from boards.panel import Board, Panel, Query, Row
from boards.promql import ENGINE_NAME, POD_NAME, RANK, by, mean, of_model, quantile, rate, sel
from boards.variables import PLACES
from heptascope.model import Layer

_E: Final = "heptascope_engine_"
_P: Final = "heptascope_host_process_"
_LOOP: Final = "=~engine_core|worker"
_ITL: Final = _E + "inter_token_latency_seconds"
_NO_PROCESS: Final = "The engine's processes are not visible here (share the PID namespace)."
_NO_PROBE: Final = "Needs the in-engine probe (heptascope[vllm-probe])."
_ENGINE: Final = f"{POD_NAME} {{{{engine}}}}"


def _state() -> Row:
    full = "running at the dashed line of its engine while requests wait and the cache is not full"
    return state_row(Layer.SCHEDULING, load_panel(signs=(Sign("SequenceCapLimit", full), Sign("SequenceCapReached", full))), gpu_panel())


def _steps() -> Row:
    step, host, slower = sel(_E + "step_seconds"), sel(_E + "step_host_seconds"), number("StepTimeRegression", "factor")
    split = Panel(
        "timeseries",
        "Step time: GPU and host",
        (
            Query(f"avg ({of_model(f'clamp_min({step} - {host}, 0)')})", "GPU"),
            Query(f"avg ({of_model(host)})", "host"),
            Query(of_model(step), f"whole step · {ENGINE_NAME}", dashed=True),
            Query(of_model(f"{slower} * {step} offset 1d"), f"{slower} times the day before · {ENGINE_NAME}", dashed=True),
        ),
        facts.unit(_E + "step_seconds"),
        shows="Mean step of all chosen engines: the part with a kernel on the GPU, and the part without. Dashed: each engine's own.",
        normal="mostly GPU. An 8B model on an H200 decodes in 5 to 15 ms; a step with prefill takes longer.",
        act="a large host part: see the row about the host. A growing GPU part: larger batch, longer contexts, a slower card (Hardware).",
        width=12,
        stacked=True,
        signs=(Sign("StepTimeRegression", f"whole step above {slower} times the day before, at no more load"),),
        empty="Defined only while requests run.",
    )
    gap = Panel(
        "timeseries",
        facts.title(_E + "step_host_gap_ratio"),
        (Query(of_model(sel(_E + "step_host_gap_ratio")), ENGINE_NAME),),
        facts.unit(_E + "step_host_gap_ratio"),
        shows="The host's part of a step as a share of it.",
        normal="1 to 15 % for models of 8B and more.",
        act="that much can be won at most: launches (Operator), a starved or full engine core (row about the host).",
        width=12,
        limits=(
            Limit("HostStepBound", "gap"),
            Limit("EngineCoreSaturated", "gap"),
            Limit("HostStepLimit", "gap"),
            Limit("EngineStalled", "gap"),
        ),
        top=1.0,
        empty="Defined only while requests run, for an engine whose GPUs are known.",
    )
    return Row("Where does a step's time go?", ((split, gap),))


def _batch() -> Row:
    tokens = Panel(
        "timeseries",
        "Tokens in a step",
        (
            Query(of_model(f"{rate(_E + 'step_tokens_total')} / ({rate(_E + 'steps_total')} > 0)"), f"mean · {ENGINE_NAME}"),
            Query(of_model(sel(_E + "step_token_limit")), f"most in one step · {ENGINE_NAME}", dashed=True),
        ),
        "short",
        shows="How many tokens a step works on, and how many it may.",
        normal="decode: about one for each running request; prefill fills the budget.",
        act="at the dashed line with a queue and idle tensor cores: raise the token budget (--max-num-batched-tokens).",
        width=6,
        signs=(Sign("TokenBudgetLimit", f"mean above {amount('TokenBudgetLimit', 'filled')} of the dashed line, with requests waiting"),),
        empty="The engine does not count its steps or their tokens.",
    )
    queue = Panel(
        "timeseries",
        "Time in the queue",
        (
            Query(of_model(quantile("0.95", _E + "queue_time_seconds")), f"p95 · {ENGINE_NAME}"),
            Query(of_model(mean(_E + "queue_time_seconds")), f"mean · {ENGINE_NAME}"),
        ),
        facts.unit(_E + "queue_time_seconds"),
        shows="Time from arrival to scheduling. The quantile is no finer than the engine's buckets; the first often ends at 0.3 s.",
        normal="milliseconds.",
        act="the panel Requests in the engine tells what they wait for; the queue of users comes out as time to the first token.",
        width=6,
        empty="No requests in this time, or the engine has no such histogram.",
    )
    factor = number("PrefillStarvesDecode", "mean_factor")
    gaps = Panel(
        "timeseries",
        "Does prefill starve decode?",
        (
            Query(of_model(quantile("0.99", _ITL)), f"p99 gap · {ENGINE_NAME}"),
            Query(of_model(mean(_ITL)), f"mean gap · {ENGINE_NAME}"),
            Query(of_model(f"{factor} * {quantile('0.5', _ITL)}"), f"{factor} times the median · {ENGINE_NAME}", dashed=True),
        ),
        facts.unit(_ITL),
        shows="Gaps between the tokens of a stream. Long prompts that take whole steps pull mean and p99 away from the median.",
        normal="the mean below the dashed line, p99 within ten times the median.",
        act="smaller prefill chunks (a smaller token budget), or prefill and decode on servers of their own.",
        width=6,
        limits=(Limit("PrefillStarvesDecode", "slow_seconds", unit="seconds", of="mean"),),
        signs=(Sign("PrefillStarvesDecode", "mean above the dashed line of its engine, with p99 far above it"),),
        empty="No tokens in this time, or the engine has no histogram of them.",
    )
    return Row("Batch and queue", ((tokens, queue, _growth(), gaps),))


def _growth() -> Panel:
    finished = f"sum by ({by(RANK)}) ({rate(_E + 'requests_finished_total')})"
    return Panel(
        "timeseries",
        "Growth of the queue",
        (
            Query(of_model(f"clamp_min(deriv({sel(_E + 'requests_waiting')}[$__rate_interval]), 0)"), f"growth · {ENGINE_NAME}"),
            Query(
                of_model(f"{number('Overload', 'growth_share')} * {finished}"),
                f"allowed · {ENGINE_NAME}",
                dashed=True,
            ),
        ),
        "reqps",
        shows=(
            "By how many requests the queue grows each second, and by how many it may: "
            f"{amount('Overload', 'growth_share')} of those that finish."
        ),
        normal="0; above the lines for moments only.",
        act="above both lines for minutes more arrives than can be done: more replicas, or shed load.",
        width=6,
        limits=(Limit("Overload", "growth_per_second", unit="/s"), Limit("QueueGrowing", "growth_per_second", unit="/s")),
    )


def _host() -> Row:
    cpu, waits = _P + "cpu_seconds_total", _P + "run_queue_seconds_total"
    cores = Panel(
        "timeseries",
        "CPU by role",
        (Query(f"max by ({by(EACH_ENGINE)}, role) ({rate(cpu, role='!=other')})", f"{{{{role}}}} · {_ENGINE}"),),
        "short",
        shows="Cores used by the busiest process of each role. The loop of an engine core and of an API server is one thread: 1 is full.",
        normal="below 0.9.",
        act="engine_core at the line with a large gap: it is the limit. api_server: see Application.",
        width=8,
        limits=(Limit("EngineCoreSaturated", "cores", unit=""),),
        empty=_NO_PROCESS,
    )
    waiting = f"sum by ({by(EACH_ENGINE)}) ({rate(waits, role=_LOOP)})"
    running = f"sum by ({by(EACH_ENGINE)}) ({rate(cpu, role=_LOOP)})"
    starved = Panel(
        "timeseries",
        "Waiting for a CPU",
        (Query(f"{waiting} / ({waiting} + {running} > 0)", f"engine core and workers · {_ENGINE}"),),
        "percentunit",
        shows="Share of its runnable time that the engine waits for a processor.",
        normal="below 10 %.",
        act="more CPUs for the pod, fewer neighbours, no CPU limit below what it needs.",
        width=8,
        limits=(Limit("HostCpuStarved", "wait_share"),),
        top=1.0,
        empty=_NO_PROCESS,
    )
    periods = f"{rate('heptascope_host_cgroup_cpu_throttled_periods_total')} / ({rate('heptascope_host_cgroup_cpu_periods_total')} > 0)"
    throttled = Panel(
        "timeseries",
        "Stopped at the CPU limit",
        (Query(periods, _ENGINE),),
        "percentunit",
        shows="Share of 100 ms periods in which the control group was stopped.",
        normal="0; empty where there is no limit.",
        act="raise or remove the CPU limit of the engine's container.",
        width=8,
        limits=(Limit("CpuThrottled", "periods_share"),),
        top=1.0,
        empty="The engine's control group has no CPU limit, or is not visible.",
    )
    return Row("Is the host late?", ((cores, starved, throttled),))


def _inside() -> Row:
    phases = Panel(
        "timeseries",
        "Phases of a scheduler iteration",
        (Query(f"avg by (phase) ({mean(_E + 'step_phase_seconds')})", "{{phase}}"),),
        facts.unit(_E + "step_phase_seconds"),
        shows="Mean time of each phase inside the chosen engines: schedule, run the model, handle output.",
        normal="the model's phase is nearly all.",
        act="schedule or output large: very many sequences, long stop lists, guided decoding.",
        width=6,
        stacked=True,
        empty=_NO_PROBE,
    )
    kinds = Panel(
        "timeseries",
        "Prefill and decode in the batch",
        (Query(f"sum by (kind) ({rate(_E + 'batch_tokens_total')})", "{{kind}}"),),
        facts.rate_unit(_E + "batch_tokens_total"),
        shows="Tokens scheduled into steps of all chosen engines, by kind.",
        normal="a steady mixture.",
        act="prefill in tall blocks while decode falls: long prompts take whole steps.",
        width=6,
        stacked=True,
        empty=_NO_PROBE,
    )
    lock = Panel(
        "timeseries",
        "Interpreter lock",
        (
            Query(sel(_P + "interpreter_lock_ratio"), f"lock held · {{{{role}}}} {_ENGINE}"),
            Query(sel(_P + "event_loop_blocked_ratio"), f"event loop busy · {{{{role}}}} {_ENGINE}"),
        ),
        facts.unit(_P + "interpreter_lock_ratio"),
        shows="Share of samples in which some thread owned Python's interpreter lock, or the event loop was busy.",
        normal="below 50 %.",
        act="near 100 %: threads queue for the lock. Move work out of the process (more API servers, no tokenising in the core).",
        width=6,
        limits=(Limit("InterpreterLockHeld", "blocked_share"), Limit("InterpreterLockHeld", "lock_share")),
        top=1.0,
        empty="Sampling of the interpreter lock is off (host.interpreter).",
    )
    numa = Panel(
        "timeseries",
        "CPUs on the wrong NUMA node",
        (Query(f"max by ({by(EACH_ENGINE)}, role) ({sel(_P + 'remote_cpu_ratio', role=_LOOP)})", f"{{{{role}}}} · {_ENGINE}"),),
        facts.unit(_P + "remote_cpu_ratio"),
        shows="Of the CPUs on which a process may run, the share that lies on another NUMA node than its GPU.",
        normal="0; 50 % without any pinning on two sockets.",
        act="pin the engine to the node of its GPU (numactl, or the CPU and topology manager of Kubernetes).",
        width=6,
        limits=(Limit("NumaMisplacement", "remote_share"),),
        top=1.0,
        empty="One NUMA node, or the GPU's node is not known.",
    )
    return Row(
        "Inside engine and host: what needs the probe, sampling, or several NUMA nodes", ((phases, kinds, lock, numa),), collapsed=True
    )


def board() -> Board:
    """Return the board."""
    return Board(
        uid(Layer.SCHEDULING),
        "heptascope / 4 Scheduling",
        "Does the engine's loop keep the GPU fed, and do requests get into the batch?",
        (*PLACES, "engine", "gpu"),
        (_state(), _steps(), _batch(), _host(), _inside()),
        layer=Layer.SCHEDULING,
    )
