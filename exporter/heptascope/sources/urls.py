"""Addresses as people give them."""

from __future__ import annotations

from urllib.parse import urlsplit


def is_http(url: str) -> bool:
    """Return whether `url` is an http or https URL with a host and, if it names a port, one that there can be."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and url.isprintable()
    except ValueError:  # brackets that do not close, or a port that is no number or too large
        return False
