"""Cutting a trace into steps by named ranges or by gaps."""

from __future__ import annotations

import pytest

from heptascope.sources.trace.analyze import analyse
from heptascope.sources.trace.measures import Steps
from support.trace_builder import TraceBuilder


def _steps(build: TraceBuilder) -> Steps | None:
    return analyse(build.trace(), "0").measures.steps


def _engine(names: list[str]) -> TraceBuilder:
    """Make steps that begin 100, 200, 300 … µs apart, with a kernel of 10, 20, 30 … µs each, launched in it and run in the next."""
    build, at = TraceBuilder(), 0.0
    for i, name in enumerate(names, 1):
        build.add("user_annotation", name, at, 90).add("user_annotation", "inner", at + 5, 20)
        build.kernel("k", at + 100 * i + 1, 10 * i, launched=at + 50)
        at += 100 * i
    return build


@pytest.mark.parametrize(
    ("names", "how"),
    [
        (["execute_context_0(0)_generation_8(8)"] * 6, "execute_context_#(#)_generation_#(#)"),
        ([f"ProfilerStep#{i}" for i in range(6)], "ProfilerStep##"),
        ([f"step[DECODE bs={i}]" for i in range(6)], "step[DECODE bs=#]"),
    ],
)
def test_ranges_of_known_engines_are_steps(names: list[str], how: str) -> None:
    """Kernels begin 200 to 600 µs apart; each belongs to the step that launched it, though it runs later."""
    steps = _steps(_engine(names))
    assert steps is not None
    assert (how, 6, 5, 6) == (steps.how, steps.count, steps.period.count, steps.gpu.count)
    assert (200e-6, 400e-6, 600e-6) == pytest.approx((steps.period.min, steps.period.p50, steps.period.p99))
    assert (10e-6, 30e-6, 60e-6) == pytest.approx((steps.gpu.min, steps.gpu.p50, steps.gpu.p99))


def test_unknown_ranges_are_steps_if_they_repeat_and_launch_most_of_the_work() -> None:
    """The longest ranges win, digits aside; those inside them, and those that launch nothing, do not."""
    build = TraceBuilder()
    for i in range(5):
        build.add("user_annotation", f"my_loop {i}", 1000 * i, 900).add("user_annotation", "part", 1000 * i, 400)
        build.add("user_annotation", "nccl:all_reduce", 1000 * i, 950).add("user_annotation", "idle", 1000 * i + 200, 5000).kernel(
            "k", 1000 * i + 100, 100, launched=1000 * i + 50
        )
    steps = _steps(build)
    assert steps is not None
    assert ("my_loop #", 5) == (steps.how, steps.count)


def test_nested_ranges_of_one_name_count_once() -> None:
    """A range within a range of the same family is not another step."""
    build = TraceBuilder()
    for i in range(4):
        build.add("user_annotation", "ProfilerStep#1", 1000 * i, 900).add("user_annotation", "ProfilerStep#2", 1000 * i + 100, 100)
        build.kernel("k", 1000 * i + 100, 100, launched=1000 * i + 50)
    steps = _steps(build)
    assert steps is not None
    assert (4, 1e-3) == (steps.count, pytest.approx(steps.period.p50))


def test_without_ranges_long_gaps_end_steps() -> None:
    """Eight kernels 2 µs apart, then a gap of 500 µs: ten steps, 96 µs of kernels and short gaps and 498 more to the next."""
    build, at = TraceBuilder(), 0.0
    for _ in range(10):
        for _ in range(8):
            build.kernel("k", at, 10)
            at += 12
        at += 498
    steps = _steps(build)
    assert steps is not None
    assert ("gaps", 10) == (steps.how, steps.count)
    assert (594e-6, 594e-6, 80e-6) == pytest.approx((steps.period.min, steps.period.p99, steps.gpu.p50))


@pytest.mark.parametrize("gap", [2, 3])
def test_even_gaps_are_no_steps(gap: int) -> None:
    """Where no gap stands out there are no steps, rather than invented ones."""
    build = TraceBuilder()
    for i in range(80):
        build.kernel("k", (10 + gap) * i, 10)
    assert _steps(build) is None


def test_two_ranges_are_too_few() -> None:
    """Two repetitions do not make steps."""
    build = TraceBuilder()
    for i in range(2):
        build.add("user_annotation", f"ProfilerStep#{i}", 1000 * i, 900).kernel("k", 1000 * i, 100, launched=1000 * i)
    assert _steps(build) is None
