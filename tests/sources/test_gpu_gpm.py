"""The GPM chain: exact means without gaps, NaN windows, what a card lacks."""

from __future__ import annotations

from typing import Any

import pytest

from heptascope.model import Reason
from heptascope.sources.gpu import gpm
from heptascope.sources.gpu.calls import Calls, Gpu, GpuLostError
from heptascope.sources.gpu.gpm import LONGEST_HOLD_SECONDS, GpmChain
from support.fake_nvml import GPU_IS_LOST, NO_PERMISSION, NOT_SUPPORTED, UNKNOWN, FakeClock, FakeGpu, FakeNvml, h200

METRICS = {"sm_util": 2, "dram_util": 10, "pcie_rx_mib_s": 21}


class Bench:
    """A chain on one fake GPU, and the time that it sees."""

    def __init__(self, gpu: FakeGpu | None = None, metrics: dict[str, int] | None = None) -> None:
        """Take the first sample."""
        self.clock = FakeClock()
        self.card = gpu or h200()
        self.nvml = FakeNvml([self.card], self.clock)
        self.nvml.nvmlInit()
        self.gpu = Gpu(0, self.card.uuid, self.nvml.nvmlDeviceGetHandleByIndex(0))
        self.chain = GpmChain(Calls(self.nvml, self.gpu), metrics or METRICS, self.clock, self.clock.wait)
        self.calls = Calls(self.nvml, self.gpu)

    def run(self, seconds: float, **rates: float) -> dict[str, Any]:
        """Let the card work for `seconds` at `rates` and read."""
        self.card.settle(self.clock())
        self.card.rates.update({METRICS[key]: rate for key, rate in rates.items()})
        self.clock.t += seconds
        self.calls = Calls(self.nvml, self.gpu)
        return self.chain.read(self.calls)


def test_windows_join_without_gaps() -> None:
    """The mean of each window is exact, and the windows together cover the whole time whatever the schedule does."""
    bench = Bench()
    rows = [bench.run(seconds, dram_util=rate) for seconds, rate in ((1.0, 80.0), (0.7, 10.0), (45.0, 50.0), (1.3, 0.0))]
    assert [row["dram_util"] for row in rows] == pytest.approx([80.0, 10.0, 50.0, 0.0])
    assert sum(row["win"] for row in rows) == pytest.approx(48.0)
    assert sum(row["win"] * row["dram_util"] for row in rows) == pytest.approx(80.0 + 7.0 + 2250.0)


def test_the_dear_metric_is_asked_for_once_a_second() -> None:
    """At ten reads a second it keeps its last value between two windows of a second, which cover the time exactly once."""
    bench = Bench(metrics={"gr_util": 1, "dram_util": 10, "sm_util": 2})
    rows = []
    for step in range(41):
        bench.card.settle(bench.clock())
        bench.card.rates.update({1: 100.0 if step < 15 else 40.0, 10: 50.0})
        rows.append(bench.run(0.1))
    windows = [row.get("win_of", {}).get("gr_util", row["win"]) for row in rows]
    assert [0.1] * 41 == pytest.approx([row["win"] for row in rows])
    assert [0, 9, 18, 27, 36] == [i for i, window in enumerate(windows) if window > 0.05]
    assert sum(w * row["gr_util"] for w, row in zip(windows, rows, strict=True)) == pytest.approx(1.5 * 100.0 + 2.2 * 40.0)
    assert rows[8]["gr_util"] == rows[0]["gr_util"]


def test_load_changes_inside_a_window() -> None:
    """A burst inside a window is in its mean: nothing falls between two reads."""
    bench = Bench()
    bench.run(1.0)
    bench.card.settle(bench.clock())
    bench.card.rates[10] = 100.0
    bench.clock.t += 0.05
    assert bench.run(0.95, dram_util=0.0)["dram_util"] == pytest.approx(5.0)


def test_only_two_samples_and_one_request() -> None:
    """Samples are swapped and the request structure is reused."""
    bench = Bench()
    for _ in range(5):
        bench.run(1.0)
    assert len(bench.nvml.samples) == 2
    assert bench.nvml.calls.count("nvmlGpmMetricsGet") == 5


def test_the_first_window_is_long_enough() -> None:
    """The first read waits until 100 ms have passed since the first sample, so that it has values."""
    bench = Bench()
    assert bench.run(0.0, sm_util=30.0)["sm_util"] == pytest.approx(30.0)
    assert bench.clock.waits == [pytest.approx(0.1)]


def test_reads_in_a_hurry_wait() -> None:
    """A read 20 ms after another waits until the window is 50 ms long; one on schedule does not wait."""
    bench = Bench()
    bench.run(0.1)
    assert bench.run(0.02)["win"] == pytest.approx(0.05)
    bench.run(0.09)
    assert bench.clock.waits == [pytest.approx(0.03)]


def test_nan_keeps_the_older_sample() -> None:
    """A metric that is NaN is left out; its next window starts where the lost one did, while the others go on."""
    bench = Bench()
    bench.run(1.0, dram_util=20.0, sm_util=20.0)
    bench.card.nan = {10}
    lost = bench.run(1.0, dram_util=40.0, sm_util=40.0)
    bench.card.nan = set()
    found = bench.run(1.0, dram_util=60.0, sm_util=60.0)
    assert lost["dram_util"] is None
    assert (lost["sm_util"], lost["win"]) == (pytest.approx(40.0), 1.0)
    assert (found["dram_util"], found["win_of"]) == (pytest.approx(50.0), {"dram_util": 2.0})
    assert (found["sm_util"], found["win"]) == (pytest.approx(60.0), 1.0)
    assert "win_of" not in bench.run(1.0)


def test_nan_one_after_the_other() -> None:
    """Two metrics that go NaN at different times each get the window that they lost, neither more nor less."""
    bench = Bench()
    bench.run(1.0, dram_util=10.0, sm_util=10.0)
    bench.card.nan = {10}
    bench.run(1.0)
    bench.card.nan = {2, 10}
    bench.run(1.0)
    bench.card.nan = set()
    row = bench.run(1.0)
    assert {"dram_util": 3.0, "sm_util": 2.0} == row["win_of"]
    assert bench.calls.missing == {}


def test_a_reason_for_each_nan() -> None:
    """A NaN window is a passing reason."""
    bench = Bench()
    bench.card.nan = {2}
    bench.run(1.0)
    assert [Reason(bench.calls.missing["sm_util"][0]), "sm_util" in bench.calls.missing] == [Reason.INVALID, True]


def test_nan_for_too_long_starts_anew() -> None:
    """A metric without a number for a minute does not come back with a mean over all that time."""
    bench = Bench()
    bench.run(1.0)
    bench.card.nan = {10}
    bench.run(LONGEST_HOLD_SECONDS, dram_util=90.0)
    bench.card.nan = set()
    row = bench.run(1.0, dram_util=10.0)
    assert (row["dram_util"], row["win"]) == (pytest.approx(10.0), 1.0)
    assert "win_of" not in row


def test_a_metric_that_is_always_nan_holds_nothing() -> None:
    """A metric that never gave a number does not cost a second request in each read."""
    bench = Bench()
    bench.card.nan = {10}
    for _ in range(4):
        bench.run(1.0)
    assert bench.nvml.calls.count("nvmlGpmMetricsGet") == 4


def test_ids_without_a_name_are_not_supported() -> None:
    """Ids up to 209 answer success even if the chip lacks them: the missing short name tells, and the id is not asked again."""
    bench = Bench()
    bench.card.no_gpm_id = {10}
    bench.chain = GpmChain(Calls(bench.nvml, bench.gpu), {**METRICS, "later": 250}, bench.clock, bench.clock.wait)
    row = bench.run(1.0, sm_util=5.0)
    assert (row["dram_util"], row["later"], row["sm_util"]) == (None, None, 5.0)
    assert [bench.calls.missing[key][0] for key in ("dram_util", "later")] == [Reason.NOT_SUPPORTED, Reason.NOT_SUPPORTED]
    assert bench.run(1.0)["sm_util"] == 5.0


def test_none_of_the_metrics() -> None:
    """A card that names none of the metrics has no GPM, with one reason."""
    bench = Bench()
    bench.card.no_gpm_id = set(METRICS.values())
    bench.run(1.0)
    assert bench.run(1.0) == {}
    assert bench.calls.missing["gpm"][0] == Reason.NOT_SUPPORTED


def test_before_hopper() -> None:
    """A card without GPM takes no sample and names the remedy."""
    card = h200()
    card.gpm = 0
    bench = Bench(card)
    assert bench.run(1.0) == {}
    assert bench.calls.missing == {"gpm": ["not_supported", "GPM needs Hopper or later; use a DCGM host engine"]}
    assert "nvmlGpmSampleGet" not in bench.nvml.calls


@pytest.mark.parametrize(
    ("function", "code", "reason", "word"),
    [
        ("nvmlGpmSampleGet", NO_PERMISSION, Reason.NO_PERMISSION, "NVreg_RestrictProfilingToAdminUsers=0"),
        ("nvmlGpmQueryDeviceSupport", NO_PERMISSION, Reason.NO_PERMISSION, "NVreg_RestrictProfilingToAdminUsers=0"),
        ("nvmlGpmSampleGet", NOT_SUPPORTED, Reason.NOT_SUPPORTED, "Hopper"),
        ("nvmlGpmQueryDeviceSupport", NOT_SUPPORTED, Reason.NOT_SUPPORTED, "Hopper"),
    ],
)
def test_gpm_refused(function: str, code: int, reason: Reason, word: str) -> None:
    """A refusal of GPM as a whole is one reason that says what to do, and is not tried again."""
    card = h200()
    card.errors[function] = code
    bench = Bench(card)
    bench.run(1.0)
    tries = bench.nvml.calls.count(function)
    assert bench.run(1.0) == {}
    assert bench.calls.missing["gpm"][0] == reason
    assert word in bench.calls.missing["gpm"][1]
    assert bench.nvml.calls.count(function) == tries


def test_a_passing_error_at_the_start() -> None:
    """An unknown error in the first sample is tried again in the next read."""
    card = h200()
    card.errors["nvmlGpmSampleGet"] = UNKNOWN
    bench = Bench(card)
    assert bench.run(1.0) == {}
    assert bench.calls.missing["gpm"][0] == Reason.SOURCE_DOWN
    card.errors.clear()
    assert bench.run(1.0, sm_util=7.0)["sm_util"] == pytest.approx(7.0)


@pytest.mark.parametrize("function", ["nvmlGpmSampleGet", "nvmlGpmMetricsGet"])
def test_a_passing_error_later(function: str) -> None:
    """A failed sample or request costs no time: the next window covers it, and no sample is lost."""
    bench = Bench()
    bench.run(1.0, sm_util=10.0)
    bench.nvml.errors[function] = UNKNOWN
    assert bench.run(1.0, sm_util=30.0).get("sm_util") is None
    bench.nvml.errors.clear()
    row = bench.run(1.0, sm_util=50.0)
    assert (row["sm_util"], row["win"]) == (pytest.approx(40.0), 2.0)
    bench.run(1.0)
    assert len(bench.nvml.samples) <= 3


def test_a_lost_gpu() -> None:
    """A GPU that is lost is the caller's business."""
    bench = Bench()
    bench.nvml.errors["nvmlGpmSampleGet"] = GPU_IS_LOST
    with pytest.raises(GpuLostError):
        bench.run(1.0)


@pytest.mark.parametrize("function", ["nvmlGpmSampleGet", "nvmlGpmMetricsGet"])
def test_only_one_thread_is_inside_gpm(function: str) -> None:
    """Every GPM call is made with the process's lock held: two threads inside GPM bring a real NVML down."""
    bench = Bench()
    real = getattr(bench.nvml, function)
    held: list[bool] = []
    setattr(bench.nvml, function, lambda *args: (held.append(gpm._IN_GPM.locked()), real(*args))[1])
    bench.run(1.0)
    assert held == [True]


def test_close_frees_every_sample() -> None:
    """Closing gives every sample back once, those of held metrics too."""
    bench = Bench()
    bench.run(1.0)
    bench.card.nan = {10}
    bench.run(1.0)
    bench.chain.close()
    bench.chain.close()
    assert bench.nvml.samples == set()
