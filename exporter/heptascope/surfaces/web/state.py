"""What the web surface needs to know of the daemon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from heptascope.signals.snapshot import Snapshot
from heptascope.signals.window import Window


class State(Protocol):
    """The daemon as the web surface sees it. Every call returns at once and may come from another thread than the pipeline's."""

    @property
    def window(self) -> Window:
        """The in-memory history."""
        ...

    def snapshot(self) -> Snapshot:
        """Return the newest snapshot; `snapshot.EMPTY` before the first."""
        ...

    def verdict(self) -> Mapping[str, Any] | None:
        """Return the newest verdict as a JSON-ready object, or None before there is one."""
        ...

    def now(self) -> float:
        """Return the time on the snapshots' clock (Unix seconds); a replay's clock may run faster than the wall's."""
        ...

    def ready(self) -> bool:
        """Return whether there has been a snapshot."""
        ...

    def alive(self) -> bool:
        """Return whether the pipeline's loop still runs."""
        ...
