"""A state for the web surface that tests can set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from heptascope.signals.snapshot import EMPTY, Snapshot
from heptascope.signals.window import Window
from heptascope.surfaces.web.state import Tap


class MemoryState:
    """The daemon as the web surface sees it, made of plain fields."""

    def __init__(self, snapshot: Snapshot = EMPTY, now: float | None = None) -> None:
        """Show `snapshot` at its own time, or at `now`."""
        self.current = snapshot
        self.time = snapshot.t if now is None else now
        self.window = Window()
        self.found: Mapping[str, Any] | None = None
        self.loop_runs = True
        self.judge: object = None
        self.header: Callable[[], Mapping[str, Any] | None] = lambda: None
        self.followers: list[Callable[[], None]] = []
        self.taps: list[Tap] = []

    def snapshot(self) -> Snapshot:
        """Return the snapshot."""
        return self.current

    def verdict(self) -> Mapping[str, Any] | None:
        """Return the verdict."""
        return self.found

    def follow(self, call: Callable[[], None]) -> None:
        """Keep who wants to know of a new snapshot."""
        self.followers.append(call)

    def tap(self, tap: Tap) -> None:
        """Keep who wants to see what is read."""
        self.taps.append(tap)

    def now(self) -> float:
        """Return the time."""
        return self.time

    def ready(self) -> bool:
        """Return whether a snapshot was set."""
        return self.current.version > 0

    def alive(self) -> bool:
        """Return whether the loop runs."""
        return self.loop_runs
