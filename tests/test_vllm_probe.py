"""The probe's file: written, read, laid over a page, recorded and replayed."""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from heptascope.model import Histogram, Missing, Quality, Reading, Reason, Sample, labels
from heptascope.sources.engine.fetch import Fetched
from heptascope.sources.engine.probe import STALE_SECONDS, ProbeReader, overlay
from heptascope.sources.engine.reader import EngineReader
from heptascope.sources.engine.source import EngineSource
from heptascope.vllm_probe import frontend, layout
from heptascope.vllm_probe.layout import DECODE, LIMIT, PREFILL, RECOMPUTED, STEPS, WIDTH, Writer, read_block
from support.engine_pages import VLLM_032, capture, value

VALUES = tuple(range(1, WIDTH + 1))


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    """Open a file of rank 0."""
    mine = Writer(tmp_path, 0, "0.32.0+cpu")
    yield mine
    mine.close()


def test_what_is_written_is_read(writer: Writer) -> None:
    """Values, rank, version and a fresh heartbeat; before the first write there is nothing."""
    assert read_block(writer.path) is None
    writer.write(VALUES)
    block = read_block(writer.path)
    assert block is not None
    assert (VALUES, 0, "0.32.0+cpu") == (block.values, block.rank, block.version)


def test_a_picture_is_never_torn(writer: Writer) -> None:
    """While one thread writes blocks of one number, readers see blocks of one number only."""
    ended = threading.Event()

    def write() -> None:
        number = 0
        while not ended.wait(0.0002):
            number += 1
            writer.write((number,) * WIDTH)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        seen = [block for block in (read_block(writer.path) for _ in range(300)) if block is not None]
    finally:
        ended.set()
        thread.join()
    assert seen
    assert all(len(set(block.values)) == 1 for block in seen)


def test_a_block_that_changes_is_not_taken(writer: Writer) -> None:
    """An odd sequence means that the writer is at it, or died at it."""
    writer.write(VALUES)
    content = bytearray(writer.path.read_bytes())
    struct.pack_into("<Q", content, layout._GUARD_AT, 3)
    writer.path.write_bytes(content)
    assert read_block(writer.path) is None


@pytest.mark.parametrize("damage", [b"", b"HEPTAPRB", b"x" * layout.SIZE, b"HEPTAPRB" + b"\x09" * (layout.SIZE - 8)])
def test_files_of_another_kind_or_layout_are_passed_over(tmp_path: Path, damage: bytes) -> None:
    """Short, foreign, or of a layout that is not ours."""
    path = tmp_path / "vllm-0-1.probe"
    path.write_bytes(damage)
    assert (None, []) == (read_block(path), ProbeReader(tmp_path).rows(0.0))


def test_what_is_no_file_is_passed_over(tmp_path: Path) -> None:
    """Whoever shares the folder can neither stop the reader with a pipe nor fill it with a huge file."""
    os.mkfifo(tmp_path / "pipe.probe")
    (tmp_path / "folder.probe").mkdir()
    with (tmp_path / "huge.probe").open("wb") as huge:
        huge.truncate(1 << 40)
    assert [None] * 3 == [read_block(tmp_path / f"{name}.probe") for name in ("pipe", "folder", "huge")]
    assert [] == ProbeReader(tmp_path).rows(0.0)


def test_the_newest_living_file_of_a_rank_counts(writer: Writer, tmp_path: Path) -> None:
    """After a restart the old file may lie there still; a silent one is stale."""
    writer.write(VALUES)
    old = writer.path.read_bytes()
    (tmp_path / "vllm-0-1.probe").write_bytes(old[:16] + struct.pack("<QQ", 1, 5) + old[32:])
    block = read_block(writer.path)
    assert block is not None
    (row,) = ProbeReader(tmp_path).rows(block.heartbeat + 1)
    assert (0, block.start) == (row["rank"], row["start"])
    assert [] == ProbeReader(tmp_path).rows(block.heartbeat + STALE_SECONDS + 1)


# laid over a page

PAIRS = labels(engine="vllm", rank="0")
PAGE = Reading(
    "vllm",
    1.0,
    [Sample("heptascope_engine_steps_total", PAIRS, 7.0)],
    missing=[Missing("heptascope_engine_step_phase_seconds", Reason.NOT_CONFIGURED, "", labels(engine="vllm"))],
    quality={("heptascope_engine_steps_total", PAIRS): Quality.APPROXIMATE},
)


def test_the_probe_goes_before_the_page() -> None:
    """Its steps replace those of the page and are exact; phases are there, and the limits."""
    values = [0] * WIDTH
    values[STEPS], values[LIMIT + 1], values[PREFILL], values[DECODE], values[RECOMPUTED] = 90, 4, 700, 80, 33
    for spent in (1_000, 1_000, 20_000, 20_000, 20_000, 20_000, 2_920_000):
        values[spent.bit_length() >> 1] += 1
    values[layout.BUCKETS] = 3_000_000
    out = overlay(PAGE, [{"rank": 0, "start": 1, "values": values}])
    found = {
        s.name.removeprefix("heptascope_engine_") + "/".join(sorted(v for _, v in s.labels if v not in ("vllm", "0"))): s.value
        for s in out.samples
    }
    assert (90.0, 0.003, 4.0) == (found["steps_total"], found["busy_seconds_total"], found["step_bound_totaltokens"])
    assert (700.0, 80.0, 33.0) == (found["batch_tokens_totalprefill"], found["batch_tokens_totaldecode"], found["recomputed_tokens_total"])
    front = {"heptascope_engine_frontend_event_loop_lag_seconds", "heptascope_engine_frontend_tokenize_seconds"}
    assert ({}, front) == (out.quality, {gap.signal for gap in out.missing})
    schedule = next(h for h in out.histograms if ("phase", "schedule") in h.labels)
    assert isinstance(schedule, Histogram)
    below = dict(zip(schedule.bounds, schedule.counts, strict=True))
    assert (2.0, 6.0, 6.0, 7.0, 7.0) == tuple(below[min(b for b in below if b >= at)] for at in (8e-6, 32e-6, 2e-3, 8e-3, 1.0))
    assert (7.0, pytest.approx(0.003)) == (schedule.counts[-1], schedule.sum)


def test_front_ends_are_added_up() -> None:
    """Each API server is a part of the histograms of the engine's only rank, or of none if there are several."""
    rows = []
    for number, late in enumerate((1_000_000, 3_000_000)):
        values = [0] * WIDTH
        values[frontend.LAG + (late.bit_length() >> 1)], values[frontend.LAG + layout.BUCKETS] = 1, late
        rows.append({"frontend": 70 + number, "start": 5, "values": values})
    lags = [h for h in overlay(PAGE, rows).histograms if h.name.endswith("event_loop_lag_seconds")]
    assert [("70-5", PAIRS, 1.0, 0.001), ("71-5", PAIRS, 1.0, 0.003)] == [(h.part, h.labels, h.counts[-1], h.sum) for h in lags]
    two = [*PAGE.samples, Sample("heptascope_engine_steps_total", labels(engine="vllm", rank="1"), 7.0)]
    several = overlay(replace(PAGE, samples=two), rows)
    assert {labels(engine="vllm", rank="")} == {h.labels for h in several.histograms}


def test_a_probe_that_is_configured_and_silent_is_said() -> None:
    """The page's steps stay, and the reason leads to the documentation; without a probe nothing changes."""
    out = overlay(PAGE, [])
    assert (7.0, Reason.SOURCE_DOWN) == (out.samples[0].value, out.missing[0].reason)
    assert PAGE is overlay(PAGE, None)


def test_a_recorded_probe_replays(writer: Writer, tmp_path: Path) -> None:
    """The row holds the probe's numbers, and replay lays them over the page as live."""
    values = [0] * WIDTH
    values[STEPS] = 90
    writer.write(values)
    block = read_block(writer.path)
    assert block is not None
    text = capture(VLLM_032, "steady_16")
    one = EngineSource("vllm", "http://h:1", fetch=lambda _: Fetched(200, "text/plain", text), probe=tmp_path, clock=lambda: 0.0)
    live = one.read(block.heartbeat)
    assert live.raw is not None
    again = EngineReader("vllm").read_row(live.raw)
    assert (live.samples, live.histograms, live.missing, live.quality) == (again.samples, again.histograms, again.missing, again.quality)
    assert 90.0 == value(live, "steps_total")
