"""The recorder: what it writes replays as what was read; it is bounded, survives kills and full disks, and never raises."""

from __future__ import annotations

import errno
import gzip
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from heptascope.errors import UserError
from heptascope.model import Reading
from heptascope.sources import recorder as recorder_module
from heptascope.sources.engine.fetch import Fetched
from heptascope.sources.engine.source import EngineSource
from heptascope.sources.host.source import HostSource
from heptascope.sources.recorder import Recorder
from heptascope.sources.recording import Recording, find_recordings
from heptascope.sources.replay import Failure, replay_readings
from heptascope.sources.segments import FullError, Limits, Segments
from support.recordings import REPOSITORY, all_recordings, read_lines

RECORDINGS = all_recordings()
WHOLE = Limits(segment_seconds=None, min_free_bytes=0)
PAGE = read_lines(RECORDINGS["idle"] / "engine.jsonl.gz")[0]["text"]


def bare(found: Reading | Failure) -> Reading | Failure:
    """Return a reading without its raw row, to which the recorder adds the engine's name."""
    return found if isinstance(found, Failure) else replace(found, raw=None)


def page(t: float) -> dict:
    """Return the row of a page."""
    return {"t": t, "dt": 0.1, "status": 200, "text": PAGE}


def host(t: float) -> dict:
    """Return a small host row."""
    return {"kind": "host", "t": t, "load1": 1.0, "procs": []}


@pytest.mark.parametrize("name", ["decode-c64", "stream-flood", "tp2-straggler", "draft-good"])
def test_what_is_recorded_replays_as_what_was_read(name: str, tmp_path: Path) -> None:
    """Every reading of a replay, recorded again, replays as the same readings: one and two GPUs, host, pages."""
    original = Recording.open(RECORDINGS[name])
    expected = list(replay_readings(original))
    recorder = Recorder(tmp_path, WHOLE, header=lambda: original.header)
    recorder.start()
    for reading in expected:
        recorder.write(reading.source, reading.raw)
    recorder.close(timeout=60)
    again = Recording.open(tmp_path)
    assert [bare(one) for one in expected] == [bare(one) for one in replay_readings(again)]
    assert [] == again.damage
    assert original.header["gpus"] == [header for header in read_lines(tmp_path / "gpu.jsonl.gz") if header["kind"] == "header"][-1]["gpus"]
    assert ["engine.jsonl.gz", "gpu.jsonl.gz"] == sorted(path.name for path in tmp_path.iterdir())


def test_live_sources_record_and_replay_as_the_same_readings(tmp_path: Path) -> None:
    """The host reading of this machine and a fetched page come back equal, reasons included."""
    ticks = count(0.0, 0.25)
    engine = EngineSource("chat", "http://127.0.0.1:1", fetch=lambda _: Fetched(200, "text/plain", PAGE), clock=lambda: next(ticks))
    sources = (HostSource(lambda: (("chat", 1),)), engine)
    readings = [source.read(1000.0 + i) for i in range(3) for source in sources]
    recorder = Recorder(tmp_path, WHOLE)
    recorder.start()
    for reading in readings:
        assert reading.raw is not None
        recorder.write(reading.source, reading.raw)
    recorder.close(timeout=60)
    replayed = sorted((bare(one) for one in replay_readings(Recording.open(tmp_path))), key=lambda one: (one.t, one.source))
    assert sorted((bare(one) for one in readings), key=lambda one: (one.t, one.source)) == replayed


def test_failures_are_recorded_by_their_source(tmp_path: Path) -> None:
    """A failed scrape goes to the engine's file, a failed GPU read to the GPU file, both come back with their reasons."""
    recorder = Recorder(tmp_path, WHOLE)
    recorder.start()
    recorder.write("vllm", page(100.0))
    recorder.write("nvml", {"t": 100.5, "dt": 0.1, "reason": "no_permission", "error": "NVML says no"})
    recorder.write("vllm", {"t": 101.0, "dt": 0.5, "reason": "source_down", "error": "refused"})
    recorder.close(timeout=60)
    found = list(replay_readings(Recording.open(tmp_path)))
    assert ["vllm", "nvml", "vllm"] == [one.source for one in found]
    assert Failure("nvml", 100.5, "no_permission", "NVML says no") == found[1]
    assert Failure("vllm", 101.5, "source_down", "refused") == found[2]


def test_a_second_engine_gives_both_files_their_names(tmp_path: Path) -> None:
    """A lone engine's file is engine.jsonl.gz; when a second one comes, each has its own name, odd characters and all."""
    segments = Segments(tmp_path, WHOLE)
    segments.add(page(100.0), "chat")
    segments.flush(101.0)
    assert ["engine.jsonl.gz"] == [path.name for path in tmp_path.iterdir()]
    segments.add(page(102.0), "chat")
    segments.add(page(102.0), "a/b")
    segments.flush(103.0)
    assert ["engine-a%2Fb.jsonl.gz", "engine-chat.jsonl.gz"] == sorted(path.name for path in tmp_path.iterdir())
    assert ["a/b", "chat", "chat"] == sorted(one.source for one in replay_readings(Recording.open(tmp_path)))


def test_segments_are_whole_recordings_and_follow_the_clock(tmp_path: Path) -> None:
    """Each segment begins with a header and is named by the UTC time of its first row."""
    segments = Segments(tmp_path, Limits(segment_seconds=60.0, min_free_bytes=0))
    segments.set_header({"gpus": [{"name": "NVIDIA H200"}]}, 0.0)
    for t in range(0, 150, 10):
        segments.add(host(float(t)))
        segments.flush(float(t))
    assert ["rec-19700101-000000Z", "rec-19700101-000110Z", "rec-19700101-000220Z"] == [path.name for path in find_recordings(tmp_path)]
    for path in find_recordings(tmp_path):
        assert [{"name": "NVIDIA H200"}] == Recording.open(path).header["gpus"]


def test_two_segments_of_one_second_have_two_names(tmp_path: Path) -> None:
    """A restart within a second does not write into the segment before it."""
    for _ in range(3):
        segments = Segments(tmp_path, Limits(min_free_bytes=0))
        segments.add(host(5.0))
        segments.flush(5.0)
    stem = "rec-19700101-000005Z"
    assert [stem, stem + "-1", stem + "-2"] == [path.name for path in find_recordings(tmp_path)]


def test_the_oldest_segments_go_first_and_the_total_stays_bounded(tmp_path: Path) -> None:
    """Written without end, the recording stays within its bytes; what is left is the newest; other people's files stay."""
    limits = Limits(max_bytes=60_000, segment_seconds=10.0, min_free_bytes=0)
    segments = Segments(tmp_path, limits)
    kept = tmp_path / "rec-19700101-000000Z" / "label.json"
    for t in range(200):
        segments.add(host(float(t)) | {"noise": os.urandom(1000).hex()})
        segments.flush(float(t))
        kept.parent.mkdir(exist_ok=True)
        kept.write_text("{}")
        on_disk = sum(path.stat().st_size for path in tmp_path.rglob("*.gz"))
        assert on_disk == segments.total_bytes <= limits.max_bytes
    assert kept.exists()
    last = list(replay_readings(Recording.open(find_recordings(tmp_path)[-1])))[-1]
    assert 199.0 == last.t


def test_a_restart_counts_what_is_there_already(tmp_path: Path) -> None:
    """Old segments count towards the bound and are removed first."""
    limits = Limits(max_bytes=60_000, segment_seconds=10.0, min_free_bytes=0)
    for start in (0.0, 100.0, 200.0):
        segments = Segments(tmp_path, limits)
        for t in range(20):
            segments.add(host(start + t) | {"noise": os.urandom(1000).hex()})
            segments.flush(start + t)
    assert segments.total_bytes == sum(path.stat().st_size for path in tmp_path.rglob("*.gz"))
    assert limits.max_bytes >= segments.total_bytes


def test_one_folder_ends_at_its_bytes(tmp_path: Path) -> None:
    """Without rotation nothing is removed: writing ends with a reason, and what is there stays readable."""
    segments = Segments(tmp_path, Limits(max_bytes=20_000, segment_seconds=None, min_free_bytes=0))
    for t in range(15):
        segments.add(host(float(t)) | {"noise": os.urandom(1000).hex()})
        segments.flush(float(t))
    segments.add(host(15.0) | {"noise": os.urandom(20_000).hex()})
    with pytest.raises(FullError, match="has reached its 20000 bytes") as caught:
        segments.flush(15.0)
    assert caught.value.final
    recording = Recording.open(tmp_path)
    assert 15 == len(list(replay_readings(recording)))
    assert [] == recording.damage


def test_a_disk_that_is_nearly_full_pauses_the_recording_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Below the reserve nothing is written and one warning says why; with room again it goes on and says how much was lost."""
    monkeypatch.setattr(recorder_module, "FLUSH_SECONDS", 0.0)
    monkeypatch.setattr(recorder_module, "RETRY_SECONDS", 0.0)
    free = [0]
    caplog.set_level(logging.INFO, logger=recorder_module.__name__)
    recorder = Recorder(tmp_path, Limits(segment_seconds=None, min_free_bytes=1000), free_bytes=lambda _: free[0])
    recorder.start()
    for t in range(3):
        recorder.write("host", host(float(t)))
    wait_for(lambda: recorder.status().dropped == 3)
    assert not recorder.status().writing
    assert "0 bytes are free on this disk, and 1000 are kept free" in recorder.status().message
    free[0] = 10**9
    recorder.write("host", host(3.0))
    recorder.close(timeout=60)
    assert recorder.status().writing
    assert ["WARNING", "INFO"] == [record.levelname for record in caplog.records]
    assert [3.0] == [one.t for one in replay_readings(Recording.open(tmp_path))]


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until `condition()` holds, at most ten seconds."""
    never = threading.Event()
    assert any(condition() or never.wait(0.01) for _ in range(1000))


class FullDisk:
    """Makes writes to a path fail after some bytes, as a full disk does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, room: int) -> None:
        self.room = room
        real = Path.open

        def opened(path: Path, mode: str = "r", buffering: int = -1, **rest: object) -> object:
            file = real(path, mode, buffering, **rest)
            return Limited(file, self) if mode == "ab" else file

        monkeypatch.setattr(Path, "open", opened)


class Limited:
    """A file on that disk."""

    def __init__(self, file: object, disk: FullDisk) -> None:
        self._file, self._disk = file, disk

    def __enter__(self) -> Limited:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)

    def write(self, data: memoryview) -> int:
        if self._disk.room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = self._file.write(data[: self._disk.room])
        self._disk.room -= written
        return written


def test_a_write_that_fails_half_way_leaves_a_readable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ENOSPC in the middle of a member: the half is cut off again, and later members are found."""
    segments = Segments(tmp_path, WHOLE)
    segments.add(host(1.0))
    segments.flush(1.0)
    disk = FullDisk(monkeypatch, room=40)
    segments.add(host(2.0))
    with pytest.raises(FullError, match="No space left on device") as caught:
        segments.flush(2.0)
    assert 1 == caught.value.lost
    disk.room = 10**6
    segments.add(host(3.0))
    segments.flush(3.0)
    recording = Recording.open(tmp_path)
    assert [1.0, 3.0] == [one.t for one in replay_readings(recording)]
    assert [] == recording.damage


@pytest.mark.parametrize("limits", [WHOLE, Limits(min_free_bytes=0)])
def test_a_folder_that_vanishes_is_made_again(tmp_path: Path, limits: Limits) -> None:
    """Someone removes the folder while it is written: the next segment begins it anew, and its bytes count from nothing."""
    folder = tmp_path / "here"
    segments = Segments(folder, limits)
    segments.add(host(1.0))
    segments.flush(1.0)
    shutil.rmtree(folder)
    segments.end_segment()
    segments.add(host(2.0))
    segments.flush(2.0)
    assert segments.total_bytes == sum(path.stat().st_size for path in folder.rglob("*.gz"))
    assert [2.0] == [one.t for one in replay_readings(Recording.open(find_recordings(folder)[0]))]


def test_rows_that_are_no_json_are_dropped_and_counted(tmp_path: Path) -> None:
    """A NaN or an object in a row costs that row only."""
    recorder = Recorder(tmp_path, WHOLE)
    recorder.start()
    recorder.write("host", host(1.0) | {"load1": float("nan")})
    recorder.write("host", host(2.0) | {"load1": object()})
    recorder.write("host", host(3.0))
    recorder.close(timeout=60)
    assert (1, 2) == (recorder.status().rows, recorder.status().dropped)
    assert [3.0] == [one.t for one in replay_readings(Recording.open(tmp_path))]


def test_a_stuck_disk_costs_rows_and_no_memory(tmp_path: Path) -> None:
    """While nothing is written, only so many bytes wait; more is dropped at once, and the writer of rows never waits."""
    recorder = Recorder(tmp_path, WHOLE)  # not started: its thread stands for one that hangs in a write
    row = {"t": 1.0, "dt": 0.0, "status": 200, "text": "x" * 2**20}
    for _ in range(50):
        recorder.write("vllm", row)
    assert 50 - 31 == recorder.status().dropped


def test_a_folder_that_holds_a_recording_is_not_written_into(tmp_path: Path) -> None:
    """Two recordings must not mix in one folder."""
    (tmp_path / "gpu.jsonl.gz").write_bytes(gzip.compress(b"{}\n"))
    with pytest.raises(UserError, match="holds a recording already"):
        Recorder(tmp_path, WHOLE)


def test_a_place_that_cannot_be_used_is_one_clear_error(tmp_path: Path) -> None:
    """A file where the folder should be."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be used for a recording"):
        Recorder(tmp_path / "file", WHOLE)


WRITER = """
import sys, time
from pathlib import Path
from heptascope.sources import recorder as module
from heptascope.sources.segments import Limits
module.FLUSH_SECONDS = 0.02
recorder = module.Recorder(Path(sys.argv[1]), Limits(segment_seconds=None, min_free_bytes=0))
recorder.start()
t = 1000.0
while True:
    t += 1
    recorder.write("host", {"kind": "host", "t": t, "load1": 1.0, "procs": []})
    if recorder.status().bytes > 3000:
        print("go", flush=True)
    time.sleep(0.005)
"""


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a process that records without end and says when it has written something."""
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "exporter")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        yield process
        process.kill()


def test_a_killed_process_leaves_a_readable_recording(tmp_path: Path, writer: subprocess.Popen[str]) -> None:
    """SIGKILL in the middle of writing: all that was written before is there, without a gap."""
    assert writer.stdout is not None
    assert "go\n" == writer.stdout.readline()
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    times = [one.t for one in replay_readings(Recording.open(tmp_path))]
    assert len(times) > 10
    assert [1001.0 + i for i in range(len(times))] == times
