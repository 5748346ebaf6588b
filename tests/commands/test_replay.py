"""`heptascope replay`: recordings against their labels."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from heptascope.cli import run
from support.recordings import all_recordings
from support.replays import verdict


def answer(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """Run the command; return status, output and errors."""
    status = run(["replay", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def copies(folder: Path, *names: str) -> Path:
    """Copy recordings into a folder; return it."""
    for name in names:
        shutil.copytree(all_recordings()[name], folder / name)
    return folder


def mislabel(folder: Path, **other: Any) -> None:
    """Change what a recording's label says."""
    path = folder / "label.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **other}), encoding="utf-8")


def test_json_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An object for each recording, in order of name, then the summary; the verdict is the one that all print."""
    status, out, err = answer(capsys, copies(tmp_path, "decode-b1", "idle"), "--format", "json")
    first, second, last = (json.loads(line) for line in out.splitlines())
    assert (0, "") == (status, err)
    assert [("decode-b1", "right"), ("idle", "right")] == [(found["recording"], found["match"]) for found in (first, second)]
    assert {"recording", "expected", "verdict", "match", "damage"} == set(first)
    assert (json.loads(json.dumps(verdict("decode-b1"))), ["healthy"]) == (first["verdict"], first["expected"]["state"])
    assert {"summary": {"right": 2, "wrong_pages": 0, "missed": 0, "cannot_tell": 0, "without_label": 0}} == last


def test_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each recording and a summary."""
    assert (0, ["idle: idle, limiter -, faults -  [right]", "1 right, 0 wrong pages, 0 missed, 0 cannot tell"]) == (
        (found := answer(capsys, copies(tmp_path, "idle")))[0],
        found[1].splitlines(),
    )


def test_full_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --full the whole report stands below each line."""
    lines = answer(capsys, copies(tmp_path, "decode-b1"), "--full")[1].splitlines()
    assert "  HEALTHY: nothing to fix; throughput is bound by hardware/dram [seen directly]" == lines[1]
    assert any(line.startswith("    Next: ") for line in lines)


@pytest.mark.parametrize(
    ("label", "match", "summary"),
    [
        ({"must_not": ["hardware"]}, "wrong-page", "0 right, 1 wrong pages, 0 missed, 0 cannot tell"),
        ({"state": ["degraded"]}, "missed", "0 right, 0 wrong pages, 1 missed, 0 cannot tell"),
    ],
)
def test_a_wrong_answer_ends_with_status_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], label: dict[str, Any], match: str, summary: str
) -> None:
    """A wrong page or a miss is shown beside what was expected, and fails the command."""
    mislabel(copies(tmp_path, "decode-b1") / "decode-b1", **label)
    status, out, _ = answer(capsys, tmp_path)
    lines = out.splitlines()
    assert (1, True, True, summary) == (status, lines[0].endswith(f"[{match}]"), lines[1].startswith("  expected: "), lines[-1])


def test_without_a_label_there_is_no_match(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A user's recording is judged, and counts neither as right nor as wrong."""
    (copies(tmp_path, "idle") / "idle" / "label.json").unlink()
    status, out, _ = answer(capsys, tmp_path / "idle", "--format", "json")
    found, last = (json.loads(line) for line in out.splitlines())
    assert (0, None, None, "idle") == (status, found["match"], found["expected"], found["verdict"]["state"])
    assert 1 == last["summary"]["without_label"]
    assert answer(capsys, tmp_path / "idle")[1].endswith("0 right, 0 wrong pages, 0 missed, 0 cannot tell (1 without a label)\n")


def test_damage_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is cut off is judged as far as it goes, and that is said."""
    path = copies(tmp_path, "decode-b1") / "decode-b1" / "engine.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-2000])
    told = [line for line in answer(capsys, tmp_path)[1].splitlines() if line.startswith("  damaged: ")]
    assert ["the compressed file is cut off after this"] == [line.rpartition(": ")[2] for line in told]
    damage = json.loads(answer(capsys, tmp_path, "--format", "json")[1].splitlines()[0])["damage"]
    assert [line.removeprefix("  damaged: ") for line in told] == damage


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere", "no such folder; give a folder that holds gpu.jsonl.gz or engine*.jsonl.gz; `heptascope record` writes one"),
        ("", "no recording here; give a folder that holds gpu.jsonl.gz or engine*.jsonl.gz; `heptascope record` writes one"),
    ],
)
def test_no_recording_is_one_line_and_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str], path: str, message: str) -> None:
    """A folder without recordings, or none at all: what is wanted is told."""
    where = tmp_path / path if path else tmp_path
    assert (2, "", f"heptascope: {where}: {message}\n") == answer(capsys, where)


def test_no_path_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    """There is no default folder."""
    assert (2, "", "heptascope: Missing argument 'PATHS...'; see heptascope replay --help\n") == answer(capsys)


def test_unusable_files_are_one_line_and_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A recording of which nothing can be used names the first thing that is wrong."""
    (tmp_path / "gpu.jsonl.gz").write_bytes(b"not gzip")
    status, out, err = answer(capsys, tmp_path)
    assert (2, "", 1) == (status, out, err.count("\n"))
    assert "nothing in this recording can be used: gpu.jsonl.gz: cannot be read further" in err
