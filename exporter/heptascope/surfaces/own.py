"""heptascope's own series: what the snapshot says about sources, gaps and quality, turned into values."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from functools import cache

from heptascope import __version__
from heptascope.model import Labels, Quality, SourceStatus, labels
from heptascope.signals.schema import SCHEMA
from heptascope.signals.schema_row import ENGINE
from heptascope.signals.snapshot import Snapshot

Values = Mapping[str, tuple[tuple[Labels, float], ...]]

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_GPU_PREFIX = "heptascope_gpu_"


def own_values(snapshot: Snapshot, now: float) -> Values:
    """Return the series that describe the snapshot and this process, by signal name.

    `now` is the time on the snapshot's clock (Unix seconds): the ages of the sources are taken at it.
    """
    return {
        "heptascope_build_info": ((_build_labels(), 1.0),),
        **_sources(snapshot, now),
        "heptascope_signal_unavailable": _unavailable(snapshot),
        "heptascope_engine_signal_quality_info": _engine_quality(snapshot),
        "heptascope_clock_timestamp_seconds": (((), now),),
        "heptascope_process_cpu_seconds_total": (((), time.process_time()),),
        "heptascope_process_resident_bytes": (((), resident_bytes()),),
    }


def resident_bytes() -> float:
    """Return the resident memory of this process, in bytes (proc(5), statm, second field)."""
    with open("/proc/self/statm", "rb") as file:
        return float(int(file.read().split()[1]) * _PAGE_BYTES)


@cache
def _build_labels() -> Labels:
    return labels(version=__version__, python=platform.python_version())


def _sources(snapshot: Snapshot, now: float) -> Values:
    up, age, duration, failures, info = [], [], [], [], []
    for source in snapshot.sources:
        pairs = labels(source=source.name)
        up.append((pairs, float(source.up)))
        failures.append((pairs, float(source.failures)))
        info.append((labels(source=source.name, kind=source.kind, quality=_source_quality(source, snapshot)), 1.0))
        if source.last_success is not None:
            age.append((pairs, max(0.0, now - source.last_success)))
        if source.duration is not None:
            duration.append((pairs, source.duration))
    return {
        "heptascope_source_info": tuple(info),
        "heptascope_source_up": tuple(up),
        "heptascope_source_age_seconds": tuple(age),
        "heptascope_source_duration_seconds": tuple(duration),
        "heptascope_source_failures_total": tuple(failures),
    }


def _source_quality(source: SourceStatus, snapshot: Snapshot) -> str:
    """Return what the window ratios of a GPU source are; other kinds have none."""
    if source.kind != "gpu":
        return ""
    rough = any(_is_share(name) and q is Quality.APPROXIMATE for (name, _), q in snapshot.quality.items())
    return (Quality.APPROXIMATE if rough else Quality.EXACT).value


def _is_share(name: str) -> bool:
    return name.startswith(_GPU_PREFIX) and name.endswith("_ratio")


def _unavailable(snapshot: Snapshot) -> tuple[tuple[Labels, float], ...]:
    pairs = {labels(signal=gap.signal, reason=gap.reason.value) for gap in snapshot.missing}
    return tuple((pair, 1.0) for pair in sorted(pairs))


def _engine_quality(snapshot: Snapshot) -> tuple[tuple[Labels, float], ...]:
    """Return one info series per engine, rank and signal; labels that tell parts of a signal apart are left out."""
    found = set()
    for (name, pairs), quality in snapshot.quality.items():
        signal = SCHEMA.get(name)
        if quality is Quality.EXACT or signal is None or signal.labels[: len(ENGINE)] != ENGINE:
            continue
        where = {key: value for key, value in pairs if key in ENGINE}
        found.add(labels(**where, signal=name, quality=quality.value))
    return tuple((pair, 1.0) for pair in sorted(found))
