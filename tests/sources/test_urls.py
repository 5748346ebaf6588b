"""What is an address and what is none."""

from __future__ import annotations

import pytest

from heptascope.sources.urls import is_http


@pytest.mark.parametrize("url", ["http://a", "https://a:8000/x", "http://127.0.0.1:65535", "http://[::1]:8000", "http://u:p@a:1/"])
def test_addresses(url: str) -> None:
    """A scheme, a host and, if any, a port that there can be."""
    assert is_http(url)


@pytest.mark.parametrize(
    "url",
    ["", "a:8000", "ftp://a", "http://", "http://:8000", "http://a:0", "http://a:65536", "http://a:port", "http://[::1", "http://a\x00"],
)
def test_what_is_none(url: str) -> None:
    """Neither a port that cannot be nor a bracket that does not close is an error of its own."""
    assert not is_http(url)
