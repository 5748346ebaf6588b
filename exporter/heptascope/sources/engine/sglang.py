"""SGLang 0.4 to 0.5.23 as a table. Families carry `_total` on the wire; live counters are preferred to those that move at finish."""

from __future__ import annotations

from collections.abc import Sequence

from heptascope.model import Quality, Reason
from heptascope.sources.engine import sglang_facts as facts_of
from heptascope.sources.engine.adapter import Absence, Question, register
from heptascope.sources.engine.page import COUNTER, GAUGE
from heptascope.sources.engine.sglang_command import COMMAND
from heptascope.sources.engine.table import Read, Row, Table, Take
from heptascope.sources.engine.tabled import (
    TableAdapter,
    approximate,
    declared,
    exact,
    has,
    latency,
    since,
    span_by,
    status_class,
    take,
    without,
)
from heptascope.sources.engine.version import version

_LIVE_SINCE = version("0.5.7")
_NO_SPECULATION = Absence(Reason.NOT_CONFIGURED, "0 so far: speculative decoding is not configured, or made no draft yet")
_NO_MFU = Absence(Reason.FLAG_OFF, "needs the start flag --enable-mfu-metrics")
_NO_TIERS = Absence(Reason.NOT_CONFIGURED, "no hierarchical cache is configured (--enable-hierarchical-cache)")
_NO_TRANSFER = Absence(Reason.NOT_CONFIGURED, "prefill and decode are not split between engines")
_PREFILL = ("prefill_compute", "prefill_cache")
_HITS = ("device_hit", "host_hit", "storage_hit")


def _live(*modes: str) -> Take:
    return take("sglang:realtime_tokens", mode=modes)


def _level(signal: str, *families: str, **more: object) -> Row:
    """Return the row of a gauge; with priorities the series without one is the total."""
    return Row(signal, Read.GAUGE, tuple(take(f"sglang:{name}", priority="") for name in families), **more)  # type: ignore[arg-type]  # fields of Row


def _first_over_sum(values: Sequence[float]) -> float | None:
    return values[0] / sum(values) if sum(values) else None


def _capacity(values: Sequence[float]) -> float | None:
    """Return used tokens over their share, which is rounded: below a tenth it says nothing."""
    used, share = values
    return used / share if share >= 0.1 else None


ROWS: tuple[Row, ...] = (
    # load
    _level("requests_running", "num_running_reqs"),
    _level("requests_waiting", "num_queue_reqs"),
    Row("requests_finished_total", Read.COUNTER, (take("sglang:num_requests"),), always={"reason": "finished"}, since=version("0.4.1")),
    Row(
        "requests_finished_total", Read.COUNTER, (take("sglang:num_aborted_requests"),), always={"reason": "abort"}, since=version("0.4.7")
    ),
    Row(
        "http_requests_total",
        Read.COUNTER,
        (take("sglang:http_responses"),),
        {"status_code": "status"},
        spell=status_class,
        since=version("0.5.6"),
    ),
    Row("prompt_tokens_total", Read.COUNTER, (_live(*_PREFILL), take("sglang:prompt_tokens")), quality=has("sglang_realtime_tokens")),
    Row(
        "prompt_cached_tokens_total",
        Read.COUNTER,
        (_live("prefill_cache"), take("sglang:cached_tokens")),
        quality=has("sglang_realtime_tokens"),
        since=version("0.4.3"),
        born=True,
    ),
    Row(
        "generation_tokens_total",
        Read.COUNTER,
        (_live("decode"), take("sglang:generation_tokens")),
        quality=has("sglang_realtime_tokens"),
    ),
    Row("model_length_limit", Read.GAUGE, (take("sglang:context_len"),), fold=max, since=version("0.5.11")),
    # memory
    Row(
        "kv_cache_usage_ratio",
        Read.RATIO,
        (
            Take(
                ("sglang:kv_used_tokens", "sglang:kv_evictable_tokens", "sglang:kv_available_tokens"), join=_first_over_sum, read=Read.GAUGE
            ),
            take("sglang:full_token_usage"),
            take("sglang:token_usage"),
        ),
        fold=max,
    ),
    Row(
        "kv_cache_capacity_tokens",
        Read.GAUGE,
        (take("sglang:max_total_num_tokens"), Take(("sglang:num_used_tokens", "sglang:token_usage"), join=_capacity)),
        fold=max,
        quality=has("sglang_max_total_num_tokens"),
        absent=Absence(Reason.IDLE, "this version tells it only while a tenth of the cache is in use"),
    ),
    Row(
        "prefix_cache_queried_tokens_total",
        Read.COUNTER,
        (take("sglang:prefill_effective_tokens"), _live(*_PREFILL), take("sglang:prompt_tokens")),
        quality=has("sglang_prefill_effective_tokens"),
        off=facts_of.no_cached_count,
        since=version("0.4.3"),
    ),
    Row(
        "prefix_cache_hit_tokens_total",
        Read.COUNTER,
        (take("sglang:prefill_effective_tokens", mode=_HITS), _live("prefill_cache"), take("sglang:cached_tokens")),
        quality=has("sglang_prefill_effective_tokens"),
        off=facts_of.no_cached_count,
        since=version("0.4.3"),
        born=True,
    ),
    Row(
        "preemptions_total",
        Read.COUNTER,
        (
            take("sglang:num_retracted_requests"),
            Take(("sglang:total_retracted_reqs",), read=Read.CUMULATIVE),
            Take(("sglang:num_retracted_reqs",), read=Read.RISES),
        ),
        quality=lambda facts: Quality.EXACT if facts_of.counts_retractions(facts.page) else Quality.APPROXIMATE,
        since=version("0.4.9"),
    ),
    Row("kv_offload_load_bytes_total", Read.COUNTER, (take("sglang:load_back_bytes"),), since=version("0.5.18"), absent=_NO_TIERS),
    Row("kv_offload_load_seconds_total", Read.SUM, (take("sglang:load_back_duration_seconds"),), since=version("0.5.5"), absent=_NO_TIERS),
    # transfers: gauges of the last one until 0.5.9, histograms since
    *(
        Row(
            signal,
            read,
            (Take((family,), scale=scale),),
            quality=quality,
            off=facts_of.declared_since(family, "histogram", "0.5.10"),
            since=version("0.5.10"),
            absent=_NO_TRANSFER,
        )
        for signal, read, family, scale, quality in (
            ("kv_transfers_total", Read.COUNT, "sglang:kv_transfer_latency_ms", 1.0, exact),
            ("kv_transfer_seconds_total", Read.SUM, "sglang:kv_transfer_latency_ms", 1e-3, exact),
            ("kv_transfer_bytes_total", Read.SUM, "sglang:kv_transfer_total_mb", 1e6, approximate),
        )
    ),
    Row(
        "kv_transfer_failures_total", Read.COUNTER, (take("sglang:num_transfer_failed_reqs"),), since=version("0.4.6"), absent=_NO_TRANSFER
    ),
    # steps
    Row("steps_total", Read.COUNTER, (take("sglang:cuda_graph_passes"),), since=_LIVE_SINCE),
    Row("step_tokens_total", Read.COUNTER, (_live("prefill_compute", "decode"),), since=_LIVE_SINCE),
    Row("graph_passes_total", Read.COUNTER, (take("sglang:cuda_graph_passes"),), {"mode": "mode"}, since=_LIVE_SINCE),
    Row("stage_seconds_total", Read.COUNTER, (take("sglang:scheduler_stage_seconds"),), {"category": "stage"}, since=version("0.5.20")),
    Row(
        "batch_tokens_total",
        Read.COUNTER,
        (_live("prefill_compute", "decode"),),
        {"mode": "kind"},
        spell=lambda mode: mode.removesuffix("_compute"),
        since=_LIVE_SINCE,
    ),
    Row(
        "recomputed_tokens_total",
        Read.COUNTER,
        (take("sglang:num_retracted_input_tokens", "sglang:num_retracted_output_tokens"),),
        quality=approximate,
        since=_LIVE_SINCE,
    ),
    # what older releases report of the last interval, with nothing that counts it
    Row(
        "last_step_used_graph",
        Read.GAUGE,
        (take("sglang:is_cuda_graph"),),
        fold=max,
        quality=approximate,
        off=without("sglang_cuda_graph_passes"),
    ),
    Row(
        "reported_generation_tokens_per_second",
        Read.GAUGE,
        (take("sglang:gen_throughput"),),
        quality=approximate,
        off=facts_of.throughput_is_stale,
    ),
    Row(
        "recent_latency_seconds",
        Read.GAUGE,
        (take("sglang:avg_request_queue_latency"),),
        always={"latency": "queue_time"},
        fold=max,
        quality=approximate,
    ),
    Row(
        "recent_latency_seconds",
        Read.GAUGE,
        (Take(("sglang:kv_transfer_latency_ms",), scale=1e-3),),
        always={"latency": "kv_transfer"},
        fold=max,
        quality=approximate,
        off=declared("sglang_kv_transfer_latency_ms", "gauge"),
    ),
    # latency
    latency("time_to_first_token_seconds", "sglang:time_to_first_token_seconds"),
    latency("inter_token_latency_seconds", "sglang:inter_token_latency_seconds", "sglang:time_per_output_token_seconds"),
    latency("time_per_output_token_seconds", "sglang:request_time_per_output_token_seconds", since=version("0.5.22")),
    latency("e2e_latency_seconds", "sglang:e2e_request_latency_seconds"),
    latency("queue_time_seconds", "sglang:queue_time_seconds", "sglang:queue_time_s", since=version("0.5.2")),
    latency("prompt_length_tokens", "sglang:prompt_tokens_histogram", since=version("0.4.6")),
    latency("generation_length_tokens", "sglang:generation_tokens_histogram", since=version("0.4.6")),
    # speculation: before 0.5.11 the rate had the bonus token inside
    Row("spec_acceptance_ratio", Read.RATIO, (take("sglang:spec_accept_rate"),), fold=max, quality=since("0.5.11"), zero=_NO_SPECULATION),
    Row("spec_drafts_total", Read.COUNTER, (take("sglang:spec_verify_calls"),), zero=_NO_SPECULATION, since=version("0.5.13")),
    # work
    Row("estimated_flops_total", Read.COUNTER, (take("sglang:estimated_flops_per_gpu"),), since=version("0.5.10"), absent=_NO_MFU),
    Row(
        "estimated_dram_bytes_total",
        Read.COUNTER,
        (take("sglang:estimated_read_bytes_per_gpu", "sglang:estimated_write_bytes_per_gpu"),),
        since=version("0.5.10"),
        absent=_NO_MFU,
    ),
)

MARKS = {
    "sglang_num_requests_total": version("0.4.1"),
    "sglang_cached_tokens_total": version("0.4.3"),
    "sglang_num_grammar_queue_reqs": version("0.4.6"),
    "sglang_queue_time_s": version("0.5.2"),
    "sglang_queue_time_seconds": version("0.5.3"),
    "sglang_max_total_num_tokens": version("0.5.6"),
    "sglang_cuda_graph_passes_total": version("0.5.7"),
    "sglang_full_token_usage": version("0.5.10"),
    "sglang_kv_used_tokens": version("0.5.11"),
    "sglang_prefill_effective_tokens_total": version("0.5.18"),
    "sglang_scheduler_stage_seconds_total": version("0.5.20"),
    "sglang_request_time_per_output_token_seconds": version("0.5.22"),
}
"""Families (as declared) that came with a release."""

TABLE = Table(
    "SGLang",
    ROWS,
    rank_label="dp_rank",
    model_label="model_name",
    version=span_by(MARKS, {"sglang_queue_time_s": version("0.5.3"), "sglang_total_retracted_reqs": version("0.5.3")}),
    further={
        **dict.fromkeys((*facts_of.DEFERRED, *facts_of.SPECULATION, *facts_of.GEOMETRY), GAUGE),
        "sglang:generation_tokens": COUNTER,
    },
    ignore=frozenset({"engine_type", "moe_ep_rank"}),
    repeat={"tp_rank": "0", "pp_rank": "0"},
)

SGLANG = register(
    TableAdapter(
        "sglang",
        TABLE,
        prefixes=("sglang_",),
        ports=(30000,),
        command=COMMAND,
        questions=(Question(("/server_info", "/get_server_info"), facts_of.told_by_server),),
        complete=lambda: facts_of.complete,
        lacks={"spec_accepted_tokens_total": _NO_SPECULATION},
    )
)
