"""Chromium at the page: what it shows, and what it must never do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any, NamedTuple

from playwright.sync_api import Browser, Page, sync_playwright

from heptascope.surfaces.web.app import create_app
from heptascope.surfaces.web.server import WebServer
from heptascope.surfaces.web.state import State
from support.prometheus import program

_AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
_SERIOUS = ("serious", "critical")


class Visit(NamedTuple):
    """One open page, the errors on its console, and the addresses that it asked for."""

    page: Page
    errors: list[str]
    requests: list[str]

    def text(self, selector: str) -> str:
        """Return the text of the first element that matches, with single spaces."""
        return " ".join(self.page.locator(selector).first.inner_text().split())

    def wait(self, condition: str, seconds: float = 10) -> None:
        """Wait until a JavaScript expression is true."""
        self.page.wait_for_function(condition, timeout=seconds * 1000)

    def violations(self, *rules: str) -> list[str]:
        """Return the serious violations of `rules` (all by default) that axe-core finds."""
        self.page.evaluate(_AXE)
        options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
        found: dict[str, Any] = self.page.evaluate("(options) => axe.run(document, options)", options)
        return [
            f"{rule['id']}: {node['html'][:150]} ({node['failureSummary'][:200]})"
            for rule in found["violations"]
            if rule["impact"] in _SERIOUS
            for node in rule["nodes"]
        ]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Debian's Chromium without a screen."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program("chromium"), args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@contextmanager
def serving(state: State, stage: Any = None) -> Iterator[str]:
    """Serve the page of `state` on a free port; give its address."""
    server = WebServer(create_app(state, stage=stage), "127.0.0.1", 0)
    server.start()
    try:
        yield server.url
    finally:
        server.stop()


@contextmanager
def visit(browser: Browser, url: str, **options: Any) -> Iterator[Visit]:
    """Open a page; `options` are those of a browser context. Its console must stay clean, and no other host may be asked."""
    context = browser.new_context(
        **{"viewport": {"width": 1280, "height": 800}, "locale": "en-GB", "timezone_id": "Europe/Berlin", **options}
    )
    context.set_default_timeout(10_000)
    visited = Visit(context.new_page(), [], [])
    visited.page.on("console", lambda message: visited.errors.append(message.text) if message.type == "error" else None)
    visited.page.on("pageerror", lambda error: visited.errors.append(str(error)))
    visited.page.on("request", lambda request: visited.requests.append(request.url))
    try:
        visited.page.goto(url)
        yield visited
        origin = url.split("/#")[0].rstrip("/")
        assert [] == visited.errors
        assert [] == [address for address in visited.requests if not address.startswith(origin)]
    finally:
        context.close()
