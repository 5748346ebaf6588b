"""The signals room's memory: current values, integrals, history, and why values are missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from math import isfinite

from heptascope.model import Histogram, Labels, Missing, Quality, Reading, Reason, Sample, SourceStatus
from heptascope.signals.fold import Folder, Key
from heptascope.signals.schema import SCHEMA
from heptascope.signals.schema_row import Kind
from heptascope.signals.snapshot import Snapshot
from heptascope.signals.window import Group, Window

LONGEST_HOLD_SECONDS = 10.0
"""An instant ratio (no window of its own) stands for at most this long when it is integrated."""


class _Source:
    """What one source gave last: its live series, its reasons, its qualities."""

    __slots__ = ("histograms", "keys", "missing", "quality", "t")

    def __init__(self) -> None:
        self.t = 0.0
        self.keys: set[Key] = set()
        self.histograms: dict[Key, Histogram] = {}
        self.missing: list[Missing] = []
        self.quality: dict[tuple[str, Labels], Quality] = {}


class Store:
    """Takes readings, keeps what is current, appends to the window. Used by one thread."""

    def __init__(self, window: Window | None = None) -> None:
        """Start empty, with a `window` for the history (a new one by default)."""
        self.window = window if window is not None else Window()
        self.dropped: dict[str, int] = {}
        self._values: dict[Key, float] = {}
        self._sources: dict[str, _Source] = {}
        self._folders: dict[str, Folder] = {}
        self._integrals: dict[Key, float] = {}
        self._groups: dict[Key, tuple[tuple[float, ...], Group | None]] = {}
        self.version = 0  # of the newest snapshot

    def ingest(self, reading: Reading) -> None:
        """Take one reading: what it no longer holds goes stale at once."""
        source = self._sources.setdefault(reading.source, _Source())
        folder = self._folders.setdefault(reading.source, Folder())
        missing = list(reading.missing)
        clean = self._clean(reading, missing)
        values = folder.samples(clean, SCHEMA)
        values.update(self._integrate(clean, source, reading.t))
        histograms = {(h.name, h.labels): h for h in folder.histograms(reading.histograms) if h.name in SCHEMA}
        for key, value in values.items():
            self.window.append(*key, reading.t, value)
        self._end(source, values.keys(), histograms, reading.t)
        for histogram in histograms.values():
            self._append_histogram(histogram, reading.t)
        self._values.update(values)
        source.t, source.keys, source.histograms = reading.t, set(values), histograms
        source.missing, source.quality = missing, dict(reading.quality)

    def fail(self, name: str, t: float, reason: Reason, detail: str = "") -> None:
        """End a source's series at `t` because it could not be read; the reason stands for each of its signals."""
        source = self._sources.get(name)
        if source is None:
            self._sources[name] = source = _Source()
        lost = {(key[0], _entity(key[1])) for key in (*source.keys, *source.histograms)}
        self._end(source, set(), {}, t)
        if lost:
            source.missing = [Missing(signal, reason, detail, pairs) for signal, pairs in sorted(lost)]
        source.keys, source.histograms = set(), {}

    def forget(self, name: str, t: float) -> None:
        """Drop a source that is gone for good."""
        source = self._sources.pop(name, None)
        if source is not None:
            self._end(source, set(), {}, t)

    def current(self, name: str) -> list[tuple[Labels, float]]:
        """Return the live values of one signal."""
        return [(s.pairs, s.v[-1]) for s in self.window.series(name) if s.live]

    def missing(self) -> list[Missing]:
        """Return every reason that stands now."""
        return [m for source in self._sources.values() for m in source.missing]

    def given_derived(self, derived_by: str) -> set[Key]:
        """Return the series that `derived_by` could give, and that another source supplies."""
        return {
            key
            for name, source in self._sources.items()
            if name != derived_by
            for key in source.keys
            if {"derived", "config"} & set(SCHEMA[key[0]].suppliers)
        }

    def snapshot(self, now: float, statuses: Iterable[SourceStatus] = ()) -> Snapshot:
        """Return an immutable picture of everything current."""
        self.version += 1
        values: dict[str, list[tuple[Labels, float]]] = {}
        for (name, pairs), value in self._values.items():
            values.setdefault(name, []).append((pairs, value))
        histograms: dict[str, list[Histogram]] = {}
        quality: dict[tuple[str, Labels], Quality] = {}
        for source in self._sources.values():
            quality.update(source.quality)
            for histogram in source.histograms.values():
                histograms.setdefault(histogram.name, []).append(histogram)
        return Snapshot(
            t=now,
            version=self.version,
            values={name: tuple(sorted(values[name])) for name in SCHEMA if name in values},
            histograms={name: tuple(histograms[name]) for name in SCHEMA if name in histograms},
            missing=tuple(self.missing()),
            quality=quality,
            sources=tuple(statuses),
        )

    def _clean(self, reading: Reading, missing: list[Missing]) -> list[Sample]:
        good = []
        for sample in reading.samples:
            row = SCHEMA.get(sample.name)
            if row is not None and isfinite(sample.value) and (row.kind is not Kind.COUNTER or sample.value >= 0):
                good.append(sample)
                continue
            self.dropped[reading.source] = self.dropped.get(reading.source, 0) + 1
            if row is not None:
                missing.append(Missing(sample.name, Reason.INVALID, f"{sample.value!r} is no possible value", _entity(sample.labels)))
        return good

    def _integrate(self, samples: list[Sample], source: _Source, t: float) -> dict[Key, float]:
        """Integrate window ratios into their counters, and keep every integral of a GPU that still reports."""
        out: dict[Key, float] = {}
        entities = {sample.labels for sample in samples}
        for key in source.keys:
            if key in self._integrals and key[1] in entities:
                out[key] = self._integrals[key]
        for sample in samples:
            counter = SCHEMA[sample.name].integral
            if counter:
                span = sample.window or (min(t - source.t, LONGEST_HOLD_SECONDS) if source.t else 0.0)
                sampled = counter.replace("_seconds_total", "_sampled_seconds_total")
                for name, amount in ((counter, sample.value * span), (sampled, span)):
                    key = (name, sample.labels)
                    out[key] = self._integrals[key] = self._integrals.get(key, 0.0) + max(amount, 0.0)
        return out

    def _append_histogram(self, h: Histogram, t: float) -> None:
        """Add a histogram's point: `_bucket`, `_sum` and `_count` share their times."""
        key = (h.name, h.labels)
        bounds, group = self._groups.get(key, ((), None))
        if bounds != h.bounds or group is None or not group.series:
            group = self.window.group(_series_of(h.name, h.labels, h.bounds))
            self._groups[key] = (h.bounds, group)
        values = (*h.counts, h.sum, h.counts[-1])
        if group is not None:
            self.window.append_group(group, t, values)
        else:  # with bounds that it had not before, it shares some series with its past
            for one, value in zip(_series_of(h.name, h.labels, h.bounds), values, strict=True):
                self.window.append(*one, t, value)

    def _end_histogram(self, h: Histogram, t: float) -> None:
        group = self._groups.get((h.name, h.labels), ((), None))[1]
        if group is not None and group.series:
            self.window.mark_group_stale(group, t)
        else:
            for one in _series_of(h.name, h.labels, h.bounds):
                self.window.mark_stale(*one, t)

    def _end(self, source: _Source, live: AbstractSet[Key], live_histograms: Mapping[Key, Histogram], t: float) -> None:
        for key in source.keys - live:
            self.window.mark_stale(*key, t)
            self._values.pop(key, None)
        for key, h in source.histograms.items():
            now = live_histograms.get(key)
            if now is None:
                self._end_histogram(h, t)
            elif now.bounds != h.bounds:  # what both have goes on, without a gap
                for one in set(_series_of(h.name, h.labels, h.bounds)).difference(_series_of(h.name, h.labels, now.bounds)):
                    self.window.mark_stale(*one, t)


@lru_cache(maxsize=1024)
def _series_of(name: str, pairs: Labels, bounds: tuple[float, ...]) -> tuple[tuple[str, Labels], ...]:
    """Return the names and labels of a histogram's series: its buckets, its sum, its count."""
    texts = ["+Inf" if bound == float("inf") else repr(float(bound)) for bound in bounds]
    buckets = [(f"{name}_bucket", tuple(sorted((*pairs, ("le", text))))) for text in texts]
    return (*buckets, (f"{name}_sum", pairs), (f"{name}_count", pairs))


def _entity(pairs: Labels) -> Labels:
    return tuple(pair for pair in pairs if pair[0] in ("engine", "rank", "gpu", "uuid"))
