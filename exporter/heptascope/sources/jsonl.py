"""Compressed JSON lines, read as far as they are sound."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import Any

Row = dict[str, Any]

MOST_LINE_BYTES = 64 * 2**20
"""Longest line that is read: four times the largest page that heptascope fetches."""


class Damage:
    """What was unusable, how often, and where first."""

    def __init__(self) -> None:
        """Start with nothing wrong."""
        self._found: dict[tuple[str, str], list[int]] = {}

    def note(self, file: str, what: str, line: int = 0) -> None:
        """Note that `what` is wrong in `file`; `line` 0 means the file as a whole."""
        entry = self._found.setdefault((file, what), [line, 0])
        entry[1] += 1

    def lines(self) -> list[str]:
        """Return one sentence for each kind of damage, in the order in which it was met."""
        return [_sentence(file, what, line, count) for (file, what), (line, count) in self._found.items()]


def read_rows(path: Path, damage: Damage) -> Iterator[tuple[int, Row]]:
    """Yield line number and object of each sound line. What is wrong goes to `damage`; nothing comes after a broken stream."""
    line = 0
    try:
        with gzip.open(path, "rb") as file:
            while text := file.readline(MOST_LINE_BYTES):
                line += 1
                if len(text) == MOST_LINE_BYTES and not text.endswith(b"\n"):
                    damage.note(path.name, f"longer than {MOST_LINE_BYTES} bytes, so the rest of the file is left out", line)
                    return
                row = _parse(text)
                if row is not None:
                    yield line, row
                else:
                    damage.note(path.name, "no JSON object" if text.endswith(b"\n") else "cut off", line)
    except EOFError:
        damage.note(path.name, "the compressed file is cut off after this", line)
    except (OSError, zlib.error) as exc:
        damage.note(path.name, f"cannot be read further: {exc}", line)


def number(value: Any) -> float | None:
    """Return `value` if it is a finite number, else None."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) else None


def _parse(text: bytes) -> Row | None:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _sentence(file: str, what: str, line: int, count: int) -> str:
    if count > 1:
        return f"{file}: {what} ({count} lines, the first is line {line})"
    return f"{file}:{line}: {what}" if line else f"{file}: {what}"
