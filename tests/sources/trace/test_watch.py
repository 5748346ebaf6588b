"""A folder that is watched for traces."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from heptascope.model import Reading, Reason
from heptascope.sources.base import SourceError
from heptascope.sources.trace.watch import OWN_SIGNALS, TraceFolderSource
from support.trace_builder import TraceBuilder

GAP = "heptascope_trace_kernel_gap_ratio"


def _write(folder: Path, name: str, busy: float, modified: float, rank: int = 0, world: int = 1) -> Path:
    """Write a trace of 1000 µs with kernels for `busy` µs of them."""
    build = TraceBuilder(rank, world, 10**18).kernel("k", 0, busy - 10).kernel("k", 990, 10)
    path = build.write(folder / name)
    os.utime(path, (modified, modified))
    return path


def _gaps(reading: Reading) -> dict[str, float]:
    return {dict(sample.labels)["trace_rank"]: round(sample.value, 6) for sample in reading.samples if sample.name == GAP}


def _value(reading: Reading, name: str) -> float:
    return next(sample.value for sample in reading.samples if sample.name == name)


def _settled(source: TraceFolderSource, now: float) -> Reading:
    """Read twice: a file counts once it has not changed between two looks."""
    source.read(now)
    return source.read(now)


def test_newest_trace_is_served_with_its_age(tmp_path: Path) -> None:
    """A newer trace takes the place of the one before; the age counts from when it was written."""
    source = TraceFolderSource(tmp_path)
    _write(tmp_path, "a.json", 300, 1000)
    first = _settled(source, 1010)
    assert ({"0": 0.7}, 10) == (_gaps(first), _value(first, "heptascope_trace_age_seconds"))
    _write(tmp_path, "b.json.gz", 800, 2000)
    assert {"0": 0.7} == _gaps(source.read(2001))
    second = source.read(2002)
    assert ({"0": 0.2}, 2) == (_gaps(second), _value(second, "heptascope_trace_age_seconds"))
    info = next(sample for sample in second.samples if sample.name == "heptascope_trace_info")
    assert (("file", "b.json.gz"), ("format", "kineto")) == info.labels


def test_ranks_written_together_are_one_result(tmp_path: Path) -> None:
    """Ranks of the newest file's run are measured with it; older files and other runs are not."""
    _write(tmp_path, "old.json", 100, 10, rank=1, world=2)
    _write(tmp_path, "rank0.json", 500, 1000, rank=0, world=2)
    _write(tmp_path, "rank1.json", 600, 1002, rank=1, world=2)
    _write(tmp_path, "other.json", 600, 1001, rank=0, world=1)
    assert {"0": 0.5, "1": 0.4} == _gaps(_settled(TraceFolderSource(tmp_path), 1010))


def test_broken_trace_leaves_the_last_result(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file that cannot be used does not take away what is known; the log says so once."""
    source = TraceFolderSource(tmp_path)
    _write(tmp_path, "good.json", 300, 1000)
    _settled(source, 1001)
    bad = tmp_path / "bad.json"
    bad.write_bytes(b"{}")
    os.utime(bad, (2000, 2000))
    assert {"0": 0.7} == _gaps(_settled(source, 2001))
    source.read(2002)
    (said,) = [record.message for record in caplog.records]
    assert said.endswith("; the trace before it is shown on")
    assert str(bad) in said


def test_broken_trace_alone_is_a_failure_with_its_reason(tmp_path: Path) -> None:
    """Without any result the source is down, and says why in one line."""
    (tmp_path / "bad.json").write_bytes(b"")
    source = TraceFolderSource(tmp_path)
    assert [] == source.read(1).samples
    with pytest.raises(SourceError, match=r"bad\.json: the file is empty; give") as caught:
        source.read(2)
    assert Reason.INVALID is caught.value.reason


def test_an_empty_folder_has_nothing_to_report(tmp_path: Path) -> None:
    """No trace yet is no failure, nor is one that is still being written: there is nothing to judge."""
    source = TraceFolderSource(tmp_path)
    expected = {(name, Reason.NOT_CONFIGURED, f"no trace in {tmp_path} yet") for name in OWN_SIGNALS}
    assert ([], expected) == (source.read(1).samples, {(m.signal, m.reason, m.detail) for m in source.read(1).missing})
    _write(tmp_path, "growing.json", 300, 1)
    assert ([], expected) == ((reading := source.read(2)).samples, {(m.signal, m.reason, m.detail) for m in reading.missing})


def test_no_folder_is_no_source(tmp_path: Path) -> None:
    """A folder that is not there is a mistake of the configuration, or comes later."""
    with pytest.raises(SourceError, match="is not a folder") as caught:
        TraceFolderSource(tmp_path / "traces").read(1)
    assert Reason.NO_SOURCE is caught.value.reason


def test_only_plain_files_are_traces(tmp_path: Path) -> None:
    """A folder or a pipe with a trace's name is passed over: reading a pipe could take for ever."""
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "folder.json").mkdir()
    _write(tmp_path, "a.json", 300, 1)
    assert {"0": 0.7} == _gaps(_settled(TraceFolderSource(tmp_path), 2))
