"""TensorRT-LLM: the Prometheus endpoint of its releases, and the JSON iteration list that reading empties."""

from __future__ import annotations

import json
from typing import Any

import pytest

from heptascope.model import Quality, Reading, Reason
from heptascope.sources.base import SourceError
from heptascope.sources.engine import source as source_module
from heptascope.sources.engine.adapter import adapters
from heptascope.sources.engine.page import Document
from heptascope.sources.engine.reader import EngineReader
from heptascope.sources.engine.source import EngineSource
from heptascope.sources.engine.trtllm import told_by_models, told_by_server
from heptascope.sources.engine.trtllm_requests import request_times
from support.engine_pages import histogram, quality, read, reason, value
from support.engine_server import Answer, EngineServer
from support.page_text import page

L = 'model_name="m",engine_type="trtllm"'
LATENCIES = "".join(
    f"histogram PREFIX{name}{{{L}}} 0.3=4 +Inf=5 sum=2\n"
    for name in (
        "e2e_request_latency_seconds",
        "time_to_first_token_seconds",
        "time_per_output_token_seconds",
        "request_queue_time_seconds",
    )
)
FIRST = f'counter PREFIXrequest_success_total{{{L},finished_reason="stop"}} 5\n' + LATENCIES
V10 = FIRST.replace("PREFIX", "").replace('model_name="m"', 'model_name="undefined"')
V12 = (
    FIRST.replace("PREFIX", "trtllm_")
    + f'gauge trtllm_kv_cache_utilization{{{L},pid="7"}} 0.4\ngauge trtllm_kv_cache_hit_rate{{{L},pid="7"}} 0.9\n'
)
V13 = (
    V12
    + "".join(
        f'gauge trtllm_{name}{{{L},pid="7"}} {n}\n'
        for name, n in {
            "num_requests_running": 6,
            "num_requests_waiting": 2,
            "num_paused_requests": 0,
            "max_num_active_requests": 64,
            "max_num_tokens_runtime": 8192,
            "kv_cache_max_blocks": 100,
            "kv_cache_tokens_per_block": 32,
            "iteration_latency_seconds": 0.02,
            "total_context_tokens": 300,
            "num_generation_requests": 5,
        }.items()
    )
    + "".join(
        f"counter trtllm_{name}_total{{{L}}} {n}\n"
        for name, n in (("prompt_tokens", 900), ("generation_tokens", 400), ("prompt_cached_tokens", 300))
    )
)


def trtllm(short: str, version: str = "") -> Reading:
    """Return the reading of a Prometheus page."""
    return read(page(short), version, kind="trtllm")


def test_a_model_that_is_undefined_is_none() -> None:
    """1.0 may not know its model; `/v1/models` does."""
    reader = EngineReader(None, "trtllm")
    models = [
        reader.read_page(page(V10), "", 1.0, told=told).samples[0].labels for told in (None, told_by_models({"data": [{"id": "chat"}]}))
    ]
    assert ["", "chat"] == [dict(labels).get("model", "") for labels in models]


def test_server_info_tells_limits() -> None:
    """What it names becomes settings; the page goes before them."""
    told = told_by_server({"max_batch_size": 32, "max_num_tokens": 4096, "max_seq_len": 8192, "backend": "pytorch"})
    out = EngineReader(None, "trtllm").read_page(page(V13), "", 1.0, told=told)
    assert (64.0, 8192.0, 8192.0) == tuple(value(out, s) for s in ("sequence_limit", "step_token_limit", "model_length_limit"))


@pytest.mark.parametrize(("short", "expected"), [(V10, "<1.2"), (V12, ">=1.2"), (V13, ">=1.3")])
def test_latencies_in_every_release(short: str, expected: str) -> None:
    """With and without a prefix: four histograms and the finished requests, and the release that the names allow."""
    out = trtllm(short)
    for signal in ("e2e_latency_seconds", "time_to_first_token_seconds", "time_per_output_token_seconds", "queue_time_seconds"):
        assert (signal, 5.0) == (signal, histogram(out, signal).counts[-1])
    assert 5.0 == value(out, "requests_finished_total", reason="stop")
    assert expected == next(dict(s.labels)["version"] for s in out.samples if s.name.endswith("engine_info"))
    assert Reason.ENGINE is reason(out, "inter_token_latency_seconds")


def test_what_each_release_adds() -> None:
    """1.2: the cache's usage; 1.3: load, tokens, limits. A hit rate since the start is never passed on."""
    old, middle, new = (trtllm(short) for short in (V10, V12, V13))
    assert (Reason.ENGINE_TOO_OLD, 0.4, 0.4) == (
        reason(old, "kv_cache_usage_ratio"),
        *(value(r, "kv_cache_usage_ratio") for r in (middle, new)),
    )
    assert Reason.ENGINE_TOO_OLD is reason(middle, "requests_running")
    signals = ("requests_running", "requests_waiting", "sequence_limit", "step_token_limit", "kv_cache_capacity_tokens")
    assert (6.0, 2.0, 64.0, 8192.0, 3200.0) == tuple(value(new, s) for s in signals)
    assert (900.0, 300.0) == (value(new, "prefix_cache_queried_tokens_total"), value(new, "prefix_cache_hit_tokens_total"))
    assert Reason.ENGINE_TOO_OLD is reason(middle, "prefix_cache_hit_tokens_total")
    assert {Quality.APPROXIMATE} == {
        quality(new, s) for s in ("prompt_tokens_total", "generation_tokens_total", "preemptions_total", "step_seconds")
    }


def test_the_last_iteration_speaks_only_while_requests_run() -> None:
    """The gauge keeps its value when the engine goes idle."""
    busy, idle = (
        trtllm(V13),
        trtllm(
            V13.replace('num_requests_running{model_name="m",engine_type="trtllm",pid="7"} 6', f'num_requests_running{{{L},pid="7"}} 0')
        ),
    )
    assert (0.02, 305.0) == (value(busy, "step_seconds"), value(busy, "last_step_tokens"))
    assert (None, None) == (value(idle, "step_seconds"), value(idle, "last_step_tokens"))


def test_paused_requests_count_as_preemptions_when_they_rise() -> None:
    """There is only the level; what it rose by is counted."""
    reader = EngineReader(None, "trtllm")
    line = f'gauge trtllm_num_paused_requests{{{L},pid="7"}}'
    pages = [V13.replace(f"{line} 0", f"{line} {n}") for n in (1, 3, 0, 2)]
    assert [0.0, 2.0, 2.0, 4.0] == [value(reader.read_page(page(p), "", 1.0), "preemptions_total") for p in pages]


def test_a_dead_process_keeps_its_series() -> None:
    """Gauges carry a process id and stay; they are not added up."""
    dead = f'gauge trtllm_num_requests_running{{{L},pid="3"}} 4\n'
    assert 6.0 == value(trtllm(V13 + dead), "requests_running")


def test_speculation_of_13() -> None:
    """Drafts of iterations, positions of requests, and the length of the last iteration."""
    text = (
        V13
        + f"counter trtllm_spec_decode_num_draft_tokens_total{{{L}}} 100\ncounter trtllm_spec_decode_num_accepted_tokens_total{{{L}}} 60\n"
        + f'counter trtllm_spec_decode_accepted_tokens_total{{{L},token_position="0"}} 40\n'
        + f'gauge trtllm_spec_decode_acceptance_length{{{L},pid="7"}} 2.5\n'
    )
    out = trtllm(text)
    assert (100.0, 60.0, 2.5, 1.0) == tuple(
        value(out, s)
        for s in ("spec_draft_tokens_total", "spec_accepted_tokens_total", "spec_accepted_length_tokens", "speculation_enabled")
    )
    assert 40.0 == value(out, "spec_accepted_tokens_per_position_total", position="0")
    assert Reason.NOT_CONFIGURED is reason(trtllm(V13), "spec_draft_tokens_total")


def test_the_page_is_recognised() -> None:
    """With the prefix or by the first names together; a Dynamo page that passes vLLM through is not it."""
    for short in (V10, V13):
        assert ["trtllm"] == [kind for kind, adapter in adapters().items() if adapter.fingerprint(Document("u", page(short)))]
    assert not adapters()["trtllm"].fingerprint(Document("u", page(V13 + "gauge vllm:num_requests_running 1")))


# the JSON list


def record(number: int, **more: Any) -> dict[str, Any]:
    """Return an iteration as the PyTorch backend writes it."""
    return {
        "iter": number,
        "iterLatencyMS": 20.0,
        "numActiveRequests": 3,
        "numQueuedRequests": 1,
        "numCompletedRequests": 1,
        "numNewActiveRequests": 2,
        "newActiveRequestsQueueLatencyMS": 30.0,
        "maxNumActiveRequests": 64,
        "kvCacheStats": {"maxNumBlocks": 100, "usedNumBlocks": 25, "tokensPerBlock": 32, "reusedBlocks": 40, "missedBlocks": 60},
        "inflightBatchingStats": {"numCtxTokens": 100, "numGenRequests": 3, "numPausedRequests": 0},
        "specDecodingStats": None,
    } | more


def drained(*pages: list[dict[str, Any]]) -> Reading:
    """Return the last of the readings of these lists, one after another."""
    reader = EngineReader(None, "trtllm-json")
    return [reader.read_page(json.dumps(records), "application/json", float(t)) for t, records in enumerate(pages)][-1]


def test_iterations_become_counters() -> None:
    """What one read drained is added to what came before; an empty list adds nothing and levels stay."""
    out = drained([record(7), record(8)], [record(9)], [])
    assert (3.0, 300.0, 309.0, 3.0) == tuple(
        value(out, s) for s in ("steps_total", "prompt_tokens_total", "step_tokens_total", "requests_finished_total")
    )
    assert (3.0, 1.0, 0.25, 3200.0, 64.0) == tuple(
        value(out, s)
        for s in ("requests_running", "requests_waiting", "kv_cache_usage_ratio", "kv_cache_capacity_tokens", "sequence_limit")
    )
    assert (3200.0, 1280.0) == (value(out, "prefix_cache_queried_tokens_total"), value(out, "prefix_cache_hit_tokens_total"))
    mean = (value(out, "latency_seconds_total") or 0) / (value(out, "latency_observations_total") or 1)
    assert 0.015 == pytest.approx(mean)
    assert 0.06 == pytest.approx(value(out, "stage_seconds_total", stage="host"))


def test_iterations_that_overflowed_are_counted() -> None:
    """The engine keeps the newest 1,000; the numbers tell how many there were, and a restart counts anew."""
    assert 94.0 == value(drained([record(7)], [record(100)]), "steps_total")
    assert 2.0 == value(drained([record(700)], [record(1)]), "steps_total")


def test_the_clean_step_time_of_13_goes_first() -> None:
    """Under overlap the older figure spans about two loops; device time is that of the loop before."""
    out = drained([record(1, hostStepTimeMS=9.0, prevDeviceStepTimeMS=7.0)])
    assert pytest.approx((0.009, 0.007)) == (
        value(out, "stage_seconds_total", stage="host"),
        value(out, "stage_seconds_total", stage="device"),
    )


def test_pauses_and_drafts_of_iterations() -> None:
    """Rises of the paused level are preemptions; drafts and accepted tokens add up, null without speculation."""
    batches = [{"numPausedRequests": n, "numGenRequests": 1} for n in (0, 2, 1, 2)]
    out = drained([record(i, inflightBatchingStats=batch) for i, batch in enumerate(batches)])
    assert (3.0, Quality.APPROXIMATE) == (value(out, "preemptions_total"), quality(out, "preemptions_total"))
    assert (0.0, Reason.NOT_CONFIGURED) == (value(out, "speculation_enabled"), reason(out, "spec_drafts_total"))
    spec = {"numDraftTokens": 30, "numAcceptedTokens": 20, "numRequestsWithDraftTokens": 10}
    out = drained([record(1, specDecodingStats=spec), record(2, specDecodingStats=spec)])
    assert (60.0, 40.0, 20.0) == tuple(value(out, f"spec_{s}_total") for s in ("draft_tokens", "accepted_tokens", "drafts"))


def test_kinds_of_tokens_and_the_host_tier() -> None:
    """Prefill and decode tokens add up to those of the steps; bytes from the host tier are summed over window sizes where they are told."""
    windows = {"4096": {"iterOnboardBytes": 4096, "iterOffloadBytes": 9}, "512": {"iterOnboardBytes": 1024}}
    out = drained([record(1, kvCacheIterationStats=windows), record(2, kvCacheIterationStats=windows)])
    assert (200.0, 6.0) == tuple(value(out, "batch_tokens_total", kind=kind) for kind in ("prefill", "decode"))
    assert 10240.0 == value(out, "kv_offload_load_bytes_total")
    assert Reason.ENGINE_TOO_OLD is reason(drained([record(1)]), "kv_offload_load_bytes_total")


def request(arrived: float, waited: float, first: float, last: float, **more: Any) -> dict[str, Any]:
    """Return a request as `/perf_metrics` tells it; times after its arrival."""
    times = {"arrival_time": arrived, "first_scheduled_time": arrived + waited, "first_token_time": arrived + first}
    return {
        "request_id": 7,
        "perf_metrics": {"timing_metrics": times | {"last_token_time": arrived + last} | more, "first_iter": 10, "last_iter": 30},
    }


def test_requests_become_histograms() -> None:
    """Times of finished requests, which another page of the server tells once, are counted in buckets of our own."""
    reader = EngineReader(None, "trtllm-json")
    early, late = request(100.0, 0.5, 0.75, 4.75), request(200.0, 0.0, 0.25, 2.25, server_arrival_time=199.5, server_first_token_time=200.5)
    for t, requests in enumerate(([early], [], [late])):
        out = reader.read_page(json.dumps([record(t)]), "", float(t), beside={"/perf_metrics": request_times(requests)})
    found = {s: histogram(out, f"{s}_seconds") for s in ("queue_time", "time_to_first_token", "e2e_latency", "time_per_output_token")}
    sums = {"queue_time": 0.5, "time_to_first_token": 1.75, "e2e_latency": 7.0, "time_per_output_token": 4 / 20 + 2 / 20}
    assert sums == {name: pytest.approx(h.sum) for name, h in found.items()}
    assert {2.0} == {h.counts[-1] for h in found.values()}
    at = dict(zip(found["queue_time"].bounds, found["queue_time"].counts, strict=True))
    assert (1.0, 1.0, 2.0) == (at[0.001], at[0.2], at[0.5])
    assert (Quality.DERIVED, Quality.APPROXIMATE) == (quality(out, "e2e_latency_seconds"), quality(out, "time_per_output_token_seconds"))


@pytest.mark.parametrize("record", [{}, {"perf_metrics": None}, {"perf_metrics": {"timing_metrics": {"arrival_time": 1.0}}}])
def test_requests_that_tell_nothing(record: dict[str, Any]) -> None:
    """A request that was cut short has no times; it is passed over."""
    assert [{}] == request_times([record])


def test_why_there_are_no_request_times() -> None:
    """The page does not answer, or has told of no request yet."""
    reader = EngineReader(None, "trtllm-json")
    reasons = [
        reason(reader.read_page("[]", "", 1.0, beside=beside), "time_to_first_token_seconds") for beside in ({}, {"/perf_metrics": []})
    ]
    assert [Reason.FLAG_OFF, Reason.IDLE] == reasons


def test_both_lists_are_read_in_one_turn() -> None:
    """The list of requests is fetched beside that of iterations, kept in the recording as few numbers, and replayed from there."""
    with EngineServer() as server:
        server.answers["/metrics"] = Answer(json.dumps([record(1)]).encode(), "application/json")
        server.answers["/perf_metrics"] = Answer(json.dumps([request(100.0, 0.5, 0.75, 4.75)]).encode(), "application/json")
        one = EngineSource("trt", server.url, "trtllm-json")
        live = one.read(1.0)
        one.close()
    assert live.raw is not None
    assert {"/perf_metrics"} == set(live.raw["beside"])
    again = EngineReader("trt", "trtllm-json").read_row(json.loads(json.dumps(live.raw)))
    assert (live.samples, live.histograms, live.missing, live.quality) == (again.samples, again.histograms, again.missing, again.quality)
    assert 4.75 == histogram(again, "e2e_latency_seconds").sum


def test_an_empty_list_is_no_failure() -> None:
    """Nothing new means nothing new; that nothing ever came has a reason that names the switch."""
    out = drained([])
    assert (None, Reason.IDLE) == (value(out, "steps_total"), reason(out, "steps_total"))


def test_what_iterations_do_not_tell_is_absent() -> None:
    """Without the parts that hold them, requests and tokens are not 0: they are missing, and the steps go on."""
    out = drained([{"iter": n, "iterLatencyMS": 20.0, "numActiveRequests": None} for n in (1, 2)])
    assert 2.0 == value(out, "steps_total")
    for signal in ("requests_running", "requests_waiting", "prompt_tokens_total", "step_tokens_total", "preemptions_total"):
        assert (None, Reason.ENGINE) == (value(out, signal), reason(out, signal))
    assert {} == {s.labels: s.value for s in out.samples if s.name.endswith("batch_tokens_total")}


def test_numbers_that_are_none_add_nothing() -> None:
    """NaN, infinities, numbers beyond a double and negative ones never reach a counter, which could not forget them."""
    text = '[{"iter": 1, "iterLatencyMS": NaN, "numCompletedRequests": -5, "newActiveRequestsQueueLatencyMS": 1e999,'
    text += f'"inflightBatchingStats": {{"numCtxTokens": Infinity, "numGenRequests": {"9" * 400}}}}}]'
    reader = EngineReader(None, "trtllm-json")
    reader.read_page(text, "application/json", 1.0)
    out = reader.read_page(json.dumps([record(2)]), "application/json", 2.0)
    found = tuple(value(out, s) for s in ("steps_total", "prompt_tokens_total", "step_tokens_total", "requests_finished_total"))
    assert (2.0, 100.0, 103.0, 1.0) == found
    assert 0.03 == pytest.approx(value(out, "latency_seconds_total"))


@pytest.mark.parametrize("text", ["{}", "nonsense", "[1]", pytest.param("[" * 100_000, id="nested")])
def test_other_json_is_refused(text: str) -> None:
    """One line with the URL, as for every page."""
    with pytest.raises(SourceError, match="recording: no"):
        EngineReader(None, "trtllm-json").read_page(text, "application/json", 1.0)


def test_the_list_is_not_taken_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking for an engine reads such a page once; then it is left alone, and the message says what to do."""
    monkeypatch.setattr(source_module, "_draining", {})
    with EngineServer() as server:
        server.answers["/metrics"] = Answer(json.dumps([record(1)]).encode(), "application/json")
        for _ in range(3):
            one = EngineSource(None, server.url)
            with pytest.raises(SourceError, match=r"return_perf_metrics: true there, or engines\[\].kind: trtllm-json here") as raised:
                one.read(1.0)
            one.close()
            assert Reason.FLAG_OFF is raised.value.reason
        assert 1 == server.asked.count("/metrics")
        asked = EngineSource(None, server.url, "trtllm-json")
        assert 1.0 == value(asked.read(1.0), "steps_total")
        asked.close()


def test_a_worker_under_dynamo_tells_transfers() -> None:
    """There the page has transfers between engines; elsewhere the engine has none."""
    moved = (
        V13
        + f"""
    counter trtllm_kv_transfer_success_total{{{L}}} 4
    histogram trtllm_kv_transfer_latency_seconds{{{L}}} 0.1=3 +Inf=4 sum=0.2
    histogram trtllm_kv_transfer_bytes{{{L}}} 1000=3 +Inf=4 sum=8000
    """
    )
    found = tuple(value(trtllm(moved), f"kv_transfer{s}_total") for s in ("s", "_seconds", "_bytes"))
    assert (4.0, 0.2, 8000.0) == found
    assert Reason.ENGINE is reason(trtllm(V13), "kv_transfers_total")
