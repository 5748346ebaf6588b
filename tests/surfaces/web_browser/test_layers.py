"""A layer opened: every rule with its evidence, what follows from it, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from heptascope.demo.scenarios import FOLDER
from heptascope.model import Layer
from heptascope.rules.load import load
from heptascope.surfaces.web import desk
from support.browser import serving, visit
from support.played import played, severe


def test_every_layer_opens_with_all_its_rules(browser: Browser) -> None:
    """Each row of the stack leads to its layer; every rule of the catalogue is there, and each can be opened."""
    rules = {layer: {rule.name for rule in load() if rule.layer is layer} for layer in Layer}
    with serving(severe()) as url, visit(browser, url) as seen:
        for layer in Layer:
            seen.page.click(f"#layer-{layer.value}")
            seen.page.wait_for_selector(".rules details")
            shown = seen.page.evaluate("() => [...document.querySelectorAll('.rules > details')].map((one) => one.dataset.rule)")
            assert rules[layer] == set(shown)
            last = seen.page.locator(".rules > details:not([open]) > summary").last
            last.click()
            seen.page.locator(".rules > details[open] > .body > pre").last.wait_for()
            seen.page.click("text=All layers")


@pytest.mark.parametrize(
    ("recording", "rule", "rows"),
    [
        (
            FOLDER / "tokenize-heavy",
            "FrontendSaturated",
            {
                "host_process_cpu_seconds_total process=api_server": "> 85 %",
                "host_process_cpu_seconds_total process=engine_core": "for context",
            },
        ),
        (
            FOLDER.parents[3] / "tests" / "recordings" / "prefill-starve-heavy",
            "PrefillStarvesDecode",
            {"engine_inter_token_latency_seconds mean": "> 100 ms among the slowest"},
        ),
    ],
)
def test_no_threshold_stands_beside_a_value_that_did_not_pass_it(
    browser: Browser, recording: Path, rule: str, rows: dict[str, str]
) -> None:
    """Where a rule fires, what others passed is context, and a mean says that its tail is meant."""
    state = played(recording)
    layer = next(one.layer for one in load() if one.name == rule)
    with serving(state) as url, visit(browser, f"{url}/#/layer/{layer}") as seen:
        table = f"details[data-rule={rule}] .evidence tbody"
        seen.page.wait_for_selector(f"{table} tr")
        told = {
            " ".join(row.locator("th").inner_text().split()): row.locator("td").last.inner_text()
            for row in seen.page.locator(f"{table} tr").all()
        }
        assert rows == {name: limit for name, limit in told.items() if name in rows}


def test_a_firing_rule_tells_everything(browser: Browser) -> None:
    """Evidence with its threshold, the trend with the threshold drawn, the arrows, steps for this engine, and the expression."""
    with serving(severe()) as url, visit(browser, url + "/#/layer/memory") as seen:
        body = "details[data-rule=KVCachePreemption] .body"
        seen.page.wait_for_selector(f"{body} svg.plot .threshold", state="attached")
        assert "engine_preemptions_total" in seen.text(f"{body} .evidence tbody tr")
        assert "> 0.1/s" in seen.text(f"{body} .evidence tbody tr")
        assert "KVCachePreemption → RecomputeTax" in str(seen.page.locator("svg.graph").get_attribute("aria-label"))
        assert seen.page.locator("svg.graph .edge").count() >= 2
        steps = seen.text(f"{body} .steps")
        assert "--max-num-seqs" in steps
        assert "mem-fraction-static" not in steps  # a step for another engine
        assert "rate(heptascope_engine_preemptions_total[10s]) >" in seen.page.locator(f"{body} > pre").inner_text()
        assert "preemptions_per_second" in seen.text(f"{body} .thresholds")


def test_flags_and_expressions_are_copied(browser: Browser) -> None:
    """A click on a flag or a copy button puts its text into the clipboard, and says so."""
    with serving(severe()) as url, visit(browser, url + "/#/layer/memory", permissions=["clipboard-read", "clipboard-write"]) as seen:
        flag = seen.page.locator("details[data-rule=KVCachePreemption] .flag").first
        flag.wait_for()
        words = flag.inner_text()
        flag.click()
        seen.wait("() => [...document.querySelectorAll('.flag')].some((flag) => flag.textContent === 'Copied')")
        assert words == seen.page.evaluate("navigator.clipboard.readText()")


def test_copying_over_plain_http(browser: Browser) -> None:
    """Without the browser's clipboard, which pages from another machine lack, the text is copied all the same before that is said."""
    with serving(severe()) as url, visit(browser, url + "/#/layer/memory", permissions=["clipboard-read", "clipboard-write"]) as seen:
        flag = seen.page.locator("details[data-rule=KVCachePreemption] .flag").first
        flag.wait_for()
        words = flag.inner_text()
        seen.page.evaluate("kept = navigator.clipboard; Object.defineProperty(navigator, 'clipboard', { value: undefined })")
        flag.click()
        seen.wait("() => [...document.querySelectorAll('.flag')].some((flag) => flag.textContent === 'Copied')")
        assert words == seen.page.evaluate("kept.readText()")


@pytest.mark.parametrize("address", ["%", "layer/%E0%A4%A", "layer/nonsense", "engine/%"])
def test_an_address_that_leads_nowhere(browser: Browser, address: str) -> None:
    """A mistyped address shows the overview."""
    with serving(severe()) as url, visit(browser, f"{url}/#/{address}") as seen:
        seen.page.locator("#main[data-view] h1").first.wait_for()
        assert "degraded" in seen.page.title().lower()


def test_what_is_missing_has_a_reason(browser: Browser) -> None:
    """A rule that cannot be judged names the signal that it lacks, and why."""
    with serving(severe()) as url, visit(browser, url + "/#/layer/memory") as seen:
        unknown = seen.page.locator(".rules > details:has(.s-cannot-tell)").first
        unknown.wait_for()
        unknown.locator("summary").first.click()
        unknown.locator(".body li code").first.wait_for()
        assert "What is missing" in unknown.inner_text()


def test_a_runbook_is_shown_where_there_is_one(browser: Browser, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The page of a rule stands in it, as text: no HTML of it is run."""
    (tmp_path / "KVCachePreemption.md").write_text("# Preempted\n\nRun `vllm serve`.\n\n<img src=x onerror=alert(1)>\n", encoding="utf-8")
    desk.runbook.cache_clear()
    monkeypatch.setattr(desk, "_runbook_folders", lambda: (tmp_path,))
    try:
        with serving(severe()) as url, visit(browser, url + "/#/layer/memory") as seen:
            seen.page.click("details[data-rule=KVCachePreemption] .runbook summary")
            assert "Run vllm serve. <img src=x onerror=alert(1)>" in seen.text("details[data-rule=KVCachePreemption] .runbook")
    finally:
        desk.runbook.cache_clear()
