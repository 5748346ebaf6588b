"""Ten minutes on one axis: reading all charts at one instant, and going back."""

from __future__ import annotations

import json
from typing import Any
from urllib.request import urlopen

from playwright.sync_api import Browser

from heptascope.demo.scenarios import FOLDER
from support.browser import Visit, serving, visit
from support.played import played, severe


def values(seen: Visit) -> list[str]:
    """Return the value beside each chart."""
    return [str(text) for text in seen.page.evaluate("() => [...document.querySelectorAll('.multiple .values')].map((v) => v.textContent)")]


def fetched(url: str, path: str) -> list[dict[str, Any]]:
    """Return the findings that the API answers with."""
    with urlopen(url + path) as answer:  # noqa: S310  # the test's own server
        found: list[dict[str, Any]] = json.load(answer)["findings"]
        return found


def test_hover_reads_all_charts_at_one_instant(browser: Browser) -> None:
    """The pointer over one chart draws a line through all of them, and their values are those of that second."""
    with serving(severe()) as url, visit(browser, url + "/#/time") as seen:
        seen.page.wait_for_selector(".multiple")
        before = values(seen)
        assert 0 == seen.page.locator(".cursor").count()
        seen.page.locator("figure[data-key=kv] svg").scroll_into_view_if_needed()
        box = seen.page.locator("figure[data-key=kv] svg").bounding_box()
        assert box is not None
        seen.page.mouse.move(box["x"] + box["width"] * 0.93, box["y"] + 20)
        seen.page.wait_for_selector("figure[data-key=sm] .cursor", state="attached")
        charts = seen.page.locator(".multiple").count()
        assert charts == seen.page.locator(".multiple .cursor").count()
        assert before != values(seen)
        seen.page.mouse.move(5, 5)
        seen.wait("() => !document.querySelector('.cursor')")
        assert before == values(seen)


def test_engine_and_gpu_share_the_axis(browser: Browser) -> None:
    """Charts of the engine and of the GPU stand one below the other, equally wide; findings lie over them as bands."""
    with serving(severe()) as url, visit(browser, url + "/#/time") as seen:
        seen.page.wait_for_selector(".multiple .band")
        names = seen.page.evaluate("() => [...document.querySelectorAll('.multiple')].map((figure) => figure.dataset.key)")
        assert {"ttft", "itl", "generated", "kv", "sm", "dram", "power"} <= set(names)
        assert 1 == len(set(seen.page.evaluate("() => [...document.querySelectorAll('.multiple svg')].map((svg) => svg.clientWidth)")))
        assert "KVCachePreemption" in seen.text(".bands")


def test_going_back_shows_what_was_said_then(browser: Browser) -> None:
    """The state of an earlier second comes back, everywhere on the page, until the reader returns to now."""
    state = played(FOLDER / "kv-severe", seconds_before_end=25)
    with serving(state) as url:
        state.advance(22)
        with visit(browser, url + "/#/time") as seen:
            seen.page.wait_for_selector("#scrub")
            seen.page.locator("#scrub").focus()
            for _ in range(18):
                seen.page.keyboard.press("ArrowLeft")
            seen.page.wait_for_selector(".paused")
            seen.wait("() => document.querySelector('.paused').textContent.includes('18 s ago')")
            seen.page.click("nav >> text=Overview")
            seen.page.wait_for_selector(".tile .bar")
            assert "18 s ago" in seen.text(".paused")
            now = state.time
            then = {f["key"]: f["state"] for f in fetched(url, f"/api/v1/findings?layer=memory&at={now - 18}")}
            assert then != {f["key"]: f["state"] for f in fetched(url, "/api/v1/findings?layer=memory")}
            seen.page.click("#layer-memory")
            seen.page.wait_for_selector(".rules details")
            marks = (
                "() => [...document.querySelectorAll('.rules > details')].map((d) => [d.dataset.key, d.querySelector('.chip').className])"
            )
            shown = dict(seen.page.evaluate(marks))
            assert {key: f"chip s-{mark}" for key, mark in then.items()} == shown
            seen.page.wait_for_selector(".trends .cursor", state="attached")
            seen.page.click("text=All layers")
            seen.page.wait_for_selector(".tile .bar")
            then = seen.text(".tiles")
            seen.page.click(".paused button")
            seen.wait("() => !document.querySelector('.paused')")
            assert then != seen.text(".tiles")
