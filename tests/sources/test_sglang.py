"""SGLang: pages of its releases, whose names and meanings changed; written from what each release exports."""

from __future__ import annotations

import pytest

from heptascope.model import Quality, Reading, Reason
from heptascope.sources.engine.names import PREFIX
from heptascope.sources.engine.reader import EngineReader
from heptascope.sources.engine.sglang_facts import told_by_server
from support.engine_pages import histogram, quality, read, reason, value
from support.page_text import page

RANKS = 'engine_type="unified",model_name="m",tp_rank="0",pp_rank="0"'
BASE = f"""
gauge sglang:num_running_reqs{{{RANKS}}} 5
gauge sglang:num_queue_reqs{{{RANKS}}} 3
gauge sglang:num_used_tokens{{{RANKS}}} 2000
gauge sglang:token_usage{{{RANKS}}} 0.25
counter sglang:prompt_tokens_total{{model_name="m"}} 900
counter sglang:generation_tokens_total{{model_name="m"}} 400
counter sglang:num_requests_total{{model_name="m"}} 9
histogram sglang:time_to_first_token_seconds{{model_name="m"}} 0.1=4 1=8 +Inf=9 sum=3
histogram sglang:e2e_request_latency_seconds{{model_name="m"}} 1=4 +Inf=9 sum=12
"""
CACHED = 'counter sglang:cached_tokens_total{model_name="m"} 300\n'
LIVE = f"""
counter sglang:realtime_tokens_total{{{RANKS},mode="prefill_compute"}} 700
counter sglang:realtime_tokens_total{{{RANKS},mode="prefill_cache"}} 350
counter sglang:realtime_tokens_total{{{RANKS},mode="decode"}} 500
counter sglang:cuda_graph_passes_total{{{RANKS},mode="decode_cuda_graph"}} 90
counter sglang:cuda_graph_passes_total{{{RANKS},mode="prefill_none"}} 10
counter sglang:num_retracted_requests_total{{{RANKS}}} 2
gauge sglang:max_total_num_tokens{{{RANKS}}} 8192
"""


def sglang(short: str, version: str = "") -> Reading:
    """Return the reading of a page."""
    return read(page(short), version, kind="sglang")


def test_the_first_releases() -> None:
    """0.4.0: load, usage, tokens at finish; no hits, no steps, no preemptions, each with the release that has them."""
    old = sglang(BASE.replace('engine_type="unified",', ""), "0.4.0")
    assert (5.0, 3.0, 0.25, 900.0, 400.0, 9.0) == tuple(
        value(old, s)
        for s in (
            "requests_running",
            "requests_waiting",
            "kv_cache_usage_ratio",
            "prompt_tokens_total",
            "generation_tokens_total",
            "requests_finished_total",
        )
    )
    for signal in ("prefix_cache_hit_tokens_total", "steps_total", "preemptions_total", "queue_time_seconds", "stage_seconds_total"):
        assert (signal, Reason.ENGINE_TOO_OLD) == (signal, reason(old, signal))


def test_time_per_output_token_was_the_gap_between_tokens_until_043() -> None:
    """The old name is read as what it was; since 0.5.22 the true time per output token has a name of its own."""
    old = sglang(BASE + 'histogram sglang:time_per_output_token_seconds{model_name="m"} 0.01=7 +Inf=9 sum=1', "0.4.2")
    assert 9.0 == histogram(old, "inter_token_latency_seconds").counts[-1]
    assert Reason.ENGINE_TOO_OLD is reason(old, "time_per_output_token_seconds")
    new = sglang(
        BASE
        + 'histogram sglang:inter_token_latency_seconds{model_name="m"} 0.01=70 +Inf=90 sum=1\n'
        + 'histogram sglang:request_time_per_output_token_seconds{model_name="m"} 0.01=5 +Inf=6 sum=1',
        "0.5.22",
    )
    assert (90.0, 6.0) == tuple(histogram(new, s).counts[-1] for s in ("inter_token_latency_seconds", "time_per_output_token_seconds"))


def test_tokens_are_live_from_057() -> None:
    """Counters that move with each batch go before those that move when a request ends, and only these are marked."""
    late, live = sglang(BASE + CACHED, "0.5.3"), sglang(BASE + CACHED + LIVE, "0.5.7")
    names = ("prompt_tokens_total", "generation_tokens_total", "prefix_cache_queried_tokens_total", "prefix_cache_hit_tokens_total")
    assert (900.0, 400.0, 900.0, 300.0) == tuple(value(late, name) for name in names)
    assert (1050.0, 500.0, 1050.0, 350.0) == tuple(value(live, name) for name in names)
    assert {Quality.APPROXIMATE} == {quality(late, name) for name in names}
    assert [Quality.EXACT] * 2 == [quality(live, name) for name in names[:2]]


def test_hits_without_repeats_from_0518() -> None:
    """Tokens by origin count no look-up twice, so they go before the live ones and are exact."""
    effective = "".join(
        f'counter sglang:prefill_effective_tokens_total{{{RANKS},mode="{mode}"}} {n}\n'
        for mode, n in (("input", 600), ("device_hit", 200), ("host_hit", 50))
    )
    new = sglang(BASE + CACHED + LIVE + effective, "0.5.18")
    assert (850.0, 250.0) == (value(new, "prefix_cache_queried_tokens_total"), value(new, "prefix_cache_hit_tokens_total"))
    assert Quality.EXACT is quality(new, "prefix_cache_hit_tokens_total")


def test_hits_are_zero_before_the_first() -> None:
    """A series is made at its first event; until then the hits are 0, not those of another counter."""
    effective = f'counter sglang:prefill_effective_tokens_total{{{RANKS},mode="input"}} 600'
    assert 0.0 == value(sglang(BASE + CACHED + LIVE + effective, "0.5.18"), "prefix_cache_hit_tokens_total")


def test_steps_and_graphs_from_057() -> None:
    """Every forward pass counts, by whether a graph ran it; the tokens of the steps are those computed."""
    new = sglang(BASE + LIVE, "0.5.7")
    assert (100.0, 1200.0) == (value(new, "steps_total"), value(new, "step_tokens_total"))
    assert (90.0, 10.0) == tuple(value(new, "graph_passes_total", mode=mode) for mode in ("decode_cuda_graph", "prefill_none"))
    assert Quality.EXACT is quality(new, "steps_total")


def test_retractions_in_their_three_forms() -> None:
    """A gauge that adds up (0.4.9), a gauge of the last report (0.5.3: rises only), a counter (0.5.7)."""
    total = sglang(BASE + f"gauge sglang:total_retracted_reqs{{{RANKS}}} 7", "0.4.9")
    assert (7.0, Quality.EXACT) == (value(total, "preemptions_total"), quality(total, "preemptions_total"))
    reader = EngineReader(None, "sglang")
    reports = [
        reader.read_page(page(BASE + f'gauge sglang:num_retracted_reqs{{{RANKS},pid="1"}} {n}'), "", 1.0, "0.5.3") for n in (0, 3, 3, 0, 2)
    ]
    assert [0.0, 3.0, 3.0, 3.0, 5.0] == [value(r, "preemptions_total") for r in reports]
    assert Quality.APPROXIMATE is quality(reports[-1], "preemptions_total")
    assert 2.0 == value(sglang(BASE + LIVE, "0.5.7"), "preemptions_total")


def test_usage_in_its_three_forms() -> None:
    """The share of all pools, that of the full-attention pool (0.5.10), or live tokens over all (0.5.11)."""
    full = BASE + f"gauge sglang:full_token_usage{{{RANKS}}} 0.2\n"
    pools = full + "".join(
        f"gauge sglang:kv_{what}_tokens{{{RANKS}}} {n}\n" for what, n in (("used", 100), ("evictable", 500), ("available", 400))
    )
    assert [0.25, 0.2, 0.1] == [value(sglang(text), "kv_cache_usage_ratio") for text in (BASE, full, pools)]


def test_capacity_before_it_was_told() -> None:
    """Used tokens over their rounded share, while that is large enough to say something; exact from 0.5.6."""
    assert (8000.0, Quality.APPROXIMATE) == (
        value(sglang(BASE), "kv_cache_capacity_tokens"),
        quality(sglang(BASE), "kv_cache_capacity_tokens"),
    )
    nearly_empty = sglang(BASE.replace("} 0.25", "} 0.01"))
    assert (None, Reason.IDLE) == (value(nearly_empty, "kv_cache_capacity_tokens"), reason(nearly_empty, "kv_cache_capacity_tokens"))
    assert (8192.0, Quality.EXACT) == (
        value(sglang(BASE + LIVE), "kv_cache_capacity_tokens"),
        quality(sglang(BASE + LIVE), "kv_cache_capacity_tokens"),
    )


def test_ranks_that_repeat_are_read_once() -> None:
    """With all schedulers exporting, tensor and pipeline ranks repeat the same requests; data-parallel ranks do not."""
    text = "".join(
        f'gauge sglang:num_running_reqs{{model_name="m",dp_rank="{dp}",tp_rank="{tp}",pp_rank="{pp}"}} {4 + dp}\n'
        for dp in (0, 1)
        for tp in (0, 1)
        for pp in (0, 1)
    )
    out = sglang(text)
    assert (4.0, 5.0) == (value(out, "requests_running", rank="0"), value(out, "requests_running", rank="1"))


def test_with_priorities_the_total_is_the_series_without_one() -> None:
    """Classes stand beside the total and are not added to it."""
    text = "".join(f'gauge sglang:num_running_reqs{{{RANKS},priority="{p}"}} {n}\n' for p, n in (("", 5), ("0", 2), ("1", 3)))
    assert 5.0 == value(sglang(text), "requests_running")


def test_held_back_requests() -> None:
    """Grammar and transfer queues are told apart from the waiting queue, under either spelling."""
    for spelling in ("infight", "inflight"):
        text = BASE + f"gauge sglang:num_grammar_queue_reqs{{{RANKS}}} 2\ngauge sglang:num_prefill_{spelling}_queue_reqs{{{RANKS}}} 4"
        assert (6.0, 3.0) == (value(sglang(text), "requests_deferred"), value(sglang(text), "requests_waiting"))


def test_queue_time_in_its_two_names() -> None:
    """0.5.2 had a name of its own."""
    names = ("queue_time_s", "queue_time_seconds")
    assert [4.0, 4.0] == [
        histogram(sglang(BASE + f"histogram sglang:{name}{{{RANKS}}} 0.5=3 +Inf=4 sum=1"), "queue_time_seconds").counts[-1]
        for name in names
    ]


@pytest.mark.parametrize(("version", "expected"), [("0.5.3", Quality.APPROXIMATE), ("0.5.11", Quality.EXACT)])
def test_the_acceptance_gauge(version: str, expected: Quality) -> None:
    """Before 0.5.11 the rate had the bonus token inside; a 0 is no speculation at all."""
    gauges = BASE + f"gauge sglang:spec_accept_rate{{{RANKS}}} 0.6\ngauge sglang:spec_accept_length{{{RANKS}}} 2.8"
    out = sglang(gauges, version)
    assert (0.6, 2.8, 1.0) == tuple(value(out, s) for s in ("spec_acceptance_ratio", "spec_accepted_length_tokens", "speculation_enabled"))
    assert expected is quality(out, "spec_acceptance_ratio")
    off = sglang(gauges.replace("0.6", "0").replace("2.8", "0"), version)
    assert (None, None) == (value(off, "spec_acceptance_ratio"), value(off, "spec_accepted_length_tokens"))


def test_the_accepted_length_is_exact_from_0513() -> None:
    """Tokens of finished requests over their verifications, as counters; the gauge is left alone then."""
    out = sglang(
        BASE + f'counter sglang:spec_verify_calls_total{{model_name="m"}} 160\ngauge sglang:spec_accept_length{{{RANKS}}} 9', "0.5.13"
    )
    assert (160.0, 240.0, None) == tuple(
        value(out, s) for s in ("spec_drafts_total", "spec_accepted_tokens_total", "spec_accepted_length_tokens")
    )


def test_transfers_are_gauges_until_059() -> None:
    """A gauge of the last transfer is not read; the histogram that took its name is, in seconds and bytes."""
    old = sglang(BASE + f"gauge sglang:kv_transfer_latency_ms{{{RANKS}}} 12", "0.5.9")
    assert (None, Reason.ENGINE_TOO_OLD) == (value(old, "kv_transfers_total"), reason(old, "kv_transfers_total"))
    new = sglang(
        BASE
        + f"histogram sglang:kv_transfer_latency_ms{{{RANKS}}} 10=2 +Inf=5 sum=80\n"
        + f"histogram sglang:kv_transfer_total_mb{{{RANKS}}} 10=2 +Inf=5 sum=40",
        "0.5.10",
    )
    assert (5.0, 0.08, 4e7) == tuple(value(new, s) for s in ("kv_transfers_total", "kv_transfer_seconds_total", "kv_transfer_bytes_total"))


def test_stage_timings_from_0520() -> None:
    """The loop's own stages, whatever they overlapped with."""
    text = "".join(
        f'counter sglang:scheduler_stage_seconds_total{{{RANKS},category="{c}",forward_overlap="{o}"}} {n}\n'
        for c, o, n in (("run_batch", "full", 3), ("run_batch", "none", 1), ("idle", "none", 9))
    )
    out = sglang(BASE + LIVE + text, "0.5.22")
    assert (4.0, 9.0) == (value(out, "stage_seconds_total", stage="run_batch"), value(out, "stage_seconds_total", stage="idle"))


def test_http_answers_by_class_of_status() -> None:
    """Codes become classes, as other engines tell them, and no code of a class is lost beside another."""
    text = "".join(
        f'counter sglang:http_responses_total{{endpoint="/generate",status_code="{c}",method="POST"}} {n}\n'
        for c, n in (("200", 8), ("500", 3), ("503", 2))
    )
    out = sglang(BASE + text, "0.5.6")
    assert (8.0, 5.0) == (value(out, "http_requests_total", status="2xx"), value(out, "http_requests_total", status="5xx"))


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("", ">=0.4.1"),
        (CACHED, ">=0.4.3"),
        (f"gauge sglang:total_retracted_reqs{{{RANKS}}} 7", ">=0.4.1,<0.5.3"),
        (LIVE, ">=0.5.7"),
        (f"gauge sglang:kv_used_tokens{{{RANKS}}} 7", ">=0.5.11"),
    ],
)
def test_the_page_bounds_the_version(more: str, expected: str) -> None:
    """Families that came and went tell the release where the server does not."""
    info = next(dict(s.labels) for s in sglang(BASE + more).samples if s.name == PREFIX + "info")
    assert (expected, "m", "sglang") == (info["version"], info["model"], info["kind"])


def test_server_info_tells_the_start_settings() -> None:
    """Caps, sizes and switches become settings, the rest text; what is null is left out."""
    told = told_by_server(
        {
            "version": "0.5.20",
            "model_path": "/m",
            "served_model_name": "chat",
            "tp_size": 2,
            "context_length": None,
            "max_running_requests": 64,
            "disable_radix_cache": True,
            "disable_cuda_graph": False,
            "attention_backend": "fa3",
            "speculative_algorithm": "EAGLE",
            "internal_states": [{"max_total_num_tokens": 9000, "context_length": 4096}],
        }
    )
    assert ("0.5.20", "chat") == (told.version, told.model)
    out = EngineReader(None, "sglang").read_page(page(BASE), "", 1.0, told=told)
    signals = (
        "sequence_limit",
        "tensor_parallel_size",
        "prefix_caching_enabled",
        "eager_mode",
        "speculation_enabled",
        "kv_cache_capacity_tokens",
    )
    assert (64.0, 2.0, 0.0, 0.0, 1.0, 8000.0) == tuple(value(out, s) for s in signals)
    settings = {dict(s.labels)["setting"]: dict(s.labels)["value"] for s in out.samples if s.name == PREFIX + "config_info"}
    assert {"attention_backend": "fa3", "speculative_method": "EAGLE"} == settings


def test_metrics_are_recognised_with_either_separator() -> None:
    """`sglang:` and `sglang_` are the same engine."""
    for text in (page(BASE), page(BASE).replace("sglang:", "sglang_")):
        assert 5.0 == value(EngineReader().read_page(text, "", 1.0), "requests_running")


REPORTED = f"""
gauge sglang:avg_request_queue_latency{{{RANKS}}} 0.4
gauge sglang:gen_throughput{{{RANKS}}} 900
gauge sglang:is_cuda_graph{{{RANKS}}} 1
gauge sglang:kv_transfer_latency_ms{{{RANKS}}} 25
"""


def test_what_older_releases_report_of_the_last_interval() -> None:
    """Before there are counters, the latest report of queue time, throughput, graph use and transfers stands in, and is marked."""
    old = sglang(BASE + REPORTED, "0.5.4")
    assert (0.4, 0.025) == tuple(value(old, "recent_latency_seconds", latency=what) for what in ("queue_time", "kv_transfer"))
    assert (900.0, 1.0) == tuple(value(old, s) for s in ("reported_generation_tokens_per_second", "last_step_used_graph"))
    for signal in ("recent_latency_seconds", "reported_generation_tokens_per_second", "last_step_used_graph"):
        assert (signal, Quality.APPROXIMATE) == (signal, quality(old, signal))
    assert [Reason.ENGINE_TOO_OLD] * 2 == [reason(old, s) for s in ("kv_transfers_total", "kv_transfer_seconds_total")]


def test_reports_give_way_to_counters() -> None:
    """Where tokens and passes are counted live, and transfers have a histogram, nothing stands in; an idle server's throughput is stale."""
    new = sglang(BASE + LIVE + REPORTED.replace(f"gauge sglang:kv_transfer_latency_ms{{{RANKS}}} 25", ""), "0.5.10")
    moved = sglang(BASE + LIVE + f"histogram sglang:kv_transfer_latency_ms{{{RANKS}}} 10=3 +Inf=4 sum=80", "0.5.10")
    idle = sglang((BASE + REPORTED).replace("num_running_reqs{" + RANKS + "} 5", "num_running_reqs{" + RANKS + "} 0"), "0.5.4")
    assert [None] * 2 == [value(new, s) for s in ("reported_generation_tokens_per_second", "last_step_used_graph")]
    assert (4.0, 0.08, None) == (
        value(moved, "kv_transfers_total"),
        value(moved, "kv_transfer_seconds_total"),
        value(moved, "recent_latency_seconds"),
    )
    assert None is value(idle, "reported_generation_tokens_per_second")
    assert {Reason.INVALID}.isdisjoint({m.reason for m in (*new.missing, *moved.missing, *idle.missing)})


def test_tokens_of_steps_by_kind_and_work_thrown_back() -> None:
    """Prefill and decode tokens come from the live counters; what a retraction throws back is an upper bound of what is done again."""
    again = (
        f"counter sglang:num_retracted_input_tokens_total{{{RANKS}}} 300\ncounter sglang:num_retracted_output_tokens_total{{{RANKS}}} 40\n"
    )
    out = sglang(BASE + LIVE + again, "0.5.7")
    assert (700.0, 500.0) == tuple(value(out, "batch_tokens_total", kind=kind) for kind in ("prefill", "decode"))
    assert (340.0, Quality.APPROXIMATE) == (value(out, "recomputed_tokens_total"), quality(out, "recomputed_tokens_total"))


def test_stages_are_phases_of_a_step() -> None:
    """From 0.5.20 the loop's own stages feed the series that the probe feeds for vLLM: sum and count, and one bucket."""
    stages = {"get_next_batch_to_run": 3, "process_queue": 1, "run_batch": 60, "process_batch_result": 5, "recv_requests": 2, "idle": 500}
    pages = [
        "".join(
            f'counter sglang:scheduler_stage_seconds_total{{{RANKS},category="{name}"{more}}} {value}\n' for name, value in stages.items()
        )
        for more in ("", ',forward_overlap="full"')
    ]
    for stages_page, version in zip(pages, ("0.5.20", "0.5.22"), strict=True):
        out = sglang(BASE + LIVE + stages_page, version)
        phases = {dict(h.labels)["phase"]: h for h in out.histograms if h.name.endswith("step_phase_seconds")}
        assert {"schedule": 4.0, "model": 60.0, "update": 5.0, "input": 2.0} == {phase: h.sum for phase, h in phases.items()}
        assert {(100.0,)} == {h.counts for h in phases.values()}
        assert Quality.DERIVED is quality(out, "step_phase_seconds")
        assert 500.0 == value(out, "stage_seconds_total", stage="idle")
    assert Reason.ENGINE_TOO_OLD is reason(sglang(BASE + LIVE, "0.5.7"), "step_phase_seconds")
