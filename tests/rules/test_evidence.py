"""The numbers behind a claim: means of gauges, rates of counters, means of histograms, those of the right engine or GPU."""

from __future__ import annotations

import pytest

from heptascope.model import Evidence, Histogram, Reading, Sample, labels
from heptascope.rules.evidence import MOST_VALUES, gather
from heptascope.rules.instances import Instance
from heptascope.rules.rule import EvidenceItem
from heptascope.signals.store import Store
from support.judging import KV, START, A, rule

GPU = labels(gpu="0", uuid="GPU-a")
TOKENS, LATENCY = "heptascope_engine_generation_tokens_total", "heptascope_engine_e2e_latency_seconds"
FINISHED, SM = "heptascope_engine_requests_finished_total", "heptascope_gpu_sm_active_ratio"
ENGINE = Instance("engine", A, (GPU,))


def evidence(item: EvidenceItem, *seconds: list[Sample | Histogram], instance: Instance = ENGINE) -> list[Evidence]:
    """Return the evidence after these readings, one a second."""
    store = Store()
    for second, values in enumerate(seconds):
        samples, histograms = [v for v in values if isinstance(v, Sample)], [v for v in values if isinstance(v, Histogram)]
        store.ingest(Reading("source", START + second, samples, histograms))
    shown = rule(expr=f"{KV} > $full", thresholds={"full": 0.9}, evidence=(item,))
    return gather(shown, instance, store.window, START + len(seconds) - 1, 10.0)


def test_a_gauge_is_its_mean() -> None:
    """A gauge is shown as its mean over the window, with threshold and comparison."""
    assert [Evidence(KV, 0.75, 0.9, ">", "")] == evidence(EvidenceItem(KV, ">", "full"), *([Sample(KV, A, v)] for v in (0.5, 1.0)))


def test_a_counter_is_its_rate() -> None:
    """A counter is shown per second, without the time before its first point; a restart counts from 0."""
    values = ([Sample(TOKENS, A, v)] for v in (1000.0, 1100.0, 20.0))
    assert [Evidence(TOKENS, 60.0, None, "", "per second")] == evidence(EvidenceItem(TOKENS), *values)


def test_a_histogram_is_its_mean() -> None:
    """A histogram is shown as the mean of what it saw in the window."""
    values = ([Histogram(LATENCY, A, (1.0, float("inf")), (n, n), 3.0 * n + 100)] for n in (0.0, 5.0, 10.0))
    assert [Evidence(LATENCY, 3.0, None, "", "mean")] == evidence(EvidenceItem(LATENCY), *values)


def test_a_histogram_that_saw_nothing_is_no_evidence() -> None:
    """Without observations in the window there is no mean."""
    values = ([Histogram(LATENCY, A, (1.0, float("inf")), (5.0, 5.0), 9.0)] for _ in range(3))
    assert [] == evidence(EvidenceItem(LATENCY), *values)


def test_an_absent_signal_is_no_evidence() -> None:
    """What is not there is not shown, and never as 0."""
    assert [] == evidence(EvidenceItem(KV), [Sample(TOKENS, A, 1.0)])


def test_a_gpu_that_serves_the_engine_is_its_evidence() -> None:
    """An engine's claim shows its own GPUs, named, and no other."""
    other = labels(gpu="1", uuid="GPU-b")
    assert [Evidence(SM, 0.5, None, "", "gpu=0")] == evidence(EvidenceItem(SM), [Sample(SM, GPU, 0.5), Sample(SM, other, 0.9)])


def test_another_engine_is_no_evidence() -> None:
    """Nor does it show another engine's numbers."""
    assert [] == evidence(EvidenceItem(KV), [Sample(KV, labels(engine="b", rank="0"), 0.5)])


def test_only_the_series_that_it_is_about() -> None:
    """Evidence may name one label value."""
    pressure = "heptascope_engine_resource_pressure_ratio"
    values = [Sample(pressure, labels(resource=name, **dict(A)), value) for name, value in (("dram", 0.7), ("tensor", 0.2))]
    assert [("resource=tensor", 0.2)] == [(e.text, e.value) for e in evidence(EvidenceItem(pressure, only=("resource", "tensor")), values)]


@pytest.mark.parametrize(("rates", "shown"), [((3.0, 1.0, 2.0), [3.0, 2.0, 1.0]), ((0.0, 0.0, 0.0), [0.0]), ((1.0, 0.0, 0.0), [1.0])])
def test_of_several_series_the_largest_come_first(rates: tuple[float, ...], shown: list[float]) -> None:
    """Series are shown from the largest down; zeros only if all are."""
    values = ([Sample(FINISHED, labels(reason=str(i), **dict(A)), rate * second) for i, rate in enumerate(rates)] for second in range(3))
    assert shown == [e.value for e in evidence(EvidenceItem(FINISHED), *values)]


def test_no_more_than_a_few() -> None:
    """Of many series only a few are shown."""
    values = ([Sample(FINISHED, labels(reason=str(i), **dict(A)), second * (i + 1.0)) for i in range(20)] for second in range(3))
    assert [20.0, 19.0, 18.0, 17.0][:MOST_VALUES] == [e.value for e in evidence(EvidenceItem(FINISHED), *values)]
