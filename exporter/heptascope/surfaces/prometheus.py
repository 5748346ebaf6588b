"""A snapshot as metric families of the Prometheus client library."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

from heptascope.model import Histogram, Labels
from heptascope.signals.schema import HISTOGRAM_SUFFIXES, SCHEMA
from heptascope.signals.schema_row import Kind, Signal
from heptascope.signals.snapshot import Snapshot

number_text: Callable[[float], str] = floatToGoString
"""A number as both exposition formats write it (the client library's own function, which lacks a type)."""


class SnapshotCollector(Collector):
    """One snapshot for the client's encoders and registries: the families of SCHEMA that have samples, in its order."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Show `snapshot`."""
        self._snapshot = snapshot

    def describe(self) -> Iterable[Metric]:
        """Yield every family without samples; a registry filters by these names."""
        return (empty_family(signal) for signal in SCHEMA.values())

    def collect(self) -> Iterable[Metric]:
        """Yield the families that have samples."""
        found = (family(signal, self._snapshot) for signal in SCHEMA.values())
        return (metric for metric in found if metric.samples)


def restricted(snapshot: Snapshot, names: Iterable[str]) -> Collector:
    """Return a collector for the series called `names` alone; a histogram's own name stands for all its series."""
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(snapshot))
    wanted: list[str] = []
    for name in names:
        signal = SCHEMA.get(name)
        is_histogram = signal is not None and signal.kind is Kind.HISTOGRAM
        wanted += [name + suffix for suffix in HISTOGRAM_SUFFIXES] if is_histogram else [name]
    only: Collector = registry.restricted_registry(wanted)
    return only


def empty_family(signal: Signal) -> Metric:
    """Return the family of a signal without samples.

    Info signals are gauges of value 1, so that both formats show one and the same name. OpenMetrics wants a unit
    only where the name ends in it.
    """
    base = signal.name.removesuffix("_total")
    unit = signal.unit if signal.unit and base.endswith(f"_{signal.unit}") else ""
    if signal.kind is Kind.COUNTER:
        return CounterMetricFamily(signal.name, signal.help, unit=unit)
    if signal.kind is Kind.HISTOGRAM:
        return HistogramMetricFamily(signal.name, signal.help, unit=unit)
    return GaugeMetricFamily(signal.name, signal.help, unit=unit)


def family(signal: Signal, snapshot: Snapshot) -> Metric:
    """Return the family of a signal with its samples in `snapshot` (none: an empty family)."""
    metric = empty_family(signal)
    if signal.kind is Kind.HISTOGRAM:
        metric.samples = [sample for histogram in snapshot.histograms.get(signal.name, ()) for sample in _histogram_samples(histogram)]
    else:
        metric.samples = [Sample(signal.name, label_dict(pairs), value) for pairs, value in snapshot.values.get(signal.name, ())]
    return metric


def _histogram_samples(histogram: Histogram) -> list[Sample]:
    pairs = label_dict(histogram.labels)
    samples = [
        Sample(f"{histogram.name}_bucket", {**pairs, "le": number_text(bound)}, count)
        for bound, count in zip(histogram.bounds, histogram.counts, strict=True)
    ]
    samples.append(Sample(f"{histogram.name}_count", pairs, histogram.counts[-1]))
    samples.append(Sample(f"{histogram.name}_sum", pairs, histogram.sum))
    return samples


def label_dict(pairs: Labels) -> dict[str, str]:
    """Return labels as a dict whose values can be written as UTF-8 (a process name need not be)."""
    return {key: value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8") for key, value in pairs}
