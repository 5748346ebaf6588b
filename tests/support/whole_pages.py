"""One page of the newest release of each engine with everything switched on, and what stands beside it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from heptascope.model import Reading
from heptascope.sources.engine.llamacpp_slots import SLOTS, slot_tokens, told_by_props
from heptascope.sources.engine.reader import EngineReader
from heptascope.sources.engine.tgi import told_by_info
from heptascope.sources.engine.trtllm import told_by_models
from heptascope.sources.engine.trtllm_requests import PATH, request_times
from support.engine_pages import VLLM_032, capture
from support.page_text import page


def counters(prefix: str, labels: str, suffix: str, **values: float) -> str:
    """Return lines of counters."""
    return "".join(f"counter {prefix}{name}{suffix}{{{labels}}} {value}\n" for name, value in values.items())


def gauges(prefix: str, labels: str, **values: float) -> str:
    """Return lines of gauges."""
    return "".join(f"gauge {prefix}{name}{{{labels}}} {value}\n" for name, value in values.items())


def histograms(prefix: str, labels: str, *names: str) -> str:
    """Return lines of histograms."""
    return "".join(f"histogram {prefix}{name}{{{labels}}} 0.1=3 1=7 +Inf=8 sum=6\n" for name in names)


V = 'engine="0",model_name="tiny"'
VLLM = (
    counters("vllm:spec_decode_num_", V, "_total", drafts=10, draft_tokens=40, accepted_tokens=30)
    + counters("vllm:estimated_", V, "_total", flops_per_gpu=5, read_bytes_per_gpu=5, write_bytes_per_gpu=5)
    + counters("vllm:kv_offload_", V, "_total", load_bytes=5, load_time=5)
    + histograms("vllm:nixl_", V, "xfer_time_seconds", "bytes_transferred")
)

S = 'engine_type="unified",model_name="m",tp_rank="0",pp_rank="0"'
SGLANG = (
    gauges("sglang:", S, num_running_reqs=5, num_queue_reqs=3, token_usage=0.25, max_total_num_tokens=8192, spec_num_draft_tokens=4)
    + gauges("sglang:", S, kv_used_tokens=25, kv_evictable_tokens=25, kv_available_tokens=50, spec_accept_rate=0.5)
    + "".join(f'counter sglang:realtime_tokens_total{{{S},mode="{m}"}} 9\n' for m in ("prefill_compute", "prefill_cache", "decode"))
    + "".join(f'counter sglang:prefill_effective_tokens_total{{{S},mode="{m}"}} 9\n' for m in ("input", "device_hit"))
    + f'counter sglang:cuda_graph_passes_total{{{S},mode="decode_cuda_graph"}} 90\n'
    + f'counter sglang:scheduler_stage_seconds_total{{{S},category="run_batch"}} 9\n'
    + counters("sglang:", S, "_total", num_retracted_requests=2, estimated_flops_per_gpu=5, load_back_bytes=5)
    + counters("sglang:", S, "_total", estimated_read_bytes_per_gpu=5, estimated_write_bytes_per_gpu=5)
    + counters("sglang:", 'model_name="m"', "_total", num_requests=9, num_aborted_requests=1, generation_tokens=90, spec_verify_calls=30)
    + histograms("sglang:", S, "queue_time_seconds", "kv_transfer_latency_ms", "kv_transfer_total_mb", "load_back_duration_seconds")
    + histograms("sglang:", 'model_name="m"', "time_to_first_token_seconds", "inter_token_latency_seconds", "e2e_request_latency_seconds")
    + histograms("sglang:", 'model_name="m"', "request_time_per_output_token_seconds")
)

T = 'model_name="m",engine_type="trtllm"'
TRTLLM = (
    f'counter trtllm_request_success_total{{{T},finished_reason="stop"}} 5\ncounter trtllm_request_error_total{{{T},http_code="500"}} 1\n'
    + counters("trtllm_", T, "_total", prompt_tokens=900, generation_tokens=400, prompt_cached_tokens=300, kv_cache_onboard_bytes=5)
    + counters("trtllm_spec_decode_num_", T, "_total", draft_tokens=40, accepted_tokens=30)
    + gauges("trtllm_", f'{T},pid="7"', num_requests_running=6, num_requests_waiting=2, num_paused_requests=0, max_num_active_requests=64)
    + gauges("trtllm_", f'{T},pid="7"', kv_cache_utilization=0.4, kv_cache_max_blocks=100, kv_cache_tokens_per_block=32)
    + gauges("trtllm_", f'{T},pid="7"', iteration_latency_seconds=0.02, total_context_tokens=300, num_generation_requests=5)
    + gauges("trtllm_", f'{T},pid="7"', spec_decode_acceptance_length=2.5)
    + histograms("trtllm_", T, "e2e_request_latency_seconds", "time_to_first_token_seconds", "time_per_output_token_seconds")
    + histograms("trtllm_", T, "request_queue_time_seconds")
)
ITERATION: Mapping[str, Any] = {
    "iter": 7,
    "hostStepTimeMS": 9.0,
    "prevDeviceStepTimeMS": 7.0,
    "numActiveRequests": 3,
    "numQueuedRequests": 1,
    "numCompletedRequests": 1,
    "numNewActiveRequests": 2,
    "newActiveRequestsQueueLatencyMS": 30.0,
    "maxNumActiveRequests": 64,
    "kvCacheStats": {"maxNumBlocks": 100, "usedNumBlocks": 25, "tokensPerBlock": 32, "reusedBlocks": 40, "missedBlocks": 60},
    "kvCacheIterationStats": {"4096": {"iterOnboardBytes": 4096}},
    "inflightBatchingStats": {"numCtxTokens": 100, "numGenRequests": 3, "numPausedRequests": 0},
    "specDecodingStats": {"numDraftTokens": 30, "numAcceptedTokens": 20, "numRequestsWithDraftTokens": 10},
}
REQUEST = {
    "perf_metrics": {
        "timing_metrics": {"arrival_time": 1.0, "first_scheduled_time": 1.5, "first_token_time": 2.0, "last_token_time": 4.0},
        "first_iter": 10,
        "last_iter": 30,
    }
}


def _selected(family: str, selector: str, **values: float) -> str:
    pairs = 'model="tensorrt_llm",version="1"'
    return "".join(f'gauge {family}{{{selector}="{kind}",{pairs}}} {value}\n' for kind, value in values.items())


N = 'model="tensorrt_llm",version="1"'
TRITON = (
    counters("nv_inference_", N, "", request_success=50, request_duration_us=2e6, queue_duration_us=1e4)
    + f'counter nv_inference_request_failure{{{N},reason="CANCELED"}} 2\n'
    + _selected("nv_trt_llm_request_metrics", "request_type", active=6, max=64, scheduled=5, waiting=2)
    + _selected("nv_trt_llm_kv_cache_block_metrics", "kv_cache_block_type", max=100, used=40, tokens_per=64, fraction=0.4)
    + _selected("nv_trt_llm_general_metrics", "general_type", iteration_counter=4000)
    + _selected(
        "nv_trt_llm_inflight_batcher_metrics",
        "inflight_batcher_specific_metric",
        total_context_tokens=300,
        generation_requests=5,
        paused_requests=1,
    )
    + "".join(
        f'counter nv_trt_llm_disaggregated_serving_metrics{{disaggregated_serving_type="{kind}",{N}}} 4\n'
        for kind in ("request_count", "kv_cache_transfer_ms")
    )
    + histograms("nv_", N, "inference_first_response_histogram_ms", "llm_input_token_len", "llm_output_token_len")
)

TGI = (
    "counter tgi_request_count 12\ncounter tgi_request_success 8\n"
    'counter tgi_request_failure{err="dropped"} 1\ncounter tgi_batch_inference_count{method="decode"} 90\n'
    "gauge tgi_queue_size 3\ngauge tgi_batch_current_size 4\n"
    "gauge tgi_batch_current_max_tokens 3000\ngauge tgi_batch_max_total_tokens 12000\n"
    "summary tgi_request_skipped_tokens sum=30 count=10\n"
    + "".join(
        f"histogram tgi_{name} 0.1=3 +Inf=8 sum=6\n"
        for name in (
            "request_duration",
            "request_queue_duration",
            "request_validation_duration",
            "request_mean_time_per_token_duration",
            "request_input_length",
            "request_generated_tokens",
        )
    )
    + "".join(
        f'histogram tgi_batch_{name}_duration{{method="{method}"}} 0.1=3 +Inf=8 sum=6\n'
        for name in ("inference", "forward")
        for method in ("prefill", "decode")
    )
)

L = 'model_name="m",engine="0"'
LMDEPLOY = (
    f'gauge lmdeploy:backend_config_info{{{L},max_batch_size="128",session_len="8192",tp="1"}} 1\n'
    + gauges("lmdeploy:", L, num_requests_running=4, num_requests_waiting=2, gpu_cache_usage_perc=0.5, num_requests_succeeded=9)
    + counters("lmdeploy:", L, "_total", prompt_tokens=900, generation_tokens=400, cached_tokens=100)
    + f'counter lmdeploy:request_success_total{{{L},finished_reason="ResponseType.CANCEL"}} 2\n'
    + counters("lmdeploy:spec_decode_num_", L, "_total", drafts=10, draft_tokens=40, accepted_tokens=30)
    + histograms("lmdeploy:", L, "time_to_first_token_seconds", "iter_token_latency", "time_per_output_token_seconds")
    + histograms("lmdeploy:", L, "e2e_request_latency_seconds", "request_queue_time_seconds", "request_prompt_tokens")
)

D = 'model="m"'
DYNAMO = (
    f'counter dynamo_frontend_requests_total{{{D},status="success"}} 40\ncounter dynamo_frontend_requests_total{{{D},status="error"}} 2\n'
    + gauges("dynamo_frontend_", D, active_requests=6, model_total_kv_blocks=1000, model_kv_cache_block_size=16, model_max_num_seqs=256)
    + f'gauge dynamo_frontend_stage_requests{{stage="route",phase="a",{D}}} 2\n'
    + f"counter dynamo_frontend_output_tokens_total{{{D}}} 1000\n"
    + gauges("dynamo_component_", f'{D},dp_rank="0"', gpu_cache_usage_percent=0.25)
    + histograms("dynamo_frontend_", D, "time_to_first_token_seconds", "inter_token_latency_seconds", "request_duration_seconds")
    + histograms("dynamo_frontend_", D, "input_sequence_tokens", "output_sequence_tokens", "cached_tokens")
    + histograms("dynamo_frontend_", D, "kv_transfer_estimated_latency_seconds", "tokenize_seconds", "event_loop_delay_seconds")
    + histograms("dynamo_request_plane_", D, "queue_seconds")
)


def _read(kind: str, text: str, **more: Any) -> Reading:
    return EngineReader(None, kind).read_page(text, "", 1.0, **more)


def _llamacpp() -> Reading:
    busy = {"is_processing": True, "n_ctx": 2048, "n_prompt_tokens": 600}
    told = told_by_props({"total_slots": 4, "default_generation_settings": {"n_ctx": 2048}, "model_path": "/models/tiny.gguf"})
    text = capture("llamacpp-b11434", "spec_draft_high")
    return _read("llamacpp", text, told=told, beside={SLOTS: slot_tokens([busy])})


def _vllm() -> Reading:
    lines = capture(VLLM_032, "steady_16").splitlines(keepends=True)  # without the flag it shows work of 0
    return _read("vllm", "".join(line for line in lines if "vllm:estimated_" not in line) + page(VLLM), version="0.32.0")


READINGS: Mapping[str, Callable[[], Reading]] = {
    "vllm": _vllm,
    "sglang": lambda: _read("sglang", page(SGLANG), version="0.5.23"),
    "trtllm-json": lambda: _read(
        "trtllm-json",
        json.dumps([ITERATION]),
        told=told_by_models({"data": [{"id": "m"}]}),
        beside={PATH: request_times([REQUEST])},
    ),
    "trtllm": lambda: _read("trtllm", page(TRTLLM), version="1.3.0"),
    "triton": lambda: _read("triton", page(TRITON)),
    "tgi": lambda: _read("tgi", page(TGI), told=told_by_info({"version": "3.3.7", "model_id": "m"})),
    "lmdeploy": lambda: _read("lmdeploy", page(LMDEPLOY), version="0.18.0"),
    "llamacpp": _llamacpp,
    "dynamo": lambda: _read("dynamo", page(DYNAMO)),
}
"""What is read of it, by kind, in the order of the matrix."""
