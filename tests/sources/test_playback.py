"""The demo's sources: a recording played as if it happened now, with counters that never go back."""

from __future__ import annotations

import gc
import weakref
from itertools import pairwise
from pathlib import Path

import pytest

from heptascope.model import Labels, Reading
from heptascope.sources.base import SourceError
from heptascope.sources.playback import Player, ReplaySource, replay_sources
from heptascope.sources.recording import Recording
from heptascope.sources.replay import replay_readings
from support.recordings import all_recordings, read_lines, write_lines
from support.untraced import untraced

RECORDINGS = all_recordings()
NOW = 5_000_000.0
DRAM = "heptascope_gpu_dram_active_ratio"
TOKENS = "heptascope_engine_generation_tokens_total"
ROUND_SECONDS = {"decode-c64": 26.0, "eager-b8": 14.0, "tp2-straggler": 20.0}
PAGE = read_lines(RECORDINGS["idle"] / "engine.jsonl.gz")[0]["text"]


def named(name: str, speed: float = 1.0) -> dict[str, ReplaySource]:
    """Return the sources of a recording by name."""
    return {source.name: source for source in replay_sources(Recording.open(RECORDINGS[name]), speed)}


def value(reading: Reading, name: str) -> float:
    """Return the value of a signal's first series."""
    return next(s.value for s in reading.samples if s.name == name)


def counters(reading: Reading) -> dict[tuple[str, Labels], float]:
    """Return every counter of a reading, buckets of histograms included."""
    found = {(s.name, s.labels): s.value for s in reading.samples if s.name.endswith("_total")}
    for h in reading.histograms:
        found |= {(f"{h.name}_{i}", h.labels): count for i, count in enumerate((*h.counts, h.sum))}
    return found


def recorded_mean(name: str, signal: str) -> float:
    """Return the mean of a GPU ratio over the steady window, from the rows themselves."""
    recording = Recording.open(RECORDINGS[name])
    start, end = recording.steady
    inside = [one for one in replay_readings(recording) if one.source == "nvml" and start < one.t <= end]
    samples = [next(s for s in one.samples if s.name == signal) for one in inside]
    return sum(s.value * s.window for s in samples) / sum(s.window for s in samples)


def recorded_growth(name: str) -> float:
    """Return the tokens that were generated in the steady window."""
    recording = Recording.open(RECORDINGS[name])
    start, end = recording.steady
    pages = [one for one in replay_readings(recording) if one.source == "vllm"]
    first = [one for one in pages if one.t <= start][-1]
    last = [one for one in pages if one.t <= end][-1]
    return value(last, TOKENS) - value(first, TOKENS)


def test_all_sources_are_there_with_the_names_and_kinds_of_live_ones() -> None:
    """GPU, host and engine sources go by the names that live ones have."""
    assert {"nvml": "gpu", "nvml_slow": "gpu", "host": "host", "vllm": "engine"} == {
        name: source.kind for name, source in named("decode-c64").items()
    }


def test_every_source_has_a_reading_at_once_and_it_is_of_now() -> None:
    """The first read finds something, busy from the start, with the time of the asker."""
    sources = named("decode-c64")
    readings = {name: source.read(NOW) for name, source in sources.items()}
    assert {NOW} == {reading.t for reading in readings.values()}
    assert value(readings["nvml"], DRAM) > 0.3
    assert value(readings["vllm"], "heptascope_engine_requests_running") > 50


@pytest.mark.parametrize("name", sorted(ROUND_SECONDS))
def test_counters_go_on_from_round_to_round(name: str) -> None:
    """Three rounds at one read a second: no counter of any source ever falls, and each round adds what the recording holds."""
    length = int(ROUND_SECONDS[name])
    for source in (named(name)[each] for each in ("nvml", "nvml_slow", "host", "vllm")):
        with untraced():
            readings = [source.read(NOW + second) for second in range(3 * length + 1)]
        for before, after in pairwise(readings):
            known = counters(before)
            assert [] == [key for key, now in counters(after).items() if now < known.get(key, 0.0) - 1e-6]
        rounds = [counters(reading) for reading in readings[::length]]
        if source.name == "vllm":
            key = next(key for key in rounds[0] if key[0] == TOKENS)
            grown = [after[key] - before[key] for before, after in pairwise(rounds)]
            assert grown[0] > 1000
            assert [recorded_growth(name)] * 3 == pytest.approx(grown, rel=0.05)


def test_ratios_are_exact_means_over_what_was_not_shown_yet() -> None:
    """Rows come five times a second and are read once: the mean over the windows is that of the rows, and no time counts twice."""
    source = named("decode-c64")["nvml"]
    samples = [next(s for s in source.read(NOW + second).samples if s.name == DRAM) for second in range(27)]
    window = sum(s.window for s in samples)
    assert 26.0 == pytest.approx(window, abs=0.25)
    assert recorded_mean("decode-c64", DRAM) == pytest.approx(sum(s.value * s.window for s in samples) / window, rel=0.01)


def test_a_value_that_is_shown_again_counts_no_time() -> None:
    """Two reads within one row: the second has the same value and practically no window."""
    source = named("decode-c64", speed=0.1)["nvml"]
    source.read(NOW)
    first, second = (source.read(NOW + t) for t in (2.5, 2.6))
    assert value(first, DRAM) == value(second, DRAM)
    windows = [next(s.window for s in one.samples if s.name == DRAM) for one in (first, second)]
    assert windows[0] > 1.9
    assert 0.0 < windows[1] < 1e-6


def test_speed_makes_rates_higher_and_leaves_shares_as_they_are() -> None:
    """At ten times the speed a second holds ten times the tokens, and busy seconds still are seconds."""
    slow, fast = named("decode-c64")["vllm"], named("decode-c64", speed=10.0)["vllm"]
    rates = []
    for source, seconds in ((slow, 20.0), (fast, 2.0)):
        start = value(source.read(NOW), TOKENS)
        rates.append((value(source.read(NOW + seconds), TOKENS) - start) / seconds)
    assert 10.0 == pytest.approx(rates[1] / rates[0], rel=0.05)
    gpu = named("decode-c64", speed=10.0)["nvml"]
    gpu.read(NOW)
    sample = next(s for s in gpu.read(NOW + 1.0).samples if s.name == DRAM)
    assert 1.0 == pytest.approx(sample.window, abs=0.05)


def test_sources_of_one_recording_stay_in_step() -> None:
    """Sources that are read at different moments, even rounds apart, show the same moment of the recording."""
    together = named("eager-b8")
    apart = named("eager-b8")
    for second in range(40):
        together["nvml"].read(NOW + second)
    apart["nvml"].read(NOW)
    assert counters(together["vllm"].read(NOW + 40)).keys() == counters(apart["vllm"].read(NOW + 40)).keys()
    assert value(together["nvml"].read(NOW + 40), "heptascope_gpu_power_watts") == value(
        apart["nvml"].read(NOW + 40), "heptascope_gpu_power_watts"
    )


def test_a_clock_that_is_set_back_does_not_play_backwards() -> None:
    """After a step back of the clock the same moment is shown, not an earlier one."""
    source = named("decode-c64")["vllm"]
    source.read(NOW)
    tokens = value(source.read(NOW + 10), TOKENS)
    assert tokens == value(source.read(NOW + 3), TOKENS)


def test_a_failed_read_of_the_recording_fails_and_recovers(tmp_path: Path) -> None:
    """An error line is a SourceError for as long as it was the newest, then the page is back."""
    rows: list[dict] = [{"t": 100.0 + second, "dt": 0.0, "status": 200, "text": PAGE} for second in range(20)]
    rows[10] = {"t": 110.0, "dt": 0.0, "error": "timed out"}
    write_lines(tmp_path / "engine.jsonl.gz", rows)
    (source,) = replay_sources(Recording.open(tmp_path))
    source.read(NOW)
    source.read(NOW + 6.5)
    with pytest.raises(SourceError, match="timed out"):
        source.read(NOW + 7.5)
    assert NOW + 8.5 == source.read(NOW + 8.5).t


def test_a_short_recording_is_played_whole(tmp_path: Path) -> None:
    """A recording that ends before it counts as steady is played from its first event."""
    rows = [{"t": 100.0 + second, "dt": 0.0, "status": 200, "text": PAGE} for second in range(3)]
    write_lines(tmp_path / "engine.jsonl.gz", rows)
    (source,) = replay_sources(Recording.open(tmp_path))
    assert [NOW, NOW + 1, NOW + 2, NOW + 3] == [source.read(NOW + second).t for second in range(4)]


@pytest.mark.parametrize("speed", [0.0, -1.0, 1000.0, float("nan")])
def test_a_speed_out_of_bounds_is_refused(speed: float) -> None:
    """Speeds that cannot be played are an error that says what can."""
    with pytest.raises(ValueError, match=r"it can be 0\.1 to 20"):
        Player(Recording.open(RECORDINGS["idle"]), speed)


@pytest.mark.parametrize("name", sorted(RECORDINGS))
def test_every_recording_can_be_played(name: str) -> None:
    """Each source of each recording answers through a whole round and beyond."""
    with untraced():
        sources = named(name)
        answered = [{key for key, source in sources.items() if source.read(NOW + second).samples} for second in range(0, 45, 3)]
    assert [set(sources)] * len(answered) == answered


def test_a_player_that_is_dropped_goes_at_once() -> None:
    """With its rows, and without a garbage collection: a demo that changes scenarios would hold several recordings."""
    gc.disable()
    try:
        sources = replay_sources(Recording.open(RECORDINGS["idle"]))
        player = weakref.ref(sources[0]._player)
        sources[0].read(1000.0)
        assert player() is not None
        sources.clear()
        assert player() is None
    finally:
        gc.enable()
