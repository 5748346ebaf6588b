"""Which vLLM made this page: the stated version if the page agrees with it, else the span that the page's families allow.

Markers are the releases that were inspected; a feature may have come in an earlier patch release of the same minor.
"""

from __future__ import annotations

from heptascope.sources.engine.page import Page
from heptascope.sources.engine.version import Span, Version, version

ENGINE_LABEL_SINCE = version("0.8.5")
CAPACITY_LABEL_SINCE = version("0.24")
_OLD_NAMES_UNTIL = version("0.12")
_RENAMED = version("0.9.2")
_V0_UNTIL = version("0.9")
_V1_PREVIEW = version("0.7")

SINCE: dict[str, Version] = {
    "vllm_iteration_tokens_total": version("0.6.6"),
    "vllm_kv_cache_usage_perc": _RENAMED,
    "vllm_inter_token_latency_seconds": version("0.10.2"),
    "vllm_request_time_per_output_token_seconds": version("0.11"),
    "vllm_external_prefix_cache_queries_total": version("0.11.1"),
    "vllm_request_prefill_kv_computed_tokens": version("0.13"),
    "vllm_prompt_tokens_by_source_total": version("0.16"),
    "vllm_num_requests_waiting_by_reason": version("0.20"),
    "vllm_request_num_preemptions": version("0.30"),
    "vllm_admission_rejections_total": version("0.32"),
}
"""Families (as declared) that every server of that release and later shows."""

_RUST_LACKS = frozenset({"vllm_admission_rejections_total"})


def is_v0(page: Page) -> bool:
    """Whether this is the V0 engine: only it swaps requests to the CPU."""
    return "vllm_num_requests_swapped" in page.names


def is_rust(page: Page) -> bool:
    """Whether the Rust front end (0.32 and later, opt-in) made the page: it has waiting reasons, yet no cache configuration."""
    return "vllm_num_requests_waiting_by_reason" in page.names and "vllm_cache_config_info" not in page.names


def vllm_span(page: Page, stated: str) -> Span:
    """Return the versions that the page allows, narrowed to the stated one if that is among them (forks count on their own)."""
    span = _fingerprint(page)
    try:
        release = version(stated)
    except ValueError:
        return span
    return Span.exactly(release) if span.holds(release) else span


def _declares(page: Page, family: str) -> bool:
    """Whether the page declares the family; OpenMetrics declares counters without `_total`."""
    return family in page.names or family.removesuffix("_total") in page.names


def _fingerprint(page: Page) -> Span:
    lows = [release for family, release in SINCE.items() if _declares(page, family)]
    rust = is_rust(page)
    highs = [r for f, r in SINCE.items() if not _declares(page, f) and not (rust and f in _RUST_LACKS)]
    if any("engine" in series.labels for series, _ in page.of("vllm_num_requests_running")):
        lows.append(ENGINE_LABEL_SINCE)
    for series, _ in page.of("vllm_cache_config_info"):
        (lows if "kv_cache_size_tokens" in series.labels else highs).append(CAPACITY_LABEL_SINCE)
    if rust:
        lows.append(version("0.32"))
    if "vllm_gpu_cache_usage_perc" in page.names:
        highs.append(_OLD_NAMES_UNTIL)
    if is_v0(page):
        highs.append(_V0_UNTIL)
    elif "vllm_num_requests_running" in page.names:
        lows.append(_V1_PREVIEW)
    low = max(lows, default=())
    above = [high for high in highs if high > low]
    return Span(low, min(above, default=None))
