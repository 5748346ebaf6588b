"""LMDeploy: vLLM's names with meanings of their own, and what came with 0.10 and 0.14."""

from __future__ import annotations

import pytest

from heptascope.model import Quality, Reading, Reason
from heptascope.sources.engine.adapter import adapters
from heptascope.sources.engine.names import PREFIX
from heptascope.sources.engine.page import Document
from support.engine_pages import histogram, quality, read, reason, value
from support.page_text import page

L = 'model_name="m",engine="0"'
CONFIG = 'max_batch_size="128",session_len="4096",tp="2",enable_prefix_caching="True",dtype="float16",eager_mode="False"'
HISTOGRAMS = ("time_to_first_token_seconds", "time_per_output_token_seconds", "e2e_request_latency_seconds", "request_queue_time_seconds")
BASE = f"""
gauge lmdeploy:num_requests_running{{{L}}} 5
gauge lmdeploy:num_requests_waiting{{{L}}} 2
gauge lmdeploy:gpu_cache_usage_perc{{{L}}} 0.3
counter lmdeploy:prompt_tokens_total{{{L}}} 900
counter lmdeploy:generation_tokens_total{{{L}}} 400
counter lmdeploy:request_success_total{{{L},finished_reason="ResponseType.FINISH"}} 7
counter lmdeploy:request_success_total{{{L},finished_reason="ResponseType.CANCEL"}} 1
histogram lmdeploy:iteration_tokens_total{{{L}}} 1=400 +Inf=408 sum=1300
histogram lmdeploy:request_prompt_tokens{{{L}}} 100=4 +Inf=8 sum=800
gauge lmdeploy:backend_config_info{{{L},{CONFIG}}} 1
""" + "".join(f"histogram lmdeploy:{name}{{{L}}} 0.3=4 +Inf=8 sum=2\n" for name in HISTOGRAMS)
V09 = BASE + f"gauge lmdeploy:num_requests_unfinished{{{L}}} 7\n"
V10 = BASE + f"histogram lmdeploy:iter_token_latency{{{L}}} 0.01=300 +Inf=390 sum=4\n"
V14 = V10 + f"counter lmdeploy:cached_tokens_total{{{L}}} 200\ngauge lmdeploy:prefix_cache_hit_rate{{{L}}} 0.9\n"
SPECULATIVE = (
    V14
    + "".join(
        f"counter lmdeploy:spec_decode_num_{name}_total{{{L}}} {n}\n"
        for name, n in (("drafts", 100), ("draft_tokens", 400), ("accepted_tokens", 250))
    )
    + f'counter lmdeploy:spec_decode_num_accepted_tokens_per_pos_total{{{L},position="0"}} 90\n'
)


def lmdeploy(short: str, version: str = "") -> Reading:
    """Return the reading of a page."""
    return read(page(short), version, kind="lmdeploy")


def test_what_every_release_has() -> None:
    """Load, usage, tokens, latencies; ends by the word in the engine's enumeration."""
    out = lmdeploy(V09)
    signals = ("requests_running", "requests_waiting", "kv_cache_usage_ratio", "prompt_tokens_total", "generation_tokens_total")
    assert (5.0, 2.0, 0.3, 900.0, 400.0) == tuple(value(out, s) for s in signals)
    assert (7.0, 1.0) == (value(out, "requests_finished_total", reason="finish"), value(out, "requests_finished_total", reason="cancel"))
    for signal in ("time_to_first_token_seconds", "time_per_output_token_seconds", "e2e_latency_seconds", "queue_time_seconds"):
        assert (signal, 8.0) == (signal, histogram(out, signal).counts[-1])


def test_the_iteration_histogram_counts_no_steps() -> None:
    """In spite of its name it has an entry for each request and output."""
    out = lmdeploy(V14)
    assert (None, Reason.ENGINE) == (value(out, "steps_total"), reason(out, "steps_total"))
    assert {Reason.ENGINE} == {reason(out, s) for s in ("preemptions_total", "kv_cache_capacity_tokens")}


@pytest.mark.parametrize(("short", "version", "counted"), [(V09, "0.9.2", None), (V10, "0.10.0", 390.0)])
def test_gaps_between_tokens_from_010(short: str, version: str, counted: float | None) -> None:
    """Before that there is only the time per output token."""
    out = lmdeploy(short, version)
    if counted is None:
        assert Reason.ENGINE_TOO_OLD is reason(out, "inter_token_latency_seconds")
    else:
        assert counted == histogram(out, "inter_token_latency_seconds").counts[-1]


def test_hits_from_014() -> None:
    """Cached tokens over prompt tokens of finished requests, both counters; the rate since start is not passed on."""
    old, new = lmdeploy(V10, "0.13.0"), lmdeploy(V14, "0.14.0")
    signals = ("prefix_cache_queried_tokens_total", "prefix_cache_hit_tokens_total")
    assert [(None, Reason.ENGINE_TOO_OLD)] * 2 == [(value(old, s), reason(old, s)) for s in signals]
    assert (800.0, 200.0) == tuple(value(new, s) for s in signals)
    assert {Quality.APPROXIMATE} == {quality(new, s) for s in signals}


def test_speculation_from_014() -> None:
    """Counters as vLLM's; a release that has them and shows none does not speculate."""
    out = lmdeploy(SPECULATIVE)
    assert (100.0, 400.0, 250.0, 1.0) == tuple(
        value(out, s) for s in ("spec_drafts_total", "spec_draft_tokens_total", "spec_accepted_tokens_total", "speculation_enabled")
    )
    assert 90.0 == value(out, "spec_accepted_tokens_per_position_total", position="0")
    off = lmdeploy(V14)
    assert (0.0, Reason.NOT_CONFIGURED) == (value(off, "speculation_enabled"), reason(off, "spec_drafts_total"))
    assert Reason.ENGINE_TOO_OLD is reason(lmdeploy(V10, "0.13.0"), "spec_drafts_total")


def test_the_configuration_is_on_the_page() -> None:
    """Caps and switches become signals, the rest text."""
    out = lmdeploy(V14)
    signals = ("sequence_limit", "model_length_limit", "tensor_parallel_size", "prefix_caching_enabled", "eager_mode")
    assert (128.0, 4096.0, 2.0, 1.0, 0.0) == tuple(value(out, s) for s in signals)
    settings = {dict(s.labels)["setting"]: dict(s.labels)["value"] for s in out.samples if s.name == PREFIX + "config_info"}
    assert "float16" == settings["dtype"]


@pytest.mark.parametrize(("short", "expected"), [(V09, "<0.12.1"), (V10, ">=0.10"), (V14, ">=0.14")])
def test_the_page_bounds_the_version(short: str, expected: str) -> None:
    """Families that came and went tell the release."""
    assert expected == next(dict(s.labels)["version"] for s in lmdeploy(short).samples if s.name == PREFIX + "info")


def test_ranks_are_engines() -> None:
    """The label `engine` is the data-parallel rank."""
    out = lmdeploy(BASE + 'gauge lmdeploy:num_requests_running{model_name="m",engine="1"} 3')
    assert (5.0, 3.0) == (value(out, "requests_running", rank="0"), value(out, "requests_running", rank="1"))


def test_the_page_is_recognised() -> None:
    """By its prefix, with either separator."""
    for text in (page(BASE), page(BASE).replace("lmdeploy:", "lmdeploy_")):
        assert ["lmdeploy"] == [kind for kind, adapter in adapters().items() if adapter.fingerprint(Document("u", text))]
