"""A snapshot as plain objects."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heptascope.model import Histogram, Layer, Reason, labels
from heptascope.signals.schema import SCHEMA
from heptascope.signals.snapshot import EMPTY, Snapshot
from heptascope.signals.window import Window
from heptascope.surfaces import views
from support.snapshots import ENGINE, GPU, T0, UUIDS, busy, failing, remember


def row(snapshot: Snapshot, name: str, window: Window | None = None) -> views.Object:
    """Return the view of one signal."""
    found: views.Object = views.signals(snapshot, window or Window(), snapshot.t, [name])["signals"][0]
    return found


def test_a_gauge() -> None:
    """A signal carries the table's facts, its values in base units, and texts for people."""
    expected = {
        "name": "heptascope_gpu_power_watts",
        "kind": "gauge",
        "unit": "watts",
        "layer": "hardware",
        "help": SCHEMA["heptascope_gpu_power_watts"].help,
        "label_names": ["gpu", "uuid"],
        "values": [{"labels": {"gpu": "0", "uuid": UUIDS[0]}, "value": 598.2, "text": "598 W"}],
    }
    assert expected == row(busy(), "heptascope_gpu_power_watts")


def test_a_counter_has_a_rate_once_the_window_has_points() -> None:
    """The rate comes from the history; without one there is none."""
    window = Window()
    assert "rate" not in row(busy(), "heptascope_engine_steps_total", window)["values"][0]
    for second in range(6):
        remember(window, busy(T0 + 55 + second))
    value = row(busy(), "heptascope_engine_steps_total", window)["values"][0]
    assert (124.0, "124/s") == (pytest.approx(value["rate"]), value["rate_text"])


def test_an_info_signal_shows_its_facts() -> None:
    """The value 1 says nothing; the labels that do not identify the engine do."""
    assert "kind vllm · model llama-8b · version 0.25.1" == row(busy(), "heptascope_engine_info")["values"][0]["text"]


def test_an_info_signal_that_only_joins_shows_what_it_joins() -> None:
    """Without other facts the identities themselves are the facts."""
    pairs = labels(engine="vllm", rank="0", gpu="3", uuid="GPU-1")
    joined = replace(EMPTY, values={"heptascope_engine_gpu_info": ((pairs, 1.0),)})
    assert "engine vllm · gpu 3 · rank 0 · uuid GPU-1" == row(joined, "heptascope_engine_gpu_info")["values"][0]["text"]


def test_a_histogram() -> None:
    """Buckets, quantiles and a text of median, 99th percentile and count."""
    one = Histogram("heptascope_engine_queue_time_seconds", ENGINE, (0.01, 0.1, float("inf")), (50.0, 100.0, 100.0), 2.5)
    expected = {
        "labels": {"engine": "vllm", "rank": "0"},
        "count": 100.0,
        "sum": 2.5,
        "quantiles": {"0.5": 0.01, "0.99": pytest.approx(0.0982)},
        "buckets": [("0.01", 50.0), ("0.1", 100.0), ("+Inf", 100.0)],
        "text": "p50 10 ms · p99 98.2 ms · n 100",
    }
    assert expected == row(replace(EMPTY, histograms={one.name: (one,)}), one.name)["values"][0]


def test_a_histogram_without_observations() -> None:
    """No quantile is made up."""
    one = Histogram("heptascope_engine_queue_time_seconds", ENGINE, (0.01, float("inf")), (0.0, 0.0), 0.0)
    value = row(replace(EMPTY, histograms={one.name: (one,)}), one.name)["values"][0]
    assert ({}, "n 0") == (value["quantiles"], value["text"])


def test_signals_without_values_are_listed_only_by_name() -> None:
    """The list holds what there is; a signal asked for by name is there with no values."""
    snapshot = failing()
    names = [signal["name"] for signal in views.signals(snapshot, Window(), snapshot.t)["signals"]]
    assert [name for name in SCHEMA if name in snapshot.values] == names
    assert [] == row(snapshot, "heptascope_engine_steps_total")["values"]


def test_layers_narrow_the_list() -> None:
    """Only signals of the layers asked for are listed."""
    found = views.signals(busy(), Window(), T0, (), [Layer.MEMORY, Layer.OPERATOR])["signals"]
    assert {"memory", "operator"} == {signal["layer"] for signal in found}


def test_age_of_the_snapshot() -> None:
    """A picture that is not renewed grows old; one from the future has age 0."""
    assert 4.5 == views.signals(busy(T0), Window(), T0 + 4.5)["age_seconds"]
    assert 0.0 == views.signals(busy(T0), Window(), T0 - 1)["age_seconds"]


def test_a_number_that_json_lacks_is_null() -> None:
    """An infinite value does not break the answer."""
    odd = replace(EMPTY, values={"heptascope_gpu_power_watts": ((GPU, float("inf")),)})
    assert {"labels": dict(GPU), "value": None, "text": "inf"} == row(odd, "heptascope_gpu_power_watts")["values"][0]


def test_shape_changes_with_series_states_and_reasons_only() -> None:
    """New numbers leave the shape alone; a lost engine, a new card or a finding changes it."""
    shape = views.shape(busy(T0 + 60, 1))
    assert shape == views.shape(busy(T0 + 61, 2))
    assert 4 == len({shape, views.shape(failing(T0 + 60)), views.shape(busy(gpus=2)), views.shape(busy().with_values(finding()))})


def finding() -> dict[str, tuple[tuple[tuple[tuple[str, str], ...], float], ...]]:
    """Return the series of one firing rule."""
    return {"heptascope_finding": ((labels(rule="KVCachePreemption", layer="memory"), 1.0),)}


def test_sources() -> None:
    """A source that is down says since when, and why."""
    found = {source["name"]: source for source in views.sources(failing(T0 + 60), T0 + 60.7)["sources"]}
    assert {"nvml", "vllm", "host"} == set(found)
    vllm = found["vllm"]
    assert (False, "source_down", "48 s", "5 s", 12) == tuple(
        vllm[key] for key in ("up", "reason", "age_text", "duration_text", "failures")
    )
    assert "connection refused" in vllm["message"]


def test_unavailable_in_the_order_of_the_table() -> None:
    """Each gap comes with its reason in words and the engine or card it is about."""
    found = views.unavailable(busy())["unavailable"]
    order = list(SCHEMA)
    assert sorted((gap["signal"] for gap in found), key=order.index) == [gap["signal"] for gap in found]
    flag = next(gap for gap in found if gap["reason"] is Reason.FLAG_OFF)
    assert ("operator", "start vLLM with --enable-mfu-metrics", dict(ENGINE)) == (flag["layer"], flag["detail"], flag["labels"])
    assert "the engine needs a start flag to export it" == flag["reason_text"]


def test_past_of_a_gauge_with_a_gap() -> None:
    """The end of a series is a null; points before the range are left out."""
    window, name = Window(), "heptascope_engine_requests_running"
    for t, value in ((10.0, 1.0), (100.0, 2.0), (101.0, 3.0)):
        window.append(name, ENGINE, t, value)
    window.mark_stale(name, ENGINE, 102.0)
    found = views.past(window, SCHEMA[name], 103.0, 60.0)
    expected = [{"name": name, "labels": dict(ENGINE), "points": [(100.0, 2.0), (101.0, 3.0), (102.0, None)]}]
    assert expected == found["series"]


def test_past_of_a_histogram() -> None:
    """A histogram has a past for its buckets, its sum and its count; a series that ended before the range has none."""
    window, name = Window(), "heptascope_engine_queue_time_seconds"
    window.append(f"{name}_bucket", labels(engine="vllm", le="0.1"), 100.0, 7.0)
    window.append(f"{name}_sum", ENGINE, 100.0, 0.5)
    window.append(f"{name}_count", ENGINE, 10.0, 7.0)
    found = views.past(window, SCHEMA[name], 103.0, 60.0)
    assert [f"{name}_bucket", f"{name}_sum"] == [series["name"] for series in found["series"]]
