"""Comparing two runs."""

from __future__ import annotations

import pytest

from heptascope.sources.trace import run
from heptascope.sources.trace.compare import compare
from heptascope.sources.trace.measures import Run
from support.trace_builder import TraceBuilder


def _run(steps: int, gemm: float, norm: float, named: bool = True) -> Run:
    """Make steps of 1000 µs with a matrix product, a norm that comes 100 µs after it, and nothing else."""
    build = TraceBuilder()
    for i in range(steps):
        at = 1000.0 * i
        if named:
            build.add("user_annotation", f"ProfilerStep#{i}", at, 990)
        build.kernel("nvjet_gemm", at, gemm, launched=at).kernel("rms_norm", at + gemm + 100, norm, launched=at + 5)
    return run.measure([build.trace()])


def test_changes_are_per_step_and_sorted_by_contribution() -> None:
    """Runs of 5 and 10 steps compare by step: the product takes 200 µs more, the norm 50 less."""
    result = compare(_run(5, 300, 100), _run(10, 500, 50))
    parts = {change.name: change for change in result.parts}
    assert "step" == result.unit
    assert (300e-6, 500e-6, 200e-6) == pytest.approx((parts["gemm"].before, parts["gemm"].after, parts["gemm"].delta))
    assert -50e-6 == pytest.approx(parts["norm_elementwise"].delta)
    assert ["nvjet_gemm", "rms_norm"] == [change.name for change in result.kernels]
    assert [0.8, -0.2] == pytest.approx([change.contribution for change in result.kernels])
    contributions = [abs(change.contribution) for change in result.parts]
    assert sorted(contributions, reverse=True) == contributions
    assert 1.0 == pytest.approx(sum(contributions))


def test_parts_add_up_to_the_total() -> None:
    """Without overlap, classes and gaps are the whole time, so their changes are the total's."""
    result = compare(_run(5, 300, 100), _run(5, 500, 50))
    assert result.total.delta == pytest.approx(sum(change.delta for change in result.parts))


def test_a_kernel_that_is_new_or_gone_has_no_other_side() -> None:
    """Absent is not zero."""
    before = run.measure([TraceBuilder().kernel("old", 0, 10).kernel("same", 10, 10).trace()])
    after = run.measure([TraceBuilder().kernel("new", 0, 30).kernel("same", 30, 10).trace()])
    found = {change.name: (change.before, change.after) for change in compare(before, after).kernels}
    assert {"new": (None, 30e-6), "old": (10e-6, None), "same": (10e-6, 10e-6)} == {k: pytest.approx(v) for k, v in found.items()}


def test_runs_without_common_steps_compare_as_wholes_and_say_so() -> None:
    """Amounts of whole traces depend on their length, which is mentioned."""
    result = compare(_run(5, 300, 100), _run(10, 300, 100, named=False))
    assert ("trace", 1) == (result.unit, len(result.notes))


def test_measures_are_sorted_by_relative_change() -> None:
    """Measures of different units cannot be added; what did not change is left out."""
    changes = compare(_run(5, 300, 100), _run(10, 300, 100)).measures
    found = {change.name: change.contribution for change in changes}
    assert 0.5 == found["kernels"]
    assert "tiny_kernel_ratio" not in found


def test_a_run_compared_with_itself_has_not_changed() -> None:
    """All differences are zero."""
    same = _run(5, 300, 100)
    result = compare(same, same)
    assert [] == result.measures
    assert {0.0} == {change.delta for change in (*result.parts, *result.kernels, result.total)}
