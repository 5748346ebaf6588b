"""Which kind of file it is, by what it holds; and one clear line for what cannot be used."""

from __future__ import annotations

import gzip
import stat
from pathlib import Path

import numpy as np
import pytest

from heptascope.errors import UserError
from heptascope.sources.trace import run
from heptascope.sources.trace.events import MOST_DEVICES, Trace
from heptascope.sources.trace.load import load
from support import nsys_builder
from support.trace_builder import TRACES, TraceBuilder

TABLE = b'"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n"0","k","Duration","ns","5"\n'


def _build() -> TraceBuilder:
    return TraceBuilder().kernel("k", 0, 10)


def test_format_goes_by_content_not_by_name(tmp_path: Path) -> None:
    """Each kind of file is known under any name."""
    wrong = {
        "a.sqlite": _build().text(),
        "b.json": gzip.compress(_build().text()),
        "c.json": nsys_builder.write(_build(), tmp_path / "x").read_bytes(),
        "d.nsys-rep": TABLE,
        "e.txt": b"\xef\xbb\xbf\n  " + _build().text(),
    }
    found = {}
    for name, content in wrong.items():
        (tmp_path / name).write_bytes(content)
        found[name] = load(tmp_path / name).format
    assert {"a.sqlite": "kineto", "b.json": "kineto", "c.json": "nsys", "d.nsys-rep": "ncu", "e.txt": "kineto"} == found


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty; give a PyTorch profiler trace"),
        (gzip.compress(b""), "the file is empty; give"),
        (gzip.compress(b"{" * 100)[:10], "the gzip data ends early; give"),
        (b"hello", "not a known kind of trace; give a PyTorch profiler trace"),
        (b"\x7fELF\0\0\0", "not a known kind of trace; give"),
        (b"NVR\0\1\2", r"an Nsight Compute report; turn it into a table: ncu --import"),
        (b"{}", "JSON without traceEvents; give"),
    ],
)
def test_other_files_are_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, message: str) -> None:
    """The line begins with the file and ends with what to do."""
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(UserError, match=f"^{path}: {message}") as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_missing_file_and_folder_are_refused_in_one_line(tmp_path: Path) -> None:
    """The system's own words are kept."""
    with pytest.raises(UserError, match="No such file"):
        load(tmp_path / "none")
    with pytest.raises(UserError, match="Is a directory"):
        load(tmp_path)


def _nsys(folder: Path, script: str) -> None:
    """Put a program named nsys on the PATH; the real one is not to be had here."""
    program = folder / "nsys"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def test_report_is_exported_where_nsys_is_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`nsys export` is asked to write SQLite, which is read in place of the report."""
    nsys_builder.write(_build(), tmp_path / "ready.sqlite")
    _nsys(tmp_path, f'[ "$1 $2 $3 $4" = "export --type sqlite --output" ] && cp {tmp_path}/ready.sqlite "$5"')
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    report = tmp_path / "t.nsys-rep"
    report.write_bytes(b"\0report")
    trace = load(report)
    assert isinstance(trace, Trace)
    assert (str(report), 1) == (trace.path, len(trace.gpu))


def test_report_that_nsys_cannot_export_is_refused_with_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last line that nsys prints is the reason."""
    _nsys(tmp_path, "echo start; echo 'not a report' >&2; exit 3")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    (tmp_path / "t.bin").write_bytes(b"\0junk")
    with pytest.raises(UserError, match=r"nsys cannot export it \(not a report\)"):
        load(tmp_path / "t.bin")


def test_report_without_nsys_says_how_to_export_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nsys is not installed, the user is told the command to run elsewhere."""
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "t.nsys-rep").write_bytes(b"\0report")
    with pytest.raises(UserError, match="nsys is not on the PATH; export it where nsys is installed: nsys export --type sqlite"):
        load(tmp_path / "t.nsys-rep")


def test_nonsense_of_many_streams_threads_and_gpus_is_measured_in_bounded_time(tmp_path: Path) -> None:
    """Every event on a stream, thread and GPU of its own, with times at random: it ends, with notes on what was left out."""
    dice = np.random.default_rng(1)
    build = TraceBuilder()
    for i in range(20_000):
        at, duration = dice.uniform(0, 1e6), dice.uniform(-1, 5)
        build.gpu("kernel", f"nccl{i}", at, duration, i + 1, stream=i, device=i % 5000)
        build.add("cuda_runtime", "cudaStreamSynchronize", dice.uniform(0, 1e6), duration, i, correlation=i + 1)
        build.add("user_annotation", f"range {i:b}", at, duration, i)
    trace = load(build.write(tmp_path / "t.json"))
    assert isinstance(trace, Trace)
    result = run.measure([trace])
    assert MOST_DEVICES == len(result.ranks)
    assert any("negative duration" in note for note in result.ranks[0].notes)


def _damaged(raw: bytes, dice: np.random.Generator) -> bytes:
    """Change, remove or insert some bytes."""
    content = bytearray(raw)
    for _ in range(int(dice.choice([1, 2, 5, 30]))):
        at = int(dice.integers(16, len(content)))
        what = int(dice.integers(0, 3))
        if what == 0:
            content[at] = int(dice.integers(0, 256))
        elif what == 1:
            del content[at : at + int(dice.integers(1, 200))]
        else:
            content[at:at] = dice.choice([b"NaN", b"-1e999", b"}, {", b'"', b"\xff\r\0", b"99999999999999999999"])
    return bytes(content)


@pytest.mark.parametrize("kind", ["json", "gzip", "sqlite", "csv"])
def test_damage_is_one_line_or_a_note_never_a_traceback(tmp_path: Path, kind: str) -> None:
    """Whatever bytes are damaged, a file is measured as far as it goes or refused in one line."""
    build = TraceBuilder(0, 2)
    for i in range(40):
        build.add("user_annotation", f"ProfilerStep#{i}", 1000 * i, 900).kernel(
            "gemm", 1000 * i + 20, 100, launched=1000 * i, grid=[i, 1, 1]
        )
        build.copy("Memcpy HtoD (Pinned -> Device)", 1000 * i + 300, 5, launched=1000 * i + 200)
    files = {
        "json": build.text(),
        "gzip": gzip.compress(build.text()),
        "sqlite": nsys_builder.write(build, tmp_path / "whole").read_bytes(),
        "csv": (TRACES / "h200-ncu-details.csv").read_bytes(),
    }
    dice, path = np.random.default_rng(7), tmp_path / "damaged"
    refused: list[str] = []
    for _ in range(120):
        path.write_bytes(_damaged(files[kind], dice))
        try:
            found = load(path)
            samples = run.measure([found]).to_samples() if isinstance(found, Trace) else found.to_samples()
            assert all(np.isfinite(value) for _, _, value in samples)
        except UserError as error:
            refused.append(str(error))
    assert len(refused) < 120
    assert [] == [line for line in refused if "\n" in line]
