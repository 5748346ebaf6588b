"""heptascope's own series."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heptascope import __version__
from heptascope.model import Missing, Quality, Reason, SourceStatus, labels
from heptascope.signals.schema import SCHEMA
from heptascope.signals.snapshot import EMPTY
from heptascope.surfaces.own import own_values
from support.snapshots import ENGINE, GAPS, GPU, T0, busy, failing


def test_every_own_series_is_in_the_signal_table() -> None:
    """Names and labels are those of the table."""
    for name, rows in own_values(failing(), T0 + 60).items():
        assert all({key for key, _ in pairs} <= set(SCHEMA[name].labels) for pairs, _ in rows), name


def test_source_states() -> None:
    """A source that is down shows 0, its age since the last good reading, and its failures."""
    own = own_values(failing(T0 + 60), T0 + 61)
    vllm = labels(source="vllm")
    assert 0.0 == dict(own["heptascope_source_up"])[vllm]
    assert 48.3 == pytest.approx(dict(own["heptascope_source_age_seconds"])[vllm])
    assert 12.0 == dict(own["heptascope_source_failures_total"])[vllm]
    assert 5.0 == dict(own["heptascope_source_duration_seconds"])[vllm]


def test_a_source_that_never_answered_has_no_age() -> None:
    """An age that does not exist is absent, not 0."""
    never = SourceStatus("nvml", "gpu", False, None, None, Reason.NO_SOURCE, "no NVML library", 3)
    own = own_values(replace(EMPTY, sources=(never,)), T0)
    assert () == own["heptascope_source_age_seconds"] == own["heptascope_source_duration_seconds"]
    assert ((labels(source="nvml"), 0.0),) == own["heptascope_source_up"]


def test_a_clock_that_stepped_back_gives_age_zero() -> None:
    """An age is never negative."""
    own = own_values(busy(T0 + 60), T0)
    assert {0.0} == {age for _, age in own["heptascope_source_age_seconds"]}


def test_gaps_are_told_once_per_signal_and_reason() -> None:
    """The same gap on two engines is one series."""
    other = Missing(GAPS[0].signal, GAPS[0].reason, "again", labels(engine="vllm-2", rank="0"))
    own = own_values(replace(EMPTY, missing=(*GAPS, other)), T0)
    shown = dict(own["heptascope_signal_unavailable"])
    assert len(GAPS) == len(shown)
    assert 1.0 == shown[labels(signal="heptascope_engine_sequence_limit", reason="engine")]


def test_quality_of_engine_signals() -> None:
    """What is not exact is told per engine, rank and signal; labels that split a signal are left out, GPU signals too."""
    split = labels(engine="vllm", rank="0", resource="dram")
    quality = {
        ("heptascope_engine_kv_cache_capacity_tokens", ENGINE): Quality.DERIVED,
        ("heptascope_engine_steps_total", ENGINE): Quality.EXACT,
        ("heptascope_engine_preemptions_total", split): Quality.APPROXIMATE,
        ("heptascope_gpu_sm_active_ratio", GPU): Quality.APPROXIMATE,
    }
    own = own_values(replace(EMPTY, quality=quality), T0)
    expected = {
        labels(engine="vllm", rank="0", signal="heptascope_engine_kv_cache_capacity_tokens", quality="derived"),
        labels(engine="vllm", rank="0", signal="heptascope_engine_preemptions_total", quality="approximate"),
    }
    assert expected == {pairs for pairs, _ in own["heptascope_engine_signal_quality_info"]}


@pytest.mark.parametrize(("quality", "expected"), [(Quality.APPROXIMATE, "approximate"), (Quality.DERIVED, "exact")])
def test_quality_of_gpu_sources(quality: Quality, expected: str) -> None:
    """A GPU source says whether its window ratios are exact; an engine source has no such ratios."""
    own = own_values(replace(busy(), quality={("heptascope_gpu_sm_active_ratio", GPU): quality}), T0)
    infos = {pairs for pairs, _ in own["heptascope_source_info"]}
    assert labels(source="nvml", kind="gpu", quality=expected) in infos
    assert labels(source="vllm", kind="engine") in infos


def test_this_process() -> None:
    """Version, processor time and memory are those of this process."""
    own = own_values(EMPTY, T0)
    assert __version__ == dict(own["heptascope_build_info"][0][0])["version"]
    assert own["heptascope_process_cpu_seconds_total"][0][1] > 0
    assert 2**20 < own["heptascope_process_resident_bytes"][0][1] < 2**34
