"""TensorRT-LLM's `trtllm-serve`, Prometheus endpoint, 1.0 to 1.3 as a table. Its JSON endpoint is another kind: see trtllm_json.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heptascope.model import Reason
from heptascope.sources.engine.adapter import Absence, Collector, Question, Told, register
from heptascope.sources.engine.page import GAUGE, Document
from heptascope.sources.engine.table import Facts, Read, Row, Table, Take, product, quotient
from heptascope.sources.engine.tabled import TableAdapter, approximate, config_labels, derived, latency, numbers, span_by, take, texts
from heptascope.sources.engine.trtllm_command import COMMAND
from heptascope.sources.engine.version import version

_FULL_SINCE = version("1.3")
_FLAG = Absence(Reason.FLAG_OFF, "needs enable_iter_perf_stats: true beside return_perf_metrics: true in the extra options")
_NO_SPECULATION = Absence(Reason.NOT_CONFIGURED, "speculative decoding is not configured")
_NO_TRANSFER = Absence(Reason.ENGINE, "its page counts no transfers between engines, but for workers of NVIDIA Dynamo")
_FIRST_NAMES = frozenset({"request_success_total", "e2e_request_latency_seconds", "request_queue_time_seconds"})
_INFO = ("model", "parallel", "speculative", "kv_cache")
_PREFIX = "trtllm_"


def _latency(signal: str, name: str, since: str = "1.0") -> Row:
    """Return a histogram's row; 1.0 and 1.1 had no prefix."""
    return latency(signal, _PREFIX + name, name, since=version(since))


def _level(signal: str, *names: str, **more: Any) -> Row:
    """Return a gauge's row; each process has a series of its own, and those of dead ones stay."""
    return Row(signal, Read.GAUGE, tuple(take(_PREFIX + name) for name in names), fold=max, since=_FULL_SINCE, absent=_FLAG, **more)


def _count(signal: str, name: str, **more: Any) -> Row:
    more = {"since": _FULL_SINCE, **more}
    return Row(signal, Read.COUNTER, (take(_PREFIX + name),), **more)


def _idle(facts: Facts) -> Absence | None:
    """Say that the last iteration's time means nothing while nothing runs."""
    running = max((value for _, value in facts.page.of("trtllm_num_requests_running")), default=0.0)
    return None if running > 0 else Absence(Reason.IDLE, "no requests are running")


ROWS: tuple[Row, ...] = (
    _level("requests_running", "num_requests_running"),
    _level("requests_waiting", "num_requests_waiting"),
    Row(
        "requests_finished_total",
        Read.COUNTER,
        (take("trtllm_request_success"), take("request_success")),
        {"finished_reason": "reason"},
    ),
    _count("requests_finished_total", "request_error", keep={"http_code": "reason"}, spell=lambda code: f"http_{code}"),
    _count("prompt_tokens_total", "prompt_tokens", quality=approximate),
    _count("prompt_cached_tokens_total", "prompt_cached_tokens", quality=approximate),
    _count("generation_tokens_total", "generation_tokens", quality=approximate),
    _level("sequence_limit", "max_num_active_requests", "max_batch_size_runtime"),
    _level("step_token_limit", "max_num_tokens_runtime"),
    Row(
        "kv_cache_usage_ratio",
        Read.RATIO,
        (
            take("trtllm_kv_cache_utilization"),
            Take(("trtllm_kv_cache_used_blocks", "trtllm_kv_cache_max_blocks"), join=quotient, read=Read.GAUGE),
        ),
        fold=max,
        since=version("1.2"),
        absent=_FLAG,
    ),
    Row(
        "kv_cache_capacity_tokens",
        Read.GAUGE,
        (Take(("trtllm_kv_cache_max_blocks", "trtllm_kv_cache_tokens_per_block"), join=product),),
        fold=max,
        quality=derived,
        since=_FULL_SINCE,
        absent=_FLAG,
    ),
    _count("prefix_cache_queried_tokens_total", "prompt_tokens", quality=approximate),
    _count("prefix_cache_hit_tokens_total", "prompt_cached_tokens", quality=approximate),
    Row(
        "preemptions_total",
        Read.RISES,
        (take("trtllm_num_paused_requests"),),
        fold=max,
        quality=approximate,
        since=_FULL_SINCE,
        absent=_FLAG,
    ),
    _count(
        "kv_offload_load_bytes_total", "kv_cache_onboard_bytes", absent=Absence(Reason.NOT_CONFIGURED, "no KV offloading is configured")
    ),
    # a worker under NVIDIA Dynamo adds these
    *(
        Row(signal, read, (take(f"{_PREFIX}kv_transfer_{name}"),), absent=_NO_TRANSFER)
        for signal, read, name in (
            ("kv_transfers_total", Read.COUNTER, "success"),
            ("kv_transfer_seconds_total", Read.SUM, "latency_seconds"),
            ("kv_transfer_bytes_total", Read.SUM, "bytes"),
        )
    ),
    Row("step_seconds", Read.GAUGE, (take("trtllm_iteration_latency_seconds"),), fold=max, quality=approximate, off=_idle),
    Row(
        "last_step_tokens",
        Read.GAUGE,
        (take("trtllm_total_context_tokens", "trtllm_num_generation_requests"),),
        fold=max,
        quality=approximate,
        off=_idle,
    ),
    _latency("time_to_first_token_seconds", "time_to_first_token_seconds"),
    _latency("time_per_output_token_seconds", "time_per_output_token_seconds"),
    _latency("e2e_latency_seconds", "e2e_request_latency_seconds"),
    _latency("queue_time_seconds", "request_queue_time_seconds"),
    _latency("prefill_time_seconds", "request_prefill_time_seconds", since="1.3"),
    _latency("decode_time_seconds", "request_decode_time_seconds", since="1.3"),
    _count("spec_draft_tokens_total", "spec_decode_num_draft_tokens", absent=_NO_SPECULATION),
    _count("spec_accepted_tokens_total", "spec_decode_num_accepted_tokens", absent=_NO_SPECULATION),
    _count(
        "spec_accepted_tokens_per_position_total",
        "spec_decode_accepted_tokens",
        keep={"token_position": "position"},
        absent=_NO_SPECULATION,
    ),
    Row(
        "spec_accepted_length_tokens",
        Read.GAUGE,
        (take("trtllm_spec_decode_acceptance_length"),),
        fold=max,
        quality=approximate,
        zero=_NO_SPECULATION,
    ),
)

TABLE = Table(
    "TensorRT-LLM",
    ROWS,
    rank_label="dp_rank",
    model_label="model_name",
    version=span_by(
        {
            "trtllm_request_success_total": version("1.2"),
            "trtllm_kv_cache_utilization": version("1.2"),
            "trtllm_num_requests_running": version("1.3"),
        },
        {name: version("1.2") for name in _FIRST_NAMES},
    ),
    further={f"trtllm_{what}_config_info": GAUGE for what in _INFO},
    ignore=frozenset({"engine_type"}),
)
_SHOWN = {
    "model": {
        "model": "model_root",
        "dtype": "dtype",
        "quantization": "quantization",
        "backend": "backend",
        "attn_backend": "attention_backend",
    },
    "parallel": {
        "tensor_parallel_size": "tensor_parallel_size",
        "pipeline_parallel_size": "pipeline_parallel_size",
        "gpus_per_node": "gpus_per_node",
        "moe_expert_parallel_size": "expert_parallel_size",
    },
    "speculative": {"spec_enabled": "speculative", "spec_method": "speculative_method", "spec_num_tokens": "speculative_tokens"},
    "kv_cache": {
        "page_size": "block_size",
        "tokens_per_block": "block_size",
        "enable_block_reuse": "enable_prefix_caching",
        "cache_dtype": "cache_dtype",
    },
}
"""Labels of the info families that are shown, and how; labels that a release lacks are passed over."""


def complete(facts: Facts, out: Collector) -> None:
    """Add what the info families say, and whether speculation is on."""
    told: dict[str, float] = {}
    for what in _INFO:
        told |= config_labels(facts, out, f"trtllm_{what}_config_info", _SHOWN[what])
    for setting in ("tensor_parallel_size", "pipeline_parallel_size"):
        if setting in told:
            for rank in facts.ranks:
                out.sample(setting, out.pairs(rank), told[setting])
    if facts.page.of("trtllm_spec_decode_num_draft_tokens"):
        for rank in facts.ranks:
            out.sample("speculation_enabled", out.pairs(rank), 1.0)


def told_by_models(answer: Mapping[str, Any]) -> Told:
    """Return the model's name in `/v1/models`."""
    return Told(model=str(answer["data"][0]["id"]))


def told_by_server(answer: Mapping[str, Any]) -> Told:
    """Return what `/server_info` says, as far as it is named as elsewhere."""
    keys = {"max_batch_size": "max_num_seqs", "max_num_tokens": "max_num_batched_tokens", "max_seq_len": "max_model_len"}
    return Told(settings=numbers(answer, keys), config=texts(answer, {"backend": "backend", "dtype": "dtype"}))


class _Adapter(TableAdapter):
    """Knows the first releases by names without a prefix."""

    def fingerprint(self, document: Document) -> bool:
        """Whether the page is TensorRT-LLM's."""
        return super().fingerprint(document) or document.names >= _FIRST_NAMES


TRTLLM = register(
    _Adapter(
        "trtllm",
        TABLE,
        prefixes=(_PREFIX, *_FIRST_NAMES),
        foreign=("vllm_", "sglang_"),
        paths=("/prometheus/metrics",),
        ports=(8000,),
        version_path="/version",
        command=COMMAND,
        questions=(Question(("/v1/models",), told_by_models), Question(("/server_info",), told_by_server)),
        complete=lambda: complete,
        lacks={
            "inter_token_latency_seconds": Absence(Reason.ENGINE, "it times requests, not tokens: see time_per_output_token_seconds"),
            "steps_total": Absence(Reason.ENGINE, "this endpoint counts no iterations; engines[].kind: trtllm-json does"),
        },
    )
)
