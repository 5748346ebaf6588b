"""MIG instances from rows: what is measured for an instance itself, apart from the board's values, which are never copied to it.

A `gpu` row's `mig` has one entry per GPU instance with its own `gpm`; a `slow` row's `mig` has memory and identity of GPU instances
and of the compute instances in them.
"""

from __future__ import annotations

from heptascope.model import Labels, Quality, Reason, labels
from heptascope.sources.gpu.activity import TOP_PERCENT
from heptascope.sources.gpu.layout import GPM_RATIOS, NO_NUMBER, Row
from heptascope.sources.gpu.page import Page, possible

TOP_BYTES = 2.0**50
_MEMORY = {"mem_used": "instance_memory_used_bytes", "mem_total": "instance_memory_total_bytes"}


def fast(row: Row, page: Page) -> None:
    """Add the activity of each GPU instance."""
    for part in row.get("mig") or ():
        extra = labels(instance=str(part["instance"]))
        gpm: Row = part.get("gpm") or {}
        for key, what in GPM_RATIOS.items():
            _ratio(key, f"instance_{what}_ratio", part, gpm, extra, page)


def slow(row: Row, page: Page) -> None:
    """Add memory and identity of each instance."""
    for part in row.get("mig") or ():
        page.put("instance_info", 1.0, extra=_identity(part))
        if part.get("compute") is not None:
            continue
        for key, signal in _MEMORY.items():
            value = part.get(key)
            if possible(value, TOP_BYTES):
                page.put(signal, float(part[key]), extra=labels(instance=str(part["instance"])))


def _ratio(key: str, signal: str, part: Row, gpm: Row, extra: Labels, page: Page) -> None:
    percent = gpm.get(key)
    window = gpm.get("win_of", {}).get(key, gpm.get("win", 0.0))
    if percent is None or window <= 0:
        missing = part.get("missing", {})
        said = missing.get(key) or missing.get("gpm")
        if said is not None or key in gpm:
            page.miss(signal, (Reason(said[0]), said[1]) if said else NO_NUMBER, extra)
    elif not possible(percent, TOP_PERCENT):
        page.miss(signal, (Reason.INVALID, f"{percent!r} % of an instance is impossible for {key}"), extra)
    else:
        quality = Quality.APPROXIMATE if key in gpm.get("approx", ()) else Quality.EXACT
        page.put(signal, min(percent / 100.0, 1.0), window, extra, quality)


def _identity(part: Row) -> Labels:
    compute = part.get("compute")
    return labels(
        instance=str(part["instance"]),
        compute_instance="" if compute is None else str(compute),
        mig_uuid=str(part.get("uuid") or ""),
        profile=str(part.get("profile") or ""),
        slices=str(part.get("slices") or ""),
    )
