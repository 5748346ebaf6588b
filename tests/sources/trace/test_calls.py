"""Launches, CUDA graphs, launch delay, waits and their callers, late compilation."""

from __future__ import annotations

import pytest

from heptascope.sources.trace.analyze import analyse
from heptascope.sources.trace.measures import Measures, Sync
from support.trace_builder import TraceBuilder


def _measure(build: TraceBuilder) -> Measures:
    return analyse(build.trace(), "0").measures


def test_launch_delay_is_from_call_to_kernel() -> None:
    """Delays of 10 to 1000 µs: the percentiles are those of the list."""
    build = TraceBuilder()
    for i in range(1, 101):
        build.kernel("k", 2000 * i + 10 * i, 5, launched=2000 * i)
    delay = _measure(build).launch_delay
    assert delay is not None
    assert (100, 10e-6, 500e-6, 990e-6, 1e-3) == pytest.approx((delay.count, delay.min, delay.p50, delay.p99, delay.max))


def test_graph_launch_counts_once_and_marks_its_kernels() -> None:
    """Two graph launches of three kernels and one plain kernel: 6 of 7 kernels, and each launch gives one delay."""
    build = TraceBuilder()
    for at in (0.0, 1000.0):
        correlation = build.call("cudaGraphLaunch", at, 20)
        for i in range(3):
            build.kernel("k", at + 100 + 50 * i, 30, correlation=correlation)
    build.kernel("plain", 2000, 60, launched=1990)
    measures = _measure(build)
    assert (6 / 7, 180 / 240, 2) == pytest.approx((measures.graph_kernel_ratio, measures.graph_time_ratio, measures.graph_launches))
    assert measures.launch_delay is not None
    assert (3, 10e-6, 100e-6) == pytest.approx((measures.launch_delay.count, measures.launch_delay.min, measures.launch_delay.max))


def test_graph_launched_before_the_trace_is_known_by_its_shared_correlation() -> None:
    """Only a graph starts several kernels with one call, so the call itself need not be in the trace."""
    build = TraceBuilder()
    for i in range(4):
        build.kernel("k", 100 * i, 50, correlation=77)
    measures = _measure(build)
    assert (1.0, 1, None) == (measures.graph_kernel_ratio, measures.graph_launches, measures.launch_delay)


def test_graph_node_in_the_event_marks_a_graph() -> None:
    """Newer profilers write the graph node at the kernel."""
    build = TraceBuilder().gpu("kernel", "k", 0, 5, 1, **{"graph node id": 12}).kernel("k", 10, 5, launched=8)
    assert 0.5 == _measure(build).graph_kernel_ratio


def test_waits_are_listed_by_call_and_innermost_caller() -> None:
    """The caller is the innermost range around the call on the same thread, not one that ended before or runs elsewhere."""
    build = TraceBuilder().kernel("k", 0, 1000, launched=-5)
    build.add("user_annotation", "step", 0, 900).add("python_function", "sample.py(7): pick", 100, 500).add(
        "cpu_op", "aten::item", 110, 300
    )
    build.add("cpu_op", "aten::add", 120, 20).add("cpu_op", "elsewhere", 0, 1000, thread=9)
    build.call("cudaStreamSynchronize", 200, 100)
    build.call("cudaStreamSynchronize", 450, 50)
    build.call("cudaStreamSynchronize", 550, 40)
    build.call("cudaDeviceSynchronize", 950, 20)
    build.call("cudaMemcpy", 700, 30)
    build.call("cudaMemcpyAsync", 760, 30)
    build.call("cudaStreamWaitEvent", 800, 30)
    measures = _measure(build)
    expected = [
        Sync("cudaStreamSynchronize", "aten::item", 1, 100e-6),
        Sync("cudaStreamSynchronize", "sample.py(7): pick", 2, 90e-6),
        Sync("cudaMemcpy", "step", 1, 30e-6),
        Sync("cudaDeviceSynchronize", "", 1, 20e-6),
    ]
    assert [(s.call, s.caller, s.count) for s in expected] == [(s.call, s.caller, s.count) for s in measures.syncs]
    assert [s.seconds for s in expected] == pytest.approx([s.seconds for s in measures.syncs])
    assert (5, 0.24) == pytest.approx((measures.sync_count, measures.sync_ratio))


def test_caller_is_found_behind_many_finished_ranges() -> None:
    """Thousands of finished operations before the wait do not hide the range around them."""
    build = TraceBuilder().kernel("k", 0, 100_000, launched=-5).add("user_annotation", "outer", 0, 90_000)
    for i in range(5000):
        build.add("cpu_op", "aten::add", 10 + 10 * i, 5)
    build.call("cudaEventSynchronize", 70_000, 100)
    assert ["outer"] == [sync.caller for sync in _measure(build).syncs]


def test_compilations_module_loads_and_captures_inside_the_trace_are_counted() -> None:
    """Nested compile ranges are one compilation; what ended before the GPU worked is not counted."""
    build = TraceBuilder().kernel("k", 1000, 1000, launched=990)
    build.add("cpu_op", "_compile.compile_inner (dynamo_timed)", 0, 500)
    build.add("cpu_op", "_compile.compile_inner (dynamo_timed)", 1100, 400).add("cpu_op", "compile_fx_inner (dynamo_timed)", 1200, 100)
    build.call("cuModuleLoadData", 1600, 50)
    build.call("cuLibraryLoadData", 1700, 25)
    build.call("cudaStreamBeginCapture", 1800, 5)
    build.call("cudaStreamIsCapturing", 1850, 5)
    late = _measure(build).late
    assert (1, 400e-6, 2, 75e-6, 1) == pytest.approx(
        (late.compilations, late.compilation_seconds, late.module_loads, late.module_load_seconds, late.graph_captures)
    )


def test_kernels_before_their_launch_are_mentioned() -> None:
    """A kernel cannot begin before its launch: the clocks disagree, and the report says so."""
    notes = _measure(TraceBuilder().kernel("k", 0, 10, launched=50).kernel("k", 100, 10, launched=90)).notes
    assert ["1 GPU events begin before their launch: host and GPU clocks disagree, so gap causes and delays are doubtful"] == notes


def test_trace_without_calls_says_what_cannot_be_told() -> None:
    """Recorded with GPU activities only, a trace has no launches."""
    measures = _measure(TraceBuilder().kernel("k", 0, 10).kernel("k", 20, 10))
    assert ["no launch calls in this trace: gap causes, launch delay and graph launches cannot be told"] == measures.notes
    assert {"unknown": pytest.approx(1 / 3)} == {cause: ratio for cause, ratio in measures.gap_causes.items() if ratio}
