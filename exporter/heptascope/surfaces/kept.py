"""Rendered bodies, kept while they are right."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Hashable
from functools import cached_property

MAX_AGE_SECONDS = 1.0
_GZIP_LEVEL = 1  # a page of 100 KB becomes 6 KB in 0.1 ms; level 6 takes four times as long and saves an eighth more
_MAX_BODIES = 16  # different queries for one snapshot; past that, bodies are rendered again


class Body:
    """One rendered answer; its compressed form is made on first use."""

    def __init__(self, plain: bytes) -> None:
        """Hold the plain bytes."""
        self.plain = plain

    @cached_property
    def gzipped(self) -> bytes:
        """The same bytes, compressed (RFC 1952)."""
        return gzip.compress(self.plain, _GZIP_LEVEL, mtime=0)


class Kept:
    """The bodies that were rendered from the newest snapshot, for one second at most. Used from one thread."""

    def __init__(self) -> None:
        """Start empty."""
        self._bodies: dict[Hashable, Body] = {}
        self._version = -1
        self._since = 0.0

    def get(self, key: Hashable, version: int, now: float, make: Callable[[], Body]) -> Body:
        """Return the body kept for `key`, or make and keep it.

        `version` is the snapshot's, `now` the time in seconds. All bodies of a snapshot share one second.
        """
        if version != self._version or not 0 <= now - self._since < MAX_AGE_SECONDS:
            self._bodies.clear()
            self._version, self._since = version, now
        body = self._bodies.get(key)
        if body is None:
            body = make()
            if len(self._bodies) < _MAX_BODIES:
                self._bodies[key] = body
        return body
