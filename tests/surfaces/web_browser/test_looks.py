"""For every reader: phone, dark, keyboard, screen reader, little motion; and every view without a serious fault by axe-core."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Route

from heptascope.demo.scenarios import scenarios
from heptascope.model import Layer
from heptascope.rules.load import load
from heptascope.signals.schema import SCHEMA
from heptascope.surfaces import units
from support.browser import Visit, serving, visit
from support.dcgm_bench import DcgmBench
from support.played import severe
from support.reason_texts import PLACE, reason_texts
from support.whole_pages import READINGS

_NAME = re.compile(r"--[a-z][\w-]*|[A-Za-z]+_[A-Za-z0-9_.]*[A-Za-z0-9]|(?<![\w.])\d+(?:\.\d+)?(?![\w.]*\w)", re.ASCII)
_AS_RULE = re.compile(r"^as \w+: ")
_CHINESE = re.compile("[\u4e00-\u9fff]")
_ENGLISH = re.compile(
    r"(?<![\w-])(the|an?|is|are|was|were|of|to|and|or|has|have|not|no|it|its|this|that|which|in|on|with|for|from|by|be|does|after)(?![\w-])"
)
"""Words that no name and no command has: where one is left, English is."""
_LEFT_ENGLISH = """(pattern) => {
  const english = new RegExp(pattern), found = [];
  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) { if (english.test(node.data)) found.push(node.data.trim()); return; }
    if (node.nodeType !== Node.ELEMENT_NODE || node.matches("pre, code, script, noscript, [lang=en]")) return;
    const told = ["title", "aria-label", "aria-valuetext"].map((name) => node.getAttribute(name) ?? "");
    found.push(...told.filter((words) => english.test(words)));
    node.childNodes.forEach(walk);
  };
  walk(document.body);
  return found;
}"""
VIEWS = {"overview": ".stack", "layer/memory": ".body .plot", "time": ".multiple", "sources": ".gap", "signals": "tbody tr"}


@pytest.mark.parametrize(("scheme", "rules"), [("light", ()), ("dark", ("color-contrast",))])
def test_no_serious_violation(browser: Browser, scheme: Any, rules: tuple[str, ...]) -> None:
    """axe-core finds nothing serious on any view: names, roles, contrast; the dark theme differs in contrast alone."""
    with serving(severe()) as url, visit(browser, url, color_scheme=scheme, reduced_motion="reduce") as seen:
        found = {}
        for view, ready in VIEWS.items():
            seen.page.goto(f"{url}/#/{view}")
            seen.page.wait_for_selector(ready)
            if view == "signals":  # some of its three hundred rows, which are all alike
                seen.page.fill("#find", "kv cache")
                seen.wait("() => document.querySelectorAll('tbody tr').length < 30")
            found[view] = seen.violations(*rules)
        assert {view: [] for view in VIEWS} == found


def test_phone(browser: Browser) -> None:
    """At the width of a phone no view is wider than the screen, and nothing serious is found."""
    with serving(severe()) as url, visit(browser, url, viewport={"width": 360, "height": 740}, has_touch=True) as seen:
        for view, ready in VIEWS.items():
            seen.page.goto(f"{url}/#/{view}")
            seen.page.wait_for_selector(ready)
            assert seen.page.evaluate("document.documentElement.scrollWidth") <= 360, view
        seen.page.goto(f"{url}/#/")
        seen.page.wait_for_selector(".stack")
        assert [] == seen.violations()


def test_dark_by_preference_and_by_switch(browser: Browser) -> None:
    """The system's preference holds until the reader chooses; the choice stays."""
    paper = "getComputedStyle(document.body).backgroundColor"
    with serving(severe()) as url, visit(browser, url, color_scheme="dark") as seen:
        seen.page.wait_for_selector("#theme")
        dark = seen.page.evaluate(paper)
        seen.page.select_option("#theme", "light")
        light = seen.page.evaluate(paper)
        seen.page.reload()
        seen.page.wait_for_selector("#theme")
        assert dark != light == seen.page.evaluate(paper)
        assert "light" == seen.page.input_value("#theme")


def test_keyboard_walk(browser: Browser) -> None:
    """Without a pointer: skip link, layers, a rule opened and closed, back, the search, and a digit for each layer."""
    with serving(severe()) as url, visit(browser, url) as seen:
        seen.page.wait_for_selector(".stack")
        seen.page.keyboard.press("Tab")
        assert "Skip to the verdict" == seen.page.evaluate("document.activeElement.textContent")
        seen.page.keyboard.press("Enter")
        assert "main" == seen.page.evaluate("document.activeElement.id")
        for _ in range(20):
            seen.page.keyboard.press("Tab")
            if seen.page.evaluate("document.activeElement.id") == "layer-memory":
                break
        seen.page.keyboard.press("Enter")
        seen.page.wait_for_selector(".rules details")
        seen.wait("() => document.activeElement.id === 'says'")
        closed = "() => document.querySelectorAll('.rules > details:not([open])').length"
        seen.page.locator(".rules > details:not([open]) > summary").last.focus()
        before = seen.page.evaluate(closed)
        seen.page.keyboard.press("Enter")
        assert before - 1 == seen.page.evaluate(closed)
        seen.page.wait_for_timeout(1200)  # drawings in between must not move the focus
        seen.page.keyboard.press("Enter")
        assert before == seen.page.evaluate(closed)
        seen.page.keyboard.press("Escape")
        seen.page.wait_for_selector(".stack")
        seen.page.keyboard.press("1")
        seen.wait("() => document.querySelector('#says')?.textContent.startsWith('Hardware')")
        seen.page.keyboard.press("/")
        seen.wait("() => document.activeElement.id === 'find'")
        seen.page.keyboard.type("kv cache usage")
        seen.wait("() => document.querySelectorAll('tbody tr').length === 1")
        assert "engine_kv_cache_usage_ratio" in seen.text("tbody tr")


def test_every_colour_has_a_word(browser: Browser) -> None:
    """Each state is said in words beside its colour, each chart has a text, and a change is announced."""
    with serving(severe()) as url, visit(browser, url) as seen:
        seen.page.wait_for_selector(".stack")
        assert all(len(text.split()) >= 2 for text in seen.page.locator(".chip").all_inner_texts())
        seen.wait("() => document.querySelector('#announce').textContent.startsWith('Degraded: Running requests')")
        seen.page.goto(f"{url}/#/time")
        seen.page.wait_for_selector(".multiple")
        names = seen.page.evaluate("() => [...document.querySelectorAll('.multiple svg')].map((svg) => svg.getAttribute('aria-label'))")
        assert all(": " in name and any(char.isdigit() for char in name) for name in names)


def test_little_motion(browser: Browser) -> None:
    """Who wants less motion gets none."""
    with serving(severe()) as url, visit(browser, url, reduced_motion="reduce") as seen:
        seen.page.wait_for_selector(".stack")
        assert "0s" == seen.page.evaluate("getComputedStyle(document.querySelector('main')).transitionDuration")


def test_numbers_read_as_on_the_server(browser: Browser) -> None:
    """The script's units and the server's give the same text for the same value."""
    values = [0.0, 0.004, 0.5, 0.9994, 1.0, 3.14159, 42.0, 99.95, 123.4, 1500.0, 65536.0, 3.2e9, 1.2e13]
    kinds = ["ratio", "seconds", "bytes", "celsius", "watts", "hertz", "tokens", "", "B/s"]
    with serving(severe()) as url, visit(browser, url) as seen:
        shown = seen.page.evaluate(
            """async ([values, kinds]) => { const { text, rate } = await import('./static/format.js');
            return kinds.map((unit) => values.map((value) => [text(value, unit), rate(value, unit)])); }""",
            [values, kinds],
        )
        assert shown == [[[units.text(value, unit), units.rate_text(value, unit)] for value in values] for unit in kinds]


def names(text: str) -> list[str]:
    """Return the flags, settings and numbers in a text, in any order."""
    return sorted(_NAME.findall(text))


def test_chinese_says_everything(browser: Browser) -> None:
    """Every text of the page, every rule, next step, threshold, signal and recording is there in Chinese, and nothing said no more."""
    rules = load()
    said = {
        "rules": {rule.name for rule in rules},
        "steps": {action.do for rule in rules for action in rule.actions},
        "thresholds": {_AS_RULE.sub("", text) for rule in rules for text in rule.source.values()},
        "signals": {signal.help for signal in SCHEMA.values()},
        "gains": {rule.gain_text for rule in rules} - {""},
        "scenes": {scenario.why for scenario in scenarios().values()},
    }
    with serving(severe()) as url, visit(browser, url) as seen:
        said["page"] = set(seen.page.evaluate("async () => (await import('./static/words.js')).keys"))
        words = seen.page.evaluate("async () => ({ ...(await import('./static/words-zh.js')) })")
    missing = [f"{part}: not in static/words-zh*.js: {text}" for part in said for text in sorted(said[part] - set(words[part]))]
    stale = [f"{part}: in static/words-zh*.js, said no more: {text}" for part in said for text in sorted(set(words[part]) - said[part])]
    assert [] == missing + stale, "\n".join(["", *missing, *stale])
    translated = {**words["steps"], **words["thresholds"]}
    assert not [text for text, chinese in translated.items() if names(text) != names(chinese)], (
        "numbers, flags, names of settings must stay"
    )


def in_chinese(seen: Visit, texts: list[str]) -> list[str]:
    """Return those of the sources' texts that the page does not say in Chinese, with what it says instead."""
    told = seen.page.evaluate("async (texts) => { const { detail } = await import('./static/words.js'); return texts.map(detail); }", texts)
    return [f"{text} -> {said}" for text, said in zip(texts, told, strict=True) if not _CHINESE.search(said) or _ENGLISH.search(said)]


def test_chinese_tells_why_a_value_is_missing(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the newest release of each engine lacks, or a host engine, in sickness and in health, has its reason in Chinese."""
    found = [make() for make in READINGS.values()]
    for scenario in ("h200", "a100", "no_module", "one_sick", "old_engine"):
        bench = DcgmBench(monkeypatch, scenario)
        found += [bench.warm(), bench.read_slow()]
    said = sorted({gap.detail for reading in found for gap in reading.missing} - {""})
    with serving(severe()) as url, visit(browser, url, locale="zh-CN") as seen:
        seen.page.wait_for_selector(".stack")
        assert [] == in_chinese(seen, said)


@pytest.mark.parametrize("filled", ["7", "x.y/z-1"])
def test_chinese_knows_every_reason(browser: Browser, filled: str) -> None:
    """Each text in the code by which a source, a derivation or a rule may say why something is missing has its Chinese line."""
    texts = {text.replace(PLACE, filled).lstrip("; "): where for text, where in reason_texts().items()}
    assert len(texts) > 300
    with serving(severe()) as url, visit(browser, url, locale="zh-CN") as seen:
        seen.page.wait_for_selector(".stack")
        untold = in_chinese(seen, sorted(texts.keys() - {"the kubelet"}))
    assert [] == [f"{texts[line.split(' -> ')[0]]}: not in static/words-zh-reasons.js: {line}" for line in untold]


def test_chinese_is_heard_everywhere(browser: Browser) -> None:
    """No view says an English sentence, with all rules of all layers opened, but the runbooks, which say that they are English."""
    with serving(severe()) as url, visit(browser, url, locale="zh-CN") as seen:
        seen.page.wait_for_selector(".next")
        assert "减少并发：--max-num-seqs" in seen.text(".next")
        left = {}
        for view, ready in {**VIEWS, **{f"layer/{layer}": ".rules details" for layer in Layer}}.items():
            seen.page.goto(f"{url}/#/{view}")
            seen.page.wait_for_selector(ready)
            seen.page.evaluate("document.querySelectorAll('.rules > details').forEach((rule) => { rule.open = true; })")
            seen.wait("() => [...document.querySelectorAll('.rules > details')].every((rule) => rule.querySelector('.body'))")
            left[view] = seen.page.evaluate(_LEFT_ENGLISH, _ENGLISH.pattern)
        assert {view: [] for view in left} == left
        seen.page.goto(f"{url}/#/layer/memory")
        seen.page.wait_for_selector(".runbook")
        assert "运行手册为英文" in seen.text("details[data-rule=KVCachePreemption] .runbook summary")
        assert "--max-num-seqs" == seen.text("details[data-rule=KVCachePreemption] .steps .flag")


def test_a_runbook_in_chinese_is_shown(browser: Browser) -> None:
    """Where a rule has a Chinese runbook, the Chinese page shows it, and does not call it English."""

    def translated(route: Route) -> None:
        rules = route.fetch().json()["rules"]
        route.fulfill(json={"rules": [{**row, "runbook_zh": f"# {row['rule']}\n\n中文手册"} for row in rules]})

    with serving(severe()) as url, visit(browser, url, locale="zh-CN") as seen:
        seen.page.route("**/api/v1/rules?*", translated)
        seen.page.goto(f"{url}/#/layer/memory")
        seen.page.wait_for_selector(".runbook")
        assert "运行手册" == seen.text(".runbook summary")
        seen.page.click(".runbook summary")
        assert "中文手册" in seen.text(".runbook div")
        assert seen.page.get_attribute(".runbook div", "lang") is None
