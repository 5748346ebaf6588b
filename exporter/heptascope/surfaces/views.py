"""A snapshot as plain objects, ready for JSON and for the page."""

from __future__ import annotations

import math
import zlib
from collections.abc import Collection, Mapping
from typing import Any

from heptascope.model import Histogram, Labels, Layer
from heptascope.signals.rates import quantile
from heptascope.signals.schema import HISTOGRAM_SUFFIXES, SCHEMA
from heptascope.signals.schema_row import Kind, Signal
from heptascope.signals.snapshot import Snapshot
from heptascope.signals.window import Window
from heptascope.surfaces import history, units
from heptascope.surfaces.prometheus import label_dict, number_text
from heptascope.surfaces.words import REASON_WORDS

IDENTITY = ("engine", "gpu", "rank", "uuid")
"""Labels that say which engine or GPU a series belongs to."""
STATES = ("heptascope_source_up", "heptascope_finding", "heptascope_limiter", "heptascope_layer_state", "heptascope_verdict")
"""Signals whose change of value changes what a page has to say, not only a number on it."""

Object = dict[str, Any]


def signals(full: Snapshot, window: Window, now: float, names: Collection[str] = (), layers: Collection[Layer] = ()) -> Object:
    """Return the current values at `now`; `names` (which need not have values) and `layers` narrow it."""
    rows = [_signal(row, full, window, now) for row in SCHEMA.values() if _wanted(row, full, names, layers)]
    return {"t": full.t, "age_seconds": round(max(0.0, now - full.t), 3), "version": full.version, "shape": shape(full), "signals": rows}


def shape(full: Snapshot) -> str:
    """Return a text that changes when series come or go, or a state changes."""
    parts = [(name, *(pairs for pairs, _ in rows)) for name, rows in full.values.items()]
    histograms = [(name, *(histogram.labels for histogram in rows)) for name, rows in full.histograms.items()]
    states = [full.values.get(name) for name in STATES]
    sources = [(source.name, source.reason, source.message) for source in full.sources]
    return f"{zlib.crc32(repr((parts, histograms, states, sources, full.missing)).encode('utf-8', 'replace')):08x}"


def sources(full: Snapshot, now: float) -> Object:
    """Return the state of every source at `now`."""
    rows = []
    for source in full.sources:
        age = None if source.last_success is None else max(0.0, now - source.last_success)
        rows.append(
            {
                "name": source.name,
                "kind": source.kind,
                "up": source.up,
                "age_seconds": age,
                "duration_seconds": source.duration,
                "failures": source.failures,
                "reason": source.reason,
                "message": source.message,
                "age_text": "never" if age is None else units.text(age, "seconds"),
                "duration_text": "" if source.duration is None else units.text(source.duration, "seconds"),
            }
        )
    return {"t": full.t, "sources": rows}


def unavailable(full: Snapshot) -> Object:
    """Return every gap, in the order of the signal table."""
    order = {name: i for i, name in enumerate(SCHEMA)}
    gaps = sorted(full.missing, key=lambda gap: (order.get(gap.signal, len(order)), gap.signal, gap.labels))
    rows = []
    for gap in gaps:
        signal = SCHEMA.get(gap.signal)
        rows.append(
            {
                "signal": gap.signal,
                "layer": signal.layer if signal else None,
                "reason": gap.reason,
                "reason_text": REASON_WORDS[gap.reason],
                "detail": gap.detail,
                "labels": label_dict(gap.labels),
            }
        )
    return {"t": full.t, "unavailable": rows}


def past(window: Window, signal: Signal, now: float, seconds: float) -> Object:
    """Return the points of the last `seconds` of every series of a signal; null marks the end of a series."""
    names = [signal.name + suffix for suffix in HISTOGRAM_SUFFIXES] if signal.kind is Kind.HISTOGRAM else [signal.name]
    rows = []
    for name in names:
        for series in history.series_of(window, name):
            kept = [(round(t, 3), _finite(value)) for t, value in zip(*history.points(series), strict=True) if t > now - seconds]
            if kept:
                rows.append({"name": name, "labels": label_dict(series.pairs), "points": kept})
    return {"signal": signal.name, "unit": signal.unit, "seconds": seconds, "series": rows}


def _wanted(row: Signal, full: Snapshot, names: Collection[str], layers: Collection[Layer]) -> bool:
    if layers and row.layer not in layers:
        return False
    return row.name in names if names else bool(full.values.get(row.name) or full.histograms.get(row.name))


def _signal(row: Signal, full: Snapshot, window: Window, now: float) -> Object:
    if row.kind is Kind.HISTOGRAM:
        values = [_distribution(row, histogram) for histogram in full.histograms.get(row.name, ())]
    else:
        values = [_value(row, pairs, value, window, now) for pairs, value in full.values.get(row.name, ())]
    return {
        "name": row.name,
        "kind": row.kind,
        "unit": row.unit,
        "layer": row.layer,
        "help": row.help,
        "label_names": list(row.labels),
        "values": values,
    }


def _value(row: Signal, pairs: Labels, value: float, window: Window, now: float) -> Object:
    found = label_dict(pairs)
    if row.kind is Kind.INFO:
        return {"labels": found, "value": value, "text": _facts(found)}
    unit = units.unit_of(row.name, row.unit)
    out: Object = {"labels": found, "value": _finite(value), "text": units.text(value, unit)}
    rate = history.rate(window, row.name, pairs, now) if row.kind is Kind.COUNTER else None
    if rate is not None:
        out |= {"rate": rate, "rate_text": units.rate_text(rate, unit)}
    return out


def _distribution(row: Signal, histogram: Histogram) -> Object:
    found = {q: quantile(q, histogram.bounds, histogram.counts) for q in (0.5, 0.99)}
    quantiles = {str(q): value for q, value in found.items() if value is not None}
    count = histogram.counts[-1]
    parts = [f"p{float(q) * 100:g} {units.text(value, row.unit)}" for q, value in quantiles.items()]
    return {
        "labels": label_dict(histogram.labels),
        "count": count,
        "sum": histogram.sum,
        "quantiles": quantiles,
        "buckets": [(number_text(bound), n) for bound, n in zip(histogram.bounds, histogram.counts, strict=True)],
        "text": " · ".join([*parts, f"n {units.text(count, '')}"]),
    }


def _facts(found: Mapping[str, str]) -> str:
    """Return the labels that do not identify an engine or GPU; all of them if there are no others."""
    told = [key for key in found if key not in IDENTITY] or list(found)
    return " · ".join(f"{key.replace('_', ' ')} {found[key]}" for key in told)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
