"""The recordings that tests replay: those bundled for the demo and those kept beside the tests."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
ROOTS = (REPOSITORY / "exporter/heptascope/demo/recordings", REPOSITORY / "tests/recordings")


def all_recordings() -> dict[str, Path]:
    """Return the folder of every recording by its name."""
    return {folder.name: folder for root in ROOTS for folder in sorted(root.iterdir()) if folder.is_dir()}


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the rows of one compressed file."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def write_lines(path: Path, rows: list[Any]) -> Path:
    """Write rows (text goes in as it stands) to a compressed file and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    return path
