"""Recordings: every real one replays whole, damaged ones as far as they go, and what comes out is what went in."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from heptascope.errors import UserError
from heptascope.model import Reading, Reason, labels
from heptascope.signals.schema import SCHEMA, signal_of
from heptascope.sources.recording import Recording, find_recordings
from heptascope.sources.replay import Failure, replay_readings
from support.recordings import all_recordings, read_lines, write_lines

RECORDINGS = all_recordings()
HEADER = {"kind": "header", "t": 99.0, "gpus": [{"name": "NVIDIA H200"}], "host_cpus": 4}
HOST = {"kind": "host", "load1": 1.0, "procs": []}
PAGE = read_lines(RECORDINGS["idle"] / "engine.jsonl.gz")[0]["text"]


def gpu(t: float, index: int = 0) -> dict:
    """Return a small row of one GPU."""
    return {"kind": "gpu", "t": t, "gpu": index, "gpm": {"win": 1.0, "dram_util": 50.0}, "power_w": 100.0 + index}


def replay(path: Path) -> tuple[Recording, list[Reading | Failure]]:
    """Open and replay a folder."""
    recording = Recording.open(path)
    return recording, list(replay_readings(recording))


def sources(found: list[Reading | Failure]) -> Counter:
    """Count readings by source, failures as `!source`."""
    return Counter(("!" if isinstance(one, Failure) else "") + one.source for one in found)


@pytest.mark.parametrize("name", sorted(RECORDINGS))
def test_every_recording_replays_whole_and_in_order(name: str) -> None:
    """No damage, each row is one reading, time never goes back, every series is in the signal table."""
    path = RECORDINGS[name]
    recording, found = replay(path)
    kinds = Counter(row["kind"] for row in read_lines(path / "gpu.jsonl.gz"))
    gpus = len(recording.header["gpus"])
    expected = {"nvml": kinds["gpu"] // gpus, "nvml_slow": kinds["slow"] // gpus, "host": kinds["host"]}
    assert {**expected, "vllm": len(read_lines(path / "engine.jsonl.gz"))} == sources(found)
    assert [] == recording.damage
    assert sorted(one.t for one in found) == [one.t for one in found]
    names = {s.name for one in found for s in one.samples} | {h.name for one in found for h in one.histograms}
    assert set() == names - set(SCHEMA)
    last = next(one for one in reversed(found) if one.source == "nvml")
    assert {str(index) for index in range(gpus)} == {dict(s.labels)["gpu"] for s in last.samples}


@pytest.mark.parametrize("name", sorted(RECORDINGS))
def test_labels_and_steady_windows_are_there(name: str) -> None:
    """Each bundled recording has its label, and a steady window inside itself."""
    recording, found = replay(RECORDINGS[name])
    assert recording.label is not None
    assert recording.label["state"]
    start, end = recording.steady
    assert found[0].t < start < (end or found[-1].t) <= found[-1].t + 1.0


def test_an_unlabelled_recording_is_steady_after_three_seconds() -> None:
    """Without times of its own a recording counts as steady from three seconds after its first event to its end."""
    recording, found = replay(RECORDINGS["idle"])
    assert (found[0].t + 3.0, None) == recording.steady


def test_a_page_has_the_time_at_which_it_was_complete(tmp_path: Path) -> None:
    """A scrape that began at 100 and took 1.5 s is a reading of 101.5."""
    write_lines(tmp_path / "engine.jsonl.gz", [{"t": 100.0, "dt": 1.5, "status": 200, "text": PAGE}])
    _, found = replay(tmp_path)
    assert [("vllm", 101.5)] == [(one.source, one.t) for one in found]


def test_failed_scrapes_are_failures_again(tmp_path: Path) -> None:
    """An error line, a status other than 200 and a page that is none become failures with a reason, and the next page counts again."""
    rows = [
        {"t": 100.0, "dt": 0.1, "status": 200, "text": PAGE},
        {"t": 101.0, "dt": 0.5, "error": "timeout: timed out"},
        {"t": 102.0, "dt": 0.1, "reason": "no_permission", "error": "HTTP 401"},
        {"t": 103.0, "dt": 0.1, "status": 503, "text": "busy"},
        {"t": 104.0, "dt": 0.1, "status": 200, "text": "<html>"},
        {"t": 105.0, "dt": 0.1, "status": 200, "text": PAGE},
    ]
    write_lines(tmp_path / "engine.jsonl.gz", rows)
    recording, found = replay(tmp_path)
    assert ["vllm"] * 6 == [one.source for one in found]
    assert [False, True, True, True, True, False] == [isinstance(one, Failure) for one in found]
    assert Failure("vllm", 101.5, Reason.SOURCE_DOWN, "timeout: timed out") == found[1]
    assert Failure("vllm", 102.1, Reason.NO_PERMISSION, "HTTP 401") == found[2]
    assert [] == recording.damage


def test_a_failed_gpu_read_is_a_failure_again(tmp_path: Path) -> None:
    """Failures of sources that are no engines are lines of the GPU file."""
    failure = {"kind": "failure", "source": "nvml", "t": 101.0, "dt": 0.0, "reason": "not_supported", "error": "no NVML"}
    write_lines(tmp_path / "gpu.jsonl.gz", [HEADER, gpu(100.0), failure])
    _, found = replay(tmp_path)
    assert Failure("nvml", 101.0, Reason.NOT_SUPPORTED, "no NVML") == found[-1]


def test_two_gpus_are_one_reading_and_a_lost_one_is_not_waited_for(tmp_path: Path) -> None:
    """Rows of one instant are joined; when GPU 1 vanishes the reading holds GPU 0 alone."""
    write_lines(tmp_path / "gpu.jsonl.gz", [HEADER, gpu(100.0), gpu(100.1, 1), gpu(101.0), gpu(102.0), gpu(102.1, 1)])
    _, found = replay(tmp_path)
    power = [[(dict(s.labels)["gpu"], s.value) for s in one.samples if s.name == "heptascope_gpu_power_watts"] for one in found]
    assert [[("0", 100.0), ("1", 101.0)], [("0", 100.0)], [("0", 100.0), ("1", 101.0)]] == power
    assert [100.1, 101.0, 102.1] == [one.t for one in found]


def test_engines_are_named_by_their_files(tmp_path: Path) -> None:
    """`engine-<name>.jsonl.gz` gives the engine its name, and host rows without names are then nobody's."""
    for name in ("chat", "vllm-8001"):
        write_lines(tmp_path / f"engine-{name}.jsonl.gz", [{"t": 100.0, "dt": 0.1, "status": 200, "text": PAGE}])
    recording, found = replay(tmp_path)
    assert ("chat", "vllm-8001") == recording.engines
    assert {"chat": 1, "vllm-8001": 1} == sources(found)


def test_start_settings_come_from_recorded_command_lines(tmp_path: Path) -> None:
    """A command line in a host row tells the pages after it their start settings, as it does live."""
    command = ["/usr/bin/python3", "/usr/bin/vllm", "serve", "m", "--max-num-seqs", "8"]
    server = {"pid": 1, "comm": "python3", "user_s": 1.0, "sys_s": 0.0, "threads": 9, "rss": 1, "engine": "vllm", "role": "api_server"}
    write_lines(tmp_path / "gpu.jsonl.gz", [HEADER, HOST | {"t": 100.5, "procs": [server | {"cmdline": command}]}])
    write_lines(tmp_path / "engine.jsonl.gz", [{"t": t, "dt": 0.1, "status": 200, "text": PAGE} for t in (100.0, 101.0)])
    _, found = replay(tmp_path)
    limits = [[s.value for s in one.samples if s.name == "heptascope_engine_sequence_limit"] for one in found if one.source == "vllm"]
    assert [[], [8.0]] == limits


def test_two_files_of_one_engine_are_not_mixed(tmp_path: Path) -> None:
    """The second file of an engine is left out, and the damage says which."""
    row = {"t": 100.0, "dt": 0.1, "status": 200, "text": PAGE, "engine": "chat"}
    for name in ("engine-a.jsonl.gz", "engine-b.jsonl.gz"):
        write_lines(tmp_path / name, [row])
    recording, found = replay(tmp_path)
    assert {"chat": 1} == sources(found)
    assert ["engine-b.jsonl.gz: engine 'chat' is also in engine-a.jsonl.gz; this file is left out"] == recording.damage


def test_late_lines_are_sorted_and_lines_that_go_back_are_dropped(tmp_path: Path) -> None:
    """A slow read may stand a few seconds late in the file; a kind whose own time goes back is damage."""
    rows = [HEADER, gpu(100.0), gpu(103.0), HOST | {"t": 101.0}, gpu(102.0), HOST | {"t": 104.0}, HOST | {"t": 104.0}]
    write_lines(tmp_path / "gpu.jsonl.gz", rows)
    recording, found = replay(tmp_path)
    assert [("nvml", 100.0), ("host", 101.0), ("nvml", 103.0), ("host", 104.0)] == [(one.source, one.t) for one in found]
    assert ["gpu.jsonl.gz: time goes backwards (2 lines, the first is line 5)"] == recording.damage


@pytest.mark.parametrize(
    ("line", "damage"),
    [
        ("{not json", "gpu.jsonl.gz:3: no JSON object"),
        ("[1, 2]", "gpu.jsonl.gz:3: no JSON object"),
        ("[" * 100_000, "gpu.jsonl.gz:3: no JSON object"),
        ('{"kind": "gpo", "t": 100.5}', "gpu.jsonl.gz:3: unknown kind of line"),
        ('{"kind": "gpu", "gpu": 0}', "gpu.jsonl.gz:3: no time"),
        ('{"kind": "gpu", "t": NaN, "gpu": 0}', "gpu.jsonl.gz:3: no time"),
        ('{"kind": "gpu", "t": true, "gpu": 0}', "gpu.jsonl.gz:3: no time"),
        ('{"kind": "gpu", "t": 100.5}', "gpu.jsonl.gz:3: no GPU index"),
        ('{"kind": "host", "t": 100.5, "procs": 7}', "host: row of an unknown shape: TypeError: 'int' object is not iterable"),
    ],
)
def test_a_bad_line_costs_itself_only(tmp_path: Path, line: str, damage: str) -> None:
    """Each kind of useless line is named with file and number, and the lines around it count."""
    write_lines(tmp_path / "gpu.jsonl.gz", [HEADER, gpu(100.0), line, gpu(101.0)])
    recording, found = replay(tmp_path)
    assert {"nvml": 2} == sources(found)
    assert [damage] == recording.damage


def test_repeated_damage_is_one_line(tmp_path: Path) -> None:
    """Many bad lines make one sentence with a count."""
    write_lines(tmp_path / "gpu.jsonl.gz", [HEADER, gpu(100.0), *["junk"] * 500])
    recording, _ = replay(tmp_path)
    assert ["gpu.jsonl.gz: no JSON object (500 lines, the first is line 3)"] == recording.damage


def test_a_truncated_file_is_read_up_to_the_cut(tmp_path: Path) -> None:
    """Half of the bytes give about half of the pages, and one sentence that says where it ends."""
    whole = (RECORDINGS["aborts"] / "engine.jsonl.gz").read_bytes()
    (tmp_path / "engine.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    recording, found = replay(tmp_path)
    assert 15 == pytest.approx(sources(found)["vllm"], abs=2)
    assert [f"engine.jsonl.gz:{len(found)}: the compressed file is cut off after this"] == recording.damage


def test_a_corrupt_file_is_read_up_to_the_damage(tmp_path: Path) -> None:
    """Overwritten bytes in the middle cost what follows, not what came before."""
    data = bytearray((RECORDINGS["aborts"] / "engine.jsonl.gz").read_bytes())
    middle = len(data) // 2
    data[middle : middle + 2000] = b"\xa5\x5a" * 1000
    (tmp_path / "engine.jsonl.gz").write_bytes(data)
    recording, found = replay(tmp_path)
    assert sources(found)["vllm"] >= 12
    assert "cannot be read further" in recording.damage[-1]


def test_a_cut_last_line_is_left_out(tmp_path: Path) -> None:
    """A file whose last line has no end loses that line."""
    text = "\n".join(json.dumps(row) for row in (HEADER, gpu(100.0), gpu(101.0)))
    (tmp_path / "gpu.jsonl.gz").write_bytes(gzip.compress(text[:-20].encode()))
    recording, found = replay(tmp_path)
    assert {"nvml": 1} == sources(found)
    assert ["gpu.jsonl.gz:3: cut off"] == recording.damage


def test_without_a_header_rows_still_count(tmp_path: Path) -> None:
    """A missing header is damage; the rows lack names and limits only."""
    write_lines(tmp_path / "gpu.jsonl.gz", [gpu(100.0), gpu(101.0)])
    recording, found = replay(tmp_path)
    assert {"nvml": 2} == sources(found)
    assert ["gpu.jsonl.gz: no header line, so the GPUs have no names and no limits"] == recording.damage


def test_a_later_header_renames_the_gpus(tmp_path: Path) -> None:
    """When NVML was initialised again, the header that follows counts from there on."""
    named = HEADER | {"t": 100.5, "gpus": [{"name": "NVIDIA H200", "uuid": "GPU-1"}]}
    write_lines(tmp_path / "gpu.jsonl.gz", [HEADER, gpu(100.0), named, gpu(101.0)])
    _, found = replay(tmp_path)
    power = [s.labels for one in found for s in one.samples if s.name == "heptascope_gpu_power_watts"]
    assert [labels(gpu="0"), labels(gpu="0", uuid="GPU-1")] == power


def test_bad_files_beside_the_rows_are_left_aside(tmp_path: Path) -> None:
    """A broken label or truth file is damage, and the recording counts without it."""
    write_lines(tmp_path / "gpu.jsonl.gz", [HEADER, gpu(100.0)])
    (tmp_path / "label.json").write_text("{")
    (tmp_path / "truth.json").write_text("[]")
    recording, _ = replay(tmp_path)
    assert recording.label is None
    assert ["label.json: left aside", "truth.json: left aside"] == [line[:22] for line in recording.damage]


NOTHING = "nothing in this recording can be used: "


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({}, "holds neither gpu.jsonl.gz nor engine*.jsonl.gz"),
        ({"gpu.jsonl.gz": [HEADER]}, NOTHING + "the files are empty"),
        (
            {"gpu.jsonl.gz": ["x", "y"]},
            NOTHING + "gpu.jsonl.gz: no JSON object (2 lines, the first is line 1)",
        ),
        ({"engine.jsonl.gz": [{"t": 1.0}]}, NOTHING + "engine.jsonl.gz:1: no time, or neither page nor error"),
    ],
)
def test_a_folder_with_nothing_usable_is_one_clear_error(tmp_path: Path, rows: dict, message: str) -> None:
    """The error names the folder, the file and the line."""
    for name, lines in rows.items():
        write_lines(tmp_path / name, lines)
    with pytest.raises(UserError) as caught:
        Recording.open(tmp_path)
    assert (str(tmp_path), message) == (caught.value.where, caught.value.message)


def test_files_that_are_no_gzip_or_empty_are_one_clear_error(tmp_path: Path) -> None:
    """Plain text under the name of a compressed file is said to be that."""
    (tmp_path / "gpu.jsonl.gz").write_text(json.dumps(HEADER))
    with pytest.raises(UserError, match=r"gpu\.jsonl\.gz: cannot be read further: Not a gzipped file"):
        Recording.open(tmp_path)
    (tmp_path / "gpu.jsonl.gz").write_bytes(b"")
    with pytest.raises(UserError, match="nothing in this recording can be used"):
        Recording.open(tmp_path)


def test_a_path_that_is_no_folder_is_one_clear_error(tmp_path: Path) -> None:
    """Nothing, a file, or what the system refuses to look at, in place of a folder."""
    (tmp_path / "file").touch()
    for name, message in (("nowhere", "no such folder"), ("file", "not a folder"), ("x" * 300, "cannot be read: File name too long")):
        with pytest.raises(UserError, match=message):
            Recording.open(tmp_path / name)


def test_recordings_are_found_one_level_down(tmp_path: Path) -> None:
    """A folder of recordings gives all of them in order, a recording gives itself, anything else is an error."""
    for name in ("b", "a"):
        write_lines(tmp_path / name / "gpu.jsonl.gz", [HEADER, gpu(100.0)])
    (tmp_path / "notes").mkdir()
    assert [tmp_path / "a", tmp_path / "b"] == find_recordings(tmp_path)
    assert [tmp_path / "a"] == find_recordings(tmp_path / "a")
    with pytest.raises(UserError, match="no recording here"):
        find_recordings(tmp_path / "notes")


def test_tables_of_signals_know_histogram_series() -> None:
    """Replayed histograms are found in the table by each of their series."""
    _, found = replay(RECORDINGS["decode-c64"])
    page = next(one for one in found if one.source == "vllm")
    assert all(signal_of(h.name + suffix) is SCHEMA[h.name] for h in page.histograms for suffix in ("_bucket", "_sum", "_count"))
    assert "heptascope_engine_inter_token_latency_seconds" in {h.name for h in page.histograms}
