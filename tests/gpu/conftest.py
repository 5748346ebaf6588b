"""What the tests on a real GPU share.

The work is done by torch: by the Python that HEPTASCOPE_TORCH_PYTHON names, else by this one. What was measured is written to the
file that HEPTASCOPE_GPU_RESULTS names, if it is set.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def results() -> Iterator[dict[str, Any]]:
    """Collect what the tests find; it is written to a file at the end."""
    found: dict[str, Any] = {}
    yield found
    path = os.environ.get("HEPTASCOPE_GPU_RESULTS")
    if path:
        Path(path).write_text(json.dumps(found, indent=1) + "\n")
