"""The store: what is current, what has ended and why, and integrals that never fall."""

from __future__ import annotations

import math

import pytest

from heptascope.model import Histogram, Missing, Quality, Reading, Reason, Sample, labels
from heptascope.signals.schema import SCHEMA
from heptascope.signals.store import LONGEST_HOLD_SECONDS, Store
from heptascope.signals.window import Window
from support.feeding import GPU, RANK, START, live, sample, series

RUNNING, TOKENS = "engine_requests_running", "engine_generation_tokens_total"
SM, BUSY, COVERED = "gpu_sm_active_ratio", "gpu_sm_active_seconds_total", "gpu_sm_active_sampled_seconds_total"
LATENCY = "heptascope_engine_e2e_latency_seconds"
INFINITY = math.inf


def reading(second: float, *samples: Sample, source: str = "vllm", **more: object) -> Reading:
    """Return a reading at a second after START."""
    return Reading(source, START + second, list(samples), **more)  # type: ignore[arg-type]  # the fields of Reading


def test_values_are_current_and_remembered() -> None:
    """A reading's values are the current ones, and points of the history at its time."""
    store = Store()
    store.ingest(reading(0, sample(RUNNING, RANK, 1.0)))
    store.ingest(reading(1, sample(RUNNING, RANK, 2.0)))
    assert (2.0, [(0.0, 1.0), (1.0, 2.0)]) == (live(store, RUNNING, RANK), series(store, RUNNING, RANK))


def test_what_a_reading_no_longer_holds_is_stale_at_once() -> None:
    """A vanished series is not current any more, and its history says when it ended."""
    store = Store()
    store.ingest(reading(0, sample(RUNNING, RANK, 1.0), sample(TOKENS, RANK, 5.0)))
    store.ingest(reading(1, sample(TOKENS, RANK, 6.0)))
    ended = store.window.get(f"heptascope_{RUNNING}", RANK)
    assert ended is not None
    assert (None, START + 1, True) == (live(store, RUNNING, RANK), ended.t[-1], math.isnan(ended.v[-1]))
    assert [f"heptascope_{TOKENS}"] == list(store.snapshot(START + 1).values)


def test_another_source_does_not_end_a_series() -> None:
    """A source speaks only for what it gave itself."""
    store = Store()
    store.ingest(reading(0, sample(RUNNING, RANK, 1.0)))
    store.ingest(reading(1, sample(SM, GPU, 0.5, 1.0), source="nvml"))
    assert 1.0 == live(store, RUNNING, RANK)


def test_a_series_that_returns_goes_on() -> None:
    """After a gap the same series has both pieces of its history."""
    store = Store()
    for second, values in enumerate(([1.0], [], [3.0])):
        store.ingest(reading(second, *(sample(RUNNING, RANK, value) for value in values)))
    assert (3.0, [(0.0, 1.0), (2.0, 3.0)]) == (live(store, RUNNING, RANK), series(store, RUNNING, RANK))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1.0])
def test_an_impossible_value_is_missing(value: float) -> None:
    """NaN, infinity and a negative counter are no values: they are counted, and the reason says so."""
    store = Store()
    store.ingest(reading(0, sample(TOKENS, RANK, value)))
    assert (None, {"vllm": 1}) == (live(store, TOKENS, RANK), store.dropped)
    (missing,) = store.missing()
    assert (f"heptascope_{TOKENS}", Reason.INVALID, RANK) == (missing.signal, missing.reason, missing.labels)


def test_a_negative_gauge_is_a_value() -> None:
    """Only counters cannot be negative."""
    store = Store()
    store.ingest(reading(0, sample("gpu_temperature_celsius", GPU, -5.0)))
    assert -5.0 == live(store, "gpu_temperature_celsius", GPU)


def test_a_signal_outside_the_table_is_counted_and_nothing_else() -> None:
    """A name that the table lacks is no signal, so nothing can be missing either."""
    store = Store()
    store.ingest(reading(0, sample("surprise", RANK, 1.0)))
    assert ({"vllm": 1}, []) == (store.dropped, store.missing())


# failure


def test_a_failed_source_ends_its_series_with_a_reason() -> None:
    """When a source cannot be read, each of its signals is missing for that reason, by engine or GPU."""
    store = Store()
    store.ingest(reading(0, sample(RUNNING, RANK, 1.0), sample("engine_requests_finished_total", labels(reason="stop", **dict(RANK)), 1.0)))
    store.fail("vllm", START + 1, Reason.SOURCE_DOWN, "connection refused")
    assert None is live(store, RUNNING, RANK)
    assert {
        Missing(f"heptascope_{RUNNING}", Reason.SOURCE_DOWN, "connection refused", RANK),
        Missing("heptascope_engine_requests_finished_total", Reason.SOURCE_DOWN, "connection refused", RANK),
    } == set(store.missing())


def test_the_reason_stands_over_further_failures() -> None:
    """A second failure has nothing more to end, and takes no reason away."""
    store = Store()
    store.ingest(reading(0, sample(RUNNING, RANK, 1.0)))
    store.fail("vllm", START + 1, Reason.SOURCE_DOWN, "first")
    store.fail("vllm", START + 2, Reason.SOURCE_DOWN, "second")
    assert ["first"] == [m.detail for m in store.missing()]


def test_a_source_that_comes_back_has_no_reasons_left() -> None:
    """The next good reading's reasons are the only ones."""
    store = Store()
    store.ingest(reading(0, sample(RUNNING, RANK, 1.0)))
    store.fail("vllm", START + 1, Reason.SOURCE_DOWN)
    store.ingest(reading(2, sample(RUNNING, RANK, 1.0)))
    assert [] == store.missing()


def test_a_forgotten_source_is_gone() -> None:
    """A source that is dropped for good leaves neither values nor reasons."""
    store = Store()
    store.ingest(reading(0, sample(RUNNING, RANK, 1.0), missing=[Missing("heptascope_engine_preemptions_total", Reason.ENGINE)]))
    store.forget("vllm", START + 1)
    assert (None, []) == (live(store, RUNNING, RANK), store.missing())


# integrals


def test_ratios_with_a_window_are_integrated_over_it() -> None:
    """Each ratio adds its mean times its own window, and the time that it covers."""
    store = Store()
    store.ingest(reading(0, sample(SM, GPU, 0.5, 0.2)))
    store.ingest(reading(1, sample(SM, GPU, 0.25, 1.0)))
    assert pytest.approx(0.5 * 0.2 + 0.25) == live(store, BUSY, GPU)
    assert pytest.approx(1.2) == live(store, COVERED, GPU)


def test_instant_ratios_are_held_until_the_next() -> None:
    """A ratio without a window stands for the time since the reading before, the first one for none."""
    store = Store()
    for second, value in ((0, 0.5), (2, 0.25)):
        store.ingest(reading(second, sample(SM, GPU, value)))
    assert (0.5, 2.0) == (live(store, BUSY, GPU), live(store, COVERED, GPU))


def test_an_instant_ratio_is_not_held_for_ever() -> None:
    """After a long gap nobody knows what was in between."""
    store = Store()
    for second in (0, 1000):
        store.ingest(reading(second, sample(SM, GPU, 1.0)))
    assert LONGEST_HOLD_SECONDS == live(store, COVERED, GPU)


def test_integrals_survive_a_failure() -> None:
    """A source that fails and comes back goes on where it stopped; what was in between is not covered."""
    store = Store()
    store.ingest(reading(0, sample(SM, GPU, 0.5, 1.0)))
    store.fail("vllm", START + 1, Reason.SOURCE_DOWN)
    assert None is live(store, BUSY, GPU)
    store.ingest(reading(9, sample(SM, GPU, 0.5, 1.0)))
    assert (1.0, 2.0) == (live(store, BUSY, GPU), live(store, COVERED, GPU))


def test_integrals_stand_while_a_ratio_is_missing() -> None:
    """A window without a reading (NaN) leaves the counters where they are, while the GPU still reports."""
    store = Store()
    store.ingest(reading(0, sample(SM, GPU, 0.5, 1.0), sample("gpu_power_watts", GPU, 100.0)))
    store.ingest(reading(1, sample("gpu_power_watts", GPU, 100.0)))
    assert (0.5, 1.0) == (live(store, BUSY, GPU), live(store, COVERED, GPU))


def test_integrals_never_fall() -> None:
    """Whatever a source says, our own counters only rise."""
    store = Store()
    for second, value in enumerate((0.5, -0.5, 0.0, 1.5)):
        store.ingest(reading(second, sample(SM, GPU, value, 1.0)))
    points = [v for _, v in series(store, BUSY, GPU)]
    assert sorted(points) == points


def test_gpus_are_integrated_apart() -> None:
    """Each GPU has its own counters."""
    other = labels(gpu="1", uuid="GPU-b")
    store = Store()
    store.ingest(reading(0, sample(SM, GPU, 0.5, 1.0), sample(SM, other, 1.0, 1.0)))
    assert (0.5, 1.0) == (live(store, BUSY, GPU), live(store, BUSY, other))


# histograms and snapshots


def histogram(*counts: float) -> Histogram:
    """Return a histogram of two buckets."""
    return Histogram(LATENCY, RANK, (0.5, INFINITY), counts, 3.0)


def test_a_histogram_is_three_series() -> None:
    """Its buckets, sum and count are series as Prometheus has them."""
    store = Store()
    store.ingest(reading(0, histograms=[histogram(1.0, 4.0)]))
    buckets = {dict(s.pairs)["le"]: s.v[-1] for s in store.window.series(f"{LATENCY}_bucket")}
    assert ({"0.5": 1.0, "+Inf": 4.0}, 3.0, 4.0) == (
        buckets,
        dict(store.current(f"{LATENCY}_sum"))[RANK],
        dict(store.current(f"{LATENCY}_count"))[RANK],
    )


def test_a_vanished_histogram_ends_in_all_its_series() -> None:
    """Each of them is stale at once."""
    store = Store()
    store.ingest(reading(0, histograms=[histogram(1.0, 4.0)]))
    store.ingest(reading(1))
    assert [] == [s for suffix in ("_bucket", "_sum", "_count") for s in store.window.series(LATENCY + suffix) if s.live]


def test_a_histogram_with_other_bounds_ends_the_one_before() -> None:
    """An engine that came back with other buckets: the old ones end, the shared ones and the totals go on, and so it stays."""
    store = Store()
    store.ingest(reading(0, histograms=[histogram(1.0, 4.0)]))
    for second in (1, 2, 3):
        store.ingest(reading(second, histograms=[Histogram(LATENCY, RANK, (0.25, INFINITY), (float(second), 5.0), 3.0)]))
    assert {"0.25": 3.0, "+Inf": 5.0} == {dict(s.pairs)["le"]: s.v[-1] for s in store.window.series(f"{LATENCY}_bucket") if s.live}
    assert 5.0 == dict(store.current(f"{LATENCY}_count"))[RANK]


def test_a_histogram_that_alternates_between_bounds_has_its_totals_all_the_time() -> None:
    """As where two engines take turns behind one address: what both sorts of buckets share never ends, the others come and go."""
    store = Store()
    for second, bound in enumerate((0.5, 0.25, 0.5, 0.25)):
        store.ingest(reading(second, histograms=[Histogram(LATENCY, RANK, (bound, INFINITY), (1.0, 5.0), 3.0)]))
        live = {dict(s.pairs)["le"] for s in store.window.series(f"{LATENCY}_bucket") if s.live}
        assert ({f"{bound}", "+Inf"}, [(RANK, 5.0)], [(RANK, 3.0)]) == (
            live,
            *(store.current(f"{LATENCY}_{what}") for what in ("count", "sum")),
        )


def test_a_histogram_that_returns_goes_on() -> None:
    """Its series, which share their times, end and begin together."""
    store = Store()
    for second, found in enumerate(([histogram(1.0, 4.0)], [], [histogram(2.0, 5.0)])):
        store.ingest(reading(second, histograms=found))
    times = {tuple(s.t) for suffix in ("_bucket", "_sum", "_count") for s in store.window.series(LATENCY + suffix)}
    assert ({3}, 5.0) == ({len(t) for t in times}, dict(store.current(f"{LATENCY}_count"))[RANK])


def test_a_histogram_that_was_forgotten_begins_anew() -> None:
    """After the retention nothing of it is left, and its next point is its first."""
    store = Store(Window(retention=60))
    store.ingest(reading(0, histograms=[histogram(1.0, 4.0)]))
    store.ingest(reading(1))
    store.window.drop_ended(START + 100)
    store.ingest(reading(101, histograms=[histogram(2.0, 5.0)]))
    assert [START + 101] == [t for s in store.window.series(f"{LATENCY}_count") for t in s.t]


def test_a_snapshot_is_one_picture() -> None:
    """It holds values in the order of the table, histograms, reasons and qualities, and does not change any more."""
    store = Store()
    derived = {(f"heptascope_{RUNNING}", RANK): Quality.DERIVED}
    lacking = Missing("heptascope_engine_preemptions_total", Reason.ENGINE, "", RANK)
    store.ingest(
        reading(
            0, sample(TOKENS, RANK, 5.0), sample(RUNNING, RANK, 1.0), histograms=[histogram(1.0, 4.0)], missing=[lacking], quality=derived
        )
    )
    first = store.snapshot(START)
    store.ingest(reading(1, sample(RUNNING, RANK, 2.0)))
    second = store.snapshot(START + 1)
    assert [name for name in SCHEMA if name in first.values] == list(first.values)
    assert (1.0, 5.0, 4.0) == (
        first.value(f"heptascope_{RUNNING}", RANK),
        first.value(f"heptascope_{TOKENS}", RANK),
        first.histograms[LATENCY][0].counts[-1],
    )
    assert ((lacking,), derived) == (first.missing, first.quality)
    assert (first.version + 1, 2.0, {}) == (second.version, second.value(f"heptascope_{RUNNING}", RANK), dict(second.histograms))
    assert None is second.value("heptascope_engine_preemptions_total", RANK)


def test_a_given_value_goes_before_a_derived_one() -> None:
    """What a source supplies itself is not to be derived; what nobody derives is not in question."""
    store = Store()
    store.ingest(reading(0, sample("engine_step_host_gap_ratio", RANK, 0.5), sample(RUNNING, RANK, 1.0)))
    slo = labels(latency="e2e_latency", **dict(RANK))
    store.ingest(reading(0, sample("engine_slo_seconds", slo, 9.0), source="given"))
    store.ingest(reading(0, sample("engine_step_seconds", RANK, 0.5), source="derived"))
    assert {("heptascope_engine_step_host_gap_ratio", RANK), ("heptascope_engine_slo_seconds", slo)} == store.given_derived("derived")
