"""llama.cpp: real captures, `/props`, and what builds of other years printed."""

from __future__ import annotations

import json

import pytest

from heptascope.model import Quality, Reason
from heptascope.sources.engine.adapter import adapters
from heptascope.sources.engine.llamacpp_slots import SLOTS, slot_tokens, told_by_props
from heptascope.sources.engine.page import Document
from heptascope.sources.engine.reader import EngineReader
from heptascope.sources.engine.source import EngineSource
from support.engine_pages import capture, growth, missing, quality, read, reason, truth, value
from support.engine_server import Answer, EngineServer
from support.page_text import page

BUILD = "llamacpp-b11434"
LOADS = ("light_load", "saturated_queue", "prefix_heavy", "spec_draft_high")


def grown(scenario: str, signal: str, **labels: str) -> float:
    """Return the growth of a counter between the two pages of a capture."""
    return growth(BUILD, scenario, signal, kind="llamacpp", **labels)


@pytest.mark.parametrize("scenario", LOADS)
def test_generated_tokens_are_those_of_the_client(scenario: str) -> None:
    """Between two real pages the counter grows by what the client got, within the edges of the window."""
    assert truth(BUILD, scenario)["window"]["output_tokens"] == pytest.approx(grown(scenario, "generation_tokens_total"), rel=0.03)


@pytest.mark.parametrize("scenario", LOADS)
def test_prompt_tokens_hold_the_cached_ones(scenario: str) -> None:
    """The engine counts computed and cached prompt tokens apart; ours is their sum, as the client sent it."""
    sent = truth(BUILD, scenario)["window"]["prompt_tokens_of_succeeded"]
    assert sent == pytest.approx(grown(scenario, "prompt_tokens_total"), rel=0.05)
    assert grown(scenario, "prefix_cache_queried_tokens_total") == grown(scenario, "prompt_tokens_total")


def test_hits_are_told_apart_from_misses() -> None:
    """Prompts that share most of their tokens hit; others do not."""
    ratios = [
        grown(s, "prefix_cache_hit_tokens_total") / grown(s, "prefix_cache_queried_tokens_total") for s in ("prefix_heavy", "light_load")
    ]
    assert ratios[0] > 0.9
    assert ratios[1] < 0.05


def test_load_and_queue() -> None:
    """Four slots are busy, the others wait."""
    full = read(capture(BUILD, "saturated_queue"), kind="llamacpp")
    gauges = truth(BUILD, "saturated_queue")["gauges"]
    assert gauges["llamacpp:requests_processing"]["max"] == value(full, "requests_running")
    assert gauges["llamacpp:requests_deferred"]["median"] == pytest.approx(value(full, "requests_waiting"), abs=1)


def test_speculation() -> None:
    """All drafts of the looping model are accepted, position by position; without speculation the same names mean nothing."""
    assert grown("spec_draft_high", "spec_accepted_tokens_total") / grown("spec_draft_high", "spec_draft_tokens_total") > 0.95
    on, off = (read(capture(BUILD, scenario), kind="llamacpp") for scenario in ("spec_draft_high", "light_load"))
    positions = [value(on, "spec_accepted_tokens_per_position_total", position=str(n)) for n in range(4)]
    assert positions == sorted(positions, key=lambda count: -(count or 0))
    assert (1.0, None) == (value(on, "speculation_enabled"), value(off, "speculation_enabled"))
    assert (Quality.APPROXIMATE, Quality.EXACT) == (quality(on, "steps_total"), quality(off, "steps_total"))
    assert Reason.NOT_CONFIGURED is reason(off, "spec_drafts_total")


def test_time_per_token_is_the_mean_that_the_client_sees() -> None:
    """Seconds over tokens, both summed over slots, are the gap between two tokens."""
    mean = grown("light_load", "latency_seconds_total", latency="time_per_output_token") / grown(
        "light_load", "latency_observations_total", latency="time_per_output_token"
    )
    assert truth(BUILD, "light_load")["window"]["itl_s"]["mean"] == pytest.approx(mean, rel=0.1)


def test_averages_that_a_scrape_resets_are_not_read() -> None:
    """The two speed gauges belong to whoever reads them last."""
    text = capture(BUILD, "light_load")
    for name in ("prompt_tokens_seconds", "predicted_tokens_seconds"):
        text = text.replace(f"\nllamacpp:{name} ", f"\nllamacpp:{name} 9e9 #")
    assert read(text, kind="llamacpp").samples == read(capture(BUILD, "light_load"), kind="llamacpp").samples


def test_the_page_is_recognised() -> None:
    """A real page is told by its names, and so is one that a build of November 2025 quoted as JSON."""
    for text in (capture(BUILD, "light_load"), json.dumps(capture(BUILD, "light_load"))):
        assert ["llamacpp"] == [kind for kind, adapter in adapters().items() if adapter.fingerprint(Document("u", text))]
        assert 2.0 == value(EngineReader().read_page(text, "text/plain", 1.0), "requests_running")


def test_builds_until_may_2025_tell_the_cache_usage() -> None:
    """They have the ratio and no cached prompt tokens; the newest have it the other way round."""
    old = read(
        page(
            """
            counter llamacpp:prompt_tokens_total 500
            counter llamacpp:tokens_predicted_total 90
            gauge llamacpp:kv_cache_usage_ratio 0.25
            gauge llamacpp:requests_processing 1
            """
        ),
        kind="llamacpp",
    )
    new = read(capture(BUILD, "light_load"), kind="llamacpp")
    assert (0.25, None) == (value(old, "kv_cache_usage_ratio"), value(new, "kv_cache_usage_ratio"))
    assert (500.0, Reason.ENGINE_TOO_OLD) == (value(old, "prompt_tokens_total"), reason(old, "prefix_cache_hit_tokens_total"))
    assert "May 2025" in missing(new, "kv_cache_usage_ratio").detail  # type: ignore[union-attr]  # it is missing


def test_counters_above_a_million_are_marked() -> None:
    """Six digits are printed, so such a counter moves in steps."""
    small = page("counter llamacpp:tokens_predicted_total 999999\ngauge llamacpp:requests_processing 1")
    large = page("counter llamacpp:tokens_predicted_total 1.23457e+06\ngauge llamacpp:requests_processing 1")
    assert [Quality.EXACT, Quality.APPROXIMATE] == [
        quality(read(text, kind="llamacpp"), "generation_tokens_total") for text in (small, large)
    ]


SLOT = {"id": 0, "n_ctx": 2048, "speculative": False, "is_processing": False}
BUSY = {**SLOT, "is_processing": True, "id_task": 7, "params": {"prompt": "secret"}}


@pytest.mark.parametrize(
    ("slot", "used"),
    [
        (BUSY | {"n_prompt_tokens": 600, "n_prompt_tokens_processed": 20, "next_token": [{"n_decoded": 100}]}, 600.0),
        (BUSY | {"n_prompt_tokens_processed": 500, "next_token": {"n_decoded": 100}}, 600.0),
        (BUSY | {"next_token": []}, 0.0),
        (BUSY | {"n_past": 600}, 600.0),
        ({"id": 0, "n_ctx": 2048, "state": 1, "n_past": 600}, 600.0),
        (SLOT | {"n_prompt_tokens": 600}, 0.0),
    ],
)
def test_what_a_slot_holds(slot: dict[str, object], used: float) -> None:
    """Builds of several years tell it differently; what an idle slot keeps for the next request is free, and no text is kept."""
    assert {"used": used, "context": 4096.0, "slots": 2.0} == slot_tokens([slot, SLOT])


def test_slots_stand_in_for_the_cache_usage() -> None:
    """What running requests hold, of all slots' contexts or of the pool that they share; a build that tells it itself goes first."""
    told = told_by_props({"total_slots": 2, "default_generation_settings": {"n_ctx": 2048}})
    beside = {SLOTS: {"used": 1024.0, "context": 4096.0, "slots": 2.0}}
    text = capture(BUILD, "light_load")
    for unified, size, usage in (("0", 4096.0, 0.25), ("1", 2048.0, 0.5)):
        out = EngineReader(None, "llamacpp", config={"kv_unified": unified}).read_page(text, "", 1.0, told=told, beside=beside)
        assert (size, usage) == (value(out, "kv_cache_capacity_tokens"), value(out, "kv_cache_usage_ratio"))
        assert (Quality.DERIVED, Quality.APPROXIMATE) == (quality(out, "kv_cache_capacity_tokens"), quality(out, "kv_cache_usage_ratio"))
    old = page("counter llamacpp:prompt_tokens_total 5\ngauge llamacpp:kv_cache_usage_ratio 0.75\ngauge llamacpp:requests_processing 1")
    assert 0.75 == value(EngineReader(None, "llamacpp").read_page(old, "", 1.0, beside=beside), "kv_cache_usage_ratio")


def test_without_slots_the_usage_has_a_reason() -> None:
    """A server with `--no-slots` answers 501 there, and is not asked again for a minute."""
    with EngineServer() as server:
        server.page(capture(BUILD, "light_load"))
        server.answers[SLOTS] = Answer(b"{}", "application/json", 501)
        one = EngineSource(None, server.url, "llamacpp")
        outs = [one.read(float(t)) for t in range(3)]
        one.close()
        assert 1 == server.asked.count(SLOTS)
    assert {Reason.ENGINE} == {reason(out, "kv_cache_usage_ratio") for out in outs}


def test_props_tell_slots_and_context() -> None:
    """Slots, context and model come from `/props`; capacity is their product."""
    told = told_by_props(
        {"total_slots": 4, "default_generation_settings": {"n_ctx": 2048}, "model_path": "/models/tiny.gguf", "build_info": "b11434-abc"}
    )
    out = EngineReader(None, "llamacpp").read_page(capture(BUILD, "light_load"), "", 1.0, told=told)
    assert (4.0, 2048.0, 8192.0) == tuple(value(out, s) for s in ("sequence_limit", "model_length_limit", "kv_cache_capacity_tokens"))
    assert {("model", "tiny.gguf"), ("version", "b11434-abc")} <= set(next(s.labels for s in out.samples if s.name.endswith("engine_info")))
