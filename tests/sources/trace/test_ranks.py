"""Several ranks: collectives, overlap, stragglers, clock skew, bubbles, and which files are one run."""

from __future__ import annotations

import pytest

from heptascope.errors import UserError
from heptascope.sources.trace import run
from heptascope.sources.trace.analyze import analyse
from heptascope.sources.trace.events import Trace
from heptascope.sources.trace.measures import Arrival, Run
from support.trace_builder import TraceBuilder

NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x)"
SEND = "ncclDevKernel_SendRecv(x)"
BASE = 10**18


def _rank(rank: int, world: int = 2, base_ns: int = BASE) -> TraceBuilder:
    return TraceBuilder(rank, world, base_ns)


def _measure(*builds: TraceBuilder) -> Run:
    return run.measure([build.trace() for build in builds])


def _arrivals(result: Run) -> dict[str, Arrival]:
    return {arrival.rank: arrival for group in result.groups for arrival in group.arrivals}


def _all_reduce(late: list[float], skew: float = 0.0, own: float = 0.0) -> list[TraceBuilder]:
    """Twenty all-reduces: in number i, rank 1 comes late[i] after rank 0 (negative: before); both end together.

    Rank 1's clock shows `skew` more; `own` is the length of a collective nobody waits in.
    """
    zero, one = _rank(0), _rank(1)
    for i, by in enumerate(late):
        at = 1000.0 * i
        end = at + max(by, 0) + 10 + own
        zero.kernel("gemm", at - 200, 150).kernel(NCCL, at, end - at)
        one.kernel("gemm", at - 200 + skew, 150).kernel(NCCL, at + by + skew, end - at - by)
    return [zero, one]


def test_overlap_with_compute_is_measured_per_rank() -> None:
    """Collectives cover 300 µs of 1000, compute covers 100 of them."""
    build = _rank(0, 1).kernel("gemm", 0, 400).kernel(NCCL, 300, 200, stream=9).kernel(NCCL, 450, 150, stream=10).kernel("gemm", 900, 100)
    found = analyse(build.trace(), "0").measures.collectives
    assert found is not None
    assert (2, 300e-6, 0.3, 1 / 3, 0.2) == pytest.approx(
        (found.count, found.seconds, found.ratio, found.overlap_ratio, found.exposed_ratio)
    )


def test_copies_beside_a_collective_are_no_overlap() -> None:
    """Only kernels that compute hide communication."""
    build = _rank(0, 1).kernel(NCCL, 0, 100).copy("Memcpy HtoD (Pinned -> Device)", 20, 50, stream=9)
    found = analyse(build.trace(), "0").measures.collectives
    assert found is not None
    assert 0.0 == found.overlap_ratio


def test_straggler_is_the_rank_that_comes_last() -> None:
    """Rank 1 comes 100 µs late in 12 of 20, 2 µs in 4 (noise), and first by 30 µs in 4."""
    zero, one = _arrivals(_measure(*_all_reduce([100.0] * 12 + [2.0] * 4 + [-30.0] * 4))).values()
    assert (20, 4, 0.2, 20, 12, 0.6) == pytest.approx((zero.matched, zero.last, zero.last_ratio, one.matched, one.last, one.last_ratio))
    assert zero.lateness is not None
    assert one.lateness is not None
    assert (30e-6, 100e-6) == pytest.approx((zero.lateness.p50, one.lateness.p99))
    assert (1208e-6, 120e-6) == pytest.approx((zero.waited_seconds, one.waited_seconds))


def test_three_ranks_wait_for_the_last_one() -> None:
    """Ranks 0, 1, 2 come at 0, 20 and 50 µs: rank 2 is last by 30 µs, the others wait 50 and 30."""
    builds = [_rank(i, 3) for i in range(3)]
    for i in range(10):
        for build, by in zip(builds, (0, 20, 50), strict=True):
            build.kernel(NCCL, 1000 * i + by, 60 - by)
    found = _arrivals(_measure(*builds))
    assert {"0": 0, "1": 0, "2": 10} == {rank: arrival.last for rank, arrival in found.items()}
    assert (500e-6, 300e-6, 0.0) == pytest.approx(tuple(arrival.waited_seconds for arrival in found.values()))
    assert found["2"].lateness is not None
    assert 30e-6 == pytest.approx(found["2"].lateness.p50)


@pytest.mark.parametrize("skew", [0.0, 3_000.0, -250_000.0])
def test_clock_skew_is_taken_out_and_reported(skew: float) -> None:
    """Whatever a rank's clock shows, who came last by how much stays the same; a skew over a millisecond is mentioned."""
    result = run.measure([build.trace() for build in _all_reduce([40.0] * 20, skew)])
    assert (20, 0) == (_arrivals(result)["1"].last, _arrivals(result)["0"].last)
    assert skew * 1e-6 == pytest.approx(result.groups[0].skew["1"])
    assert bool(skew) == any("the clock of rank 1 is off" in note for note in result.notes)


def test_ranks_that_began_to_record_at_different_times_are_matched() -> None:
    """Rank 1's trace lacks the first five collectives, and rank 0's the last two."""
    zero, one = _rank(0), _rank(1)
    for i in range(30):
        at = 1000.0 * i + 13 * i * i % 97  # uneven, as real steps are
        if i < 28:
            zero.kernel(NCCL, at, 60)
        if i >= 5:
            one.kernel(NCCL, at + 50, 10)
    found = _arrivals(_measure(zero, one))
    assert (23, 23, 23) == (found["0"].matched, found["1"].matched, found["1"].last)


def test_groups_with_other_collectives_are_kept_apart() -> None:
    """Ranks 0 and 1 share collectives, ranks 2 and 3 share others at other times."""
    builds = [_rank(i, 4) for i in range(4)]
    for i in range(12):
        for rank, build in enumerate(builds):
            offset = (0 if rank < 2 else 400 + 90 * (i % 5)) + 30 * (rank % 2)
            build.kernel(NCCL, 1000 * i + offset, 100 - 30 * (rank % 2))
    result = _measure(*builds)
    assert [["0", "1"], ["2", "3"]] == [group.ranks for group in result.groups]


def test_process_groups_in_the_events_keep_collectives_apart() -> None:
    """The same kernel in two process groups is two kinds of collective."""
    zero, one = _rank(0), _rank(1)
    for i in range(10):
        for build, group, late in ((zero, "tp", 0), (one, "tp", 20), (zero, "dp", 0), (one, "other", 300)):
            build.gpu("kernel", NCCL, 1000 * i + late + (500 if group != "tp" else 0), 60 - min(late, 50), **{"Process Group Name": group})
    found = _arrivals(_measure(zero, one))
    assert (10, 10) == (found["1"].matched, found["1"].last)


def test_pipeline_bubble_is_idle_time_while_another_stage_computes() -> None:
    """Stage 0 computes 0 to 400, stage 1 from 400 to 1000 and spins in a receive kernel before."""
    zero, one = _rank(0), _rank(1)
    zero.kernel("gemm", 0, 400).kernel(SEND, 400, 10)
    one.kernel(SEND, 0, 400).kernel("gemm", 400, 600)
    assert {"0": pytest.approx(0.6), "1": pytest.approx(0.4)} == _measure(zero, one).bubbles


def test_no_bubble_is_claimed_without_point_to_point_kernels() -> None:
    """Tensor-parallel ranks wait in collectives, which is no bubble."""
    assert {} == _measure(*_all_reduce([50.0] * 20)).bubbles


def test_send_and_receive_do_not_make_stragglers() -> None:
    """Waiting for the stage before is no lateness."""
    zero, one = _rank(0), _rank(1)
    for i in range(20):
        zero.kernel(SEND, 1000 * i, 10)
        one.kernel(SEND, 1000 * i - 500, 510)
    assert [] == _measure(zero, one).groups


def _trace(rank: int | None, world: int, begin: float = 0.0, base_ns: int = BASE) -> Trace:
    return TraceBuilder(rank, world, base_ns).kernel("k", begin, 100).trace()


def test_ranks_of_one_run_differ_in_rank_and_overlap_in_time() -> None:
    """Same world, other rank, same time: one run. Same rank, or another time or world: another run."""
    same = [_trace(0, 2), _trace(1, 2, 50)]
    assert [2] == [len(found) for found in run.runs(same)]
    assert [1, 1] == [len(found) for found in run.runs([_trace(0, 1), _trace(0, 1)])]
    assert [1, 1] == [len(found) for found in run.runs([_trace(0, 2), _trace(1, 2, 500)])]
    assert [1, 1] == [len(found) for found in run.runs([_trace(0, 2), _trace(1, 4, 50)])]
    assert [1, 1] == [len(found) for found in run.runs([_trace(None, 1), _trace(None, 1)])]
    assert [2, 2] == [len(found) for found in run.runs([*same, _trace(0, 2, 900), _trace(1, 2, 910)])]


def test_flags_decide_what_the_files_do_not() -> None:
    """--compare parts two ranks, --ranks joins anything; three runs or a lone one cannot be compared."""
    pair, lone = run.runs([_trace(0, 2), _trace(1, 2, 50)]), run.runs([_trace(0, 1)])
    assert [1, 1] == [len(found) for found in run.choose(pair, compare=True, one_run=False)]
    assert [2] == [len(found) for found in run.choose(run.runs([_trace(0, 1), _trace(0, 1)]), compare=False, one_run=True)]
    with pytest.raises(UserError, match=r"^3 runs in 3 files; give one run"):
        run.choose(run.runs([_trace(0, 1)] * 3), compare=False, one_run=False)
    with pytest.raises(UserError, match=r"^1 run in 1 file; give one run"):
        run.choose(lone, compare=True, one_run=False)


def test_several_gpus_in_one_trace_are_ranks() -> None:
    """A process that drives two GPUs gives one set of measures for each."""
    build = TraceBuilder().gpu("kernel", "k", 0, 100, device=0).gpu("kernel", "k", 0, 40, device=1)
    assert {"0": 100e-6, "1": 40e-6} == {m.rank: pytest.approx(m.busy_seconds) for m in run.measure([build.trace()]).ranks}


def test_ranks_without_numbers_are_named_in_order() -> None:
    """Joined by force, unnumbered traces are ranks 0 and 1."""
    assert ["0", "1"] == [m.rank for m in run.measure([_trace(None, 1), _trace(None, 1)]).ranks]


def test_a_rank_without_gpu_work_is_left_out_with_a_note() -> None:
    """The others are still measured."""
    empty = TraceBuilder(1, 2).add("cpu_op", "aten::mm", 0, 5).trace()
    result = run.measure([_trace(0, 2), empty])
    assert (["0"], ["built.json has no GPU activity and is left out"]) == ([m.rank for m in result.ranks], result.notes)


def test_a_trace_without_any_gpu_work_is_refused() -> None:
    """A CPU-only trace says nothing about a GPU."""
    with pytest.raises(UserError, match=r"^built\.json: no GPU activity in this trace; record it with"):
        run.measure([TraceBuilder().add("cpu_op", "aten::mm", 0, 5).trace()])
