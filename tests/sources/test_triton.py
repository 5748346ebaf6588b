"""Triton with the TensorRT-LLM backend: selectors, microseconds, and which of several models has the traffic."""

from __future__ import annotations

import pytest

from heptascope.model import Quality, Reading, Reason
from heptascope.sources.engine.adapter import adapters
from heptascope.sources.engine.page import Document
from heptascope.sources.engine.reader import EngineReader
from support.engine_pages import histogram, quality, read, reason, value
from support.page_text import page

LLM = 'model="tensorrt_llm",version="1"'


def levels(family: str, selector: str, **values: float) -> str:
    """Return a family that hides several signals behind a selector."""
    return "".join(f'gauge {family}{{{selector}="{kind}",{LLM}}} {number}\n' for kind, number in values.items())


def counters(model: str, success: float, scale: float = 1.0) -> str:
    """Return the server's counters of one model."""
    pairs = f'{{model="{model}",version="1"}}'
    return (
        f"counter nv_inference_request_success{pairs} {success}\n"
        f"counter nv_inference_request_duration_us{pairs} {success * 2e6 * scale}\n"
        f"counter nv_inference_queue_duration_us{pairs} {success * 1e4 * scale}\n"
    )


REQUESTS = levels("nv_trt_llm_request_metrics", "request_type", active=6, max=64, scheduled=5, context=1)
BLOCKS = levels("nv_trt_llm_kv_cache_block_metrics", "kv_cache_block_type", max=100, free=60, used=40, tokens_per=64, reused=900)
BATCH = levels(
    "nv_trt_llm_inflight_batcher_metrics",
    "inflight_batcher_specific_metric",
    total_context_tokens=300,
    generation_requests=5,
    micro_batch_id=3,
    paused_requests=1,
)
GENERAL = levels("nv_trt_llm_general_metrics", "general_type", timestamp=1e15, iteration_counter=4000)
SERVER = counters("ensemble", 50) + counters("tensorrt_llm", 0) + counters("preprocessing", 49, 0.01)
WHOLE = SERVER + REQUESTS + BLOCKS + BATCH + GENERAL


def triton(short: str) -> Reading:
    """Return the reading of a page."""
    return read(page(short), kind="triton")


def test_selectors_lead_to_signals() -> None:
    """One name holds blocks, tokens and ratios; each selector is a signal of its own."""
    out = triton(WHOLE)
    signals = ("requests_running", "sequence_limit", "kv_cache_capacity_tokens", "steps_total", "last_step_tokens")
    assert (6.0, 64.0, 6400.0, 4000.0, 305.0) == tuple(value(out, s) for s in signals)


def test_usage_is_told_or_derived() -> None:
    """Newer releases tell the fraction; before that it is used over all blocks."""
    old, new = triton(WHOLE), triton(WHOLE + levels("nv_trt_llm_kv_cache_block_metrics", "kv_cache_block_type", fraction=0.41))
    assert [(0.4, Quality.DERIVED), (0.41, Quality.EXACT)] == [
        (value(r, "kv_cache_usage_ratio"), quality(r, "kv_cache_usage_ratio")) for r in (old, new)
    ]


def test_waiting_is_told_or_inferred() -> None:
    """Before about 0.12 those admitted and not scheduled wait."""
    old, new = triton(WHOLE), triton(WHOLE + levels("nv_trt_llm_request_metrics", "request_type", waiting=7))
    assert [(1.0, Quality.APPROXIMATE), (7.0, Quality.EXACT)] == [
        (value(r, "requests_waiting"), quality(r, "requests_waiting")) for r in (old, new)
    ]


def test_requests_are_those_of_the_model_with_the_traffic() -> None:
    """Ensemble and members count the same requests; the largest is taken, and kept when another overtakes it."""
    reader = EngineReader(None, "triton")
    first = reader.read_page(page(WHOLE), "", 1.0)
    assert 50.0 == value(first, "requests_finished_total", reason="success")
    later = SERVER.replace("} 49", "} 70") + REQUESTS
    assert 50.0 == value(reader.read_page(page(later), "", 2.0), "requests_finished_total", reason="success")


def test_means_where_there_is_no_histogram() -> None:
    """Times are microseconds; over the requests they are the means, and the histograms say why they are missing."""
    out = triton(WHOLE)
    for latency, mean in (("e2e", 2.0), ("queue_time", 0.01)):
        seconds, count = (value(out, f"latency_{what}_total", latency=latency) for what in ("seconds", "observations"))
        assert (latency, mean) == (latency, pytest.approx((seconds or 0) / (count or 1)))
    assert (Reason.ENGINE, Reason.ENGINE) == (reason(out, "e2e_latency_seconds"), reason(out, "queue_time_seconds"))


def test_the_first_response_is_in_milliseconds() -> None:
    """Bounds and sum become seconds; without the option the reason names it."""
    out = triton(WHOLE + f"histogram nv_inference_first_response_histogram_ms{{{LLM}}} 100=3 500=4 +Inf=5 sum=900")
    found = histogram(out, "time_to_first_token_seconds")
    assert ((0.1, 0.5), (3.0, 4.0, 5.0), 0.9) == (found.bounds[:2], found.counts, found.sum)
    assert Reason.FLAG_OFF is reason(triton(WHOLE), "time_to_first_token_seconds")


def test_lengths_of_016_give_the_tokens() -> None:
    """Sums at finish; before that release there is nothing."""
    lengths = f'histogram nv_llm_input_token_len{{{LLM},response_metric_type="total_input_tokens"}} 100=3 +Inf=5 sum=700\n'
    out = triton(WHOLE + lengths)
    assert (700.0, Quality.APPROXIMATE) == (value(out, "prompt_tokens_total"), quality(out, "prompt_tokens_total"))
    assert Reason.ENGINE_TOO_OLD is reason(triton(WHOLE), "prompt_tokens_total")


def test_failures_by_reason() -> None:
    """What was rejected is told apart from what was cancelled."""
    text = "".join(
        f'counter nv_inference_request_failure{{model="ensemble",version="1",reason="{r}"}} {n}\n'
        for r, n in (("CANCELED", 3), ("REJECTED", 2))
    )
    out = triton(WHOLE + text)
    assert (3.0, 2.0) == (
        value(out, "requests_finished_total", reason="canceled"),
        value(out, "requests_rejected_total", reason="rejected"),
    )


def test_paused_requests_count_when_they_rise() -> None:
    """Only the level is told."""
    reader = EngineReader(None, "triton")
    line = f'gauge nv_trt_llm_inflight_batcher_metrics{{inflight_batcher_specific_metric="paused_requests",{LLM}}}'
    pages = [page(WHOLE.replace(f"{line} 1", f"{line} {n}")) for n in (0, 2, 1, 2)]
    assert [0.0, 2.0, 2.0, 3.0] == [value(reader.read_page(p, "", 1.0), "preemptions_total") for p in pages]


def test_the_transfer_of_kv_cache() -> None:
    """Milliseconds and requests of disaggregated serving."""
    text = "".join(
        f'counter nv_trt_llm_disaggregated_serving_metrics{{disaggregated_serving_type="{t}",{LLM}}} {n}\n'
        for t, n in (("kv_cache_transfer_ms", 500), ("request_count", 4))
    )
    assert (0.5, 4.0) == tuple(value(triton(WHOLE + text), s) for s in ("kv_transfer_seconds_total", "kv_transfers_total"))


def test_without_the_cpp_backend_the_server_speaks_alone() -> None:
    """The Python variants publish no families of their own, and the reason says so."""
    out = triton(SERVER)
    assert (50.0, Reason.ENGINE) == (value(out, "requests_finished_total"), reason(out, "requests_running"))


def test_families_of_vllm_behind_triton_are_vllms() -> None:
    """The vLLM backend passes its own families through, which say more."""
    assert adapters()["triton"].fingerprint(Document("u", page(WHOLE)))
    both = SERVER + 'gauge vllm:num_requests_running{model="m",version="1"} 2'
    assert ["vllm"] == [kind for kind, adapter in adapters().items() if adapter.fingerprint(Document("u", page(both)))]


def summaries(model: str, success: float, p99: str) -> str:
    """Return the opt-in summaries of one model, as they stand on the wire."""
    pairs = f'model="{model}",version="1"'
    lines = []
    for family, seconds in (("nv_inference_request_summary_us", 2e6), ("nv_inference_queue_summary_us", 1e4)):
        lines.append(f"# TYPE {family} summary")
        lines += [f'{family}{{{pairs},quantile="{quantile}"}} {value}' for quantile, value in (("0.5", f"{seconds}"), ("0.99", p99))]
        lines += [f"{family}_sum{{{pairs}}} {success * seconds}", f"{family}_count{{{pairs}}} {success}"]
    return "\n".join(lines) + "\n"


def test_summaries_stand_in_for_counters() -> None:
    """With `summary_latencies=true` alone the sums and counts are the summaries'; quantiles are shown as such, unless they are NaN."""
    served = counters("ensemble", 50).splitlines()[0]
    text = page(f"{served}\n{REQUESTS}") + summaries("ensemble", 50, "9e6")
    out = read(text, kind="triton")
    assert (100.0, 50.0) == tuple(value(out, f"latency_{what}_total", latency="e2e") for what in ("seconds", "observations"))
    assert 0.5 == value(out, "latency_seconds_total", latency="queue_time")
    assert (2.0, 9.0) == tuple(value(out, "latency_quantile_seconds", latency="e2e", q=q) for q in ("0.5", "0.99"))
    assert Quality.APPROXIMATE is quality(out, "latency_quantile_seconds")
    idle = read(page(f"{served}\n{REQUESTS}") + summaries("ensemble", 50, "NaN"), kind="triton")
    assert (2.0, None) == tuple(value(idle, "latency_quantile_seconds", latency="e2e", q=q) for q in ("0.5", "0.99"))


def test_counters_go_before_summaries() -> None:
    """Where both are on, a latency is counted once; the quantiles are there beside it."""
    out = read(page(WHOLE) + summaries("ensemble", 50, "9e6"), kind="triton")
    assert (100.0, 50.0) == tuple(value(out, f"latency_{what}_total", latency="e2e") for what in ("seconds", "observations"))
    assert 9.0 == value(out, "latency_quantile_seconds", latency="queue_time", q="0.99")
