"""When to try again what failed."""

from __future__ import annotations

from collections.abc import Callable

FIRST_RETRY_SECONDS = 1.0
MAX_RETRY_SECONDS = 60.0


class Backoff:
    """When to try again: soon at first, then doubling."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Be due at once."""
        self._clock = clock
        self._due = float("-inf")
        self._delay = FIRST_RETRY_SECONDS

    @property
    def due(self) -> bool:
        """Return whether it is time to try."""
        return self._clock() >= self._due

    def failed(self) -> None:
        """Push the next try back."""
        self._due = self._clock() + self._delay
        self._delay = min(self._delay * 2, MAX_RETRY_SECONDS)

    def worked(self) -> None:
        """Start anew."""
        self._due, self._delay = float("-inf"), FIRST_RETRY_SECONDS
