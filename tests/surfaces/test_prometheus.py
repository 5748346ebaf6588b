"""A snapshot as metric families."""

from __future__ import annotations

from dataclasses import replace

from prometheus_client.exposition import generate_latest

from heptascope.model import Histogram, labels
from heptascope.signals.schema import SCHEMA
from heptascope.signals.snapshot import EMPTY
from heptascope.surfaces.prometheus import SnapshotCollector, restricted
from support.snapshots import ENGINE, T0, busy, complete


def test_describe_names_every_signal_without_samples() -> None:
    """Each row of the table is one family, also while it has no values."""
    families = list(SnapshotCollector(EMPTY).describe())
    assert list(SCHEMA) == [family.name + ("_total" if family.type == "counter" else "") for family in families]
    assert not any(family.samples for family in families)


def test_families_without_samples_are_left_out() -> None:
    """A signal that has no value is not on the page at all."""
    assert [] == list(SnapshotCollector(EMPTY).collect())
    snapshot = busy()
    assert len(snapshot.values) + len(snapshot.histograms) == len(list(SnapshotCollector(snapshot).collect()))


def test_families_keep_the_order_of_the_table() -> None:
    """Pages of two scrapes can be compared line by line."""
    names = [family.samples[0].name.removesuffix("_bucket") for family in SnapshotCollector(complete()).collect()]
    assert list(SCHEMA) == names


def test_help_and_type_come_from_the_table() -> None:
    """A counter, a gauge, a histogram and an info signal are written as such."""
    page = generate_latest(SnapshotCollector(complete())).decode()
    for name, kind in (
        ("heptascope_engine_steps_total", "counter"),
        ("heptascope_gpu_power_watts", "gauge"),
        ("heptascope_engine_time_to_first_token_seconds", "histogram"),
        ("heptascope_gpu_info", "gauge"),
    ):
        assert f"# HELP {name} {SCHEMA[name].help}\n# TYPE {name} {kind}\n" in page


def test_histogram_series() -> None:
    """Bounds are written as Prometheus writes them, the last count is the number of observations."""
    one = Histogram("heptascope_engine_e2e_latency_seconds", ENGINE, (0.5, 10.0, float("inf")), (1.0, 2.0, 3.0), 17.25)
    page = generate_latest(SnapshotCollector(replace(EMPTY, histograms={one.name: (one,)}))).decode()
    where = 'engine="vllm"'
    assert [
        f'{one.name}_bucket{{{where},le="0.5",rank="0"}} 1.0',
        f'{one.name}_bucket{{{where},le="10.0",rank="0"}} 2.0',
        f'{one.name}_bucket{{{where},le="+Inf",rank="0"}} 3.0',
        f'{one.name}_count{{{where},rank="0"}} 3.0',
        f'{one.name}_sum{{{where},rank="0"}} 17.25',
    ] == [line for line in page.splitlines() if not line.startswith("#")]


def test_text_that_is_no_unicode() -> None:
    """A process name with undecodable bytes does not cost the page."""
    values = {"heptascope_host_process_info": ((labels(process="a", command='x\udcff\n"q"'), 1.0),)}
    page = generate_latest(SnapshotCollector(replace(EMPTY, values=values))).decode()
    assert 'heptascope_host_process_info{command="x?\\n\\"q\\"",process="a"} 1.0\n' in page


def test_restricted_by_name() -> None:
    """Only the series asked for are shown, whatever their kind; a histogram's name stands for all its series."""
    names = [
        "heptascope_gpu_power_watts",
        "heptascope_engine_steps_total",
        "heptascope_engine_queue_time_seconds",
        "heptascope_gpu_info",
        "up",
    ]
    shown = {sample.name for family in restricted(busy(T0 + 60), names).collect() for sample in family.samples}
    histogram = {f"heptascope_engine_queue_time_seconds{suffix}" for suffix in ("_bucket", "_count", "_sum")}
    assert {"heptascope_gpu_power_watts", "heptascope_engine_steps_total", "heptascope_gpu_info"} | histogram == shown
