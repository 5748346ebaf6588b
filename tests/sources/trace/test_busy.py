"""Busy time, gaps and their causes, copies: on traces whose every number is known by construction."""

from __future__ import annotations

import pytest

from heptascope.sources.trace.analyze import analyse
from heptascope.sources.trace.busy import copy_kind
from heptascope.sources.trace.measures import Measures
from support.trace_builder import TraceBuilder

WALL = 1000.0


def _measure(build: TraceBuilder) -> Measures:
    return analyse(build.trace(), "0").measures


def _gap(build: TraceBuilder) -> TraceBuilder:
    """Frame what `build` does between a kernel at 0 to 100 and the end of the wall time at 1000 µs."""
    return build.kernel("first", 0, 100, launched=-20)


def _causes(build: TraceBuilder) -> dict[str, float]:
    """Return the causes in microseconds."""
    measures = _measure(build)
    assert WALL == pytest.approx(measures.wall_seconds * 1e6)
    assert measures.gap_ratio == pytest.approx(sum(measures.gap_causes.values()))
    return {cause: pytest.approx(ratio * WALL) for cause, ratio in measures.gap_causes.items() if ratio}


def test_busy_time_is_the_union_over_streams() -> None:
    """Kernels that overlap on several streams count once; copies count as busy but not as kernels."""
    build = TraceBuilder().kernel("a", 0, 300).kernel("b", 200, 200, stream=8).kernel("c", 250, 50, stream=9)
    build.copy("Memcpy HtoD (Pinned -> Device)", 350, 150, stream=10).kernel("d", 900, 100)
    measures = _measure(build)
    assert (1e-3, 600e-6, 500e-6) == pytest.approx((measures.wall_seconds, measures.busy_seconds, measures.kernel_seconds))
    assert (0.6, 0.5) == pytest.approx((measures.busy_ratio, measures.gap_ratio))
    assert (4, 4, 1) == (measures.kernels, measures.streams, measures.gap_count)


def test_gap_while_the_host_prepares_a_launch_is_launch_bound() -> None:
    """The launching thread is in an operation from the begin of the gap; then it launches."""
    build = _gap(TraceBuilder()).add("cpu_op", "aten::mm", 50, 870).kernel("last", 910, 90, launched=900)
    assert {"launch": 810} == _causes(build)


def test_gap_after_a_launch_that_came_early_is_the_device() -> None:
    """The launch was made before the gap began: the device itself waited, for an event or another stream."""
    build = _gap(TraceBuilder()).kernel("last", 900, 100, launched=20)
    assert {"device": 800} == _causes(build)


def test_launch_call_that_began_before_the_gap_counts_until_it_returns() -> None:
    """A slow graph launch holds the GPU up until the call returns; what follows is the device."""
    build = _gap(TraceBuilder())
    correlation = build.call("cudaGraphLaunch", 50, 450)
    build.kernel("last", 900, 100, correlation=correlation)
    assert {"launch": 400, "device": 400} == _causes(build)


def test_gap_in_which_the_thread_waits_for_the_gpu_is_sync() -> None:
    """100 to 400 in a wait, 400 to 700 in an operation, the rest of the time to the launch too short a hole to count."""
    build = _gap(TraceBuilder())
    build.call("cudaStreamSynchronize", 40, 360)
    build.add("cpu_op", "aten::add", 400, 300).kernel("last", 800, 200, launched=750)
    assert {"sync": 300, "launch": 400} == _causes(build)


def test_gap_without_any_record_of_the_thread_is_empty() -> None:
    """From 105 to 800 the launching thread recorded nothing: it had no work; other threads do not count."""
    build = _gap(TraceBuilder()).add("cpu_op", "aten::mm", 0, 105).add("cpu_op", "other thread", 0, 1000, thread=5)
    build.kernel("last", 810, 190, launched=800)
    assert {"launch": 15, "empty": 695} == _causes(build)


def test_python_frames_do_not_make_a_thread_busy() -> None:
    """A frame of Python is always open, so it says nothing about work."""
    build = _gap(TraceBuilder()).add("python_function", "loop.py(1): run", -100, 2000).kernel("last", 900, 100, launched=890)
    assert {"empty": 790, "launch": 10} == _causes(build)


def test_copies_in_a_gap_are_its_copy_part_and_split_the_rest() -> None:
    """A copy from 300 to 500 divides the gap; both halves end with activity that was launched late."""
    build = _gap(TraceBuilder()).add("cpu_op", "work", 0, 1000)
    build.copy("Memcpy DtoH (Device -> Pinned)", 300, 200, launched=290).kernel("last", 700, 300, launched=450)
    assert {"copy": 200, "launch": 200, "device": 200} == _causes(build)


def test_gap_before_work_of_unknown_launch_is_unknown() -> None:
    """A kernel whose launch was not recorded gives no cause."""
    build = _gap(TraceBuilder()).kernel("last", 900, 100)
    assert {"unknown": 800} == _causes(build)


def test_each_gap_is_judged_by_its_own_launching_thread() -> None:
    """One thread waits for the GPU while the other, which launches next, works."""
    build = _gap(TraceBuilder())
    build.call("cudaDeviceSynchronize", 0, 900, thread=1)
    build.add("cpu_op", "work", 0, 500, thread=2).kernel("middle", 500, 100, launched=490, thread=2)
    build.kernel("last", 950, 50, launched=920, thread=1)
    assert {"launch": 400 + 50, "sync": 300} == _causes(build)


def test_gap_histogram_counts_by_powers_of_two() -> None:
    """Gaps of 1, 2, 3 and 100 µs fall into the buckets up to 1, 2, 4 and 128 µs."""
    build, at = TraceBuilder().kernel("k", 0, 10), 10.0
    for gap in (1, 2, 3, 100):
        build.kernel("k", at + gap, 10)
        at += gap + 10
    filled = {bucket.upper: (bucket.count, round(bucket.seconds * 1e6)) for bucket in _measure(build).gap_histogram if bucket.count}
    assert {1e-6: (1, 1), 2e-6: (1, 2), 4e-6: (1, 3), 128e-6: (1, 100)} == filled


def test_copies_are_listed_by_direction_and_memory() -> None:
    """Time, bytes and share of each kind; overlapping copies count once in the share of all."""
    build = TraceBuilder().kernel("k", 0, 1000)
    build.copy("Memcpy HtoD (Pageable -> Device)", 100, 50, bytes=1000).copy("Memcpy HtoD (Pageable -> Device)", 200, 50, bytes=500)
    build.copy("Memcpy DtoH (Device -> Pinned)", 220, 60, bytes=7, stream=8).gpu("gpu_memset", "Memset (Device)", 400, 20, bytes=64)
    measures = _measure(build)
    found = {(c.direction, c.memory): (c.count, round(c.seconds * 1e6), c.bytes) for c in measures.copies}
    assert {("HtoD", "pageable"): (2, 100, 1500), ("DtoH", "pinned"): (1, 60, 7), ("set", "device"): (1, 20, 64)} == found
    assert 0.15 == pytest.approx(measures.copy_ratio)
    assert 0.0 == measures.gap_ratio


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Memcpy HtoD (Pinned -> Device)", ("HtoD", "pinned")),
        ("Memcpy DtoH (Device -> Pagable)", ("DtoH", "pageable")),
        ("Memcpy DtoD (Device -> Device)", ("DtoD", "device")),
        ("Memcpy PtoP (Device -> Device)", ("PtoP", "device")),
        ("Memcpy HtoD (Managed -> Device)", ("HtoD", "managed")),
        ("CopyHostToDevice", ("HtoD", "unknown")),
        ("Memset (Unknown)", ("set", "device")),
        ("something else", ("other", "unknown")),
    ],
)
def test_copy_names_say_direction_and_memory(name: str, expected: tuple[str, str]) -> None:
    """The names that the profilers write are understood, their own misspelling too."""
    assert expected == copy_kind(name)


def test_one_kernel_alone_has_no_gap() -> None:
    """The smallest trace with GPU work can be measured."""
    measures = _measure(TraceBuilder().kernel("only", 5, 0.5))
    assert (0.0, 1.0, 0) == (measures.gap_ratio, measures.busy_ratio, measures.gap_count)


def test_events_of_no_length_do_not_break_the_measures() -> None:
    """A trace in which nothing lasts has no wall time and no shares."""
    measures = _measure(TraceBuilder().kernel("a", 5, 0).kernel("b", 5, 0))
    assert (0.0, 0.0, {}) == (measures.wall_seconds, measures.gap_ratio, measures.gap_causes)
