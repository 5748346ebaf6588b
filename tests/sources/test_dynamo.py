"""Dynamo: the frontend's and the worker's own families by release, and pages that pass an engine's through."""

from __future__ import annotations

import pytest

from heptascope.model import Quality, Reading, Reason
from heptascope.sources.engine.adapter import adapters
from heptascope.sources.engine.page import Document
from heptascope.sources.engine.reader import EngineReader
from support.engine_pages import VLLM_032, capture, histogram, quality, read, reason, value
from support.page_text import page

WORKER = 'dynamo_namespace="ns",dynamo_component="backend",worker_id="7"'
FRONT = """
counter dynamo_frontend_requests_total{model="m",endpoint="chat",request_type="stream",status="success"} 40
counter dynamo_frontend_requests_total{model="m",endpoint="chat",request_type="stream",status="error"} 2
gauge dynamo_frontend_inflight_requests{model="m"} 6
gauge dynamo_frontend_queued_requests{model="m"} 2
histogram dynamo_frontend_time_to_first_token_seconds{model="m"} 0.1=30 +Inf=40 sum=6
histogram dynamo_frontend_inter_token_latency_seconds{model="m"} 0.01=900 +Inf=950 sum=8
histogram dynamo_frontend_request_duration_seconds{model="m"} 1=30 +Inf=40 sum=60
histogram dynamo_frontend_input_sequence_tokens{model="m"} 100=30 +Inf=40 sum=5000
histogram dynamo_frontend_output_sequence_tokens{model="m"} 100=30 +Inf=40 sum=1000
gauge dynamo_frontend_model_total_kv_blocks{model="m"} 1000
gauge dynamo_frontend_model_kv_cache_block_size{model="m"} 16
gauge dynamo_frontend_model_max_num_seqs{model="m"} 256
gauge dynamo_frontend_model_max_num_batched_tokens{model="m"} 8192
gauge dynamo_frontend_model_context_length{model="m"} 4096
"""
V07 = FRONT + 'counter dynamo_frontend_output_tokens_total{model="m"} 1100\n'
V08 = V07 + 'histogram dynamo_frontend_cached_tokens{model="m"} 10=20 +Inf=40 sum=2000\n'
V12 = V08 + 'gauge dynamo_frontend_active_requests{model="m"} 5\ngauge dynamo_frontend_stage_requests{stage="route",phase="a"} 1\n'


def dynamo(short: str) -> Reading:
    """Return the reading of a page."""
    return read(page(short), kind="dynamo")


def test_the_frontend() -> None:
    """What clients see, the ends of their requests, and the limits of the model."""
    out = dynamo(V08)
    assert (40.0, 2.0) == (value(out, "requests_finished_total", reason="success"), value(out, "requests_finished_total", reason="error"))
    for signal, count in (("time_to_first_token_seconds", 40.0), ("inter_token_latency_seconds", 950.0), ("e2e_latency_seconds", 40.0)):
        assert (signal, count) == (signal, histogram(out, signal).counts[-1])
    limits = ("kv_cache_capacity_tokens", "sequence_limit", "step_token_limit", "model_length_limit")
    assert (16000.0, 256.0, 8192.0, 4096.0) == tuple(value(out, s) for s in limits)


def test_generated_tokens_are_live_from_07() -> None:
    """Before that only finished requests tell their lengths."""
    old, new = dynamo(FRONT), dynamo(V07)
    assert [(1000.0, Quality.APPROXIMATE), (1100.0, Quality.DERIVED)] == [
        (value(r, "generation_tokens_total"), quality(r, "generation_tokens_total")) for r in (old, new)
    ]


def test_hits_from_08() -> None:
    """Cached over all prompt tokens of finished requests."""
    signals = ("prefix_cache_queried_tokens_total", "prefix_cache_hit_tokens_total")
    assert (5000.0, 2000.0) == tuple(value(dynamo(V08), s) for s in signals)
    assert [(None, Reason.IDLE)] * 2 == [(value(dynamo(V07), s), reason(dynamo(V07), s)) for s in signals]


def test_load_under_its_old_and_new_names() -> None:
    """Deprecated names give way to the new ones; neither waiting figure is the engine's queue, so both are marked."""
    old, new = dynamo(V08), dynamo(V12)
    assert [(6.0, 2.0), (5.0, 1.0)] == [(value(r, "requests_running"), value(r, "requests_waiting")) for r in (old, new)]
    assert {Quality.APPROXIMATE} == {quality(r, "requests_waiting") for r in (old, new)}


@pytest.mark.parametrize("name", ["kvstats_gpu_cache_usage_percent", "gpu_cache_usage_percent"])
def test_a_percent_that_is_a_ratio(name: str) -> None:
    """A worker's cache usage until 0.8 and since 1.0; in 0.9 there is none."""
    out = dynamo(f"gauge dynamo_component_{name}{{{WORKER}}} 0.6\ngauge dynamo_component_inflight_requests{{{WORKER}}} 3")
    assert (0.6, 3.0) == (value(out, "kv_cache_usage_ratio"), value(out, "requests_running"))
    assert Reason.ENGINE is reason(dynamo(f"gauge dynamo_component_inflight_requests{{{WORKER}}} 3"), "kv_cache_usage_ratio")


def test_what_only_the_engine_knows() -> None:
    """The reason leads to the worker's port."""
    out = dynamo(V12)
    assert {Reason.ENGINE} == {
        reason(out, s) for s in ("preemptions_total", "steps_total", "spec_accepted_tokens_total", "queue_time_seconds")
    }


@pytest.mark.parametrize(
    ("short", "expected"),
    [
        (FRONT, ""),
        (V07, ">=0.7"),
        (V08, ">=0.8"),
        (V12, ">=1.2"),
        (FRONT + f"gauge dynamo_component_kvstats_gpu_cache_usage_percent{{{WORKER}}} 0.1", "<0.9"),
    ],
)
def test_the_page_bounds_the_version(short: str, expected: str) -> None:
    """Families that came and went tell the release."""
    assert expected == next(dict(s.labels).get("version", "") for s in dynamo(short).samples if s.name.endswith("engine_info"))


def test_an_engine_that_is_passed_through_is_read_as_itself() -> None:
    """A worker's page has the engine's families with Dynamo's labels added; they are read as on the engine's own page."""
    plain = capture(VLLM_032, "steady_16")
    passed = plain.replace('engine="0",', f'engine="0",{WORKER},model="m",').replace('{engine="0"}', f'{{engine="0",{WORKER}}}')
    text = passed + page(f"gauge dynamo_component_inflight_requests{{{WORKER}}} 3")
    assert ["vllm"] == [kind for kind, adapter in adapters().items() if adapter.fingerprint(Document("u", text))]
    own, through = (EngineReader().read_page(t, "", 1.0, "0.32.0") for t in (plain, text))
    for signal in ("requests_running", "generation_tokens_total", "kv_cache_usage_ratio", "steps_total"):
        assert (signal, value(own, signal)) == (signal, value(through, signal))


HEALTH = """
histogram dynamo_frontend_event_loop_delay_seconds 0.01=90 +Inf=100 sum=0.5
histogram dynamo_frontend_tokenize_seconds 0.01=30 +Inf=40 sum=0.2
histogram dynamo_frontend_tokenizer_latency_ms{operation="tokenize"} 10=30 +Inf=40 sum=200
histogram dynamo_frontend_tokenizer_latency_ms{operation="detokenize"} 10=900 +Inf=950 sum=100
"""


def test_the_health_of_the_front_end() -> None:
    """The loop's delay and the tokeniser's time feed the series that the probe feeds for vLLM; the older name is in milliseconds."""
    new = dynamo(V12 + HEALTH)
    assert (100.0, 0.5) == (
        histogram(new, "frontend_event_loop_lag_seconds").counts[-1],
        histogram(new, "frontend_event_loop_lag_seconds").sum,
    )
    old = dynamo(V12 + HEALTH.replace("histogram dynamo_frontend_tokenize_seconds 0.01=30 +Inf=40 sum=0.2\n", ""))
    for out in (new, old):
        found = histogram(out, "frontend_tokenize_seconds")
        assert (40.0, 0.2, 0.01) == (found.counts[-1], pytest.approx(found.sum), pytest.approx(found.bounds[0]))
    assert Reason.INVALID not in {m.reason for m in dynamo(V12 + "gauge dynamo_frontend_event_loop_delay_seconds 0.5").missing}


@pytest.mark.parametrize("family", ["dynamo_request_plane_queue_seconds", "dynamo_work_handler_permit_wait_seconds"])
def test_its_own_queues_stand_for_the_engines(family: str) -> None:
    """Time in Dynamo's queues is a part of the wait, and marked; without them the worker's page has to tell."""
    out = dynamo(V12 + f"histogram {family} 0.01=30 +Inf=40 sum=2\n")
    assert (40.0, Quality.APPROXIMATE) == (histogram(out, "queue_time_seconds").counts[-1], quality(out, "queue_time_seconds"))
    assert Reason.ENGINE is reason(dynamo(V12), "queue_time_seconds")


def test_what_the_frontend_expects_of_transfers() -> None:
    """Its estimate of prefill to decode is a sum and a count, and marked; blocks of the block manager are no bytes."""
    out = dynamo(V12 + 'histogram dynamo_frontend_kv_transfer_estimated_latency_seconds{model="m"} 0.1=3 +Inf=4 sum=0.2\n')
    assert (4.0, 0.2) == (value(out, "kv_transfers_total"), value(out, "kv_transfer_seconds_total"))
    assert Quality.APPROXIMATE is quality(out, "kv_transfers_total")
    assert Reason.ENGINE is reason(out, "kv_offload_load_bytes_total")
