"""Traces and counters recorded on an H200 (tests/gpu/record_trace.py), against CUDA events taken beside them and known work."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from heptascope.sources.trace import run
from heptascope.sources.trace.events import Trace
from heptascope.sources.trace.load import load
from heptascope.sources.trace.measures import Measures
from heptascope.sources.trace.ncu import Counters, KernelTable
from support.trace_builder import TRACES

EVENTS: dict[str, Any] = json.loads((TRACES / "h200-events.json").read_text(encoding="utf-8"))
QUEUED = EVENTS["graph"]["work"] * 1e-3
"""Seconds of the kernels of all steps, by events, replayed from a graph without any wait for the host."""
PAUSES = 7 * 4e-3
"""Seconds for which the host slept in the paused run."""


@cache
def _measures(name: str) -> Measures:
    trace = load(TRACES / f"h200-{name}.json.gz")
    assert isinstance(trace, Trace)
    return run.measure([trace]).ranks[0]


@pytest.mark.parametrize("name", ["eager", "paused", "graph"])
def test_kernel_time_agrees_with_events(name: str) -> None:
    """The same kernels take the same time however they are launched, within 1 %."""
    assert pytest.approx(_measures(name).kernel_seconds, rel=0.01) == QUEUED


@pytest.mark.parametrize("name", ["eager", "paused"])
def test_gap_ratio_agrees_with_events(name: str) -> None:
    """The gap ratio of the trace is that of the events within half a percentage point.

    The events' span begins when the first is recorded, up to half a millisecond before the first kernel.
    """
    by_events = 1 - QUEUED / (EVENTS[name]["span"] * 1e-3)
    assert pytest.approx(_measures(name).gap_ratio, abs=0.005) == by_events


def test_pauses_of_the_host_are_time_without_work() -> None:
    """Seven pauses of 4 ms: that much and no more than a twentieth above is empty, and only there."""
    eager, paused = _measures("eager"), _measures("paused")
    assert 1.0 <= paused.gap_causes["empty"] * paused.wall_seconds / PAUSES <= 1.06
    assert 0.0 == eager.gap_causes["empty"]
    launch = [m.gap_causes["launch"] * m.wall_seconds for m in (eager, paused)]
    assert launch[0] == pytest.approx(launch[1], rel=0.15)


def test_graph_leaves_only_the_device() -> None:
    """All kernels come from eight graph launches, with gaps of the device's own between them."""
    graph = _measures("graph")
    assert (1.0, 8) == (graph.graph_kernel_ratio, graph.graph_launches)
    assert graph.gap_ratio == pytest.approx(graph.gap_causes["device"])
    assert graph.gap_ratio < 0.03


def test_steps_are_seen_on_the_gpu() -> None:
    """Eight named steps each way; the graph's last as long as their kernels, though the host launched them long before."""
    for name in ("eager", "paused", "graph"):
        steps = _measures(name).steps
        assert steps is not None
        assert ("decode_step #", 8) == (steps.how, steps.count)
        assert QUEUED / 8 == pytest.approx(steps.gpu.p50, rel=0.02)
    graph = _measures("graph").steps
    assert graph is not None
    assert QUEUED / 8 == pytest.approx(graph.period.p50, rel=0.03)


@cache
def _kernels(page: str) -> list[Counters]:
    table = load(TRACES / f"h200-ncu-{page}.csv")
    assert isinstance(table, KernelTable)
    return table.kernels


@pytest.mark.parametrize("page", ["raw", "details"])
def test_counters_of_known_kernels(page: str) -> None:
    """A matrix product is bound by compute, an addition over 1 GiB by memory, one of 64 numbers by latency."""
    product, large, tiny = _kernels(page)
    assert ["compute", "memory", "latency"] == [kernel.bound for kernel in (product, large, tiny)]
    assert ["gemm", "norm_elementwise"] == [product.kernel_class, large.kernel_class]
    assert product.seconds is not None
    assert 2 * 4096**3 / product.seconds == pytest.approx(790e12, rel=0.05)
    assert large.seconds is not None
    assert large.dram == pytest.approx(2 * 4 * (1 << 28) / large.seconds / 4814e9, rel=0.02)


def test_both_pages_say_the_same() -> None:
    """The raw page and the details page are of one report."""
    for raw, details in zip(_kernels("raw"), _kernels("details"), strict=True):
        for measure in ("seconds", "occupancy", "sm", "dram", "l2"):
            assert getattr(raw, measure) == pytest.approx(getattr(details, measure), abs=1e-4, rel=0.01)


def test_tensor_pipe_and_stalls_come_with_the_raw_page() -> None:
    """The product keeps the tensor pipe busy; the large addition waits for memory."""
    product, large, _ = _kernels("raw")
    assert product.tensor is not None
    assert product.tensor > 0.9
    assert "long_scoreboard" == max(large.stalls, key=lambda reason: large.stalls[reason])
    assert 1.0 == pytest.approx(sum(large.stalls.values()))
