"""NVIDIA Dynamo 0.6 to 1.6: its own families on frontend and workers, as a table.

A worker's page that passes its engine's families through is read as that engine's, whose signals are nearer to the truth.
"""

from __future__ import annotations

from typing import Any

from heptascope.model import Reason
from heptascope.sources.engine.adapter import Absence, register
from heptascope.sources.engine.table import Facts, Read, Row, Table, Take, product
from heptascope.sources.engine.tabled import TableAdapter, approximate, declared, derived, latency, span_by, take
from heptascope.sources.engine.version import version

_FRONT, _WORKER = "dynamo_frontend_", "dynamo_component_"
_PASSED = Absence(Reason.ENGINE, "Dynamo has none of its own; watch the worker's port, where its engine's families pass through")
_NO_TRANSFER = Absence(Reason.NOT_CONFIGURED, "prefill and decode are not split between workers")
_NO_EVENT = Absence(Reason.IDLE, "its family appears with the first request")


def _level(signal: str, *names: str, **more: Any) -> Row:
    return Row(signal, Read.GAUGE, tuple(take(name) for name in names), absent=_PASSED, **more)


def _limit(signal: str, name: str) -> Row:
    return Row(signal, Read.GAUGE, (take(_FRONT + name),), fold=max, absent=_PASSED)


def _sum(signal: str, *takes: Take, **more: Any) -> Row:
    return Row(signal, Read.SUM, takes, absent=_NO_EVENT, **more)


def _no_cached(facts: Facts) -> Absence | None:
    if facts.page.of(f"{_FRONT}cached_tokens"):
        return None
    return Absence(Reason.IDLE, "cached tokens appear with the first request that reports them (0.8 or newer)")


ROWS: tuple[Row, ...] = (
    _level("requests_running", f"{_FRONT}active_requests", f"{_FRONT}inflight_requests", f"{_WORKER}inflight_requests"),
    # stages before the engine, or everything before its first token: neither is the engine's queue
    _level("requests_waiting", f"{_FRONT}stage_requests", f"{_FRONT}queued_requests", quality=approximate),
    Row(
        "requests_finished_total",
        Read.COUNTER,
        (take(f"{_FRONT}requests"), take(f"{_WORKER}requests")),
        {"status": "reason"},
        absent=_NO_EVENT,
    ),
    Row(
        "requests_rejected_total",
        Read.COUNTER,
        (take(f"{_FRONT}model_rejection"),),
        always={"reason": "rejected"},
        since=version("1.1"),
        absent=_NO_EVENT,
    ),
    _sum("prompt_tokens_total", take(f"{_FRONT}input_sequence_tokens"), quality=derived),
    _sum("prompt_cached_tokens_total", take(f"{_FRONT}cached_tokens"), quality=approximate, since=version("0.8")),
    _sum(
        "generation_tokens_total",
        Take((f"{_FRONT}output_tokens",), read=Read.COUNTER),
        take(f"{_FRONT}output_sequence_tokens"),
        quality=lambda facts: derived(facts) if facts.page.of(f"{_FRONT}output_tokens") else approximate(facts),
    ),
    _limit("sequence_limit", "model_max_num_seqs"),
    _limit("step_token_limit", "model_max_num_batched_tokens"),
    _limit("model_length_limit", "model_context_length"),
    # a ratio in spite of the name
    Row(
        "kv_cache_usage_ratio",
        Read.RATIO,
        (take(f"{_WORKER}gpu_cache_usage_percent"), take(f"{_WORKER}kvstats_gpu_cache_usage_percent")),
        fold=max,
        absent=_PASSED,
    ),
    Row(
        "kv_cache_capacity_tokens",
        Read.GAUGE,
        (Take((f"{_FRONT}model_total_kv_blocks", f"{_FRONT}model_kv_cache_block_size"), join=product),),
        fold=max,
        quality=derived,
        absent=_PASSED,
    ),
    _sum("prefix_cache_queried_tokens_total", take(f"{_FRONT}input_sequence_tokens"), quality=approximate, off=_no_cached),
    _sum("prefix_cache_hit_tokens_total", take(f"{_FRONT}cached_tokens"), quality=approximate, off=_no_cached),
    latency("time_to_first_token_seconds", f"{_FRONT}time_to_first_token_seconds", absent=_NO_EVENT),
    latency("inter_token_latency_seconds", f"{_FRONT}inter_token_latency_seconds", absent=_NO_EVENT),
    latency("e2e_latency_seconds", f"{_FRONT}request_duration_seconds", f"{_WORKER}request_duration_seconds", absent=_NO_EVENT),
    # Dynamo's own queues before the engine's, on frontend and worker
    latency(
        "queue_time_seconds",
        "dynamo_request_plane_queue_seconds",
        "dynamo_work_handler_permit_wait_seconds",
        quality=approximate,
        absent=_PASSED,
    ),
    latency("prompt_length_tokens", f"{_FRONT}input_sequence_tokens", absent=_NO_EVENT),
    latency("generation_length_tokens", f"{_FRONT}output_sequence_tokens", absent=_NO_EVENT),
    # the front end's own health
    latency(
        "frontend_event_loop_lag_seconds",
        f"{_FRONT}event_loop_delay_seconds",
        off=declared(f"{_FRONT}event_loop_delay_seconds", "histogram"),
        since=version("1.1"),
        absent=_NO_EVENT,
    ),
    Row(
        "frontend_tokenize_seconds",
        Read.HISTOGRAM,
        (take(f"{_FRONT}tokenize_seconds"), Take((f"{_FRONT}tokenizer_latency_ms",), {"operation": "tokenize"}, scale=1e-3)),
        off=declared(f"{_FRONT}tokenize_seconds", "histogram"),
        since=version("1.0"),
        absent=_NO_EVENT,
    ),
    # what the frontend expects of prefill to decode; the engines' pages tell what it took
    *(
        Row(
            signal,
            read,
            (take(f"{_FRONT}kv_transfer_estimated_latency_seconds"),),
            quality=approximate,
            since=version("1.1"),
            absent=_NO_TRANSFER,
        )
        for signal, read in (("kv_transfers_total", Read.COUNT), ("kv_transfer_seconds_total", Read.SUM))
    ),
)


TABLE = Table(
    "Dynamo",
    ROWS,
    rank_label="dp_rank",
    model_label="model",
    version=span_by(
        {
            f"{_FRONT}output_tokens_total": version("0.7"),
            f"{_FRONT}cached_tokens": version("0.8"),
            f"{_WORKER}gpu_cache_usage_percent": version("1.0"),
            f"{_FRONT}stage_duration_seconds": version("1.1"),
            f"{_FRONT}active_requests": version("1.2"),
            f"{_FRONT}requests_started_total": version("1.3"),
            f"{_FRONT}model_ready": version("1.5"),
            f"{_FRONT}failures_total": version("1.6"),
        },
        {f"{_WORKER}kvstats_gpu_cache_usage_percent": version("0.9")},
    ),
    ignore=frozenset({"model_name", "dynamo_namespace", "dynamo_component"}),
)


_ENGINE_ONLY = (
    "preemptions_total",
    "steps_total",
    "step_tokens_total",
    "spec_draft_tokens_total",
    "spec_accepted_tokens_total",
)

DYNAMO = register(
    TableAdapter(
        "dynamo",
        TABLE,
        prefixes=(_FRONT, _WORKER),
        foreign=("vllm_", "sglang_", "trtllm_request_"),
        ports=(8000, 8081, 9090),
        lacks=dict.fromkeys(_ENGINE_ONLY, _PASSED)
        | dict.fromkeys(
            ("kv_offload_load_bytes_total", "kv_offload_load_seconds_total"),
            Absence(Reason.ENGINE, "its block manager counts blocks (kvbm_*), and tells neither their size nor the time"),
        ),
    )
)
