"""What each resource can give: peaks of cards, and the share of a peak that real work reaches.

Every number has its source beside it. `configuration: peaks` overrides a card's row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Dense bf16/fp16 FLOP (fp32 accumulate) per clock and SM, by compute capability.
# Check: H100 SXM datasheet 989 TFLOP/s = 132 SMs x 4096 x 1.83 GHz. Ada datacentre boards reach 1024, GeForce 512.
FLOPS_PER_CLOCK_PER_SM: Mapping[str, int] = {
    "7.5": 1024,  # Turing (T4 datasheet: 65 TFLOP/s)
    "8.0": 2048,  # A100 datasheet: 312 TFLOP/s
    "8.6": 1024,  # A10 datasheet: 125 TFLOP/s
    "8.9": 1024,  # L4, L40S datasheets; GeForce Ada half of it
    "9.0": 4096,  # Hopper datasheets
    "10.0": 8192,  # B200 datasheet
    "12.0": 1024,  # RTX PRO 6000 Blackwell
}

# Peak DRAM bandwidth in bytes/s by a word of the model name, for cards whose clock and bus width cannot be read (datasheets).
DRAM_PEAK_BYTES_PER_SECOND: Mapping[str, float] = {
    "GB200": 8000e9,
    "B200": 7700e9,
    "H200": 4800e9,
    "H100 NVL": 3900e9,
    "H100 PCIe": 2000e9,
    "H100": 3350e9,
    "A100-SXM4-80GB": 2039e9,
    "A100 80GB PCIe": 1935e9,
    "A100": 1555e9,
    "RTX PRO 6000": 1792e9,
    "L40S": 864e9,
    "L4": 300e9,
    "A10": 600e9,
    "T4": 320e9,
    "RTX 4090": 1008e9,
}

# Usable one-way PCIe payload in bytes/s at 16 lanes, by generation: 55 GB/s measured on gen 5 (h2d_pinned of the H200
# calibration); 13, 26 for gen 3, 4 are the usual measured figures of 15.75 and 31.5 GB/s raw; gen 6 doubles gen 5.
PCIE_USABLE_X16_BYTES_PER_SECOND: Mapping[int, float] = {3: 13e9, 4: 26e9, 5: 55e9, 6: 110e9}


@dataclass(frozen=True, slots=True)
class Achievable:
    """Share of a peak that well-made work reaches; measured on an H200 (calibration run, 100 ms medians).

    dram: matrix products of 1 to 64 rows, which decoding consists of, read DRAM at 0.72 to 0.74 of peak (a copy 0.88, a plain
    read 0.91). tensor: dense bf16 products keep the pipe 0.925 busy. nvlink: an all-reduce moves about 0.8 of the link's speed.
    """

    dram: float = 0.74
    tensor: float = 0.925
    nvlink: float = 0.8


ACHIEVABLE = Achievable()


@dataclass(frozen=True, slots=True)
class CardPeaks:
    """A user's own peaks for one GPU model; None keeps ours."""

    dram_bytes_per_second: float | None = None
    flops_per_clock_per_sm: float | None = None


def dram_peak(model: str, clock_hertz: float | None, bus_bits: float | None, override: CardPeaks | None = None) -> float | None:
    """Return peak DRAM bytes/s: the override, else 2 x clock x bus width / 8, else the datasheet; None if unknown.

    The formula gives 4814 GB/s on an H200 and agrees there with measured traffic within 0.5 %.
    """
    if override is not None and override.dram_bytes_per_second:
        return override.dram_bytes_per_second
    if clock_hertz and bus_bits:
        return 2 * clock_hertz * bus_bits / 8
    return next((peak for word, peak in DRAM_PEAK_BYTES_PER_SECOND.items() if word in model), None)


def flops_per_clock(compute_capability: str, override: CardPeaks | None = None) -> float | None:
    """Return dense bf16 FLOP per clock and SM, or None for an unknown card."""
    if override is not None and override.flops_per_clock_per_sm:
        return override.flops_per_clock_per_sm
    return FLOPS_PER_CLOCK_PER_SM.get(compute_capability)


def pcie_usable(generation: float, width: float) -> float | None:
    """Return usable one-way PCIe bytes/s, or None for an unknown generation."""
    full = PCIE_USABLE_X16_BYTES_PER_SECOND.get(int(generation))
    return full * width / 16 if full else None
