"""The real traces say what is known of them: kernels, busy time and shares were taken from them by other means."""

from __future__ import annotations

from functools import cache

import pytest

from heptascope.sources.trace import run
from heptascope.sources.trace.events import Trace
from heptascope.sources.trace.load import load
from heptascope.sources.trace.measures import Measures, Run
from support.trace_builder import TRACES


@cache
def _run(*names: str) -> Run:
    traces = [load(TRACES / f"{name}.json.gz") for name in names]
    found = run.runs([trace for trace in traces if isinstance(trace, Trace)])
    assert 1 == len(found)
    return run.measure(found[0])


def _share(measures: Measures, *classes: str) -> float:
    return sum(row.share for row in measures.classes if row.kernel_class in classes)


ATTENTION = ("attention", "attention_prefill", "attention_decode")
PAIR = ("tp2-decode-c64-rank0", "tp2-decode-c64-rank1")


@pytest.mark.parametrize(
    ("names", "rank", "events", "busy", "shares"),
    [
        (("eager-b8",), 0, 4378, 10, {("gemm",): 66, ATTENTION: 16}),
        (("graph-b8",), 0, 4404, 26, {("gemm",): 67, ATTENTION: 18}),
        (("base-prefill",), 0, 6180, 99, {("gemm",): 84, ATTENTION: 10, ("norm_elementwise",): 6}),
        (PAIR, 0, 10220, 97, {("collective",): 76}),
        (PAIR, 1, 10220, 27, {("gemm",): 53, ATTENTION: 23, ("collective",): 14}),
    ],
)
def test_figures_of_the_recordings_are_found(
    names: tuple[str, ...], rank: int, events: int, busy: int, shares: dict[tuple[str, ...], int]
) -> None:
    """Number of GPU events, busy share and class shares are those that came with the recordings."""
    measures = _run(*names).ranks[rank]
    assert events == sum(row.count for row in measures.classes)
    assert busy == round(100 * measures.busy_ratio)
    assert shares == {classes: round(100 * _share(measures, *classes)) for classes in shares}


def test_eager_mode_is_launch_bound_and_graphs_are_less() -> None:
    """The same model with and without CUDA graphs."""
    eager, graph = _run("eager-b8").ranks[0], _run("graph-b8").ranks[0]
    assert (0.0, 0, 36) == (eager.graph_kernel_ratio, eager.graph_launches, graph.graph_launches)
    assert eager.gap_causes["launch"] > 0.8 > graph.gap_causes["launch"]
    assert eager.steps is not None
    assert graph.steps is not None
    assert (20, 20) == (eager.steps.count, graph.steps.count)
    assert eager.steps.period.p50 > 2 * graph.steps.period.p50
    assert eager.steps.gpu.p50 == pytest.approx(graph.steps.gpu.p50, rel=0.05)


def test_prefill_is_bound_by_the_device() -> None:
    """No gap of the prefill trace is the host's: the launches came early."""
    measures = _run("base-prefill").ranks[0]
    assert measures.gap_ratio < 0.01
    assert 0 == measures.gap_causes["launch"] + measures.gap_causes["empty"] + measures.gap_causes["sync"]
    assert ATTENTION[1] in {row.kernel_class for row in measures.classes}


def test_second_rank_of_the_pair_is_the_straggler() -> None:
    """Rank 0 waits for rank 1 in its collectives, as the recording's notes say; their clocks agree within a microsecond."""
    found = _run(*PAIR)
    (group,) = found.groups
    zero, one = group.arrivals
    assert (1320, 1320) == (zero.matched, one.matched)
    assert one.last > 20 * zero.last
    assert zero.waited_ratio > 0.6 > 0.05 > one.waited_ratio
    assert abs(group.skew["1"]) < 1e-6 > group.residual
    assert {} == found.bubbles


def test_no_kernel_of_the_real_traces_is_without_a_fitting_class() -> None:
    """What is classed as other is the engine's own bookkeeping, 1.5 % of the kernel time at most."""
    for names in (("eager-b8",), ("graph-b8",), ("base-prefill",), PAIR):
        assert all(_share(measures, "other") < 0.015 for measures in _run(*names).ranks)


@pytest.mark.parametrize("name", ["base-prefill", "eager-b8", "graph-b8", "tp2-decode-c64-rank0"])
def test_names_do_not_tell_drafting(name: str) -> None:
    """Kernels that speak of drafts run in every vLLM trace, all without speculation: no measure is made of them."""
    trace = load(TRACES / f"{name}.json.gz")
    assert isinstance(trace, Trace)
    assert {"_combine_sampled_and_draft_tokens_kernel", "_get_num_sampled_and_rejected_kernel"} <= set(trace.names)
