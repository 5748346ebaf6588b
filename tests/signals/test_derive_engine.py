"""Each derived engine signal, against values worked out by hand; and why it is absent where it is."""

from __future__ import annotations

import pytest

from heptascope.model import Labels, Missing, Reason, labels
from heptascope.signals.derive_engine import FLAT_POINTS
from heptascope.signals.derive_engine_steps import BUSY_SHARE_MINIMUM
from support.feeding import GPU, RANK, Derived, busy, gpu

OTHER = labels(gpu="1", uuid="GPU-b")
STEPS, GENERATED, PROMPT = (f"engine_{what}_total" for what in ("steps", "generation_tokens", "prompt_tokens"))
HIT, QUERIED, CACHED = (
    "engine_prefix_cache_hit_tokens_total",
    "engine_prefix_cache_queried_tokens_total",
    "engine_prompt_cached_tokens_total",
)
GAP, STEP, HOST = "engine_step_host_gap_ratio", "engine_step_seconds", "engine_step_host_seconds"
ENGINE_INFO: dict[tuple[str, Labels], float] = {("engine_info", labels(kind="vllm", **dict(RANK))): 1.0}


# work


@pytest.mark.parametrize(
    ("at", "rates", "work"),
    [
        ({"engine_requests_running": 1.0}, {}, 1.0),
        ({"engine_requests_waiting": 1.0}, {}, 1.0),
        ({"engine_requests_running": 0.0, "engine_requests_waiting": 0.0}, {}, 0.0),
        ({"engine_requests_running": 0.0}, {(GENERATED, RANK): 5.0}, 1.0),
        ({"engine_requests_running": 0.0}, {(GENERATED, RANK): 0.0}, 0.0),
        ({"engine_requests_running": 0.0}, {(PROMPT, RANK): 5.0}, 1.0),
        ({}, {("engine_requests_finished_total", labels(reason="stop", **dict(RANK))): 1.0}, 1.0),
    ],
)
def test_has_work(at: dict[str, float], rates: dict[tuple[str, Labels], float], work: float) -> None:
    """Requests, tokens or finished requests within the window are work."""
    room = Derived()
    for second in range(12):
        room.second({**ENGINE_INFO, **{(name, RANK): v for name, v in at.items()}, **{key: rate * second for key, rate in rates.items()}})
    assert work == room.value("engine_has_work")


def test_unknown_work_is_absent() -> None:
    """An engine that tells nothing of its load is neither idle nor busy, and the reason is that of its load."""
    room = Derived()
    room.second(ENGINE_INFO, (Missing("heptascope_engine_requests_running", Reason.FLAG_OFF, "log stats are off", RANK),))
    assert (None, (Reason.FLAG_OFF, "log stats are off")) == (room.value("engine_has_work"), room.why("engine_has_work"))


def test_busy_seconds_count_the_time_with_requests() -> None:
    """Our own counter adds the time between two polls with requests, and half of it where one of them has none."""
    room = Derived()
    for running in (0.0, 2.0, 2.0, 0.0, 0.0):
        room.second({("engine_requests_running", RANK): running})
    assert 2.0 == room.value("engine_busy_seconds_total")


def test_busy_seconds_go_on_after_a_failure() -> None:
    """A page that cannot be read adds nothing, and takes nothing away."""
    room = Derived()
    for _ in range(3):
        room.second({("engine_requests_running", RANK): 2.0})
    room.store.fail("source", room.t + 0.5, Reason.SOURCE_DOWN)
    room.store.ingest(room.deriver.step(room.t + 0.5))
    assert None is room.value("engine_busy_seconds_total")
    room.t += 5.0
    for _ in range(3):
        room.second({("engine_requests_running", RANK): 2.0})
    assert 4.0 == room.value("engine_busy_seconds_total")


@pytest.mark.parametrize(
    ("gap", "steps", "running", "counted"),
    [
        (7.0, 700.0, 2.0, 7.0),
        (7.0, 700.0, 0.0, 3.5),
        (10.0, 700.0, 2.0, 10.0),
        (10.5, 700.0, 2.0, 0.0),
        (7.0, 0.0, 2.0, 0.0),
        (7.0, -100.0, 2.0, 0.0),
    ],
)
def test_busy_seconds_of_a_gap_in_which_the_engine_went_on(gap: float, steps: float, running: float, counted: float) -> None:
    """A page that times out: steps made meanwhile are counted, so their time is, but neither a restart's nor that of a long silence."""
    room = Derived()
    for second in range(3):
        room.second({("engine_requests_running", RANK): 2.0, (STEPS, RANK): 100.0 * second})
    room.store.fail("source", room.t + 0.5, Reason.SOURCE_DOWN)
    room.store.ingest(room.deriver.step(room.t + 0.5))
    room.t += gap - 1.0
    room.second({("engine_requests_running", RANK): running, (STEPS, RANK): 200.0 + steps})
    assert 2.0 + counted == room.value("engine_busy_seconds_total")


# steps


def test_step_time_and_host_gap() -> None:
    """A hundred steps a second on a GPU that is active 0.8 of the time: 10 ms a step, a fifth of it the host's."""
    room = busy(12, 4.0, {(STEPS, RANK): 100.0}, gpu(graphics_engine_active=0.8))
    assert [pytest.approx(0.01), pytest.approx(0.2), pytest.approx(0.002)] == [room.value(name) for name in (STEP, GAP, HOST)]


def test_a_gpu_as_busy_as_the_engine_has_no_gap() -> None:
    """A gap is never negative."""
    assert 0.0 == busy(12, 4.0, {}, gpu(graphics_engine_active=1.0)).value(GAP)


def test_a_gap_is_never_overstated() -> None:
    """Requests that run at every other poll may have run all the time or hardly: nothing is said of a gap."""
    room = Derived()
    for second in range(14):
        room.second({("engine_requests_running", RANK): float(second % 2), (STEPS, RANK): second * 50.0, **gpu(graphics_engine_active=0.4)})
    assert (None, Reason.IDLE) == (room.value(GAP), (room.why(GAP) or (None,))[0])
    assert pytest.approx(0.01) == room.value(STEP)


def test_a_gap_counts_only_time_that_was_surely_busy() -> None:
    """Of the eleven last polls eight run in a row: seven seconds are surely busy, and the GPU was active for 5.6 of ten."""
    room = Derived()
    for second in range(14):
        running = 1.0 if second >= 6 else 0.0
        room.second({("engine_requests_running", RANK): running, **gpu(graphics_engine_active=0.8 if second > 6 else 0.0)})
    assert pytest.approx(1 - 5.6 / 7) == room.value(GAP)


def test_idle_has_no_steps() -> None:
    """Without requests there is neither step nor gap, because there is no work."""
    room = busy(12, 0.0, {(STEPS, RANK): 0.0}, gpu(graphics_engine_active=0.0))
    for name in (STEP, GAP, HOST):
        assert (None, Reason.IDLE) == (room.value(name), (room.why(name) or (None,))[0])
    assert BUSY_SHARE_MINIMUM > 0


def test_steps_that_nobody_counts() -> None:
    """An engine without a step count has a gap but no step time."""
    room = busy(12, 4.0, {}, gpu(graphics_engine_active=0.8))
    assert (None, None, pytest.approx(0.2)) == (room.value(STEP), room.value(HOST), room.value(GAP))
    assert (Reason.NO_SOURCE, "nothing supplies heptascope_engine_steps_total") == room.why(STEP)


def test_without_activity_there_is_no_gap() -> None:
    """On a GPU without activity counters the reason is the counters'."""
    lacking = Missing("heptascope_gpu_graphics_engine_active_ratio", Reason.NOT_SUPPORTED, "GPM needs Hopper", GPU)
    room = Derived()
    for second in range(12):
        room.second({("engine_requests_running", RANK): 4.0, (STEPS, RANK): second * 100.0, ("gpu_info", GPU): 1.0}, (lacking,))
    assert (None, (Reason.NOT_SUPPORTED, "GPM needs Hopper")) == (room.value(GAP), room.why(GAP))
    assert pytest.approx(0.01) == room.value(STEP)


def test_utilization_stands_for_activity_that_nobody_profiles() -> None:
    """On a card without activity counters NVML's utilization shows the gap; where both are known the counters are right."""
    used = {("gpu_utilization_ratio", GPU): 0.6, ("gpu_info", GPU): 1.0}
    assert pytest.approx(0.4) == busy(12, 4.0, {}, used).value(GAP)
    assert pytest.approx(0.2) == busy(12, 4.0, {}, used | gpu(graphics_engine_active=0.8)).value(GAP)


def test_utilization_must_be_known_of_every_gpu() -> None:
    """Of two GPUs one says nothing: the other does not speak for both."""
    cards = {("gpu_info", card): 1.0 for card in (GPU, OTHER)}
    assert busy(12, 4.0, {}, cards | {("gpu_utilization_ratio", GPU): 0.2}).value(GAP) is None


@pytest.mark.parametrize(("active", "told"), [(0.95, False), (0.5, True)])
def test_spinning_collectives_hide_gaps(active: float, told: bool) -> None:
    """On GPUs that talk to each other a small gap means nothing; a large one is a lower bound, and is told."""
    links = {("gpu_nvlink_receive_bytes_total", card): 1e9 for card in (GPU, OTHER)} | {
        ("gpu_nvlink_transmit_bytes_total", card): 1e9 for card in (GPU, OTHER)
    }
    room = busy(12, 4.0, links, gpu(graphics_engine_active=active), gpu(OTHER, graphics_engine_active=active))
    assert told is (room.value(GAP) is not None)
    assert told is (Reason.AMBIGUOUS not in (room.why(GAP) or ()))


def test_two_gpus_that_do_not_talk_hide_nothing() -> None:
    """Without traffic between them their gap is the mean of both."""
    links = {(f"gpu_nvlink_{way}_bytes_total", card): 0.0 for card in (GPU, OTHER) for way in ("receive", "transmit")}
    room = busy(12, 4.0, links, gpu(graphics_engine_active=0.8), gpu(OTHER, graphics_engine_active=1.0))
    assert pytest.approx(0.1) == room.value(GAP)


# GPUs


def test_gpu_means() -> None:
    """Activity is averaged over the engine's GPUs, and how many they are is told."""
    ratios = {"graphics_engine_active": 1.0, "sm_active": 0.5, "dram_active": 0.4, "tensor_active": 0.2}
    room = busy(12, 4.0, {}, gpu(**ratios), gpu(OTHER, **{what: value / 2 for what, value in ratios.items()}))
    names = ("gpu_active", "gpu_sm_active", "gpu_dram_active", "gpu_tensor_active")
    assert [pytest.approx(0.75 * value) for value in ratios.values()] == [room.value(f"engine_{name}_ratio") for name in names]
    assert 2.0 == room.value("engine_gpus")


def test_a_mean_needs_every_gpu() -> None:
    """If one of two GPUs does not show an activity, their mean is unknown."""
    room = busy(12, 4.0, {}, gpu(dram_active=0.4, sm_active=0.5), gpu(OTHER, sm_active=0.5))
    assert (None, 0.5) == (room.value("engine_gpu_dram_active_ratio"), room.value("engine_gpu_sm_active_ratio"))


def test_an_engine_whose_gpus_are_unknown() -> None:
    """With two engines and nothing to tell them apart, what joins engine and GPU is ambiguous, and says what to do."""
    room = Derived()
    for _ in range(12):
        room.second({("engine_requests_running", labels(engine=name, rank="0")): 4.0 for name in "ab"} | gpu(graphics_engine_active=0.8))
    why = room.why(GAP, labels(engine="a", rank="0"))
    assert why is not None
    assert (Reason.AMBIGUOUS, True) == (why[0], "engines[].gpus" in why[1])


# cache


def test_hit_ratio_is_of_the_window() -> None:
    """Hits over look-ups within the window, not since the start."""
    room = Derived()
    for second in range(30):
        late = max(second - 15, 0)
        room.second({**ENGINE_INFO, (QUERIED, RANK): second * 1000.0, (HIT, RANK): late * 900.0})
    assert pytest.approx(0.9) == room.value("engine_prefix_cache_hit_ratio")


def test_hit_ratio_without_look_ups() -> None:
    """No look-ups within the window: the ratio is undefined, and that is no fault."""
    room = busy(12, 4.0, {(QUERIED, RANK): 0.0, (HIT, RANK): 0.0})
    assert (None, Reason.IDLE) == (room.value("engine_prefix_cache_hit_ratio"), (room.why("engine_prefix_cache_hit_ratio") or (None,))[0])


@pytest.mark.parametrize(
    ("cached", "computed"), [({(CACHED, RANK): 300.0}, 700.0), ({(HIT, RANK): 200.0, (QUERIED, RANK): 1000.0}, 800.0), ({}, 1000.0)]
)
def test_computed_prompt_tokens(cached: dict[tuple[str, Labels], float], computed: float) -> None:
    """Prompt tokens less those from a cache; where the engine does not count these, less the hits."""
    assert pytest.approx(computed) == busy(12, 4.0, {(PROMPT, RANK): 1000.0, **cached}).value("engine_prompt_computed_tokens_per_second")


def test_tokens_per_sequence() -> None:
    """What running requests hold of the cache, for each of them."""
    room = Derived().steady(12, engine_requests_running=10.0, engine_kv_cache_usage_ratio=0.5, engine_kv_cache_capacity_tokens=100_000.0)
    assert pytest.approx(5000.0) == room.value("engine_kv_cache_tokens_per_sequence")
    idle = Derived().steady(12, engine_requests_running=0.0, engine_kv_cache_usage_ratio=0.5, engine_kv_cache_capacity_tokens=100_000.0)
    assert None is idle.value("engine_kv_cache_tokens_per_sequence")


# speculation


def test_acceptance_and_length() -> None:
    """Accepted over drafted tokens; a draft yields its accepted tokens and one more."""
    rates = {
        ("engine_spec_draft_tokens_total", RANK): 400.0,
        ("engine_spec_accepted_tokens_total", RANK): 150.0,
        ("engine_spec_drafts_total", RANK): 100.0,
    }
    room = busy(12, 4.0, rates)
    assert (pytest.approx(0.375), pytest.approx(2.5)) == (
        room.value("engine_spec_acceptance_ratio"),
        room.value("engine_spec_accepted_length_tokens"),
    )


def test_no_drafts_no_acceptance() -> None:
    """Without drafts in the window acceptance is undefined; where nobody drafts, it is not configured."""
    still = busy(12, 4.0, {("engine_spec_draft_tokens_total", RANK): 0.0, ("engine_spec_accepted_tokens_total", RANK): 0.0})
    assert (None, Reason.IDLE) == (still.value("engine_spec_acceptance_ratio"), (still.why("engine_spec_acceptance_ratio") or (None,))[0])
    room = Derived()
    room.second(ENGINE_INFO, (Missing("heptascope_engine_spec_draft_tokens_total", Reason.NOT_CONFIGURED, "off", RANK),))
    assert (Reason.NOT_CONFIGURED, "off") == room.why("engine_spec_acceptance_ratio")


# limits and the front end


@pytest.mark.parametrize(
    ("running", "waiting", "limit"),
    [
        ([8.0] * 12, [5.0] * 12, 8.0),
        ([7.0, 8.0] * 6, [5.0] * 12, 8.0),
        ([250.0, 256.0] * 6, [900.0] * 12, 256.0),
        ([8.0] * 12, [5.0] * 11 + [0.0], None),
        ([8.0] * 12, [0.0] * 12, None),
        ([float(i) for i in range(12)], [5.0] * 12, None),
        ([8.0, 4.0] * 6, [5.0] * 12, None),
        ([0.0] * 12, [5.0] * 12, None),
    ],
)
def test_a_cap_is_inferred(running: list[float], waiting: list[float], limit: float | None) -> None:
    """The number of running requests that stands at its maximum for most polls, and hardly below, while others wait at every poll."""
    room = Derived()
    for r, w in zip(running, waiting, strict=True):
        room.second({("engine_requests_running", RANK): r, ("engine_requests_waiting", RANK): w})
    assert limit == room.value("engine_running_limit_observed")
    assert (limit is None) is ((room.why("engine_running_limit_observed") or (None,))[0] is Reason.IDLE)


def test_a_cap_needs_enough_polls() -> None:
    """Two polls that agree show nothing."""
    room = Derived().steady(FLAT_POINTS - 1, engine_requests_running=8.0, engine_requests_waiting=5.0)
    assert None is room.value("engine_running_limit_observed")
    room.steady(1, engine_requests_running=8.0, engine_requests_waiting=5.0)
    assert 8.0 == room.value("engine_running_limit_observed")


def test_the_front_ends_share() -> None:
    """The part of finished requests' time that is in none of the engine's phases."""
    sums = {"e2e_latency": 10.0, "queue_time": 1.0, "prefill_time": 2.0, "decode_time": 4.0}
    room = Derived()
    for second in range(12):
        room.second({("engine_requests_running", RANK): 1.0})
        for name, rate in sums.items():
            room.store.window.append(f"heptascope_engine_{name}_seconds_sum", RANK, room.t, rate * second)
    room.store.ingest(room.deriver.step(room.t + 0.1))
    assert pytest.approx(0.3) == room.value("engine_frontend_share_ratio")


def test_objectives_are_series() -> None:
    """Each configured objective is a series of each rank; one that is not set says how to set it."""
    room = Derived(slo_seconds={"time_to_first_token": 5.0}).steady(1, engine_requests_running=1.0)
    assert 5.0 == room.value("engine_slo_seconds", labels(latency="time_to_first_token", **dict(RANK)))
    why = room.why("engine_slo_seconds", labels(latency="e2e_latency", **dict(RANK)))
    assert why is not None
    assert (Reason.NOT_CONFIGURED, True) == (why[0], "slo.e2e_latency" in why[1])
