"""What changed between vLLM releases, each on a page of that release (real captures of 0.11, 0.25 and 0.32 are tested elsewhere)."""

from __future__ import annotations

import pytest

from heptascope.model import Quality, Reason
from heptascope.sources.engine.names import PREFIX, SIGNALS
from support.engine_pages import histogram, missing, quality, read, reason, value
from support.vllm_pages import OPENMETRICS, vllm_page

RELEASES = ["0.8.0", "0.8.5", "0.9.0", "0.9.2", "0.10.0", "0.10.2", "0.11.0", "0.12.0", "0.16.0", "0.20.2", "0.24.0", "0.27.0", "0.33.0"]


@pytest.mark.parametrize("stated", [True, False])
@pytest.mark.parametrize("release", [*RELEASES, "v0 0.6.0", "v0 0.6.6", "v0 0.8.5"])
def test_what_every_release_gives(release: str, stated: bool) -> None:
    """Load, memory and latency have one name and one meaning, whether the version is stated or only read off the page."""
    v0, number = release.startswith("v0"), release.removeprefix("v0 ")
    page = read(vllm_page(number, *(["v0"] if v0 else [])), number if stated else "")
    expected = {
        "requests_running": 3.0,
        "requests_waiting": 2.0,
        "kv_cache_usage_ratio": 0.25,
        "preemptions_total": 5.0,
        "prompt_tokens_total": 1000.0,
        "generation_tokens_total": 400.0,
        "kv_cache_capacity_tokens": 16000.0,
        "prefix_caching_enabled": 1.0,
    }
    assert expected == {name: value(page, name) for name in expected}
    assert 4.0 == value(page, "requests_finished_total", reason="stop")
    assert (17.0, 3.0) == (value(page, "http_requests_total", status="2xx"), value(page, "http_requests_total", status="4xx"))
    sums = {"time_to_first_token": 1.5, "inter_token_latency": 2.5, "e2e_latency": 4.5, "http_request_duration": 8.5}
    assert sums == {name: histogram(page, f"{name}_seconds").sum for name in sums}
    assert ((0.3, 0.5, float("inf")), (4.0, 8.0, 10.0)) == histogram(page, "e2e_latency_seconds")[2:4]
    assert 100.0 == histogram(page, "prompt_length_tokens").sum


@pytest.mark.parametrize("release", [*RELEASES, "v0 0.6.0", "v0 0.6.6", "v0 0.8.5", "rust 0.33.0"])
def test_no_signal_is_silently_absent(release: str) -> None:
    """Each signal has a value or a reason, on every release."""
    option, _, number = release.rpartition(" ")
    page = read(vllm_page(number, *filter(None, [option])), number, content_type=OPENMETRICS if option == "rust" else "")
    spoken = {s.name for s in page.samples} | {h.name for h in page.histograms} | {m.signal for m in page.missing}
    assert {PREFIX + name for name in SIGNALS} == spoken


@pytest.mark.parametrize("release", ["0.9.2", "0.10.2"])
def test_both_spellings_of_the_prefix(release: str) -> None:
    """Ray's metrics classes write `vllm_` for `vllm:`."""
    page = read(vllm_page(release, separator="_"), release)
    assert (3.0, 1280.0) == (value(page, "requests_running"), value(page, "prefix_cache_queried_tokens_total"))
    assert 3.5 == histogram(read(vllm_page("0.11.0", separator="_")), "time_per_output_token_seconds").sum


@pytest.mark.parametrize(
    ("release", "expected", "how"),
    [
        ("0.8.0", (1280.0, 320.0), Quality.APPROXIMATE),  # 80 and 20 blocks of 16 tokens
        ("0.8.5", (1280.0, 320.0), Quality.APPROXIMATE),
        ("0.9.0", (1280.0, 320.0), Quality.APPROXIMATE),  # tokens under the old name
        ("0.9.2", (1280.0, 320.0), Quality.APPROXIMATE),  # both names: never added
        ("0.24.0", (1280.0, 320.0), Quality.APPROXIMATE),
        ("0.27.0", (1280.0, 320.0), Quality.EXACT),  # one look-up per admission
        ("0.33.0", (1280.0, 320.0), Quality.EXACT),
    ],
)
@pytest.mark.parametrize("stated", [True, False])
def test_prefix_counters_are_tokens(release: str, expected: tuple[float, float], how: Quality, stated: bool) -> None:
    """Blocks become tokens, by stated version or by the family's own help text."""
    page = read(vllm_page(release), release if stated else "")
    signals = ("prefix_cache_queried_tokens_total", "prefix_cache_hit_tokens_total")
    assert expected == tuple(value(page, s) for s in signals)
    if stated:
        assert [how, how] == [quality(page, s) for s in signals]


def test_prefix_counters_of_an_unknown_unit_are_missing() -> None:
    """Without version and help text nobody can tell blocks from tokens, and blocks of unknown size cannot become tokens."""
    bare = "\n".join(line for line in vllm_page("0.8.5").split("\n") if not line.startswith("# HELP"))
    assert Reason.AMBIGUOUS is reason(read(bare), "prefix_cache_hit_tokens_total")
    assert 320.0 == value(read(bare, "0.8.5"), "prefix_cache_hit_tokens_total")
    assert Reason.AMBIGUOUS is reason(read(vllm_page("0.8.5", config={"block_size": "None"}), "0.8.5"), "prefix_cache_hit_tokens_total")


def test_v0_has_no_prefix_counters() -> None:
    """Its since-start ratio (-1 where it has none) is never forwarded."""
    page = read(vllm_page("0.8.5", "v0"), "0.8.5")
    assert [Reason.ENGINE_TOO_OLD] * 2 == [reason(page, f"prefix_cache_{w}_tokens_total") for w in ("queried", "hit")]
    assert "the V0 engine does not count it; needs the V1 engine" == getattr(missing(page, "prefix_cache_hit_tokens_total"), "detail", "")


def test_prefix_caching_that_is_off() -> None:
    """Counters that stand at 0 because the cache is off are no hit ratio of 0."""
    page = read(vllm_page("0.25.1", config={"enable_prefix_caching": "False"}), "0.25.1")
    assert 0.0 == value(page, "prefix_caching_enabled")
    assert Reason.NOT_CONFIGURED is reason(page, "prefix_cache_queried_tokens_total")
    assert value(page, "prefix_cache_queried_tokens_total") is None


@pytest.mark.parametrize(
    ("release", "time_per_output_token"), [("0.9.2", None), ("0.10.0", None), ("0.10.2", None), ("0.11.0", 3.5), ("0.33.0", 3.5)]
)
def test_inter_token_latency_and_time_per_output_token(release: str, time_per_output_token: float | None) -> None:
    """The family called time per output token was the gap between tokens; the true one came in 0.11."""
    page = read(vllm_page(release), release)
    assert 2.5 == histogram(page, "inter_token_latency_seconds").sum
    if time_per_output_token is None:
        assert "needs vLLM 0.11 or newer" == getattr(missing(page, "time_per_output_token_seconds"), "detail", "")
    else:
        assert time_per_output_token == histogram(page, "time_per_output_token_seconds").sum


def test_queue_time_of_v0_under_its_first_name() -> None:
    """0.6.6 has both names of the queue time, 0.6.0 none."""
    old_only = vllm_page("0.6.6", "v0").replace("vllm:request_queue_time_seconds", "vllm:something_else")
    assert 5.5 == histogram(read(old_only, "0.6.6"), "queue_time_seconds").sum
    assert Reason.ENGINE_TOO_OLD is reason(read(vllm_page("0.6.0", "v0"), "0.6.0"), "queue_time_seconds")


@pytest.mark.parametrize(
    ("release", "signal", "words"),
    [
        ("0.18.0", "requests_deferred", "needs vLLM 0.20 or newer"),
        ("0.30.0", "requests_rejected_total", "needs vLLM 0.32 or newer"),
        ("0.15.0", "prompt_cached_tokens_total", "needs vLLM 0.16 or newer"),
        ("0.16.0", "estimated_flops_total", "needs vLLM 0.17 or newer"),
        ("0.8.0", "spec_drafts_total", "needs vLLM 0.8.5 or newer"),
        ("0.15.0", "kv_offload_load_bytes_total", "needs vLLM 0.16 or newer"),
    ],
)
def test_too_old_says_from_when(release: str, signal: str, words: str) -> None:
    """A newer release exports it; which one is said, with and without a stated version."""
    for stated in (release, ""):
        found = missing(read(vllm_page(release), stated), signal)
        assert found is not None
        assert (Reason.ENGINE_TOO_OLD, words) == (found.reason, found.detail)


def test_waiting_requests_by_reason() -> None:
    """From 0.20 deferred requests are told apart; before 0.18 they are not in the number of waiting ones."""
    page = read(vllm_page("0.20.2"), "0.20.2")
    assert (2.0, Quality.EXACT) == (value(page, "requests_deferred"), quality(page, "requests_waiting"))
    assert Quality.APPROXIMATE is quality(read(vllm_page("0.17.1"), "0.17.1"), "requests_waiting")
    assert Quality.EXACT is quality(read(vllm_page("0.18.0"), "0.18.0"), "requests_waiting")


@pytest.mark.parametrize(
    ("release", "options", "steps", "tokens"),
    [
        ("0.8.5", ["v0"], Quality.EXACT, Quality.EXACT),
        ("0.8.5", [], Quality.APPROXIMATE, Quality.APPROXIMATE),
        ("0.22.0", [], Quality.APPROXIMATE, Quality.APPROXIMATE),  # cached prompt tokens are inside
        ("0.23.0", [], Quality.APPROXIMATE, Quality.EXACT),
    ],
)
def test_steps_come_from_a_histogram_named_total(release: str, options: list[str], steps: Quality, tokens: Quality) -> None:
    """`iteration_tokens_total` is a histogram: its count is steps, its sum tokens; V1 counts steps that return output."""
    page = read(vllm_page(release, *options), release)
    assert (10.0, 1400.0) == (value(page, "steps_total"), value(page, "step_tokens_total"))
    assert (steps, tokens) == (quality(page, "steps_total"), quality(page, "step_tokens_total"))


def test_before_0_6_6_there_are_no_steps() -> None:
    """The oldest pages cannot tell them."""
    assert Reason.ENGINE_TOO_OLD is reason(read(vllm_page("0.6.0", "v0"), "0.6.0"), "steps_total")


def test_several_api_servers_count_each_step() -> None:
    """Each observes every step that it gets output of: the count is divided if their number is known, else withheld."""
    text = vllm_page("0.25.1", "several")
    page = read(text, "0.25.1")
    assert (Reason.AMBIGUOUS, None) == (reason(page, "steps_total"), value(page, "steps_total"))
    assert 1400.0 == value(page, "step_tokens_total")
    assert 5.0 == value(read(text, "0.25.1", settings={"api_server_count": 2}), "steps_total")


def test_dead_processes_do_not_add_to_cache_usage() -> None:
    """0.9.2 to 0.11.0 keep a series per process: the greatest counts, not the sum."""
    line = 'vllm:kv_cache_usage_perc{model_name="tiny",engine="0"} 0.25'
    text = vllm_page("0.10.0", "several")
    assert line in text
    by_pid = "\n".join(f'vllm:kv_cache_usage_perc{{model_name="tiny",engine="0",pid="{pid}"}} {v}' for pid, v in ((7, 0.75), (8, 0.5)))
    assert 0.75 == value(read(text.replace(line, by_pid), "0.10.0"), "kv_cache_usage_ratio")


def test_a_ratio_summed_over_processes_is_refused() -> None:
    """V0's multi-process gauges add up: a cache that is 150 % full is no reading."""
    text = vllm_page("0.6.6", "v0").replace('gpu_cache_usage_perc{model_name="tiny"} 0.25', 'gpu_cache_usage_perc{model_name="tiny"} 1.5')
    assert Reason.INVALID is reason(read(text, "0.6.6"), "kv_cache_usage_ratio")


@pytest.mark.parametrize(
    ("release", "ranks", "config", "expected", "how"),
    [
        ("0.6.0", ("0",), {}, 16000.0, Quality.DERIVED),
        ("0.20.2", ("0",), {}, 16000.0, Quality.DERIVED),
        ("0.20.2", ("0", "1"), {}, 16000.0, Quality.APPROXIMATE),  # 2000 blocks on each series are the sum of both
        ("0.24.0", ("0",), {"kv_cache_size_tokens": "12345"}, 12345.0, Quality.EXACT),  # a hybrid model: no product
        ("0.33.0", ("0", "1"), {}, 16000.0, Quality.EXACT),
    ],
)
def test_cache_capacity(release: str, ranks: tuple[str, ...], config: dict[str, str], expected: float, how: Quality) -> None:
    """A label of its own since 0.24; before, blocks times their size, shared among the ranks."""
    page = read(vllm_page(release, *(["v0"] if release == "0.6.0" else []), ranks=ranks, config=config), release)
    assert [expected] * len(ranks) == [value(page, "kv_cache_capacity_tokens", rank) for rank in ranks]
    assert how is quality(page, "kv_cache_capacity_tokens")


def test_a_capacity_that_is_not_known_yet() -> None:
    """Early V1 pages say "None" until the engine has reported."""
    page = read(vllm_page("0.8.0", config={"num_gpu_blocks": "None"}), "0.8.0")
    found = missing(page, "kv_cache_capacity_tokens")
    assert found is not None
    assert (Reason.INVALID, "num_gpu_blocks is None") == (found.reason, found.detail)


def test_the_longest_sequence_follows_from_0_24_on() -> None:
    """Capacity over concurrency; a configured value comes first."""
    text = vllm_page("0.24.0")
    assert (2000.0, Quality.DERIVED) == (value(read(text), "model_length_limit"), quality(read(text), "model_length_limit"))
    assert 1990.0 == value(read(text, settings={"max_model_len": 1990}), "model_length_limit")
    assert Reason.ENGINE is reason(read(vllm_page("0.20.2")), "model_length_limit")


@pytest.mark.parametrize(
    ("release", "options", "enabled", "why"),
    [
        ("0.8.5", [], 0.0, Reason.NOT_CONFIGURED),
        ("0.8.5", ["speculation"], 1.0, None),
        ("0.33.0", [], 0.0, Reason.NOT_CONFIGURED),
        ("0.33.0", ["speculation"], 1.0, None),
        ("0.8.0", [], None, Reason.ENGINE_TOO_OLD),
        ("0.6.6", ["v0"], None, Reason.ENGINE_TOO_OLD),
        ("0.6.6", ["v0", "speculation"], 1.0, None),
    ],
)
def test_speculation(release: str, options: list[str], enabled: float | None, why: Reason | None) -> None:
    """Its families exist only while it is configured; old releases cannot tell."""
    page = read(vllm_page(release, *options), release)
    assert enabled == value(page, "speculation_enabled")
    assert why is reason(page, "spec_draft_tokens_total")
    if why is None:
        assert (80.0, 60.0) == (value(page, "spec_draft_tokens_total"), value(page, "spec_accepted_tokens_total"))


def test_prefix_caching_that_the_page_does_not_tell() -> None:
    """Where the configuration says None, the setting decides, or the reason says where to give it."""
    text = vllm_page("0.8.0", config={"enable_prefix_caching": "None"})
    assert Reason.ENGINE is reason(read(text, "0.8.0"), "prefix_caching_enabled")
    assert 1.0 == value(read(text, "0.8.0", settings={"enable_prefix_caching": 1}), "prefix_caching_enabled")


def test_speculation_per_position_and_on_v0() -> None:
    """V1 counts drafts and positions; V0 does neither, and its counters lag."""
    page = read(vllm_page("0.20.2", "speculation"), "0.20.2")
    assert 20.0 == value(page, "spec_drafts_total")
    assert [30.0, 31.0] == [value(page, "spec_accepted_tokens_per_position_total", position=p) for p in ("0", "1")]
    old = read(vllm_page("0.6.6", "v0", "speculation"), "0.6.6")
    assert Reason.ENGINE_TOO_OLD is reason(old, "spec_drafts_total")
    assert Quality.APPROXIMATE is quality(old, "spec_accepted_tokens_total")


@pytest.mark.parametrize(("release", "failures"), [("0.16.0", None), ("0.24.0", None), ("0.26.0", 2.0)])
def test_offloading_old_and_new_names(release: str, failures: float | None) -> None:
    """Only loads count, and the pair of names that 0.24 has is not added up."""
    page = read(vllm_page(release, "offload"), release)
    assert (8.0, 0.5) == (value(page, "kv_offload_load_bytes_total"), value(page, "kv_offload_load_seconds_total"))
    assert failures == value(page, "kv_allocation_failures_total")
    assert Reason.NOT_CONFIGURED is reason(read(vllm_page(release), release), "kv_offload_load_bytes_total")


def test_estimates_without_the_flag() -> None:
    """Counters that always stand at 0 mean that the flag is off; once one moves, all count."""
    text = vllm_page("0.20.2", ranks=("0", "1"))
    found = missing(read(text, "0.20.2"), "estimated_flops_total")
    assert found is not None
    assert Reason.FLAG_OFF is found.reason
    assert "--enable-mfu-metrics" in found.detail
    moved = text.replace(
        'estimated_flops_per_gpu_total{model_name="tiny",engine="0"} 0', 'estimated_flops_per_gpu_total{model_name="tiny",engine="0"} 7'
    )
    page = read(moved, "0.20.2")
    assert [7.0, 0.0] == [value(page, "estimated_flops_total", rank) for rank in ("0", "1")]


def test_ranks_stay_apart_and_the_front_end_has_none() -> None:
    """Each engine of a data-parallel deployment is a rank; what has no `engine` label belongs to all of them."""
    page = read(vllm_page("0.33.0", ranks=("0", "1")), "0.33.0")
    assert [3.0, 3.0] == [value(page, "requests_running", rank) for rank in ("0", "1")]
    assert {None} == {
        dict(s.labels).get("rank") for s in page.samples if s.name in (PREFIX + "requests_rejected_total", PREFIX + "http_requests_total")
    }
    lone = read(vllm_page("0.33.0"), "0.33.0")
    assert 6.0 == value(lone, "requests_rejected_total", "0", reason="max_num_queued_reqs")
