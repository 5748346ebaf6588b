"""Derived GPU signals: ratios over the derivation window, throughput estimates, neighbours on the card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from heptascope.model import Labels, Quality, labels
from heptascope.signals import ceilings
from heptascope.signals.ceilings import CardPeaks
from heptascope.signals.mapping import GPU_SIGNS
from heptascope.signals.rates import growth, mean
from heptascope.signals.schema_gpu import ACTIVITY
from heptascope.signals.window import Window


class Collector(Protocol):
    """Where derived values go."""

    def add(self, name: str, pairs: Labels, value: float | None, quality: Quality = ...) -> None:
        """Add one value; None adds nothing."""
        ...


@dataclass(slots=True)
class Card:
    """One GPU over the derivation window: activity ratios, rates in bytes/s, peaks. A missing key is an unknown value, as is None.

    `works` says whether it ran kernels, for whomever. `utilization` is NVML's share of time with a kernel or a copy,
    known also where no profiling counter is.
    """

    pairs: Labels
    activity: dict[str, float] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)
    pcie_usable: float | None = None
    nvlink_bandwidth: float | None = None
    works: bool | None = None
    utilization: float | None = None


def _activity(window: Window, pairs: Labels, now: float, span: float) -> dict[str, float]:
    out = {}
    for what in ACTIVITY:
        active = growth(window.get(f"heptascope_gpu_{what}_seconds_total", pairs), now, span)
        sampled = growth(window.get(f"heptascope_gpu_{what}_sampled_seconds_total", pairs), now, span)
        if active is not None and sampled is not None and sampled.amount > 0:
            out[what] = active.amount / sampled.amount
    return out


def _rates(window: Window, pairs: Labels, now: float, span: float) -> dict[str, float]:
    out = {}
    for what in ("pcie_receive", "pcie_transmit", "nvlink_receive", "nvlink_transmit"):
        grown = growth(window.get(f"heptascope_gpu_{what}_bytes_total", pairs), now, span)
        if grown is not None:
            out[what] = grown.per_second
    return out


def _last(window: Window, name: str, pairs: Labels) -> float | None:
    series = window.get(name, pairs)
    return series.v[-1] if series is not None and series.live else None


def _estimates(
    window: Window, card: Card, info: Mapping[str, str], now: float, span: float, peaks: Mapping[str, CardPeaks], out: Collector
) -> None:
    pairs, model = card.pairs, info.get("model", "")
    override = next((p for word, p in peaks.items() if word in model), None)
    bus = float(info["memory_bus_bits"]) if info.get("memory_bus_bits") else None
    peak = ceilings.dram_peak(model, _last(window, "heptascope_gpu_memory_clock_max_hertz", pairs), bus, override)
    out.add("heptascope_gpu_dram_peak_bytes_per_second", pairs, peak)
    if peak is not None and "dram_active" in card.activity:
        out.add("heptascope_gpu_dram_throughput_bytes_per_second", pairs, card.activity["dram_active"] * peak)
    per_clock = ceilings.flops_per_clock(info.get("compute_capability", ""), override)
    clock = mean(window.get("heptascope_gpu_sm_clock_hertz", pairs), now, span)
    if per_clock and clock and info.get("sm_count") and "tensor_active" in card.activity:
        flops = card.activity["tensor_active"] * int(info["sm_count"]) * per_clock * clock
        out.add("heptascope_gpu_tensor_throughput_flops_per_second", pairs, flops, Quality.APPROXIMATE)


HAS_WORK_SHARE = 0.05
"""Share of time with kernels from which a GPU counts as working (own choice; an idle H200 shows 0.00, launch-bound decode 0.10)."""

HAS_WORK_POWER = 0.4
"""Share of the power limit from which a GPU counts as working where no activity is known (an idle H200 draws 0.19 of its limit, one that
only spins 0.27, decode 0.65)."""


def _works(window: Window, card: Card, now: float, span: float) -> bool | None:
    known = [
        card.activity[what] for what in ("graphics_engine_active", "sm_active", "dram_active", "tensor_active") if what in card.activity
    ]
    if not known and card.utilization is not None:
        known = [card.utilization]
    power, limit = (mean(window.get(f"heptascope_gpu_{w}_watts", card.pairs), now, span) for w in ("power", "power_limit"))
    if known:
        return max(known) >= HAS_WORK_SHARE
    return power >= HAS_WORK_POWER * limit if power is not None and limit else None


def _neighbours(window: Window, now: float, span: float, out: Collector) -> None:
    """Add up what processes outside every known engine use; nothing is said where no engine process can be recognised."""
    mine = {
        s.labels["pid"]
        for s in window.series("heptascope_host_process_info")
        if s.live and s.labels.get("role") in ("engine_core", "worker", "api_server") and "pid" in s.labels
    }
    for name, source in (
        ("neighbour_memory_bytes", "process_memory_bytes"),
        ("neighbour_sm_utilization_ratio", "process_sm_utilization_ratio"),
    ):
        by_gpu: dict[Labels, tuple[float, bool]] = {}
        for series in window.series(f"heptascope_gpu_{source}"):
            value = mean(series, now, span)
            if value is None:
                continue
            pairs = labels(gpu=series.labels.get("gpu", ""), uuid=series.labels.get("uuid", ""))
            total, seen = by_gpu.get(pairs, (0.0, False))
            own = series.labels.get("pid") in mine
            by_gpu[pairs] = (total + (0.0 if own else value), seen or own)
        for pairs, (total, seen) in by_gpu.items():
            if seen:
                out.add(f"heptascope_gpu_{name}", pairs, total)


def derive_gpus(window: Window, now: float, span: float, peaks: Mapping[str, CardPeaks], out: Collector) -> dict[Labels, Card]:
    """Derive everything that needs no engine; return each GPU's view of the window for the engine pass."""
    infos = {
        labels(gpu=s.labels.get("gpu", ""), uuid=s.labels.get("uuid", "")): s.labels for s in window.series("heptascope_gpu_info") if s.live
    }
    known = set(infos) | {s.pairs for name in GPU_SIGNS for s in window.series(name) if s.live}
    cards = {}
    for pairs in sorted(known):
        card = cards[pairs] = Card(pairs, _activity(window, pairs, now, span), _rates(window, pairs, now, span))
        generation = _last(window, "heptascope_gpu_pcie_link_generation_max", pairs)
        width = _last(window, "heptascope_gpu_pcie_link_width_max", pairs)
        card.pcie_usable = ceilings.pcie_usable(generation, width) if generation and width else None
        card.nvlink_bandwidth = _last(window, "heptascope_gpu_nvlink_bandwidth_bytes_per_second", pairs)
        card.utilization = mean(window.get("heptascope_gpu_utilization_ratio", pairs), now, span)
        card.works = _works(window, card, now, span)
        _estimates(window, card, infos.get(pairs, {}), now, span, peaks, out)
    _neighbours(window, now, span, out)
    return cards
