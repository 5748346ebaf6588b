"""Real pages of real servers: what grew between two pages is what the client sent, saw and measured."""

from __future__ import annotations

import json
from functools import cache

import pytest

from heptascope.model import Quality, Reading, Reason
from heptascope.sources.engine.names import PREFIX, SIGNALS
from heptascope.sources.engine.reader import EngineReader
from support.engine_pages import CAPTURES, VLLM_011, VLLM_032, capture, growth, histogram, missing, quality, read, reason, truth, value
from support.recordings import all_recordings, read_lines

SCENARIOS = sorted((engine, folder.name) for engine in (VLLM_011, VLLM_032) for folder in (CAPTURES / engine).iterdir())
COUNTED = [s for s in SCENARIOS if s[1] not in ("log_stats_disabled", "idle_fresh")]
ABORTS = {"client_aborts"}


def histogram_growth(engine: str, scenario: str, signal: str) -> tuple[float, float]:
    """Return the growth of sum and count of a histogram, over all ranks."""
    first, last = (read(capture(engine, scenario, which), engine.rpartition("-")[2]) for which in ("t0", "t1"))
    total, count = 0.0, 0.0
    for h in last.histograms:
        if h.name == PREFIX + signal:
            before = next((b for b in first.histograms if (b.name, b.labels) == (h.name, h.labels)), None)
            total += h.sum - (before.sum if before else 0.0)
            count += h.counts[-1] - (before.counts[-1] if before else 0.0)
    return total, count


@pytest.mark.parametrize(("engine", "scenario"), SCENARIOS)
def test_every_signal_has_a_value_or_a_reason(engine: str, scenario: str) -> None:
    """No page leaves a signal silently absent, and no value of a real page is refused."""
    reader = EngineReader(None, "vllm")
    page = reader.read_page(capture(engine, scenario), "", 1.0, engine.rpartition("-")[2])
    spoken = {s.name for s in page.samples} | {h.name for h in page.histograms} | {m.signal for m in page.missing}
    assert {PREFIX + name for name in SIGNALS} == spoken
    assert 0 == reader.refused


@pytest.mark.parametrize(("engine", "scenario"), COUNTED)
def test_generated_tokens(engine: str, scenario: str) -> None:
    """Tokens agree with the client's within 1 %."""
    assert truth(engine, scenario)["window"]["output_tokens"] == pytest.approx(
        growth(engine, scenario, "generation_tokens_total"), rel=0.01
    )


@pytest.mark.parametrize(("engine", "scenario"), COUNTED)
def test_finished_requests(engine: str, scenario: str) -> None:
    """Requests that ended well agree within one; those that the client cut leave no trace there."""
    window = truth(engine, scenario)["window"]
    assert window["succeeded"] == pytest.approx(growth(engine, scenario, "requests_finished_total"), abs=1)
    assert window["succeeded"] == pytest.approx(growth(engine, scenario, "requests_finished_total", reason="length"), abs=1)


@pytest.mark.parametrize(("engine", "scenario"), [s for s in COUNTED if s[1] not in ABORTS])
def test_http_requests_by_status(engine: str, scenario: str) -> None:
    """Answers by class of status are those that the client got."""
    statuses = truth(engine, scenario)["window"]["http_status"]
    for status, count in {"2xx": statuses.get("200", 0), "4xx": statuses.get("400", 0)}.items():
        assert count == pytest.approx(growth(engine, scenario, "http_requests_total", status=status) if count else 0, abs=1)


def test_prompt_tokens() -> None:
    """The prompts of the finished requests are those that the client sent."""
    for scenario in ("steady_16", "prefix_heavy", "spec_ngram_high"):
        total, _ = histogram_growth(VLLM_032, scenario, "prompt_length_tokens")
        assert truth(VLLM_032, scenario)["window"]["prompt_tokens_of_succeeded"] == pytest.approx(total, rel=0.02)


@pytest.mark.parametrize(("engine", "scenario"), [s for s in COUNTED if s[1] not in {*ABORTS, "lora_two_adapters"}])
def test_first_token_and_gaps(engine: str, scenario: str) -> None:
    """The engine's means are at most the client's: HTTP lies between, and a speculative step has one entry for several tokens."""
    window = truth(engine, scenario)["window"]
    total, count = histogram_growth(engine, scenario, "time_to_first_token_seconds")
    assert 0 < total / count < window["ttft_s"]["mean"] * 1.1
    total, count = histogram_growth(engine, scenario, "inter_token_latency_seconds")
    assert total / count == pytest.approx(window["itl_s"]["mean"] * (count and window["itl_s"]["n"] / count), rel=0.25)


def test_several_api_servers_make_steps_ambiguous() -> None:
    """Two front ends count each step twice: withheld, or halved to what the token gaps say."""
    for scenario in ("api_servers_2", "dp2_steady"):
        assert Reason.AMBIGUOUS is reason(read(capture(VLLM_032, scenario)), "steps_total")
        pages = [read(capture(VLLM_032, scenario, w), settings={"api_server_count": 2}) for w in ("t0", "t1")]
        steps = (value(pages[1], "steps_total", "0") or 0.0) - (value(pages[0], "steps_total", "0") or 0.0)
        gaps = [histogram(p, "inter_token_latency_seconds") for p in pages]
        gap = (gaps[1].sum - gaps[0].sum) / (gaps[1].counts[-1] - gaps[0].counts[-1])
        assert 10.0 / steps == pytest.approx(gap, rel=0.05)


def test_steps_agree_with_the_gaps_between_tokens() -> None:
    """With one front end, time over steps is the mean gap between tokens in a busy decode phase."""
    total, count = histogram_growth(VLLM_032, "decode_heavy", "inter_token_latency_seconds")
    assert 10.0 / growth(VLLM_032, "decode_heavy", "steps_total") == pytest.approx(total / count, rel=0.05)


def test_step_tokens_are_computed_prompt_and_generated_tokens() -> None:
    """On 0.32 the tokens in steps leave cached prompt tokens out."""
    parts = {
        s: growth(VLLM_032, "prefix_heavy", s) for s in ("prompt_tokens_total", "prompt_cached_tokens_total", "generation_tokens_total")
    }
    computed = parts["prompt_tokens_total"] - parts["prompt_cached_tokens_total"]
    assert growth(VLLM_032, "prefix_heavy", "step_tokens_total") == pytest.approx(computed + parts["generation_tokens_total"], rel=0.01)


def test_prefix_cache() -> None:
    """A shared prefix hits in nearly all of its tokens; with caching off there is nothing to judge."""
    hit, queried = (growth(VLLM_032, "prefix_heavy", f"prefix_cache_{w}_tokens_total") for w in ("hit", "queried"))
    assert 0.96 == pytest.approx(hit / queried, abs=0.01)
    off = read(capture(VLLM_032, "prefix_off_shared_prefix"), "0.32.0")
    assert (0.0, Reason.NOT_CONFIGURED) == (value(off, "prefix_caching_enabled"), reason(off, "prefix_cache_hit_tokens_total"))


def test_pressure_on_the_cache() -> None:
    """A small cache preempts, is nearly full, and its size is what the flag said."""
    assert growth(VLLM_032, "kv_pressure_preempt", "preemptions_total") > 0
    page = read(capture(VLLM_032, "kv_pressure_preempt"), "0.32.0")
    usage = value(page, "kv_cache_usage_ratio")
    assert usage is not None
    assert usage > 0.9
    assert (24 * 128.0, 2048.0) == (value(page, "kv_cache_capacity_tokens"), value(page, "model_length_limit"))


def test_queues() -> None:
    """A sequence cap makes requests wait for room, a LoRA slot makes them wait deferred."""
    capped = read(capture(VLLM_032, "saturated_queue"), "0.32.0")
    assert (4.0, 0.0) == (value(capped, "requests_running"), value(capped, "requests_deferred"))
    assert 28 == pytest.approx(value(capped, "requests_waiting"), abs=1)
    total, count = histogram_growth(VLLM_032, "saturated_queue", "queue_time_seconds")
    assert total / count == pytest.approx(truth(VLLM_032, "saturated_queue")["window"]["ttft_s"]["mean"], rel=0.05)
    series = 'vllm:num_requests_waiting_by_reason{engine="0",model_name="tiny",reason="deferred"}'
    deferred = truth(VLLM_032, "lora_two_adapters")["gauges"][series]
    seen = value(read(capture(VLLM_032, "lora_two_adapters"), "0.32.0"), "requests_deferred")
    assert seen is not None
    assert deferred["min"] <= seen <= deferred["max"]


def test_requests_that_the_client_cuts_show_only_in_first_tokens() -> None:
    """About half were cut: no abort is counted, but more requests began to answer than ended."""
    window = truth(VLLM_032, "client_aborts")["window"]
    assert window["aborted"] > 20
    assert 0.0 == growth(VLLM_032, "client_aborts", "requests_finished_total", reason="abort")
    _, started = histogram_growth(VLLM_032, "client_aborts", "time_to_first_token_seconds")
    cut = started - growth(VLLM_032, "client_aborts", "requests_finished_total")
    assert window["aborted"] == pytest.approx(cut, abs=3)


@pytest.mark.parametrize(("scenario", "low", "high"), [("spec_ngram_high", 0.9, 1.0), ("spec_draft_model", 0.0, 0.2)])
def test_speculation(scenario: str, low: float, high: float) -> None:
    """Acceptance, and the tokens that follow from it: each draft yields the accepted tokens and one more."""
    drafts, proposed, accepted = (growth(VLLM_032, scenario, f"spec_{w}_total") for w in ("drafts", "draft_tokens", "accepted_tokens"))
    assert low <= accepted / proposed <= high
    assert accepted == growth(VLLM_032, scenario, "spec_accepted_tokens_per_position_total")
    assert growth(VLLM_032, scenario, "generation_tokens_total") == pytest.approx(drafts + accepted, rel=0.1)
    page = read(capture(VLLM_032, scenario), "0.32.0")
    assert 1.0 == value(page, "speculation_enabled")
    idle = read(capture(VLLM_032, "steady_16"), "0.32.0")
    assert (0.0, Reason.NOT_CONFIGURED) == (value(idle, "speculation_enabled"), reason(idle, "spec_drafts_total"))


def test_estimates_with_and_without_the_flag() -> None:
    """With the flag they grow; without it they are missing, not 0."""
    assert growth(VLLM_032, "all_metrics_steady", "estimated_flops_total") > 0
    assert growth(VLLM_032, "all_metrics_steady", "estimated_dram_bytes_total") > 0
    assert Reason.FLAG_OFF is reason(read(capture(VLLM_032, "steady_16"), "0.32.0"), "estimated_dram_bytes_total")


def test_data_parallel_ranks() -> None:
    """Two engines: two ranks that share the load, each with its own cache, together the client's tokens."""
    page = read(capture(VLLM_032, "dp2_steady"), "0.32.0")
    assert [524288.0] * 2 == [value(page, "kv_cache_capacity_tokens", rank) for rank in ("0", "1")]
    shares = [growth(VLLM_032, "dp2_steady", "generation_tokens_total", rank=rank) for rank in ("0", "1")]
    assert truth(VLLM_032, "dp2_steady")["window"]["output_tokens"] == pytest.approx(sum(shares), rel=0.01)
    assert 0.5 == pytest.approx(shares[0] / sum(shares), abs=0.05)


def test_old_and_new_names_on_one_page_are_not_added() -> None:
    """0.11 with hidden families shows both names; each signal has the value of one."""
    page = read(capture(VLLM_011, "steady_16"), "0.11.0")
    assert 91102.0 == value(page, "prefix_cache_queried_tokens_total")
    assert 44671.0 == histogram(page, "inter_token_latency_seconds").counts[-1]
    assert [1] * 3 == [
        sum(s.name == PREFIX + name for s in page.samples)
        for name in ("kv_cache_usage_ratio", "prefix_cache_queried_tokens_total", "prefix_cache_hit_tokens_total")
    ]
    found = missing(page, "requests_deferred")
    assert found is not None
    assert (Reason.ENGINE_TOO_OLD, "needs vLLM 0.20 or newer") == (found.reason, found.detail)


CLIENT_OF_0_25 = {
    "decode-c64": (393, 100608, 201216),
    "draft-good": (81, 10368, 41472),
    "kv-severe": (104, 53248, 106496),
    "ngram-high": (288, 36864, 147456),
    "prefix-hot": (760, 4608640, 48640),
    "prefix-off": (119, 721616, 7616),
    "seqs8-c64": (120, 30720, 30720),
    "tp2-c64": (448, 114688, 229376),
}
"""Recordings of vLLM 0.25.1 on an H200: what the client's record holds of the requests that ended between the first and the last page
of the steady window: their number, prompt tokens and output tokens.
"""


@cache
def steady(regime: str) -> tuple[Reading, Reading]:
    """Return the first and the last reading of a recording's steady window."""
    folder = all_recordings()[regime]
    bounds = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    rows = [r for r in read_lines(folder / "engine.jsonl.gz") if bounds["t_steady"] <= r["t"] <= bounds["t1"]]
    reader = EngineReader()
    return reader.read_row(rows[0]), reader.read_row(rows[-1])


def steady_growth(regime: str, signal: str) -> float:
    """Return the growth of a counter over the steady window."""
    first, last = steady(regime)
    return (value(last, signal) or 0.0) - (value(first, signal) or 0.0)


@pytest.mark.parametrize("regime", list(CLIENT_OF_0_25))
def test_recorded_0_25_pages_count_exactly_what_the_client_did(regime: str) -> None:
    """Finished requests and their tokens are equal to the client's, to the last token."""
    first, last = steady(regime)
    lengths = [histogram(last, s).sum - histogram(first, s).sum for s in ("prompt_length_tokens", "generation_length_tokens")]
    assert CLIENT_OF_0_25[regime] == (steady_growth(regime, "requests_finished_total"), *lengths)


def test_recorded_0_25_ratios() -> None:
    """Acceptance and hit ratio follow from the counters, and preemptions are counted."""
    accepted, proposed = (steady_growth("draft-good", f"spec_{w}_total") for w in ("accepted_tokens", "draft_tokens"))
    assert 0.667 == pytest.approx(accepted / proposed, abs=0.001)
    hit, queried = (steady_growth("prefix-hot", f"prefix_cache_{w}_tokens_total") for w in ("hit", "queried"))
    assert 0.989 == pytest.approx(hit / queried, abs=0.001)
    assert 161.0 == steady_growth("kv-severe", "preemptions_total")
    assert Quality.APPROXIMATE is quality(steady("prefix-hot")[1], "prefix_cache_hit_tokens_total")


def test_recorded_0_25_pages_are_told_by_their_families() -> None:
    """A recorded row without a version gives its span; limits that follow from the cache's labels are right."""
    _, page = steady("decode-c64")
    assert {">=0.24,<0.30"} == {dict(s.labels)["version"] for s in page.samples if s.name == PREFIX + "info"}
    assert 16384.0 == value(page, "model_length_limit")
    assert value(page, "estimated_flops_total") is not None
