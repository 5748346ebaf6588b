"""Board of layer 5: several GPUs, several ranks, and what goes between them."""

from __future__ import annotations

from typing import Final

from boards import facts
from boards.common import load_panel, state_row, tokens_panel, uid
from boards.limits import Limit
from boards.panel import Board, Panel, Query, Row
from boards.promql import ENGINE_NAME, GPU, GPU_NAME, RANK, by, exact, of_model, rate, sel
from boards.variables import PLACES
from heptascope.model import Layer

_E: Final = "heptascope_engine_"
_G: Final = "heptascope_gpu_"
_ONE_GPU: Final = "No GPU here with profiling counters."
_NO_TRACE: Final = "No trace of several ranks: set trace.dir and record one."


def _balance() -> Row:
    sm = Panel(
        "timeseries",
        "SMs in use, GPU by GPU",
        (Query(exact(_G + "sm_active_ratio"), GPU_NAME),),
        "percentunit",
        shows="Exact share of SM time with work resident. In a group the GPU that computes longest has the most.",
        normal="all GPUs of a group within a few per cent of each other.",
        act="one GPU above the others: it is the straggler, and they wait for it in collectives. All low and busy: pipeline bubbles.",
        width=6,
        limits=tuple(
            Limit(rule, "sm_active", below=True, of="pipeline stages that look busy,") for rule in ("PipelineBubble", "PipelineBubbleLimit")
        ),
        top=1.0,
        empty=_ONE_GPU,
    )
    of_rank = f"{sel('heptascope_engine_gpu_info')} * on ({by(GPU)}) group_left () ({_by_gpu(exact(_G + 'sm_active_ratio'))})"
    spread = Panel(
        "timeseries",
        "Spread inside a group",
        (Query(of_model(f"max by ({by(RANK)}) ({of_rank}) - min by ({by(RANK)}) ({of_rank})"), ENGINE_NAME),),
        "percentunit",
        shows="SM use of the busiest GPU of each engine minus that of the least busy one.",
        normal="0 to 4 %; 0 for an engine on one GPU.",
        act="above the line find what makes one GPU slow: clock, heat, a neighbour, uneven experts.",
        width=6,
        limits=(Limit("StragglerRank", "sm_spread"), Limit("StragglerLimit", "sm_spread")),
        empty="Which GPU serves which rank is not known here.",
    )
    kernels = Panel(
        "timeseries",
        "Any kernel, GPU by GPU",
        (Query(exact(_G + "graphics_engine_active_ratio"), GPU_NAME),),
        "percentunit",
        shows="Time with a kernel. A GPU that waits in a collective spins and counts as busy.",
        normal="near 100 % on all GPUs of a group under load.",
        act="one GPU near 0: it does nothing for the group; is it the right one, and is the group configured for it?",
        width=6,
        top=1.0,
        limits=(Limit("IdleGpuInGroup", "idle", below=True),),
        empty=_ONE_GPU,
    )
    queues = Panel(
        "timeseries",
        "Waiting, rank by rank",
        (Query(of_model(sel(_E + "requests_waiting")), ENGINE_NAME),),
        "short",
        shows="Requests that wait on each data-parallel rank.",
        normal="all ranks alike, at 0 or soon there again.",
        act="one rank above the line while another is empty: the balancer in front sees only the whole engine.",
        width=6,
        limits=(Limit("RankImbalance", "waiting", unit=""),),
    )
    return Row("Do all GPUs work alike?", ((sm, spread, kernels, queues),))


def _by_gpu(expr: str) -> str:
    return f"max by ({by(GPU)}) ({expr})"


def _links() -> Row:
    nvlink = Panel(
        "timeseries",
        "NVLink traffic",
        (
            Query(rate(_G + "nvlink_receive_bytes_total"), f"received · {GPU_NAME}"),
            Query(rate(_G + "nvlink_transmit_bytes_total"), f"sent · {GPU_NAME}"),
            Query(f"max ({sel(_G + 'nvlink_bandwidth_bytes_per_second')})", "one direction, all links", dashed=True),
        ),
        facts.rate_unit(_G + "nvlink_receive_bytes_total"),
        shows="Bytes over NVLink, and the speed of the links.",
        normal="a few GB/s in decode, up to some tens in prefill; 0 on one GPU.",
        act="0 with tensor parallelism: traffic goes over PCIe, see beside.",
        width=6,
        empty="This GPU has no NVLink, or its counters need GPM or DCGM.",
    )
    pressure = Panel(
        "timeseries",
        "Use of the links",
        (
            Query(
                of_model(f"max by ({by(RANK)}) ({sel('heptascope_engine_resource_pressure_ratio', resource='link')})"),
                ENGINE_NAME,
            ),
        ),
        "percentunit",
        shows="Traffic between the GPUs as a share of what the links can carry.",
        normal="below 10 %.",
        act="above the line a step waits for links: fewer GPUs per replica and more replicas, or pipeline instead of tensor parallelism.",
        width=6,
        limits=(Limit("LinkLimit", "pressure"),),
        empty="One GPU, or the speed of its links is not known.",
    )
    pcie = Panel(
        "timeseries",
        "PCIe into each GPU",
        (Query(rate(_G + "pcie_receive_bytes_total"), GPU_NAME),),
        facts.rate_unit(_G + "pcie_receive_bytes_total"),
        shows="Bytes over PCIe into each GPU.",
        normal="below 0.1 GB/s.",
        act="above the line in a tensor-parallel group: collectives go over PCIe; check peer access (nvidia-smi topo -m, NCCL_DEBUG=INFO).",
        width=6,
        limits=(Limit("TensorParallelWithoutPeerAccess", "bytes_per_second", unit="bytes"),),
    )
    errors = Panel(
        "timeseries",
        "NVLink errors in the last ten minutes",
        (Query(f"sum by ({by(GPU)}, kind) (increase({sel(_G + 'nvlink_errors_total')}[10m])) > 0", f"{{{{kind}}}} · {GPU_NAME}"),),
        "short",
        shows="Errors on the links, by kind.",
        normal="empty.",
        act="reseat or replace; nvidia-smi nvlink -e shows which link.",
        width=6,
        empty="No NVLink errors.",
    )
    return Row("Links", ((nvlink, pressure, pcie, errors),))


def _transfers() -> tuple[Panel, ...]:
    seconds = f"{rate(_E + 'kv_transfer_seconds_total')} / ({rate(_E + 'kv_transfers_total')} > 0)"
    transfer = Panel(
        "timeseries",
        "KV transfer time",
        (Query(of_model(seconds), f"mean time · {ENGINE_NAME}"),),
        facts.unit(_E + "kv_transfer_seconds_total"),
        shows="Time to hand the KV cache of a request from a prefill server to a decode server.",
        normal="tens of milliseconds; it adds to the time to the first token.",
        act="check the network between them, and whether both use the same transport.",
        width=8,
        empty="Prefill and decode are not separated here.",
    )
    moved = Panel(
        "timeseries",
        "KV transfer traffic",
        (Query(of_model(rate(_E + "kv_transfer_bytes_total")), ENGINE_NAME),),
        facts.rate_unit(_E + "kv_transfer_bytes_total"),
        shows="What the transfers move.",
        normal="follows the prompts.",
        act="near the speed of the network: it is the limit between prefill and decode.",
        width=8,
        empty="Prefill and decode are not separated here.",
    )
    failures = Panel(
        "timeseries",
        facts.title(_E + "kv_transfer_failures_total"),
        (Query(of_model(rate(_E + "kv_transfer_failures_total")), ENGINE_NAME),),
        facts.rate_unit(_E + "kv_transfer_failures_total"),
        shows="Transfers that failed.",
        normal="0.",
        act="their prompts are computed again, or the request ends; see the engine's log.",
        width=8,
        empty="Prefill and decode are not separated here.",
    )
    return transfer, moved, failures


def _trace() -> Row:
    def bars(title: str, name: str, shows: str, normal: str, act: str, limit: Limit) -> Panel:
        query = Query(f"max by (trace_rank) ({sel('heptascope_trace_' + name)})", "rank {{trace_rank}}")
        return Panel("bars", title, (query,), "percentunit", shows, normal, act, width=8, limits=(limit,), top=1.0, empty=_NO_TRACE)

    exposed = bars(
        "Collectives without compute beside them",
        "collective_exposed_ratio",
        "Share of the newest trace in which a collective ran and nothing else.",
        "below 10 %.",
        "a slow link, or one rank that comes late (next panel).",
        Limit("TraceCommunicationLimit", "exposed", of="every rank"),
    )
    waits = bars(
        "Waiting for the last rank",
        "collective_wait_ratio",
        "Time that each rank waits in collectives for the last one.",
        "a few per cent on all ranks.",
        "the rank that waits least is the straggler.",
        Limit("TraceStraggler", "wait", of="what a rank waits longer than the straggler,"),
    )
    bubble = bars(
        "Pipeline bubbles",
        "pipeline_bubble_ratio",
        "Share of the run in which the rank computed nothing while another did.",
        "below 20 %; no pipeline: 0.",
        "more requests in flight, or fewer stages.",
        Limit("TraceBubbles", "bubble"),
    )
    return Row("Transfers between engines, and the newest trace", (_transfers(), (exposed, waits, bubble)), collapsed=True)


def board() -> Board:
    """Return the board."""
    return Board(
        uid(Layer.PARALLEL),
        "heptascope / 5 Parallel",
        "Do the GPUs of a group work alike, and do the links between them hold?",
        (*PLACES, "engine", "gpu"),
        (state_row(Layer.PARALLEL, load_panel(), tokens_panel()), _balance(), _links(), _trace()),
        layer=Layer.PARALLEL,
    )
