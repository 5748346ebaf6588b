"""One flow, four rooms: readings in, signals derived, rules judged, a snapshot out.

One thread owns a pipeline. Time is an argument, so that a recording runs through exactly the code that runs live.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from time import perf_counter
from typing import Any, Protocol

from heptascope.model import Labels, Reading, Reason, SourceStatus
from heptascope.signals.derive import SOURCE, Deriver, DeriveSettings
from heptascope.signals.snapshot import EMPTY, Snapshot
from heptascope.signals.store import Store
from heptascope.signals.window import Window

Values = Mapping[str, tuple[tuple[Labels, float], ...]]

TIDY_SECONDS = 10.0


class Judge(Protocol):
    """The rules room as the pipeline sees it."""

    def step(self, store: Store, now: float) -> None:
        """Judge every rule at `now`."""
        ...

    @property
    def latest(self) -> object:
        """The verdict as the rules room has it, None before the first pass."""
        ...

    def values(self) -> Values:
        """Return the verdict as series."""
        ...

    def verdict(self) -> dict[str, Any] | None:
        """Return the verdict as a JSON-ready object, or None before the first pass."""
        ...


class Pipeline:
    """Holds the signals and the verdict of one process."""

    def __init__(self, derive: DeriveSettings | None = None, judge: Judge | None = None, window: Window | None = None) -> None:
        """Derive with `derive`, judge with `judge` (None: no rules), remember in `window`."""
        self.store = Store(window)
        self.snapshot: Snapshot = EMPTY
        self._deriver = Deriver(self.store, derive)
        self._judge = judge
        self._ingest_seconds = 0.0
        self._tidied, self._window_bytes = -inf, 0.0

    @property
    def window(self) -> Window:
        """The history."""
        return self.store.window

    @property
    def verdict(self) -> dict[str, Any] | None:
        """The verdict as a JSON-ready object; None before the first pass or without rules."""
        return self._judge.verdict() if self._judge is not None else None

    @property
    def judge(self) -> Judge | None:
        """The rules room; None without rules."""
        return self._judge

    @property
    def latest(self) -> object:
        """The verdict as the rules room has it; None before the first pass or without rules."""
        return self._judge.latest if self._judge is not None else None

    def succeed(self, before: Pipeline) -> None:
        """Take the place of `before`: show its last picture until the first of one's own, whose version is later."""
        self.snapshot = before.snapshot
        self.store.version = before.snapshot.version

    def ingest(self, reading: Reading) -> None:
        """Take one reading of one source."""
        start = perf_counter()
        self.store.ingest(reading)
        self._ingest_seconds += perf_counter() - start

    def fail(self, source: str, t: float, reason: Reason, message: str = "") -> None:
        """Take the news that a source could not be read at `t`."""
        self.store.fail(source, t, reason, message)

    def step(self, now: float, statuses: Iterable[SourceStatus] = ()) -> Snapshot:
        """Derive, judge, and publish the picture of `now`."""
        started = perf_counter()
        self.store.ingest(self._deriver.step(now))
        derived = perf_counter()
        if self._judge is not None:
            self._judge.step(self.store, now)
        judged = perf_counter()
        self._tidy(now)
        stages = {"ingest": self._ingest_seconds, "derive": derived - started, "rules": judged - derived}
        self._ingest_seconds = 0.0
        extra: dict[str, tuple[tuple[Labels, float], ...]] = {
            "heptascope_pass_duration_seconds": tuple(((("stage", stage),), seconds) for stage, seconds in stages.items()),
            "heptascope_window_bytes": (((), self._window_bytes),),
            "heptascope_series_dropped_total": tuple(
                ((("source", source),), float(n)) for source, n in sorted(self.store.dropped.items()) if source != SOURCE
            ),
        }
        if self._judge is not None:
            extra.update(self._judge.values())
        self.snapshot = self.store.snapshot(now, statuses).with_values({k: v for k, v in extra.items() if v})
        return self.snapshot

    def _tidy(self, now: float) -> None:
        """Forget series that ended long ago, and see how much memory the others take; neither is urgent."""
        if not 0 <= now - self._tidied < TIDY_SECONDS:
            self._tidied = now
            self.window.drop_ended(now)
            self._window_bytes = float(self.window.nbytes())
