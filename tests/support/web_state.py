"""A state for the web surface that tests can set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heptascope.signals.snapshot import EMPTY, Snapshot
from heptascope.signals.window import Window


class MemoryState:
    """The daemon as the web surface sees it, made of plain fields."""

    def __init__(self, snapshot: Snapshot = EMPTY, now: float | None = None) -> None:
        """Show `snapshot` at its own time, or at `now`."""
        self.current = snapshot
        self.time = snapshot.t if now is None else now
        self.window = Window()
        self.found: Mapping[str, Any] | None = None
        self.loop_runs = True

    def snapshot(self) -> Snapshot:
        """Return the snapshot."""
        return self.current

    def verdict(self) -> Mapping[str, Any] | None:
        """Return the verdict."""
        return self.found

    def now(self) -> float:
        """Return the time."""
        return self.time

    def ready(self) -> bool:
        """Return whether a snapshot was set."""
        return self.current.version > 0

    def alive(self) -> bool:
        """Return whether the loop runs."""
        return self.loop_runs
