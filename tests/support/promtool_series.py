"""Steady signals of a boundary case as input series of `promtool test rules`, and the same samples for our own evaluator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan
from typing import Any

from heptascope.config import Settings
from heptascope.given import SECONDS, START
from heptascope.model import Labels, labels
from heptascope.pipeline import Pipeline
from heptascope.rules import promql
from heptascope.rules.diagnose import Diagnoser
from heptascope.signals.derive import DeriveSettings
from heptascope.signals.schema import signal_of
from heptascope.signals.schema_row import Kind
from heptascope.signals.window import Series, Window
from support.rule_cases import played

MINUTE = 60.0
LAST_STEPS = 2
"""Derived signals are read at the end, so earlier steps change nothing."""

QUANTILES = (0.5, 0.95, 0.99)
"""Quantiles that rules ask for; of a histogram only the buckets around these are kept."""

Key = tuple[str, Labels]


@dataclass(frozen=True)
class Steady:
    """What one series does: a level that may rise by `slope` a second, or a counter that grows by `rate` a second."""

    level: float = 0.0
    slope: float = 0.0
    rate: float | None = None


Situation = Mapping[Key, Steady]
"""Every series of a situation."""


def situation(signals: tuple[Mapping[str, Any], ...], expressions: Iterable[str]) -> dict[Key, Steady]:
    """Return the series that these expressions read where these signals hold, derived ones included."""
    slo = Settings().slo.model_dump(exclude_none=True)
    pipeline = Pipeline(DeriveSettings(slo_seconds=slo), Diagnoser(()))
    for reading in played(tuple(dict(signal) for signal in signals)):
        pipeline.ingest(reading)
        if reading.t >= START + SECONDS - LAST_STEPS:
            pipeline.step(reading.t)
    wanted = {selector.metric for text in expressions for selector in promql.compile(text).selectors}
    found = {(name, series.pairs): _steady(series) for name in sorted(wanted) for series in pipeline.window.series(name) if series.live}
    return dict(_thinned(found))


def _steady(series: Series) -> Steady:
    signal = signal_of(series.name)
    seconds = series.t[-1] - series.t[0]
    if signal is not None and signal.kind in (Kind.COUNTER, Kind.HISTOGRAM):
        return Steady(rate=round((series.v[-1] - series.v[0]) / seconds, 9) if seconds else 0.0)
    given = "derived" not in signal.suppliers if signal is not None else False
    slope = round(series.v[-1] - series.v[-2], 9) if given and len(series.v) > 1 else 0.0
    return Steady(round(series.v[0] if slope else series.v[-1], 9), slope)


def _thinned(found: Mapping[Key, Steady]) -> Iterator[tuple[Key, Steady]]:
    """Leave out the buckets in which no quantile lies that a rule asks for: they only fill pages."""
    families: dict[Key, list[tuple[float, Key]]] = {}
    for (name, pairs), steady in found.items():
        bound = dict(pairs).get("le")
        if bound is None:
            yield (name, pairs), steady
        else:
            rest = tuple(pair for pair in pairs if pair[0] != "le")
            families.setdefault((name, rest), []).append((float(bound.replace("+Inf", "inf")), (name, pairs)))
    for rows in families.values():
        yield from ((key, found[key]) for key in _needed(sorted(rows), found))


def _needed(rows: Sequence[tuple[float, Key]], found: Mapping[Key, Steady]) -> list[Key]:
    counts = [found[key].rate or 0.0 for _, key in rows]
    kept = {len(rows) - 1, len(rows) - 2}
    for quantile in QUANTILES:
        at = next(i for i, count in enumerate(counts) if count >= quantile * counts[-1] - 1e-9)
        kept |= {max(at - 1, 0), at, min(at + 1, len(rows) - 1)}
    return [rows[i][1] for i in sorted(kept)]


def on_pod(pod: str, one: Situation) -> dict[Key, Steady]:
    """Return a situation with the labels that Prometheus gives to one pod's series."""
    target = {"namespace": "llm", "pod": pod, "job": "heptascope", "instance": f"{pod}:17007"}
    return {(name, labels(**{**dict(pairs), **target})): steady for (name, pairs), steady in one.items()}


@dataclass
class Written:
    """One series as promtool reads it, and its samples in order (None: no sample, NaN: stale)."""

    key: Key
    text: str
    values: list[float | None]

    @property
    def series(self) -> str:
        """The series' name and labels."""
        name, pairs = self.key
        return f"{name}{{{', '.join(f'{label}={chr(34)}{value}{chr(34)}' for label, value in pairs)}}}"


def written(phases: Sequence[tuple[Situation, int]], interval: float = MINUTE) -> list[Written]:
    """Return every series of these phases, each so many samples long. Counters count on; what a phase lacks goes stale."""
    keys = dict.fromkeys(key for one, _ in phases for key in one)
    return [_write(key, phases, interval) for key in keys]


def _write(key: Key, phases: Sequence[tuple[Situation, int]], interval: float) -> Written:
    parts: list[str] = []
    values: list[float | None] = []
    total = 0.0
    for one, samples in phases:
        steady = one.get(key)
        if steady is None:
            begun = any(value is not None for value in values)
            parts += (["stale"] if begun else []) + [f"_x{samples - begun}"]
            values += ([nan] if begun else []) + [None] * (samples - begun)
            continue
        start, step = (steady.level, steady.slope * interval) if steady.rate is None else (total, steady.rate * interval)
        text = f"{start!r}{step:+}x{samples - 1}" if step else f"{start!r}x{samples - 1}"
        parts.append(text.replace("inf", "Inf"))
        for _ in range(samples):
            values.append(start)
            start += step
        total = start if steady.rate is not None else total
    return Written(key, " ".join(parts), values)


def window_of(rows: Iterable[Written], interval: float = MINUTE) -> Window:
    """Return the samples as a window that begins at time 0."""
    window = Window(retention=inf)
    for row in rows:
        for i, value in enumerate(row.values):
            if value is not None:
                window.append(*row.key, i * interval, value)
    return window
