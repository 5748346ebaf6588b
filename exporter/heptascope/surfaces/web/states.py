"""The state of every rule at any instant of the last ten minutes: what it was at first, and each change since.

Written in the pipeline's thread, read by the web server's; what is handed out is never changed afterwards.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from heptascope.model import Labels
from heptascope.rules.judge import Finding

MOST_CHANGES = 5000
"""Some 1 MB. Past that the oldest go, and what was before them cannot be told any more."""

_Key = tuple[str, Labels]


class _Change(NamedTuple):
    t: float
    key: _Key
    finding: Finding | None


class States:
    """Remembers the states as they changed."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._now: dict[_Key, Finding] = {}
        self._first: dict[_Key, Finding] = {}
        self._changes: deque[_Change] = deque()
        self._known_from = float("inf")

    def note(self, findings: Iterable[Finding], t: float) -> None:
        """Take the findings of `t` (Unix seconds); until the next call they stand as they are."""
        self._known_from = min(self._known_from, t)
        current: dict[_Key, Finding] = {}
        for f in findings:
            key = (f.rule.name, f.instance.pairs)
            before = self._now.get(key)
            if before is None or not _alike(before, f):
                before = replace(f)
                self._changes.append(_Change(t, key, before))
            current[key] = before
        self._changes.extend(_Change(t, key, None) for key in self._now.keys() - current.keys())
        self._now = current

    def at(self, t: float) -> list[Finding]:
        """Return the findings as they stood at `t`; empty before the first that are kept."""
        if t < self._known_from:
            return []
        changes = list(self._changes)  # before `_first`: what is merged meanwhile is in both, and changes nothing a second time
        found = dict(self._first)
        for change in changes:
            if change.t > t:
                break
            _apply(found, change)
        return list(found.values())

    def forget(self, horizon: float) -> None:
        """Merge the changes before `horizon` (Unix seconds) into one picture."""
        while self._changes and (self._changes[0].t < horizon or len(self._changes) > MOST_CHANGES):
            change = self._changes[0]
            _apply(self._first, change)
            self._changes.popleft()
            self._known_from = max(self._known_from, change.t)


def _apply(found: dict[_Key, Finding], change: _Change) -> None:
    if change.finding is None:
        found.pop(change.key, None)
    else:
        found[change.key] = change.finding


def _alike(a: Finding, b: Finding) -> bool:
    """Whether two findings say the same; details of what is missing may hold numbers that change each second."""
    if a.state is not b.state or a.since != b.since:
        return False
    return a.missing == b.missing or [m[:2] for m in a.missing] == [m[:2] for m in b.missing]
