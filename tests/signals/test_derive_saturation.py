"""Saturation: each limit from its own input, the fullest rank, and the largest limit; a true 0 when idle."""

from __future__ import annotations

from math import inf

import pytest

from heptascope.model import Histogram, Missing, Reading, Reason, labels
from heptascope.signals.ceilings import ACHIEVABLE
from heptascope.signals.derive_saturation import LEAST_OBSERVATIONS
from support.feeding import GPU, RANK, Derived, busy, gpu

SATURATION, LIMIT = "saturation_ratio", "saturation_limit_ratio"
OTHER = labels(engine="vllm", rank="1")
RUNNING, CAP, KV = "engine_requests_running", "engine_sequence_limit", "engine_kv_cache_usage_ratio"


def of(room: Derived, limit: str) -> float | None:
    """Return the saturation of one limit."""
    return room.value(LIMIT, labels(limit=limit))


def test_the_fullest_limit_is_the_saturation() -> None:
    """Sequences stand at 48 of 64, the cache at a quarter."""
    room = Derived().steady(**{RUNNING: 48.0, CAP: 64.0, KV: 0.25})
    assert (0.75, 0.75, 0.25, None) == (room.value(SATURATION, ()), of(room, "sequences"), of(room, "kv_cache"), of(room, "compute"))


def test_the_fullest_rank_counts() -> None:
    """One of two ranks is full."""
    room = Derived()
    for _ in range(12):
        room.second({(RUNNING, RANK): 1.0, (RUNNING, OTHER): 1.0, (KV, RANK): 0.1, (KV, OTHER): 0.9})
    assert pytest.approx(0.9) == of(room, "kv_cache")


def test_compute_is_a_share_of_what_the_tensor_cores_reach() -> None:
    """Half of what can be had is a half."""
    half = gpu(GPU, tensor_active=ACHIEVABLE.tensor / 2, graphics_engine_active=1.0)
    room = busy(12, 4.0, {}, half)
    assert pytest.approx(0.5) == of(room, "compute")


def test_an_overfull_limit_is_bounded() -> None:
    """More requests than slots (a limit that was lowered) is 1."""
    assert 1.0 == Derived().steady(**{RUNNING: 80.0, CAP: 64.0}).value(SATURATION, ())


@pytest.mark.parametrize(("rate", "expected"), [(LEAST_OBSERVATIONS / 10, 0.95), (LEAST_OBSERVATIONS / 10 - 0.1, None)])
def test_objective_needs_enough_observations(rate: float, expected: float | None) -> None:
    """The 95th percentile of answers spread evenly up to one second, over an objective of one second."""
    room = Derived(slo_seconds={"time_to_first_token": 1.0})
    for second in range(12):
        counts = (rate * second,) * 3
        answers = Histogram("heptascope_engine_time_to_first_token_seconds", RANK, (1.0, 2.0, inf), counts, 0.0)
        room.store.ingest(Reading("latency", room.t + 1.0, histograms=[answers]))
        room.second({(RUNNING, RANK): 4.0})
    assert (None if expected is None else pytest.approx(expected)) == of(room, "slo")


def test_idle_is_zero() -> None:
    """An autoscaler must see that nothing is used, also where no limit can be told."""
    room = Derived().steady(**{RUNNING: 0.0})
    assert (0.0, Reason.IDLE) == (room.value(SATURATION, ()), (room.why(LIMIT, labels(limit="compute")) or ("",))[0])


def test_unknown_limits_are_absent_with_a_reason() -> None:
    """Requests run, and nothing says of how many at most: that is neither 0 nor 1."""
    room = Derived()
    lost = Missing("heptascope_engine_kv_cache_usage_ratio", Reason.FLAG_OFF, "log stats are off", RANK)
    for _ in range(12):
        room.second({(RUNNING, RANK): 3.0}, (lost,))
    assert (None, (Reason.NO_SOURCE, "no limit of an engine can be told"), (Reason.FLAG_OFF, "log stats are off")) == (
        room.value(SATURATION, ()),
        room.why(SATURATION, ()),
        room.why(LIMIT, labels(limit="kv_cache")),
    )


def test_without_an_engine_there_is_no_saturation() -> None:
    """A pod whose engine is not read is not idle."""
    room = Derived()
    room.second({**gpu()})
    assert (None, (Reason.NO_SOURCE, "no engine is read")) == (room.value(SATURATION, ()), room.why(SATURATION, ()))
