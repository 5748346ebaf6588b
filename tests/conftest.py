"""What every test gets: a log that no other test has set up."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name bytes by their length: content such as a gzip header's time differs between the workers, which must collect the same names."""
    return f"{len(val)} bytes" if isinstance(val, bytes) else None


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    """Leave the loggers as they were, whatever a command line has set."""
    root, ours = logging.getLogger(), logging.getLogger("heptascope")
    handlers, level, our_level = root.handlers[:], root.level, ours.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    ours.setLevel(our_level)
