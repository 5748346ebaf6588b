"""One Chromium for the tests of a module; other modules run event loops of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from support.browser import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return a running Chromium."""
    with chromium() as found:
        yield found
