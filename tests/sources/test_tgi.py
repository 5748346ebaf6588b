"""TGI: families that appear with their first event, counters without `_total`, and `/info` for what the page does not name."""

from __future__ import annotations

import pytest

from heptascope.model import Quality, Reading, Reason
from heptascope.sources.engine.adapter import adapters
from heptascope.sources.engine.page import Document
from heptascope.sources.engine.reader import EngineReader
from heptascope.sources.engine.tgi import told_by_info
from support.engine_pages import histogram, missing, quality, read, reason, value
from support.page_text import page

FRESH = "counter tgi_request_count 0\n"
BUSY = """
counter tgi_request_count 12
counter tgi_request_success 8
counter tgi_request_failure{err="overloaded"} 2
counter tgi_request_failure{err="dropped"} 1
gauge tgi_queue_size 3
gauge tgi_batch_current_size 4
gauge tgi_batch_current_max_tokens 3000
histogram tgi_request_duration 0.5=2 5=7 +Inf=8 sum=16
histogram tgi_request_queue_duration 0.5=7 +Inf=8 sum=2
histogram tgi_request_validation_duration 0.5=8 +Inf=8 sum=0.8
histogram tgi_request_mean_time_per_token_duration 0.01=2 +Inf=8 sum=0.2
histogram tgi_request_input_length 100=6 +Inf=8 sum=900
histogram tgi_request_generated_tokens 100=6 +Inf=8 sum=400
counter tgi_batch_inference_count{method="prefill"} 5
counter tgi_batch_inference_count{method="decode"} 95
histogram tgi_batch_inference_duration{method="prefill"} 0.5=5 +Inf=5 sum=1
histogram tgi_batch_inference_duration{method="decode"} 0.5=95 +Inf=95 sum=3
histogram tgi_batch_forward_duration{method="prefill"} 0.5=5 +Inf=5 sum=0.9
histogram tgi_batch_forward_duration{method="decode"} 0.5=95 +Inf=95 sum=2
"""
V24 = BUSY + "gauge tgi_batch_max_total_tokens 12000\n"
SPECULATIVE = V24 + "summary tgi_request_skipped_tokens count=50 sum=80\n"


def tgi(short: str, version: str = "") -> Reading:
    """Return the reading of a page."""
    return read(page(short), version, kind="tgi")


def test_load_and_tokens() -> None:
    """Batch and queue are live; tokens come when requests finish, and are marked."""
    out = tgi(BUSY)
    assert (4.0, 3.0, 900.0, 400.0) == tuple(
        value(out, s) for s in ("requests_running", "requests_waiting", "prompt_tokens_total", "generation_tokens_total")
    )
    assert {Quality.APPROXIMATE} == {quality(out, s) for s in ("prompt_tokens_total", "generation_tokens_total")}


def test_ends_and_refusals() -> None:
    """An overloaded server refuses, a client that goes away drops; only the first never got in."""
    out = tgi(BUSY)
    assert (8.0, 1.0, 2.0) == (
        value(out, "requests_finished_total", reason="success"),
        value(out, "requests_finished_total", reason="dropped"),
        value(out, "requests_rejected_total", reason="overloaded"),
    )


def test_a_fresh_server_says_that_nothing_happened_yet() -> None:
    """A missing family is no missing feature: it comes with the first event."""
    assert {Reason.IDLE} == {
        reason(tgi(FRESH), s) for s in ("requests_running", "steps_total", "e2e_latency_seconds", "prompt_tokens_total")
    }


def test_steps_are_calls_of_the_model() -> None:
    """Prefill and decode calls count alike; time goes to the call and, within it, to the forward pass."""
    out = tgi(BUSY)
    assert (100.0, Quality.EXACT) == (value(out, "steps_total"), quality(out, "steps_total"))
    stages = {
        name: value(out, "stage_seconds_total", stage=name) for name in ("prefill_call", "decode_call", "prefill_forward", "decode_forward")
    }
    assert {"prefill_call": 1.0, "decode_call": 3.0, "prefill_forward": 0.9, "decode_forward": 2.0} == stages


def test_latencies() -> None:
    """What TGI times in histograms is passed on in seconds, under our names."""
    out = tgi(BUSY)
    sums = {s: histogram(out, s).sum for s in ("e2e_latency_seconds", "queue_time_seconds", "time_per_output_token_seconds")}
    assert {"e2e_latency_seconds": 16.0, "queue_time_seconds": 2.0, "time_per_output_token_seconds": 0.2} == sums


def test_the_parts_of_the_first_token_are_there() -> None:
    """Validation and one prefill call have means of their own, beside the queue time's histogram."""
    out = tgi(BUSY)
    means = [
        (value(out, "latency_seconds_total", latency=part) or 0) / (value(out, "latency_observations_total", latency=part) or 1)
        for part in ("validation", "prefill")
    ]
    assert pytest.approx([0.1, 0.2]) == means
    assert "adds the means" in missing(out, "time_to_first_token_seconds").detail  # type: ignore[union-attr]  # it is missing
    assert Quality.APPROXIMATE is quality(out, "latency_seconds_total")


def test_the_token_budget_stands_for_the_cache_from_24() -> None:
    """What the batch has reserved, worst case, of what the shard has; before that there is no whole to compare with."""
    old, new = tgi(BUSY, "2.0.4"), tgi(V24, "2.4.0")
    assert (None, Reason.ENGINE_TOO_OLD) == (value(old, "kv_cache_usage_ratio"), reason(old, "kv_cache_usage_ratio"))
    assert (0.25, 12000.0) == (value(new, "kv_cache_usage_ratio"), value(new, "kv_cache_capacity_tokens"))
    assert Quality.APPROXIMATE is quality(new, "kv_cache_usage_ratio")


def test_accepted_tokens_beyond_one() -> None:
    """The summary's count is steps with a draft; how many tokens were proposed is not told."""
    out = tgi(SPECULATIVE)
    assert (50.0, 80.0, Quality.APPROXIMATE) == (
        value(out, "spec_drafts_total"),
        value(out, "spec_accepted_tokens_total"),
        quality(out, "spec_drafts_total"),
    )
    assert Reason.ENGINE is reason(out, "spec_draft_tokens_total")


def test_what_cannot_be() -> None:
    """No preemption can happen, and no release counts prefix look-ups."""
    out = tgi(V24)
    assert {Reason.ENGINE} == {
        reason(out, s) for s in ("preemptions_total", "prefix_cache_hit_tokens_total", "inter_token_latency_seconds")
    }


def test_a_router_before_another_back_end_has_its_requests_only() -> None:
    """With TensorRT-LLM or llama.cpp behind it there is no batch family at all."""
    lines = "\n".join(line for line in BUSY.splitlines() if "tgi_batch" not in line and "queue_size" not in line)
    out = tgi(lines)
    assert (8.0, None) == (value(out, "requests_finished_total", reason="success"), value(out, "requests_running"))


def test_info_tells_the_model_and_its_limits() -> None:
    """The page has no model label and no version."""
    told = told_by_info(
        {"model_id": "org/chat", "version": "3.3.7", "max_total_tokens": 4096, "model_dtype": "float16", "max_concurrent_requests": 128}
    )
    out = EngineReader(None, "tgi").read_page(page(V24), "", 1.0, told=told)
    info = next(dict(s.labels) for s in out.samples if s.name.endswith("engine_info"))
    assert ("org/chat", "3.3.7", 4096.0) == (info["model"], info["version"], value(out, "model_length_limit"))


def test_the_page_is_recognised() -> None:
    """By its prefix, even before the first event."""
    assert ["tgi"] == [kind for kind, adapter in adapters().items() if adapter.fingerprint(Document("u", page(FRESH)))]


def first_token(queued: float, waits: float, validated: float, checks: float, calls: float, took: float) -> str:
    """Return a page with so many requests out of the queue, validations and prefill calls, and the seconds that each took in all."""
    return page(
        f"""
        histogram tgi_request_queue_duration +Inf={queued:g} sum={waits:g}
        histogram tgi_request_validation_duration +Inf={validated:g} sum={checks:g}
        histogram tgi_batch_inference_duration{{method="prefill"}} +Inf={calls:g} sum={took:g}
        histogram tgi_batch_inference_duration{{method="decode"}} +Inf=900 sum=18
        """
    )


def test_the_first_token_is_the_sum_of_the_means_of_its_parts() -> None:
    """Each interval's requests get that interval's means, as a counter; after a restart it begins anew."""
    reader = EngineReader(None, "tgi")
    pages = [
        first_token(10, 20, 10, 1, 5, 1.0),
        first_token(10, 20, 10, 1, 5, 1.0),
        first_token(14, 22, 15, 2, 6, 1.4),
        first_token(2, 1, 2, 0.2, 1, 0.1),
    ]
    found = []
    for number, text in enumerate(pages):
        out = reader.read_page(text, "", float(number))
        found.append(tuple(value(out, f"latency_{what}_total", latency="time_to_first_token") for what in ("seconds", "observations")))
    later = 23.0 + 4 * (2 / 4 + 1 / 5 + 0.4 / 1)
    assert [(pytest.approx(23.0), 10.0), (pytest.approx(23.0), 10.0), (pytest.approx(later), 14.0), (pytest.approx(1.4), 2.0)] == found
