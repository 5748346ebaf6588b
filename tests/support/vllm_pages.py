"""Pages of vLLM releases of which no capture exists, written from what is known of each release.

Each family carries the releases that show it, transcribed family by family; values are small and all different.
"""

from __future__ import annotations

from dataclasses import dataclass

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_BOUNDS = ("0.3", "0.5", "+Inf")
Release = tuple[int, ...]


@dataclass(frozen=True)
class Family:
    """One family: `first` is the first release that shows it, `until` the first that does not; `engine`: V0, V1 or both."""

    name: str
    type: str
    value: float
    first: Release = (0, 6)
    until: Release = (9, 9)
    engine: str = "both"
    extra: tuple[dict[str, str], ...] = ({},)
    ranked: bool = True
    help: str = "help"
    option: str = ""
    without: frozenset[str] = frozenset()


def _h(name: str, value: float, first: Release = (0, 6), until: Release = (9, 9), engine: str = "both") -> Family:
    return Family(f"vllm:{name}", "histogram", value, first, until, engine)


def _c(name: str, value: float, first: Release = (0, 6), until: Release = (9, 9), engine: str = "both", option: str = "") -> Family:
    return Family(f"vllm:{name}", "counter", value, first, until, engine, option=option)


def _g(name: str, value: float, first: Release = (0, 6), until: Release = (9, 9), engine: str = "both") -> Family:
    return Family(f"vllm:{name}", "gauge", value, first, until, engine)


_RUST = frozenset({"rust"})
_DIRECTIONS = ({"transfer_type": "CPU_to_GPU"}, {"transfer_type": "GPU_to_CPU"})
_REASONS = ({"reason": "capacity"}, {"reason": "deferred"})
FAMILIES = (
    _g("num_requests_running", 3),
    _g("num_requests_waiting", 2),
    Family("vllm:num_requests_waiting_by_reason", "gauge", 1, (0, 20), extra=_REASONS),
    _g("num_requests_swapped", 0, until=(0, 9), engine="v0"),
    _g("gpu_cache_usage_perc", 0.25, until=(0, 11)),
    _g("cpu_cache_usage_perc", 0, until=(0, 9), engine="v0"),
    _g("kv_cache_usage_perc", 0.25, (0, 9, 2), engine="v1"),
    _g("gpu_prefix_cache_hit_rate", -1, until=(0, 9), engine="v0"),
    Family(
        "vllm:gpu_prefix_cache_queries",
        "counter",
        80,
        (0, 7, 3),
        (0, 9),
        "v1",
        help="GPU prefix cache queries, in terms of number of queried blocks.",
    ),
    Family(
        "vllm:gpu_prefix_cache_hits",
        "counter",
        20,
        (0, 7, 3),
        (0, 9),
        "v1",
        help="GPU prefix cache hits, in terms of number of cached blocks.",
    ),
    Family(
        "vllm:gpu_prefix_cache_queries",
        "counter",
        1280,
        (0, 9),
        (0, 11),
        "v1",
        help="GPU prefix cache queries, in terms of number of queried tokens.",
    ),
    Family(
        "vllm:gpu_prefix_cache_hits",
        "counter",
        320,
        (0, 9),
        (0, 11),
        "v1",
        help="GPU prefix cache hits, in terms of number of cached tokens.",
    ),
    _c("prefix_cache_queries", 1280, (0, 9, 2), engine="v1"),
    _c("prefix_cache_hits", 320, (0, 9, 2), engine="v1"),
    _c("external_prefix_cache_queries", 0, (0, 11, 1)),
    _c("num_preemptions", 5),
    _h("request_num_preemptions", 1, (0, 30)),
    _c("prompt_tokens", 1000),
    Family("vllm:prompt_tokens_by_source", "counter", 700, (0, 16), extra=({"source": "local_compute"},)),
    _c("prompt_tokens_cached", 300, (0, 16)),
    _c("generation_tokens", 400),
    _c("tokens", 1400, (0, 6, 6), (0, 8), "v0"),
    _h("iteration_tokens_total", 1400, (0, 6, 6)),
    _h("time_to_first_token_seconds", 1.5),
    _h("time_per_output_token_seconds", 2.5, until=(0, 12)),
    _h("inter_token_latency_seconds", 2.5, (0, 10, 2)),
    _h("request_time_per_output_token_seconds", 3.5, (0, 11)),
    _h("e2e_request_latency_seconds", 4.5),
    _h("request_queue_time_seconds", 5.5, (0, 6, 6)),
    _h("time_in_queue_requests", 5.5, (0, 6, 6), (0, 9), "v0"),
    _h("request_prefill_time_seconds", 6.5, (0, 6, 6)),
    _h("request_decode_time_seconds", 7.5, (0, 6, 6)),
    _h("request_prompt_tokens", 100),
    _h("request_generation_tokens", 200),
    _h("request_prefill_kv_computed_tokens", 90, (0, 13)),
    Family("vllm:request_success", "counter", 4, extra=tuple({"finished_reason": r} for r in ("stop", "length", "abort"))),
    Family(
        "vllm:admission_rejections",
        "counter",
        6,
        (0, 32),
        extra=({"reason": "max_num_queued_reqs"}, {"reason": "max_num_queued_tokens"}),
        ranked=False,
        without=_RUST,
    ),
    _c("spec_decode_num_draft_tokens", 80, engine="v0", until=(0, 9, 3), option="speculation"),
    _c("spec_decode_num_accepted_tokens", 60, engine="v0", until=(0, 9, 3), option="speculation"),
    _c("spec_decode_num_drafts", 20, (0, 8, 5), engine="v1", option="speculation"),
    _c("spec_decode_num_draft_tokens", 80, (0, 8, 5), engine="v1", option="speculation"),
    _c("spec_decode_num_accepted_tokens", 60, (0, 8, 5), engine="v1", option="speculation"),
    Family(
        "vllm:spec_decode_num_accepted_tokens_per_pos",
        "counter",
        30,
        (0, 8, 5),
        engine="v1",
        extra=({"position": "0"}, {"position": "1"}),
        option="speculation",
    ),
    _c("estimated_flops_per_gpu", 0, (0, 17)),
    _c("estimated_read_bytes_per_gpu", 0, (0, 17)),
    _c("estimated_write_bytes_per_gpu", 0, (0, 17)),
    Family("vllm:kv_offload_total_bytes", "counter", 8, (0, 16), extra=_DIRECTIONS, option="offload"),
    Family("vllm:kv_offload_total_time", "counter", 0.5, (0, 16), extra=_DIRECTIONS, option="offload"),
    _c("kv_offload_load_bytes", 8, (0, 24), option="offload"),
    _c("kv_offload_load_time", 0.5, (0, 24), option="offload"),
    _c("kv_offload_allocation_failure", 2, (0, 26), option="offload"),
)


def vllm_page(
    release: str, *options: str, ranks: tuple[str, ...] = ("0",), config: dict[str, str] | None = None, separator: str = ":"
) -> str:
    """Return the page of a release.

    `options` are v0, rust, speculation, offload and several (API servers); `config` replaces labels of the cache configuration.
    """
    number = tuple(int(n) for n in release.split("."))
    chosen = [f for f in FAMILIES if _shown(f, number, set(options))]
    lines: list[str] = [] if {"rust", "several"} & set(options) else ["# TYPE python_info gauge", "python_info 1.0"]
    for family in chosen:
        lines += _family(family, number, set(options), ranks, separator)
    if "rust" not in options:
        lines += _config(number, set(options), ranks, config or {}, separator)
    lines += _http()
    return "\n".join([*lines, *(["# EOF"] if "rust" in options else []), ""])


def _shown(family: Family, release: Release, options: set[str]) -> bool:
    engine = "v0" if "v0" in options else "v1"
    return (
        family.first <= release < family.until
        and family.engine in ("both", engine)
        and (not family.option or family.option in options)
        and not family.without & options
    )


def _rank_labels(release: Release, options: set[str], ranks: tuple[str, ...]) -> list[dict[str, str]]:
    return [{}] if "v0" in options or release < (0, 8, 5) else [{"engine": rank} for rank in ranks]


def _family(family: Family, release: Release, options: set[str], ranks: tuple[str, ...], separator: str) -> list[str]:
    name = family.name.replace(":", separator)
    wire = f"{name}_total" if family.type == "counter" else name
    declared = name if family.type == "counter" and "rust" in options else wire
    lines = [f"# HELP {declared} {family.help}", f"# TYPE {declared} {family.type}"]
    for rank in _rank_labels(release, options, ranks) if family.ranked else [{}]:
        for i, extra in enumerate(family.extra):
            labels = {"model_name": "tiny", **rank, **extra}
            if family.type == "histogram":
                lines += [f"{name}_bucket{_braces({**labels, 'le': b})} {n}" for b, n in zip(_BOUNDS, (4, 8, 10), strict=True)]
                lines += [f"{name}_sum{_braces(labels)} {family.value}", f"{name}_count{_braces(labels)} 10"]
            else:
                lines.append(f"{wire}{_braces(labels)} {family.value + i}")
    return lines


def _config(release: Release, options: set[str], ranks: tuple[str, ...], config: dict[str, str], separator: str) -> list[str]:
    labels = {
        "block_size": "16",
        "cache_dtype": "auto",
        "enable_prefix_caching": "True",
        "gpu_memory_utilization": "0.9",
        "sliding_window": "None",
    }
    labels["num_gpu_blocks"] = str(1000 * len(ranks))
    if release >= (0, 24):
        labels |= {"kv_cache_size_tokens": "16000", "kv_cache_max_concurrency": "8.0"}
    name = f"vllm{separator}cache_config_info"
    return [
        f"# TYPE {name} gauge",
        *(f"{name}{_braces({**labels, **config, **rank})} 1.0" for rank in _rank_labels(release, options, ranks)),
    ]


def _http() -> list[str]:
    name = "http_request_duration_highr_seconds"
    return [
        "# TYPE http_requests_total counter",
        'http_requests_total{handler="/v1/completions",method="POST",status="2xx"} 12.0',
        'http_requests_total{handler="/v1/completions",method="POST",status="4xx"} 3.0',
        'http_requests_total{handler="/v1/chat/completions",method="POST",status="2xx"} 5.0',
        f"# TYPE {name} histogram",
        *(f'{name}_bucket{{le="{b}"}} {n}' for b, n in zip(_BOUNDS, (4, 8, 10), strict=True)),
        f"{name}_count 10",
        f"{name}_sum 8.5",
    ]


def _braces(labels: dict[str, str]) -> str:
    return "{" + ",".join(f'{k}="{v}"' for k, v in labels.items()) + "}" if labels else ""
