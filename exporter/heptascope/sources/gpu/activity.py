"""GPM values of a `gpu` row: activity ratios with their windows, and rates integrated into byte counters."""

from __future__ import annotations

from math import isfinite

from heptascope.model import Quality, Reason
from heptascope.sources.gpu.counters import GpuCounters
from heptascope.sources.gpu.layout import GPM_BYTES, GPM_RATIOS, MIB, NO_GPM, NO_NUMBER, NO_NVLINK, NOT_RECORDED, Row
from heptascope.sources.gpu.page import Page, Why

_SUFFIXES = ("_ratio", "_seconds_total", "_sampled_seconds_total")
_RATIO_SIGNALS = {key: tuple(what + suffix for suffix in _SUFFIXES) for key, what in GPM_RATIOS.items()}
SIGNALS = (*(signal for group in _RATIO_SIGNALS.values() for signal in group), *GPM_BYTES.values())

TOP_PERCENT = 101.0
"""A share a little above 100 % is rounding; one far above it is garbage."""
TOP_MIB_PER_SECOND = 1e8
"""100 TB/s: above any link of any card."""


def put(row: Row, nvlink: bool | None, counters: GpuCounters, page: Page) -> None:
    """Add ratios and byte counters; `nvlink` says whether the card has NVLink (None: not known yet, which shows nothing)."""
    gpm: Row = row.get("gpm") or {}
    window: float = gpm.get("win", 0.0)
    windows: dict[str, float] = gpm.get("win_of", {})
    for key in GPM_RATIOS:
        _ratio(key, gpm.get(key), windows.get(key, window), row, page)
    for key, signal in GPM_BYTES.items():
        of_nvlink = key.startswith("nvlink")
        if of_nvlink and nvlink is False:
            page.miss(signal, NO_NVLINK)
            continue
        _count(key, gpm.get(key), windows.get(key, window), counters)
        if not of_nvlink or nvlink:
            _bytes(key, signal, row, counters, page)
        elif key in row.get("missing", {}):
            page.miss(signal, _reason(row, key))


def _ratio(key: str, percent: float | None, window: float, row: Row, page: Page) -> None:
    ratio, *counted = _RATIO_SIGNALS[key]
    if percent is None or window <= 0:
        why = _reason(row, key)
        page.miss_all((ratio,) if why[0] is Reason.INVALID else (ratio, *counted), why)
    elif not isfinite(percent) or not 0 <= percent <= TOP_PERCENT:
        page.miss(ratio, (Reason.INVALID, f"{percent!r} % is no possible value of {key}"))
    else:
        page.put(ratio, min(percent / 100.0, 1.0), window, quality=_quality(row, key))


def _count(key: str, rate: float | None, window: float, counters: GpuCounters) -> None:
    if rate is not None and window > 0 and isfinite(rate) and 0 <= rate <= TOP_MIB_PER_SECOND:
        counters.bytes[key] = counters.bytes.get(key, 0.0) + rate * MIB * window


def _bytes(key: str, signal: str, row: Row, counters: GpuCounters, page: Page) -> None:
    """Show the total so far: a window without a number leaves it as it is."""
    total = counters.bytes.get(key)
    why = _reason(row, key)
    if total is not None and (key in (row.get("gpm") or {}) or why[0] is Reason.INVALID):
        page.put(signal, total, quality=_quality(row, key))
    else:
        page.miss(signal, why)


def _quality(row: Row, key: str) -> Quality:
    """Return how the value was obtained: a row's `approx` names those that are means over another's sampling windows."""
    return Quality.APPROXIMATE if key in (row.get("gpm") or {}).get("approx", ()) else Quality.EXACT


def _reason(row: Row, key: str) -> Why:
    """Return why GPM has no value: for this metric, for all of GPM, or just in this window."""
    said = row.get("missing", {})
    found = said.get(key) or said.get("gpm")
    if found is not None:
        return Reason(found[0]), found[1]
    gpm = row.get("gpm")
    if not gpm:
        return NOT_RECORDED if gpm is None else NO_GPM
    return NO_NUMBER if key in gpm else NOT_RECORDED
