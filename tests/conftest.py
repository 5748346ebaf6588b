"""What every test gets: a log that no other test has set up."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    """Leave the loggers as they were, whatever a command line has set."""
    root, ours = logging.getLogger(), logging.getLogger("heptascope")
    handlers, level, our_level = root.handlers[:], root.level, ours.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    ours.setLevel(our_level)
