"""What each resource can give: the peaks of cards against known figures."""

from __future__ import annotations

import pytest

from heptascope.signals.ceilings import (
    DRAM_PEAK_BYTES_PER_SECOND,
    FLOPS_PER_CLOCK_PER_SM,
    CardPeaks,
    dram_peak,
    flops_per_clock,
    pcie_usable,
)

H200 = {"clock": 3201e6, "bus": 6016.0}


def test_the_formula_gives_the_measured_peak() -> None:
    """Clock and bus width of an H200 give its 4814 GB/s, which its counters agree with to half a per cent."""
    found = dram_peak("NVIDIA H200", H200["clock"], H200["bus"])
    assert found is not None
    assert pytest.approx(4814e9, rel=0.005) == found


def test_a_read_of_known_size_agrees() -> None:
    """In the calibration run 0.914 of the peak were 4402 GB/s."""
    found = dram_peak("NVIDIA H200", H200["clock"], H200["bus"])
    assert found is not None
    assert pytest.approx(4402e9, rel=0.005) == 0.914 * found


@pytest.mark.parametrize(
    ("model", "peak"),
    [
        ("NVIDIA GB200", 8000e9),
        ("NVIDIA B200", 7700e9),
        ("NVIDIA H100 80GB HBM3", 3350e9),
        ("NVIDIA H100 PCIe", 2000e9),
        ("NVIDIA H100 NVL", 3900e9),
        ("NVIDIA A100-SXM4-80GB", 2039e9),
        ("NVIDIA A100 80GB PCIe", 1935e9),
        ("NVIDIA A100-SXM4-40GB", 1555e9),
        ("NVIDIA L40S", 864e9),
        ("NVIDIA L4", 300e9),
        ("NVIDIA A10G", 600e9),
        ("NVIDIA GeForce GTX 1080", None),
    ],
)
def test_without_clock_or_bus_the_datasheet_counts(model: str, peak: float | None) -> None:
    """The most specific row of the table that fits the model's name; an unknown card has no peak rather than a guess."""
    assert peak == dram_peak(model, None, 5120.0) == dram_peak(model, 2619e6, None)


def test_no_row_hides_a_later_one() -> None:
    """A word that is part of another one's stands behind it."""
    words = list(DRAM_PEAK_BYTES_PER_SECOND)
    assert [] == [(a, b) for i, a in enumerate(words) for b in words[i + 1 :] if a in b]


def test_tensor_peaks_give_the_datasheets() -> None:
    """SMs times clock times the table's number is the dense bf16 figure of the datasheet."""
    cards = {"9.0": (132, 1.83e9, 989e12), "8.0": (108, 1.41e9, 312e12), "7.5": (40, 1.59e9, 65e12)}
    for capability, (sms, clock, datasheet) in cards.items():
        assert pytest.approx(datasheet, rel=0.01) == sms * clock * FLOPS_PER_CLOCK_PER_SM[capability]


def test_unknown_capabilities_have_no_peak() -> None:
    """No guess for a card that is not in the table."""
    assert (None, 4096) == (flops_per_clock("99.9"), flops_per_clock("9.0"))


def test_the_configuration_goes_first() -> None:
    """A user's own peaks replace formula and table, each for itself."""
    own = CardPeaks(dram_bytes_per_second=1e12)
    assert (1e12, 4096) == (dram_peak("NVIDIA H200", H200["clock"], H200["bus"], own), flops_per_clock("9.0", own))
    assert 7.0 == flops_per_clock("99.9", CardPeaks(flops_per_clock_per_sm=7.0))


@pytest.mark.parametrize(("generation", "width", "usable"), [(5, 16, 55e9), (4, 8, 13e9), (3, 1, 13e9 / 16), (2, 16, None)])
def test_pcie(generation: float, width: float, usable: float | None) -> None:
    """Lanes share what a link of sixteen can do; unknown generations have no figure."""
    assert usable == pcie_usable(generation, width)
