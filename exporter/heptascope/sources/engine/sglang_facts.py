"""What the SGLang table cannot say: held-back requests, speculation, cache geometry, and what `/server_info` tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

from heptascope.model import Histogram, Quality, Reason
from heptascope.sources.engine.adapter import Absence, Collector, Told
from heptascope.sources.engine.page import Page, family_key
from heptascope.sources.engine.table import Facts
from heptascope.sources.engine.tabled import config_labels, declared, numbers, texts, without
from heptascope.sources.engine.version import version

DEFERRED = (
    "sglang:num_grammar_queue_reqs",
    "sglang:num_prefill_prealloc_queue_reqs",
    "sglang:num_prefill_bootstrap_queue_reqs",
    "sglang:num_prefill_infight_queue_reqs",
    "sglang:num_prefill_inflight_queue_reqs",
    "sglang:num_decode_prealloc_queue_reqs",
    "sglang:num_decode_transfer_queue_reqs",
)
"""Queues beside the waiting queue: grammar, and the steps of a split between prefill and decode (`infight` is the engine's spelling)."""

SPECULATION = ("sglang:spec_accept_length", "sglang:spec_num_draft_tokens")
GEOMETRY = ("sglang:page_size", "sglang:num_pages", "sglang:cache_config_info")

_ACCEPT_LENGTH, _DRAFT_TOKENS = (family_key(name) for name in SPECULATION)
_VERIFY_CALLS, _GENERATED = "sglang_spec_verify_calls", "sglang_generation_tokens"
_PASSES, _STAGES = "sglang_cuda_graph_passes", "sglang_scheduler_stage_seconds"
_PHASES = {
    "recv_requests": "input",
    "process_input_requests": "input",
    "get_next_batch_to_run": "schedule",
    "process_queue": "schedule",
    "run_batch": "model",
    "process_batch_result": "update",
}
"""Stages of SGLang's loop and the phases that they are; to the probe, reading requests is no phase of a step."""

_SETTINGS = {
    "max_running_requests": "max_num_seqs",
    "context_length": "max_model_len",
    "cuda_graph_max_bs": "max_cudagraph_capture_size",
    "tp_size": "tensor_parallel_size",
    "pp_size": "pipeline_parallel_size",
}
_TEXTS = {
    "attention_backend": "attention_backend",
    "chunked_prefill_size": "chunked_prefill_size",
    "dp_size": "data_parallel_size",
    "dtype": "dtype",
    "ep_size": "expert_parallel_size",
    "kv_cache_dtype": "kv_cache_dtype",
    "max_prefill_tokens": "max_prefill_tokens",
    "page_size": "block_size",
    "quantization": "quantization",
    "sampling_backend": "sampling_backend",
    "schedule_policy": "schedule_policy",
    "speculative_algorithm": "speculative_method",
    "speculative_num_draft_tokens": "speculative_tokens",
}
_SWITCHES = {"disable_radix_cache": "enable_prefix_caching", "disable_cuda_graph": "enforce_eager"}


def no_cached_count(facts: Facts) -> Absence | None:
    """Say that hits cannot be counted before 0.4.3: the gauge of the hit rate is no ratio over a window."""
    names = ("sglang_prefill_effective_tokens_total", "sglang_realtime_tokens_total", "sglang_cached_tokens_total")
    if any(name in facts.page.names or name.removesuffix("_total") in facts.page.names for name in names):
        return None
    if facts.version.surely_from(version("0.4.3")):
        return Absence(Reason.IDLE, "no request has finished yet")
    return Absence(Reason.ENGINE_TOO_OLD, "needs SGLang 0.4.3 or newer")


def declared_since(family: str, kind: str, release: str) -> Callable[[Facts], Absence | None]:
    """Return when a row means something: where the family has the type that it got in that release."""
    told = declared(family_key(family), kind)
    return lambda facts: Absence(Reason.ENGINE_TOO_OLD, f"needs SGLang {release} or newer") if told(facts) else None


def throughput_is_stale(facts: Facts) -> Absence | None:
    """Say that the reported throughput is of no use: live counters say it better, and an idle server keeps its last value."""
    running = sum(value for _, value in facts.page.of("sglang_num_running_reqs"))
    return without("sglang_realtime_tokens")(facts) or (None if running > 0 else Absence(Reason.IDLE, "no requests are running"))


def counts_retractions(page: Page) -> bool:
    """Return whether the page counts retractions, rather than telling those of the last report."""
    return bool(page.of("sglang_num_retracted_requests") or page.of("sglang_total_retracted_reqs"))


def complete(facts: Facts, out: Collector) -> None:
    """Add what needs more than a row."""
    _deferred(facts, out)
    _speculation(facts, out)
    _phases(facts, out)
    for family, setting in (("sglang_page_size", "block_size"), ("sglang_num_pages", "num_blocks")):
        for rank, value in _levels(facts, (family,)).items():
            out.sample("config_info", out.pairs(rank, {"setting": setting, "value": f"{value:g}"}), 1.0)
    config_labels(facts, out, "sglang_cache_config_info", {"page_size": "block_size", "num_pages": "num_blocks"})


def _levels(facts: Facts, families: Sequence[str]) -> dict[str, float]:
    """Return gauges by rank, added up over families; only the ranks and the priority that count for all."""
    found: dict[str, float] = {}
    for family in families:
        for series, value in facts.page.of(family):
            pairs = series.labels
            if pairs.get("tp_rank", "0") == "0" and pairs.get("pp_rank", "0") == "0" and not pairs.get("priority"):
                rank = pairs.get("dp_rank") or facts.lone_rank
                found[rank] = found.get(rank, 0.0) + value
    return found


def _deferred(facts: Facts, out: Collector) -> None:
    held = _levels(facts, [family_key(name) for name in DEFERRED])
    for rank, value in held.items():
        out.sample("requests_deferred", out.pairs(rank), value)
    if not held:
        out.lack("requests_deferred", Absence(Reason.ENGINE_TOO_OLD, "needs SGLang 0.4.6 or newer"))


def _speculation(facts: Facts, out: Collector) -> None:
    """Count as accepted what finished requests got beyond one token per verification; before 0.5.13 only the mean length is told."""
    calls = sum(value for _, value in facts.page.of(_VERIFY_CALLS))
    lengths = _levels(facts, (_ACCEPT_LENGTH,))
    if calls > 0:
        generated = sum(value for _, value in facts.page.of(_GENERATED))
        out.sample("spec_accepted_tokens_total", out.pairs(facts.lone_rank), max(generated - calls, 0.0))
        out.mark("spec_accepted_tokens_total", facts.lone_rank, Quality.DERIVED)
    else:
        for rank, value in lengths.items():
            if value > 0:
                out.sample("spec_accepted_length_tokens", out.pairs(rank), value)
    drafts = _levels(facts, (_DRAFT_TOKENS,))
    known = drafts or {rank: value for rank, value in lengths.items() if value > 0}
    for rank, value in known.items():
        out.sample("speculation_enabled", out.pairs(rank), float(value > 0))


def _phases(facts: Facts, out: Collector) -> None:
    """Add the loop's stages as phases of a step, by the names of the in-engine probe; only their sums are known, so there is one bucket."""
    steps: dict[str, float] = {}
    for series, value in facts.page.of(_PASSES):
        if series.labels.get("tp_rank", "0") == "0" and series.labels.get("pp_rank", "0") == "0":
            rank = series.labels.get("dp_rank") or facts.lone_rank
            steps[rank] = steps.get(rank, 0.0) + value
    spent: dict[tuple[str, str], float] = {}
    for series, value in facts.page.of(_STAGES):
        phase = _PHASES.get(series.labels.get("category", ""), "")
        if phase and series.labels.get("tp_rank", "0") == "0" and series.labels.get("pp_rank", "0") == "0":
            place = series.labels.get("dp_rank") or facts.lone_rank, phase
            spent[place] = spent.get(place, 0.0) + value
    for (rank, phase), seconds in spent.items():
        if rank in steps:
            pairs = out.pairs(rank, {"phase": phase})
            out.histogram("step_phase_seconds", Histogram("", pairs, (inf,), (steps[rank],), seconds))
            out.mark("step_phase_seconds", rank, Quality.DERIVED)
    if not spent:
        out.lack("step_phase_seconds", Absence(Reason.ENGINE_TOO_OLD, "needs SGLang 0.5.20 or newer"))


def told_by_server(answer: Mapping[str, Any]) -> Told:
    """Return what `/server_info` says: the start settings, whose defaults are filled in, and the scheduler's own figures."""
    states = answer.get("internal_states")
    internal = states[0] if isinstance(states, list) and states and isinstance(states[0], dict) else {}
    both = {**internal, **answer}
    settings = numbers(both, _SETTINGS)
    settings |= {
        ours: float(not answer[name] if ours == "enable_prefix_caching" else bool(answer[name]))
        for name, ours in _SWITCHES.items()
        if name in answer
    }
    if "speculative_algorithm" in answer:
        settings["speculative"] = float(answer["speculative_algorithm"] not in (None, "", "NONE"))
    model = answer.get("served_model_name") or answer.get("model_path") or ""
    capacity = numbers(both, {"max_total_num_tokens": "kv_cache_capacity_tokens"})
    return Told(str(answer.get("version") or ""), str(model), settings, texts(both, _TEXTS), capacity)
