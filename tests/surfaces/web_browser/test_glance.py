"""The first glance in Chromium: the right verdict, fast, for many recordings."""

from __future__ import annotations

import json
import time

import pytest
from playwright.sync_api import Browser

from heptascope.demo.scenarios import FOLDER
from support.browser import serving, visit
from support.degrade import without_engine, without_gpu
from support.played import played, severe

RECORDINGS = (
    "idle", "decode-c64", "prefix-hot", "kv-severe", "seqs8-c64", "tp2-straggler", "tokenize-heavy", "eager-b8", "ngram-low", "cpu-starved",
)  # fmt: skip
LAYERS = ["application", "speculative", "parallel", "scheduling", "memory", "operator", "hardware"]
STATES = {"idle": "Idle", "healthy": "Healthy", "degraded": "Degraded", "cannot-tell": "Cannot tell"}


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_verdict_of_a_recording(browser: Browser, name: str) -> None:
    """The sentence has the label's state, the layer of an accepted fault is marked, and no layer that must not be blamed."""
    label = json.loads((FOLDER / name / "label.json").read_text(encoding="utf-8"))
    with serving(played(FOLDER / name)) as url, visit(browser, url) as seen:
        seen.page.wait_for_selector(".verdict h1")
        assert seen.text(".verdict .chip").removeprefix(seen.text(".verdict .chip span")).strip() in [
            STATES[state] for state in label["state"]
        ]
        marks = {layer: seen.page.locator(f"li[data-key={layer}] .chip").inner_text() for layer in LAYERS}
        faulty = [layer for layer, mark in marks.items() if "Fault" in mark]
        accepted = {topic.split("/")[0] for topic in label["fault"]}
        assert bool(accepted) == bool(faulty)
        assert not accepted or accepted & set(faulty)
        assert not {topic for topic in label["must_not"] if "/" not in topic} & set(faulty)


def test_loads_within_a_second(browser: Browser) -> None:
    """From the request to the verdict on the screen on loopback, the best of three."""
    with serving(severe()) as url:
        took = []
        for _ in range(3):
            with visit(browser, "about:blank") as seen:
                began = time.monotonic()
                seen.page.goto(url)
                seen.page.wait_for_selector("li[data-key=hardware] .judged")
                took.append(time.monotonic() - began)
                seen.requests.clear()
        assert min(took) < 1.0


def test_above_the_fold(browser: Browser) -> None:
    """Sentence, model, latencies against their objectives, tokens, saturation, and all seven layers are on the first screen."""
    with serving(severe()) as url, visit(browser, url) as seen:
        seen.page.wait_for_selector(".tile .bar")
        assert "Running requests are thrown out for lack of KV cache and computed again." in seen.text(".verdict h1")
        how = seen.text(".verdict .how")
        for part in ("Limiting layer", "Root fault KVCachePreemption on vllm", "seen directly", "Since", "rules cannot be judged"):
            assert part in how
        assert "Model m" in seen.text(".about")
        tiles = [" ".join(tile.split()) for tile in seen.page.locator(".tile").all_inner_texts()]
        assert ["TTFT p95", "Inter-tok", "Tokens ge", "Requests ", "Saturatio"] == [
            tile[:9] if i else tile[:8] for i, tile in enumerate(tiles)
        ]
        assert "objective 10 s: kept" in tiles[0]
        assert tiles[4].startswith("Saturation 98")
        assert "first limit: KV cache DRAM bandwidth" in tiles[4]
        assert "--kv-cache-dtype fp8" in seen.page.locator(".next .flag").all_inner_texts()
        assert tiles[2].split()[2].replace(",", "").isdigit()
        last = seen.page.locator("li[data-key=hardware]").bounding_box()
        assert last is not None
        assert last["y"] + last["height"] <= 800
        assert LAYERS == seen.page.evaluate("() => [...document.querySelectorAll('li.layer')].map((row) => row.dataset.key)")


def test_cannot_tell_is_visible(browser: Browser) -> None:
    """Without GPUs the page says that it cannot tell, which layer not at all and which in part, and where the reasons stand."""
    with serving(played(FOLDER / "decode-c64", without_gpu)) as url, visit(browser, url) as seen:
        seen.page.wait_for_selector(".verdict h1")
        assert "Cannot tell" in seen.text(".verdict h1")
        assert seen.page.locator("li.l-cannot-tell").count() > 0
        assert "#/sources" == seen.page.locator(".next a").get_attribute("href")
        assert "rules lack signals" in seen.text("li.l-cannot-tell .words")
        assert "Clear in part" in seen.text("li[data-key=parallel] .chip")


def test_without_an_engine_nobody_says_that_there_is_no_traffic(browser: Browser) -> None:
    """Latencies of an engine that cannot be read are unknown; that no requests came would be a claim."""
    with serving(played(FOLDER / "decode-c64", without_engine)) as url, visit(browser, url) as seen:
        seen.wait("() => document.querySelectorAll('.tile').length === 5 && !document.querySelector('.tiles').innerText.includes('…')")
        assert "TTFT p95 – cannot be read now" == seen.text(".tile")


def test_times_are_local_with_utc_on_hover(browser: Browser) -> None:
    """A moment stands in the reader's zone; its title says it in UTC."""
    with serving(severe()) as url, visit(browser, url, timezone_id="Asia/Tokyo") as seen:
        seen.page.wait_for_selector(".verdict time")
        stamp = seen.page.locator(".verdict time").first
        utc, local = str(stamp.get_attribute("title")), stamp.inner_text()
        assert utc.endswith(" UTC")
        assert (int(utc[11:13]) + 9) % 24 == int(local[:2])


@pytest.mark.parametrize(("locale", "words", "lang"), [("zh-CN", "七层，自应用到硬件", "zh-CN"), ("fr-FR", "The seven layers", "en")])
def test_language_of_the_browser(browser: Browser, locale: str, words: str, lang: str) -> None:
    """Chinese for who asks for it, rules included; English for everyone else."""
    with serving(severe()) as url, visit(browser, url, locale=locale) as seen:
        seen.page.wait_for_selector(".stack h2")
        assert words in seen.text(".stack h2")
        assert lang == seen.page.evaluate("document.documentElement.lang")
        assert ("抢占后重新计算" in seen.text(".verdict h1")) == (lang == "zh-CN")
