"""Versions of engines: stated by the engine, or bounded by what its page holds."""

from __future__ import annotations

import re
from typing import NamedTuple

Version = tuple[int, ...]

_RELEASE = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?")


def version(text: str) -> Version:
    """Return the release of a version text as three numbers. Raises ValueError if it has none."""
    found = _RELEASE.match(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no version")
    return tuple(int(n or 0) for n in found.groups())


class Span(NamedTuple):
    """The versions that an engine may have: from `low` (included) to `high` (excluded; None: open)."""

    low: Version = ()
    high: Version | None = None

    @classmethod
    def exactly(cls, release: Version) -> Span:
        """Return the span that holds one release only."""
        return cls(release, (*release, 0))

    def surely_before(self, release: Version) -> bool:
        """Whether every version of the span is older than `release`."""
        return self.high is not None and self.high <= release

    def surely_from(self, release: Version) -> bool:
        """Whether every version of the span is `release` or newer."""
        return self.low >= release

    def holds(self, release: Version) -> bool:
        """Whether `release` lies in the span."""
        return self.low <= release and (self.high is None or release < self.high)

    def __str__(self) -> str:
        """Write the span as bounds, such as `>=0.20,<0.24`; empty if nothing is known."""
        low = f">={dotted(self.low)}" if self.low else ""
        high = f"<{dotted(self.high)}" if self.high is not None else ""
        return ",".join(part for part in (low, high) if part)


def dotted(release: Version) -> str:
    """Write a version, such as 0.20 or 0.8.5."""
    if len(release) == 3 and release[2] == 0:
        release = release[:2]
    return ".".join(str(n) for n in release)
