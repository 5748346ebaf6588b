"""The page of a trace in Chromium: it asks for nothing, complains of nothing, and can be read in light and dark and on a phone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from heptascope.surfaces import trace_command, trace_html
from support.browser import visit
from support.trace_builder import TRACES

FILES = {
    "ranks": ["tp2-decode-c64-rank0.json.gz", "tp2-decode-c64-rank1.json.gz"],
    "compared": ["eager-b8.json.gz", "graph-b8.json.gz"],
    "counters": ["h200-ncu-raw.csv"],
}


def _page(folder: Path, what: str) -> str:
    target = folder / f"{what}.html"
    target.write_text(trace_html.page(trace_command.build([TRACES / name for name in FILES[what]])), encoding="utf-8")
    return target.as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("what", FILES)
def test_it_can_be_read(browser: Browser, tmp_path: Path, what: str, scheme: str) -> None:
    """No error on the console, no request but the file, and nothing that axe-core calls serious, contrast included."""
    address = _page(tmp_path, what)
    with visit(browser, address, color_scheme=scheme) as visited:
        assert [address] == visited.requests
        assert [] == visited.violations()


def test_the_dark_page_is_dark(browser: Browser, tmp_path: Path) -> None:
    """Text is light on dark where the reader prefers it."""
    with visit(browser, _page(tmp_path, "counters"), color_scheme="dark") as visited:
        colours: list[str] = visited.page.evaluate(
            "() => [getComputedStyle(document.documentElement).backgroundColor, getComputedStyle(document.body).color]"
        )
    back, text = ([float(part) for part in colour[4:-1].split(",")] for colour in colours)
    assert max(back) < 60 < 200 < min(text)


def test_the_judgement_comes_first_and_stands_out(browser: Browser, tmp_path: Path) -> None:
    """What fires is in bold at the top; the drawings follow."""
    with visit(browser, _page(tmp_path, "ranks")) as visited:
        titles: list[str] = visited.page.locator("h2").all_inner_texts()
        strong: list[str] = visited.page.locator("tr.strong td:first-child").all_inner_texts()
    assert ["Judgement", "What to do", "Timeline"] == titles[:3]
    assert ["TraceStraggler", "TraceGapLimit"] == [name for name in strong if name]


def test_a_phone_scrolls_tables_not_the_page(browser: Browser, tmp_path: Path) -> None:
    """Wide tables scroll in their own frames, and the first number of a summary is in sight."""
    options: dict[str, Any] = {"viewport": {"width": 390, "height": 800}}
    with visit(browser, _page(tmp_path, "ranks"), **options) as visited:
        assert 390 >= visited.page.evaluate("document.documentElement.scrollWidth")
        first = visited.page.locator("h2:text-is('Summary') + .scroll th").nth(1).bounding_box()
    assert first is not None
    assert first["x"] + first["width"] <= 390
