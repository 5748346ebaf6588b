"""What the vLLM table cannot say: units and qualities that depend on the version, and the labels of `cache_config_info`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from heptascope.model import Quality, Reason
from heptascope.sources.engine.adapter import Absence, Collector, Told
from heptascope.sources.engine.names import API_SERVERS
from heptascope.sources.engine.table import Facts
from heptascope.sources.engine.version import version
from heptascope.sources.engine.vllm_version import is_rust, is_v0

V1_SPECULATION_SINCE = version("0.8.5")
_PREFIX_TOKENS_SINCE = version("0.9")
_PREFIX_ONCE_SINCE = version("0.27")  # before, a waiting request was looked up again and again
_STEP_COMPUTED_SINCE = version("0.23")  # before, a step's tokens held the cached part of its prompts too

_CONFIG = "vllm_cache_config_info"
_CHOSEN = (
    "block_size",
    "cache_dtype",
    "cpu_offload_gb",
    "enable_prefix_caching",
    "gpu_memory_utilization",
    "kv_cache_max_concurrency",
    "kv_cache_memory_bytes",
    "kv_offloading_backend",
    "kv_offloading_size",
    "num_gpu_blocks",
    "num_gpu_blocks_override",
    "prefix_caching_hash_algo",
    "sliding_window",
    "swap_space",
)
"""The settings that are shown, of up to 38 labels: a bounded choice, since the label set changes with nearly every release."""

_ONE_PROCESS = frozenset({"python_info", "process_start_time_seconds"})
"""Families that the Prometheus client library exports unless several processes share the page."""


def _config(facts: Facts) -> dict[str, Mapping[str, str]]:
    """Return the labels of the cache configuration by rank."""
    return {series.labels.get("engine") or facts.lone_rank: series.labels for series, _ in facts.page.of(_CONFIG)}


def _number(text: str | None) -> float | None:
    """Return a positive number, or None for "None" and the like."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if isfinite(value) and value > 0 else None


# qualities


def approximate_before(release: str) -> Callable[[Facts], Quality]:
    """Return a quality: exact from that release on."""
    since = version(release)
    return lambda facts: Quality.EXACT if facts.version.surely_from(since) else Quality.APPROXIMATE


def approximate_on_v0(facts: Facts) -> Quality:
    """Return the quality of V0's speculation counters, which move only at the log interval."""
    return Quality.APPROXIMATE if is_v0(facts.page) else Quality.EXACT


def prefix_quality(facts: Facts) -> Quality:
    """Return the quality of the prefix cache's counters."""
    return approximate_before("0.27")(facts)


def steps_quality(facts: Facts) -> Quality:
    """Return the quality of the step count: V0 counts every step, V1 those that return output."""
    return Quality.EXACT if is_v0(facts.page) else Quality.APPROXIMATE


def step_tokens_quality(facts: Facts) -> Quality:
    """Return the quality of the tokens in steps."""
    return Quality.EXACT if is_v0(facts.page) or facts.version.surely_from(_STEP_COMPUTED_SINCE) else Quality.APPROXIMATE


# units


def prefix_caching_off(facts: Facts) -> Absence | None:
    """Say that prefix counters mean nothing while prefix caching is off."""
    values = {pairs.get("enable_prefix_caching") for pairs in _config(facts).values()}
    return Absence(Reason.NOT_CONFIGURED, "prefix caching is off (--no-enable-prefix-caching)") if values == {"False"} else None


def prefix_unit(facts: Facts) -> float | Absence:
    """Return the tokens in one unit of the old prefix counters: blocks before 0.9, tokens since; their help text says so too."""
    help_text = facts.page.helps.get("vllm_gpu_prefix_cache_queries", "")
    if facts.version.surely_from(_PREFIX_TOKENS_SINCE) or "tokens" in help_text:
        return 1.0
    if not facts.version.surely_before(_PREFIX_TOKENS_SINCE) and "blocks" not in help_text:
        return Absence(Reason.AMBIGUOUS, "blocks or tokens? the version cannot be told; let heptascope reach /version")
    sizes = {_number(pairs.get("block_size")) for pairs in _config(facts).values()}
    size = sizes.pop() if len(sizes) == 1 else None
    return size or Absence(Reason.AMBIGUOUS, "this version counts blocks, and the page does not tell their size")


def per_api_server(facts: Facts) -> float | Absence:
    """Return the share of a step that one observation is: each of several API servers observes every step that it gets output of."""
    if is_v0(facts.page):
        return 1.0
    servers = facts.context.settings.get(API_SERVERS)
    if servers:
        return 1.0 / servers
    if is_rust(facts.page) or facts.page.names & _ONE_PROCESS:
        return 1.0
    return Absence(Reason.AMBIGUOUS, f"several API servers share the page, each counts steps; set engines[].settings.{API_SERVERS}")


# what other pages tell


def told_by_models(answer: Any) -> Told:
    """Return what `/v1/models` says: the longest sequence, and where the model comes from (not of adapters, which have a parent)."""
    base: Mapping[str, Any] = next((model for model in answer["data"] if not model.get("parent")), {})
    length = _number(str(base.get("max_model_len")))
    root = base.get("root")
    return Told(
        settings={"max_model_len": length} if length else {},
        config={"model_root": str(root)} if root and root != base.get("id") else {},
    )


# what stands in labels


def capacity(facts: Facts, out: Collector) -> None:
    """Add the size of the KV cache: as a label since 0.24, before that blocks times block size.

    The number of blocks is summed over the engines of the page and that sum repeated on each of them.
    """
    config = _config(facts)
    if not config:
        what = "the Rust front end's page" if is_rust(facts.page) else "the page"
        out.lack("kv_cache_capacity_tokens", Absence(Reason.ENGINE, f"{what} has no cache_config_info"))
    for rank, pairs in config.items():
        tokens = _number(pairs.get("kv_cache_size_tokens"))
        blocks, size = _number(pairs.get("num_gpu_blocks")), _number(pairs.get("block_size"))
        if tokens is not None:
            out.sample("kv_cache_capacity_tokens", out.pairs(rank), tokens)
        elif blocks is not None and size is not None:
            out.sample("kv_cache_capacity_tokens", out.pairs(rank), blocks * size / len(config))
            out.mark("kv_cache_capacity_tokens", rank, Quality.DERIVED if len(config) == 1 else Quality.APPROXIMATE)
        else:
            out.refuse("kv_cache_capacity_tokens", f"num_gpu_blocks is {pairs.get('num_gpu_blocks')}", rank)


def switches(facts: Facts, out: Collector) -> None:
    """Add what is on or off, and the longest sequence where the page leads to it."""
    for rank, pairs in _config(facts).items():
        caching = {"True": 1.0, "False": 0.0}.get(pairs.get("enable_prefix_caching", ""))
        if caching is not None:
            out.sample("prefix_caching_enabled", out.pairs(rank), caching)
        tokens, sequences = _number(pairs.get("kv_cache_size_tokens")), _number(pairs.get("kv_cache_max_concurrency"))
        if tokens and sequences and "max_model_len" not in facts.context.settings:
            out.sample("model_length_limit", out.pairs(rank), float(round(tokens / sequences)))
            out.mark("model_length_limit", rank, Quality.DERIVED)
    drafting = bool(facts.page.of("vllm_spec_decode_num_draft_tokens"))
    if not drafting and not facts.version.surely_from(V1_SPECULATION_SINCE):
        out.lack("speculation_enabled", Absence(Reason.ENGINE_TOO_OLD, "the page tells it from version 0.8.5 on"))
        return
    for rank in facts.ranks:
        out.sample("speculation_enabled", out.pairs(rank), float(drafting))


def configuration(facts: Facts, out: Collector) -> None:
    """Add the chosen settings as text."""
    for rank, pairs in _config(facts).items():
        for setting in _CHOSEN:
            value = pairs.get(setting, "None")
            if value != "None":
                out.sample("config_info", out.pairs(rank, {"setting": setting, "value": value}), 1.0)
