"""The engine signals that a page can give, and the start settings that a configuration can give instead.

Every adapter answers for every one of these: with a value, or with the reason why there is none.
"""

from __future__ import annotations

PREFIX = "heptascope_engine_"

SIGNALS: tuple[str, ...] = (
    "info",
    "config_info",
    "requests_running",
    "requests_waiting",
    "requests_deferred",
    "requests_finished_total",
    "requests_rejected_total",
    "http_requests_total",
    "prompt_tokens_total",
    "prompt_cached_tokens_total",
    "generation_tokens_total",
    "sequence_limit",
    "step_token_limit",
    "model_length_limit",
    "prefix_caching_enabled",
    "eager_mode",
    "graph_batch_limit",
    "speculation_enabled",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "kv_cache_usage_ratio",
    "kv_cache_capacity_tokens",
    "prefix_cache_queried_tokens_total",
    "prefix_cache_hit_tokens_total",
    "preemptions_total",
    "kv_offload_load_bytes_total",
    "kv_offload_load_seconds_total",
    "kv_allocation_failures_total",
    "kv_transfers_total",
    "kv_transfer_seconds_total",
    "kv_transfer_bytes_total",
    "kv_transfer_failures_total",
    "steps_total",
    "step_tokens_total",
    "step_phase_seconds",
    "batch_tokens_total",
    "recomputed_tokens_total",
    "frontend_event_loop_lag_seconds",
    "frontend_tokenize_seconds",
    "stage_seconds_total",
    "graph_passes_total",
    "time_to_first_token_seconds",
    "inter_token_latency_seconds",
    "time_per_output_token_seconds",
    "e2e_latency_seconds",
    "queue_time_seconds",
    "prefill_time_seconds",
    "decode_time_seconds",
    "prompt_length_tokens",
    "generation_length_tokens",
    "http_request_duration_seconds",
    "spec_drafts_total",
    "spec_draft_tokens_total",
    "spec_accepted_tokens_total",
    "spec_accepted_tokens_per_position_total",
    "estimated_flops_total",
    "estimated_dram_bytes_total",
)
"""Without PREFIX; a test keeps them equal to the rows of the signal table that engines supply."""

OPTIONAL: tuple[str, ...] = (
    "step_bound_total",
    "busy_seconds_total",
    "last_step_tokens",
    "latency_seconds_total",
    "latency_observations_total",
    "recent_latency_seconds",
    "latency_quantile_seconds",
    "reported_generation_tokens_per_second",
    "last_step_used_graph",
    "step_seconds",
    "spec_acceptance_ratio",
    "spec_accepted_length_tokens",
)
"""Signals that stand in for others, or that are derived where the engine does not give them: nobody has to answer for these."""

PROBED: tuple[str, ...] = (
    "step_phase_seconds",
    "batch_tokens_total",
    "recomputed_tokens_total",
    "frontend_event_loop_lag_seconds",
    "frontend_tokenize_seconds",
)
"""Signals that only the in-engine probe can give for vLLM."""

SETTINGS: dict[str, str] = {
    "max_num_seqs": "sequence_limit",
    "max_num_batched_tokens": "step_token_limit",
    "max_model_len": "model_length_limit",
    "enable_prefix_caching": "prefix_caching_enabled",
    "enforce_eager": "eager_mode",
    "max_cudagraph_capture_size": "graph_batch_limit",
    "speculative": "speculation_enabled",
    "tensor_parallel_size": "tensor_parallel_size",
    "pipeline_parallel_size": "pipeline_parallel_size",
}
"""Setting (as `engines[].settings` and command lines name it) to the signal that shows it."""

API_SERVERS = "api_server_count"
"""A setting without a signal: how many API servers count into one page."""

HISTOGRAMS: frozenset[str] = frozenset(
    {
        "step_phase_seconds",
        "frontend_event_loop_lag_seconds",
        "frontend_tokenize_seconds",
        "time_to_first_token_seconds",
        "inter_token_latency_seconds",
        "time_per_output_token_seconds",
        "e2e_latency_seconds",
        "queue_time_seconds",
        "prefill_time_seconds",
        "decode_time_seconds",
        "prompt_length_tokens",
        "generation_length_tokens",
        "http_request_duration_seconds",
    }
)
"""The signals that are histograms; others are counters if their name ends in `_total`, else gauges."""

LABELS: dict[str, tuple[str, ...]] = {
    "requests_finished_total": ("reason",),
    "requests_rejected_total": ("reason",),
    "http_requests_total": ("status",),
    "stage_seconds_total": ("stage",),
    "step_phase_seconds": ("phase",),
    "step_bound_total": ("limit",),
    "batch_tokens_total": ("kind",),
    "graph_passes_total": ("mode",),
    "latency_seconds_total": ("latency",),
    "latency_observations_total": ("latency",),
    "recent_latency_seconds": ("latency",),
    "latency_quantile_seconds": ("latency", "q"),
    "spec_accepted_tokens_per_position_total": ("position",),
}
"""The labels that a signal has beside engine and rank."""
