"""All boards."""

from __future__ import annotations

from boards import layer1_hardware
from boards.board import to_json
from boards.panel import Board


def boards() -> list[Board]:
    """Return every board, in the order in which they are read."""
    return [layer1_hardware.board()]


def files() -> dict[str, str]:
    """Return the text of every board by file name."""
    return {f"{board.uid}.json": to_json(board) for board in boards()}
