"""What the web surface needs to know of the daemon."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from heptascope.model import Reading, SourceStatus
from heptascope.signals.snapshot import Snapshot
from heptascope.signals.window import Window


class Tap(Protocol):
    """Sees what the sources read, in their threads. Must not block."""

    def write(self, reading: Reading) -> None:
        """Take one reading."""
        ...

    def write_failure(self, status: SourceStatus, row: Mapping[str, Any]) -> None:
        """Take one failed read and the row that a recording keeps of it."""
        ...


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

    @property
    def judge(self) -> object:
        """The rules room (`rules.diagnose.Diagnoser`), None without rules."""
        ...

    @property
    def header(self) -> Callable[[], Mapping[str, Any] | None]:
        """Returns what the GPU sources know about their GPUs, as the header of a recording."""
        ...

    def follow(self, call: Callable[[], None]) -> None:
        """Call `call` after each new snapshot, in the pipeline's thread; it must be quick."""
        ...

    def tap(self, tap: Tap) -> None:
        """Show `tap` what the sources read from now on."""
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
