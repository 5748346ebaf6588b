"""Reports of traces in all forms, and the command that writes them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from heptascope import cli
from heptascope.surfaces import trace_command, trace_html, trace_report, trace_sections
from support.trace_builder import TRACES, TraceBuilder

PAIR = [str(TRACES / f"tp2-decode-c64-rank{i}.json.gz") for i in (0, 1)]
EAGER, GRAPH = (str(TRACES / f"{name}-b8.json.gz") for name in ("eager", "graph"))
TABLE = """"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","gemm<a>","Duration","us","5"
"0","gemm<a>","DRAM Throughput","%","91"
"""


def _run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    status = cli.run(["trace", *args])
    caught = capsys.readouterr()
    return status, caught.out, caught.err


def test_text_of_one_trace(capsys: pytest.CaptureFixture[str]) -> None:
    """The headline says what took the time; the tables follow."""
    status, out, err = _run(capsys, EAGER)
    assert (0, "") == (status, err)
    assert out.startswith("GPU busy 10.3 % of 240 ms, most: host preparing launches 86.0 %")
    for title in ("Summary", "GPU time by class", "Why no kernel ran", "Top kernels, rank 0", "Copies and fills", "Host waits for the GPU"):
        assert f"\n{title} " in out


def test_ranks_of_one_run_are_shown_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    """Two files that are ranks of one run give one report, with the collectives between them."""
    status, out, _ = _run(capsys, *PAIR)
    assert 0 == status
    assert "rank 0: GPU busy 96.9 %" in out
    assert "Collectives of ranks 0, 1" in out


def test_two_runs_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    """Two files of different runs give a comparison, the largest contribution first."""
    status, out, _ = _run(capsys, EAGER, GRAPH)
    assert 0 == status
    assert out.startswith("one step took 12 ms and takes 4.65 ms")
    assert re.search(r"total .*-100.0 %\s*\n gap: launch ", out)


def test_json_is_complete_and_strict(capsys: pytest.CaptureFixture[str]) -> None:
    """The document is plain JSON without NaN, and its signals are those of the measures."""
    status, out, _ = _run(capsys, "--format", "json", *PAIR)
    document: dict[str, Any] = json.loads(out, parse_constant=lambda word: pytest.fail(word))
    assert (0, 1, PAIR) == (status, document["schema"], document["files"])
    busy = [round(rank["busy_ratio"], 3) for rank in document["run"]["ranks"]]
    signals = {(row["name"], row["labels"].get("trace_rank")): row["value"] for row in document["signals"]}
    assert busy == [round(signals["heptascope_trace_gpu_busy_ratio", rank], 3) for rank in ("0", "1")]
    assert ["0", "1"] == document["run"]["groups"][0]["ranks"]


def test_json_of_a_comparison(capsys: pytest.CaptureFixture[str]) -> None:
    """A comparison has no run of its own."""
    document = json.loads(_run(capsys, "--format", "json", EAGER, GRAPH)[1])
    assert ("step", "total") == (document["comparison"]["unit"], document["comparison"]["total"]["name"])
    assert "run" not in document


def test_signals_have_one_value_for_each_set_of_labels() -> None:
    """No signal is given twice, and ratios are ratios."""
    samples = trace_command.build([Path(path) for path in PAIR]).samples()
    keys = [(name, pairs) for name, pairs, _ in samples]
    assert len(set(keys)) == len(keys)
    assert [] == [(name, value) for name, _, value in samples if name.endswith("_ratio") and not 0 <= value <= 1]


def test_markdown_tables_are_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """Every row of a table has as many cells as its head, whatever a kernel's name holds."""
    build = TraceBuilder().kernel("a|b`c<d>", 0, 10).kernel("plain\nname", 20, 10)
    out = trace_report.markdown(_report(build))
    blocks = re.findall(r"(?:^\|.*\n?)+", out, re.MULTILINE)
    assert len(blocks) > 3
    for block in blocks:
        assert 1 == len({len(re.findall(r"(?<!\\)\|", line)) for line in block.strip().splitlines()})
    assert 0 == _run(capsys, "--format", "markdown", EAGER)[0]


def _report(build: TraceBuilder) -> trace_report.Report:
    from heptascope.sources.trace import run

    return trace_report.Report(["x.json"], run.measure([build.trace()]))


class _Page(HTMLParser):
    """Collects what a page refers to, and checks that its tags close."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.references += [value or "" for name, value in attrs if name in ("src", "href", "action")]
        if tag != "meta" and tag != "br":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag == self.open.pop()


def _page(text: str) -> _Page:
    page = _Page()
    page.feed(text)
    assert [] == page.open
    return page


def test_page_is_one_file_with_timeline_and_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page refers to nothing, has no script, and shows a timeline and a gap histogram for each rank."""
    target = tmp_path / "t.html"
    assert 0 == _run(capsys, "--format", "html", "--output", str(target), *PAIR)[0]
    page = _page(target.read_text(encoding="utf-8"))
    assert ([], 4, 0) == (page.references, page.tags.count("svg"), page.tags.count("script"))
    assert page.tags.count("table") >= 8


def test_page_escapes_names() -> None:
    """A kernel's name cannot bring markup into the page."""
    build = TraceBuilder().kernel('<script>alert("x")</script>', 0, 10).kernel("k", 20, 10)
    text = trace_html.page(_report(build))
    assert "script" not in _page(text).tags


def test_terminal_shows_names_with_brackets() -> None:
    """Square brackets in a name are no markup."""
    from rich.console import Console

    stream = StringIO()
    trace_report.text(_report(TraceBuilder().kernel("k[bold]x", 0, 10).kernel("k", 20, 10)), Console(file=stream, width=160))
    assert "k[bold]x" in stream.getvalue()


def test_hardware_counters_are_reported_in_all_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table of Nsight Compute alone gives its own report, in each form."""
    path = tmp_path / "t.csv"
    path.write_text(TABLE)
    for form, expected in (("text", "Hardware counters"), ("markdown", "## Hardware counters"), ("html", "<h2>Hardware counters</h2>")):
        status, out, _ = _run(capsys, "--format", form, str(path))
        assert 0 == status
        assert expected in out
    document = json.loads(_run(capsys, "--format", "json", str(path))[1])
    assert 0.91 == document["counters"][0]["kernels"][0]["dram"]
    assert "heptascope_trace_profiled_dram_ratio" in {row["name"] for row in document["signals"]}


def test_trace_and_counters_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A trace and a table of counters make one report."""
    path = tmp_path / "t.csv"
    path.write_text(TABLE)
    out = _run(capsys, GRAPH, str(path))[1]
    assert "Summary" in out
    assert "Hardware counters" in out


def test_notes_stand_on_top(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A trace that ends early is analysed, and says so before any number is believed."""
    cut = tmp_path / "cut.json.gz"
    cut.write_bytes(Path(GRAPH).read_bytes()[:120_000])
    status, out, _ = _run(capsys, str(cut))
    assert 0 == status
    assert "note: the gzip data ends early: what comes after that point is missing" == out.splitlines()[1]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["none.json"], "none.json: No such file or directory; give a file that can be read"),
        (["--compare", "--ranks", GRAPH], "--compare and --ranks exclude each other; give one of them"),
        (["--compare", GRAPH], "1 run in 1 file; give one run, two runs to compare, or --ranks if all are ranks of one run"),
        (
            ["--format", "html", "--output", "/nonexistent/x.html", GRAPH],
            "/nonexistent/x.html: No such file or directory; choose a file that can be written",
        ),
        ([], "Missing argument 'FILE...'; see heptascope trace --help"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(capsys: pytest.CaptureFixture[str], args: list[str], message: str) -> None:
    """What, where, what to do."""
    status, out, err = _run(capsys, *args)
    assert (2, "", f"heptascope: {message}\n") == (status, out, err)


def test_empty_and_cpu_only_files_are_one_line_and_exit_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing to analyse is a mistake of the recording, said in one line."""
    empty, cpu = tmp_path / "empty.json", TraceBuilder().add("cpu_op", "aten::mm", 0, 5).write(tmp_path / "cpu.json")
    empty.touch()
    for path, words in ((empty, "the file is empty"), (cpu, "no GPU activity in this trace")):
        status, out, err = _run(capsys, str(path))
        assert (2, "", 1) == (status, out, err.count("\n"))
        assert f"heptascope: {path}: {words}; " in err


@pytest.mark.parametrize(
    ("seconds", "expected"), [(None, "–"), (0, "0 µs"), (2e-6, "2 µs"), (0.0123, "12.3 ms"), (61.5, "61.5 s"), (-7.5e-3, "-7.5 ms")]
)
def test_times_have_the_unit_that_suits_them(seconds: float | None, expected: str) -> None:
    """Seconds, milliseconds or microseconds."""
    assert expected == trace_sections.duration(seconds)


@pytest.mark.parametrize(("ratio", "expected"), [(None, "–"), (0.0, "0.0 %"), (0.1234, "12.3 %"), (0.00042, "0.042 %"), (1.0, "100.0 %")])
def test_small_shares_are_not_rounded_to_nothing(ratio: float | None, expected: str) -> None:
    """A share of 0.04 % is not 0."""
    assert expected == trace_sections.percent(ratio)


def test_many_ranks_are_not_all_shown_to_people() -> None:
    """Of twenty ranks eight have columns; the headline gives the range, a note says where the rest are, the signals have all."""
    from heptascope.sources.trace import run

    traces = [TraceBuilder(i, 20).kernel("k", 0, 100 * (i + 1)).kernel("end", 1990, 10).trace() for i in range(20)]
    report = trace_report.Report(["x.json"], run.measure(traces))
    assert "20 ranks: GPU busy 5.5 % to 100.0 %" == report.headline
    assert "only 8 of 20 ranks are shown; --format json has all" == report.notes[0]
    assert 9 == len(report.details()[0].columns)
    assert 20 == sum(name == "heptascope_trace_gpu_busy_ratio" for name, _, _ in report.samples())


def test_the_whole_of_a_run() -> None:
    """Means and extremes are of all ranks, whichever are shown; a single rank has no table of its own for that."""
    from heptascope.sources.trace import run

    traces = [TraceBuilder(i, 20).kernel("gemm", 0, 100 * (i + 1)).kernel("gemm", 1990, 10).trace() for i in range(20)]
    report = trace_report.Report(["x.json"], run.measure(traces))
    (table,) = (section for section in report.details() if section.title == "All ranks")
    assert ["GPU busy", "53.0 %", "5.5 %", "100.0 %"] == table.rows[0]
    assert ["class gemm", "100.0 %", "100.0 %", "100.0 %"] in table.rows
    whole = {row["name"]: row for row in trace_report.document(report)["run"]["overall"]}
    assert (20, pytest.approx(0.52975)) == (whole["gpu_busy_ratio"]["ranks"], whole["gpu_busy_ratio"]["mean"])
    alone = trace_report.Report(["x.json"], run.measure(traces[:1]))
    assert "All ranks" not in {section.title for section in alone.details()}


def test_a_note_that_all_ranks_share_is_shown_once() -> None:
    """A note of one rank names it."""
    from heptascope.sources.trace import run

    one = TraceBuilder(0, 2).kernel("k", 0, 100)
    other = TraceBuilder(1, 2).kernel("k", 0, 100).kernel("bad", 5, -1)
    report = trace_report.Report(["x.json"], run.measure([one.trace(), other.trace()]))
    assert "rank 1: 1 events with a negative duration were left out" in report.notes
    assert 1 == sum(note.startswith("no launch calls in this trace") for note in report.notes)


@pytest.mark.parametrize("command", [["trace", "x.json"], ["capture", "--engine", "http://127.0.0.1:1"]])
@pytest.mark.parametrize("package", ["msgspec", "numpy"])
def test_missing_extra_is_named_in_one_line(command: list[str], package: str) -> None:
    """Without the packages of the extra, both commands say what to install."""
    script = f"import sys; sys.modules[{package!r}] = None; from heptascope import cli; sys.exit(cli.run({command!r}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    expected = f"heptascope: reading traces needs the package {package}; install it with: pip install 'heptascope[trace]'\n"
    assert (2, expected) == (done.returncode, done.stderr)


def test_names_cannot_steer_a_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Control characters in a kernel's name are not passed on to people, in any form; JSON escapes them."""
    build = TraceBuilder().kernel("a\x1b]0;title\x07\x1b[31m\r\nb\x9b1mc", 0, 10).kernel("k", 20, 10)
    path = build.write(tmp_path / "t.json")
    for form in ("text", "markdown", "html", "json"):
        out = _run(capsys, "--format", form, str(path))[1]
        assert "title" in out
        assert set() == {char for char in out if not char.isprintable() and char != "\n"} - ({"\x9b"} if form == "json" else set())


def test_a_trace_that_breaks_off_before_its_first_kernel_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """What was recorded may be fine: that nothing ran on a GPU is then no mistake of the profiler's settings alone."""
    text = TraceBuilder().add("cpu_op", "aten::mm", 0, 5).add("cpu_op", "aten::mm", 9, 5).text()
    path = tmp_path / "t.json"
    path.write_bytes(text[:-60])
    status, _, err = _run(capsys, str(path))
    assert (2, 1) == (status, err.count("\n"))
    assert "no GPU activity in this trace (the JSON ends early: what comes after that point is missing); record" in err
