"""What a source is: something that blocks, reads the outside world, and returns readings."""

from __future__ import annotations

from typing import Protocol

from heptascope.model import Reading, Reason


class SourceError(Exception):
    """A read failed; `reason` is for the machine, the message one line for people."""

    def __init__(self, reason: Reason, message: str) -> None:
        """Keep both."""
        super().__init__(message)
        self.reason = reason


class Source(Protocol):
    """One thing that is read on a schedule of its own, in a thread of its own.

    `interval` is the time between reads and `timeout` the time after which a read counts as hung, both in seconds.
    """

    name: str
    kind: str
    interval: float
    timeout: float

    def read(self, now: float) -> Reading:
        """Read once. `now` is Unix seconds. May block. Raises SourceError; any other exception is a bug that the runner contains."""
        ...

    def close(self) -> None:
        """Release what the source holds. Called once, from the source's own thread where that still answers."""
        ...
