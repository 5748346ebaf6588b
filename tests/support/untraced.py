"""Leaves long plays of recordings out of the coverage: they judge real load, and tracing them makes them two and a half times as slow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import coverage


@contextmanager
def untraced() -> Iterator[None]:
    """Stop the measurement of coverage, if there is one, until the end of the block."""
    measuring = coverage.Coverage.current()
    if measuring is None:
        yield
        return
    measuring.stop()
    try:
        yield
    finally:
        measuring.start()
