"""Engine rows of the signal table. Labels: `engine` (our name for it) and `rank` (its data-parallel rank)."""

from __future__ import annotations

from heptascope.model import Layer
from heptascope.signals.schema_row import ENGINE, Fold, Kind, Signal

_HW, _OP, _MEM, _SCHED = Layer.HARDWARE, Layer.OPERATOR, Layer.MEMORY, Layer.SCHEDULING
_PAR, _SPEC, _APP = Layer.PARALLEL, Layer.SPECULATIVE, Layer.APPLICATION
_ANY = ("engine",)
_DERIVED = ("derived",)
_EITHER = ("engine", "derived")


def _g(
    name: str, unit: str, layer: Layer, help: str, by: tuple[str, ...] = _ANY, extra: tuple[str, ...] = (), fold: Fold = Fold.SUM
) -> Signal:
    return Signal(f"heptascope_engine_{name}", Kind.GAUGE, unit, layer, ENGINE + extra, by, help, fold)


def _c(name: str, unit: str, layer: Layer, help: str, by: tuple[str, ...] = _ANY, extra: tuple[str, ...] = ()) -> Signal:
    return Signal(f"heptascope_engine_{name}", Kind.COUNTER, unit, layer, ENGINE + extra, by, help)


def _h(name: str, unit: str, layer: Layer, help: str, extra: tuple[str, ...] = ()) -> Signal:
    return Signal(f"heptascope_engine_{name}", Kind.HISTOGRAM, unit, layer, ENGINE + extra, _ANY, help + " (the engine's own buckets).")


def _i(name: str, layer: Layer | None, extra: tuple[str, ...], help: str, by: tuple[str, ...] = _ANY) -> Signal:
    return Signal(f"heptascope_engine_{name}", Kind.INFO, "", layer, ENGINE + extra, by, help, Fold.LAST)


_MAX = Fold.MAX
ROWS: list[Signal] = [
    Signal(
        "heptascope_engine_info",
        Kind.INFO,
        "",
        None,
        (*ENGINE, "kind", "version", "model"),
        _ANY,
        "Engine kind, version and served model, value 1.",
        Fold.LAST,
    ),
    _i("config_info", None, ("setting", "value"), "One start setting of the engine that rules may need, as text, value 1."),
    _i(
        "signal_quality_info",
        None,
        ("signal", "quality"),
        "How a signal of this engine was obtained where it is not exact: derived or approximate.",
        ("derived",),
    ),
    _i("gpu_info", _PAR, ("gpu", "uuid"), "Which GPU serves which engine rank (configuration, process ids, or a lone engine).", _DERIVED),
    _i("trace_info", _OP, (), "The engine rank that the served trace is of: trace.engine, or the only one.", _DERIVED),
    # load
    _g("requests_running", "", _SCHED, "Requests in the running batch after the last scheduling step."),
    _g("requests_waiting", "", _SCHED, "Requests in the engine's own queue, not yet admitted to the batch (vLLM counts deferred ones in)."),
    _g("requests_deferred", "", _SCHED, "Waiting requests held back for another cause than room (adapter slot, KV transfer, grammar)."),
    _c("requests_finished_total", "", _APP, "Requests that ended, by reason as the engine names it.", extra=("reason",)),
    _c("requests_rejected_total", "", _APP, "Requests refused at the door, by reason.", extra=("reason",)),
    _c("http_requests_total", "", _APP, "HTTP requests answered by the engine's API, by class of status.", extra=("status",)),
    _c("prompt_tokens_total", "tokens", _APP, "Prompt tokens processed, cached ones included."),
    _c("prompt_cached_tokens_total", "tokens", _MEM, "Prompt tokens that came from a cache instead of being computed."),
    _c("generation_tokens_total", "tokens", _APP, "Tokens generated."),
    # limits and settings
    _g("sequence_limit", "", _SCHED, "Most requests that may run at once (--max-num-seqs and its like), where it can be known.", fold=_MAX),
    _g(
        "step_token_limit",
        "tokens",
        _SCHED,
        "Most tokens that one step may hold (--max-num-batched-tokens and its like), where it can be known.",
        fold=_MAX,
    ),
    _g("model_length_limit", "tokens", _MEM, "Longest sequence that the engine accepts, where it can be known.", fold=_MAX),
    _g("prefix_caching_enabled", "", _MEM, "1 if prefix caching is on, 0 if it is off.", fold=_MAX),
    _g("eager_mode", "", _OP, "1 if the engine runs without CUDA graphs, 0 if it uses them, where it can be known.", fold=_MAX),
    _g("graph_batch_limit", "", _OP, "Largest batch that a captured CUDA graph covers, where it can be known.", fold=_MAX),
    _g("speculation_enabled", "", _SPEC, "1 if speculative decoding is configured, 0 if not, where it can be known.", fold=_MAX),
    _g("tensor_parallel_size", "", _PAR, "GPUs that share each layer, where it can be known.", fold=_MAX),
    _g("pipeline_parallel_size", "", _PAR, "Pipeline stages, where it can be known.", fold=_MAX),
    # memory
    _g(
        "kv_cache_usage_ratio",
        "ratio",
        _MEM,
        "Share of the KV cache held by live requests; cached blocks that nobody holds count as free.",
        fold=_MAX,
    ),
    _g("kv_cache_capacity_tokens", "tokens", _MEM, "Tokens that the KV cache can hold.", fold=_MAX),
    _c("prefix_cache_queried_tokens_total", "tokens", _MEM, "Prompt tokens looked up in the prefix cache."),
    _c("prefix_cache_hit_tokens_total", "tokens", _MEM, "Prompt tokens found in the prefix cache."),
    _c("preemptions_total", "", _MEM, "Running requests pushed back to waiting for lack of KV cache."),
    _c("kv_offload_load_bytes_total", "bytes", _MEM, "KV cache bytes loaded back from an offload tier."),
    _c("kv_offload_load_seconds_total", "seconds", _MEM, "Time spent loading KV cache back from an offload tier."),
    _c("kv_allocation_failures_total", "", _MEM, "KV or offload allocations that failed."),
    _c("kv_transfers_total", "", _PAR, "KV cache transfers between engines (prefill to decode)."),
    _c("kv_transfer_seconds_total", "seconds", _PAR, "Time that those transfers took, summed."),
    _c("kv_transfer_bytes_total", "bytes", _PAR, "Bytes that they moved."),
    _c("kv_transfer_failures_total", "", _PAR, "KV cache transfers that failed."),
    # steps
    _c(
        "steps_total",
        "",
        _SCHED,
        "Engine steps (scheduler iterations) that returned output; vLLM's page leaves out those that only prefill part of a prompt.",
    ),
    _c("step_tokens_total", "tokens", _SCHED, "Tokens in those steps: prompt tokens computed and tokens generated."),
    _g("last_step_tokens", "tokens", _SCHED, "Tokens in the latest step, where the engine tells no sum over steps.", fold=_MAX),
    _c(
        "stage_seconds_total",
        "seconds",
        _SCHED,
        "Time in one stage of the engine's loop, or of a model call, as the engine names it.",
        extra=("stage",),
    ),
    _c(
        "graph_passes_total",
        "",
        _OP,
        "Forward passes by kind and by whether a CUDA graph ran them, as the engine names it.",
        extra=("mode",),
    ),
    _c(
        "busy_seconds_total",
        "seconds",
        _SCHED,
        "Time with requests running: integral over our polls, or from the in-engine probe.",
        _EITHER,
    ),
    _h("step_phase_seconds", "seconds", _SCHED, "Time of one phase of a scheduler iteration, from the in-engine probe", ("phase",)),
    _c(
        "step_bound_total",
        "",
        _SCHED,
        "Scheduler passes that left requests waiting, by the limit that bound (sequences, tokens, kv_cache), from the in-engine probe.",
        extra=("limit",),
    ),
    # latency
    _h("time_to_first_token_seconds", "seconds", _APP, "Time from arrival to the first token"),
    _h("inter_token_latency_seconds", "seconds", _APP, "Time between two output events of one request"),
    _h("time_per_output_token_seconds", "seconds", _APP, "Decode time per output token of finished requests"),
    _h("e2e_latency_seconds", "seconds", _APP, "Time from arrival to the last token"),
    _h("queue_time_seconds", "seconds", _SCHED, "Time waiting in the engine before the first scheduling"),
    _h("prefill_time_seconds", "seconds", _APP, "Time from first scheduling to the first token"),
    _h("decode_time_seconds", "seconds", _APP, "Time from the first to the last token"),
    _c(
        "latency_seconds_total",
        "seconds",
        _APP,
        "Sum of a latency where the engine gives no histogram of it; over latency_observations_total it is the mean.",
        extra=("latency",),
    ),
    _c("latency_observations_total", "", _APP, "How many times latency_seconds_total holds.", extra=("latency",)),
    _h("prompt_length_tokens", "tokens", _APP, "Prompt length of finished requests"),
    _h("generation_length_tokens", "tokens", _APP, "Output length of finished requests"),
    _h("http_request_duration_seconds", "seconds", _APP, "Time from HTTP request to the last byte of its answer, all handlers"),
    # speculation
    _c("spec_drafts_total", "", _SPEC, "Drafts: one per request and step with a draft."),
    _c("spec_draft_tokens_total", "tokens", _SPEC, "Tokens proposed by the drafter."),
    _c("spec_accepted_tokens_total", "tokens", _SPEC, "Draft tokens accepted, the bonus token excluded."),
    _c(
        "spec_accepted_tokens_per_position_total",
        "tokens",
        _SPEC,
        "Draft tokens accepted at each draft position, from 0.",
        extra=("position",),
    ),
    # work as the engine estimates it
    _c("estimated_flops_total", "", _OP, "FLOP per GPU that the engine estimates for its batches (vLLM --enable-mfu-metrics)."),
    _c("estimated_dram_bytes_total", "bytes", _OP, "DRAM bytes per GPU that the engine estimates for its batches, reads plus writes."),
    # derived, over the derivation window
    _g("has_work", "", _SCHED, "1 if the engine had requests or made tokens within the window, 0 if it was idle.", _DERIVED, fold=_MAX),
    _g(
        "step_seconds",
        "seconds",
        _SCHED,
        "Mean time of one engine step over the window, while requests run; absent at idle. Against the in-engine probe (vLLM 0.11, 0.32) "
        "the derived one was within 5 % under steady load, and up to 31 % off where requests pause between polls.",
        _EITHER,
    ),
    _g(
        "step_host_gap_ratio",
        "ratio",
        _SCHED,
        "Share of busy time in which the engine's GPUs ran no kernel (without activity counters: by NVML's utilization);"
        " copies and a collective that spins hide gaps.",
        _DERIVED,
    ),
    _g("step_host_seconds", "seconds", _SCHED, "Part of the mean step in which the engine's GPUs ran no kernel.", _DERIVED),
    _g("gpu_active_ratio", "ratio", _OP, "Graphics-engine-active ratio over the window, mean of the engine's GPUs.", _DERIVED),
    _g("gpu_sm_active_ratio", "ratio", _HW, "SM active ratio over the window, mean of the engine's GPUs.", _DERIVED),
    _g("gpu_dram_active_ratio", "ratio", _HW, "DRAM active ratio over the window, mean of the engine's GPUs.", _DERIVED),
    _g("gpu_tensor_active_ratio", "ratio", _HW, "Tensor active ratio over the window, mean of the engine's GPUs.", _DERIVED),
    _g("gpus", "", _PAR, "GPUs known to serve this rank.", _DERIVED),
    _g(
        "resource_pressure_ratio",
        "ratio",
        _HW,
        "Use of a resource as a share of what can be had of it (dram, tensor, pcie, link; host: gap share of a step); the largest limits.",
        _DERIVED,
        ("resource",),
    ),
    _g("prefix_cache_hit_ratio", "ratio", _MEM, "Hit tokens over queried tokens within the window; absent without queries.", _DERIVED),
    _g("prompt_computed_tokens_per_second", "", _APP, "Prompt tokens computed (not cached) per second over the window.", _DERIVED),
    _g("kv_cache_tokens_per_sequence", "tokens", _MEM, "KV cache tokens held per running request.", _DERIVED),
    _g("spec_acceptance_ratio", "ratio", _SPEC, "Accepted over proposed draft tokens within the window.", _EITHER),
    _g("spec_accepted_length_tokens", "tokens", _SPEC, "Tokens per draft that a step yields, the bonus token included.", _EITHER),
    _g(
        "running_limit_observed",
        "",
        _SCHED,
        "Requests running, if that number stood still at its maximum for the whole window while requests waited: a cap inferred.",
        _DERIVED,
    ),
    _g("frontend_share_ratio", "ratio", _APP, "Share of a request's time spent outside the engine: HTTP time minus engine time.", _DERIVED),
    Signal(
        "heptascope_saturation_ratio",
        Kind.GAUGE,
        "ratio",
        _APP,
        (),
        _DERIVED,
        "Use of what binds first in this pod (the largest heptascope_saturation_limit_ratio), 0 to 1; 0 when idle.",
    ),
    Signal(
        "heptascope_saturation_limit_ratio",
        Kind.GAUGE,
        "ratio",
        _APP,
        ("limit",),
        _DERIVED,
        "Use of one limit by the fullest rank (kv_cache, sequences, compute: tensor cores, slo: p95 latency over its objective), 0 to 1.",
    ),
    _g("slo_seconds", "seconds", _APP, "Objective for a latency, from the configuration.", ("config",), ("latency",)),
]
