"""Which engine a trace is of, and what it does not tell."""

from __future__ import annotations

import pytest

from heptascope.model import Missing, Reading, Reason, Sample, labels
from heptascope.pipeline import Pipeline
from heptascope.signals.derive import DeriveSettings
from heptascope.signals.snapshot import Snapshot

OWNER = "heptascope_engine_trace_info"
ONE = [("vllm", "0")]
TWO = [("vllm", "0"), ("sglang", "0")]
SERVED = [Sample("heptascope_trace_age_seconds", (), 5.0), Sample("heptascope_trace_copy_ratio", labels(trace_rank="0"), 0.1)]


def _snapshot(ranks: list[tuple[str, str]], engine: str = "", trace: Reading | None = None) -> Snapshot:
    pipeline = Pipeline(DeriveSettings(trace_engine=engine))
    if trace is not None:
        pipeline.ingest(trace)
    running = [Sample("heptascope_engine_requests_running", labels(engine=name, rank=rank), 1.0) for name, rank in ranks]
    pipeline.ingest(Reading("page", 10.0, running))
    return pipeline.step(10.0)


def _why(snapshot: Snapshot, signal: str = OWNER) -> list[tuple[Reason, str]]:
    return [(m.reason, m.detail) for m in snapshot.missing if m.signal == signal]


@pytest.mark.parametrize(
    ("ranks", "engine", "owners"),
    [(ONE, "", ["vllm"]), (TWO, "", []), (TWO, "sglang", ["sglang"]), ([("vllm", "0"), ("vllm", "1")], "", []), (ONE, "other", [])],
)
def test_the_owner_is_the_only_engine_or_the_configured_one(ranks: list[tuple[str, str]], engine: str, owners: list[str]) -> None:
    """With several engine ranks and no setting nobody is the owner, and that is said."""
    snapshot = _snapshot(ranks, engine, Reading("trace", 10.0, SERVED))
    assert owners == [dict(pairs)["engine"] for pairs, _ in snapshot.values.get(OWNER, ())]
    expected = {(): len(ranks)}.get(tuple(owners), len(ranks) - 1)
    assert expected == len(_why(snapshot))


def test_which_engine_is_asked_for_where_it_matters() -> None:
    """Two engines: the reason names the setting; an engine that is not the configured one has nothing to judge."""
    trace = Reading("trace", 10.0, SERVED)
    assert {(Reason.AMBIGUOUS, "it cannot be told which engine rank the trace is of; set trace.engine")} == set(
        _why(_snapshot(TWO, trace=trace))
    )
    assert [(Reason.NOT_CONFIGURED, "the trace is of sglang")] == _why(_snapshot(TWO, "sglang", trace))


def test_without_a_trace_there_is_nothing_to_judge() -> None:
    """Where no source speaks of traces, or the folder is empty, the reason is one that makes rules clear; a broken trace is not."""
    empty = Reading("trace", 10.0, missing=[Missing("heptascope_trace_age_seconds", Reason.NOT_CONFIGURED, "no trace yet")])
    broken = Reading("trace", 10.0, missing=[Missing("heptascope_trace_age_seconds", Reason.INVALID, "cut")])
    assert [(Reason.NOT_CONFIGURED, "no trace is served")] == _why(_snapshot(ONE))
    assert [(Reason.NOT_CONFIGURED, "no trace yet")] == _why(_snapshot(ONE, trace=empty))
    assert [(Reason.INVALID, "cut")] == _why(_snapshot(ONE, trace=broken))


def test_what_a_trace_does_not_tell_is_not_configured() -> None:
    """A trace of one rank has no stragglers, one without hardware counters no occupancy; what it has is not complained of."""
    snapshot = _snapshot(ONE, trace=Reading("trace", 10.0, SERVED))
    expected = [(Reason.NOT_CONFIGURED, "the trace that is served does not tell it")]
    assert expected == _why(snapshot, "heptascope_trace_collective_wait_ratio")
    assert expected == _why(snapshot, "heptascope_trace_profiled_occupancy_ratio")
    assert [] == _why(snapshot, "heptascope_trace_copy_ratio")
