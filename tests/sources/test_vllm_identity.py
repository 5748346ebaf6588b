"""Which vLLM a page comes from: version, front end, model, and pages from which its own families are gone."""

from __future__ import annotations

import pytest

from heptascope.model import Reason
from heptascope.sources.base import SourceError
from heptascope.sources.engine.adapter import Told
from heptascope.sources.engine.names import PREFIX, SIGNALS
from heptascope.sources.engine.reader import EngineReader
from heptascope.sources.engine.vllm_facts import told_by_models
from support.engine_pages import VLLM_011, VLLM_032, capture, missing, read, reason, value
from support.vllm_pages import OPENMETRICS, vllm_page


def test_the_rust_front_end() -> None:
    """OpenMetrics, fewer families: capacity has a reason, load and speculation are there, one server counts its steps."""
    page = read(vllm_page("0.33.0", "rust", "speculation"), "", content_type=OPENMETRICS)
    assert (3.0, 5.0, 10.0, 80.0) == tuple(
        value(page, s) for s in ("requests_running", "preemptions_total", "steps_total", "spec_draft_tokens_total")
    )
    found = missing(page, "kv_cache_capacity_tokens")
    assert found is not None
    assert (Reason.ENGINE, "the Rust front end's page has no cache_config_info") == (found.reason, found.detail)
    assert Reason.ENGINE is reason(page, "requests_rejected_total")


@pytest.mark.parametrize(
    ("text", "stated", "expected"),
    [
        (vllm_page("0.6.0", "v0"), "", "<0.6.6"),
        (vllm_page("0.8.5", "v0"), "", ">=0.6.6,<0.9"),
        (vllm_page("0.8.0"), "", ">=0.7,<0.9.2"),
        (vllm_page("0.8.5"), "", ">=0.8.5,<0.9.2"),
        (vllm_page("0.9.2"), "", ">=0.9.2,<0.10.2"),
        (vllm_page("0.10.2"), "", ">=0.10.2,<0.11"),
        (capture(VLLM_011, "steady_16"), "", ">=0.11,<0.11.1"),
        (vllm_page("0.17.1"), "", ">=0.16,<0.20"),
        (vllm_page("0.20.2"), "", ">=0.20,<0.24"),
        (vllm_page("0.24.0"), "", ">=0.24,<0.30"),
        (capture(VLLM_032, "steady_16"), "", ">=0.32"),
        (capture(VLLM_032, "steady_16"), "0.32.0+cpu", "0.32.0+cpu"),
    ],
)
def test_the_version_is_bounded_by_the_page(text: str, stated: str, expected: str) -> None:
    """What the engine states is shown as it is; else the span of releases that have exactly these families."""
    page = read(text, stated)
    assert [("vllm", expected, "tiny")] == [
        (pairs["kind"], pairs["version"], pairs["model"]) for s in page.samples if s.name == PREFIX + "info" for pairs in [dict(s.labels)]
    ]


def test_a_forks_own_version_does_not_override_the_page() -> None:
    """A build that counts from 2.0 is judged by what its page holds."""
    assert 1280.0 == value(read(vllm_page("0.8.5"), "2.0.0"), "prefix_cache_queried_tokens_total")
    assert Reason.ENGINE_TOO_OLD is reason(read(vllm_page("0.18.0"), "0.1.dev1+gabc"), "requests_deferred")


def test_a_bounded_choice_of_settings() -> None:
    """Of the many labels of the cache configuration only chosen ones are shown, and none that says None."""
    page = read(capture(VLLM_032, "kv_pressure_preempt"), "0.32.0")
    shown = {dict(s.labels)["setting"]: dict(s.labels)["value"] for s in page.samples if s.name == PREFIX + "config_info"}
    assert ("128", "24", "True") == (shown["block_size"], shown["num_gpu_blocks_override"], shown["enable_prefix_caching"])
    assert "sliding_window" not in shown
    assert len(shown) <= 13


def test_log_stats_off_is_a_flag_that_is_off() -> None:
    """A server that hides its own families still shows HTTP, and says which flag hides the rest."""
    page = read(capture(VLLM_032, "log_stats_disabled"), "0.32.0", settings={"max_num_seqs": 4})
    assert (584.0, 4.0) == (value(page, "http_requests_total", status="2xx"), value(page, "sequence_limit"))
    found = missing(page, "requests_running")
    assert found is not None
    assert Reason.FLAG_OFF is found.reason
    assert "--disable-log-stats" in found.detail
    spoken = {s.name for s in page.samples} | {h.name for h in page.histograms} | {m.signal for m in page.missing}
    assert {PREFIX + name for name in SIGNALS} == spoken


def test_another_servers_page_under_a_configured_kind() -> None:
    """A page without vLLM's and its HTTP server's families is named, not taken for a silent vLLM."""
    with pytest.raises(SourceError, match="no vLLM metrics on this page") as caught:
        read("# TYPE python_info gauge\npython_info 1\n")
    assert Reason.NOT_SUPPORTED is caught.value.reason


def test_the_list_of_models_tells_the_longest_sequence() -> None:
    """The base model speaks, not an adapter of it; a root that is the served name says nothing new."""
    adapter = {"id": "ada", "root": "/lora", "parent": "chat", "max_model_len": None}
    told = told_by_models({"data": [adapter, {"id": "chat", "root": "org/chat-8b", "parent": None, "max_model_len": 4096}]})
    assert ({"max_model_len": 4096.0}, {"model_root": "org/chat-8b"}) == (told.settings, told.config)
    out = EngineReader(None, "vllm").read_page(capture(VLLM_032, "steady_16"), "", 1.0, "0.32.0", told)
    assert 4096.0 == value(out, "model_length_limit")
    assert Told() == told_by_models({"data": [{"id": "chat", "root": "chat"}]})
