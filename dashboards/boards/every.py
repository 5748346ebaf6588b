"""All boards."""

from __future__ import annotations

from boards import (
    capacity,
    exporter,
    layer1_hardware,
    layer2_operator,
    layer3_memory,
    layer4_scheduling,
    layer5_parallel,
    layer6_speculative,
    layer7_application,
    overview,
)
from boards.board import to_json
from boards.panel import Board

_MODULES = (
    overview,
    layer1_hardware,
    layer2_operator,
    layer3_memory,
    layer4_scheduling,
    layer5_parallel,
    layer6_speculative,
    layer7_application,
    capacity,
    exporter,
)


def boards() -> list[Board]:
    """Return every board, in the order in which they are read."""
    return [module.board() for module in _MODULES]


def files() -> dict[str, str]:
    """Return the text of every board by file name."""
    return {f"{board.uid}.json": to_json(board) for board in boards()}
