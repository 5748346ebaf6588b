"""Reading PyTorch profiler traces: whole, cut short, damaged, odd."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from io import BytesIO
from typing import Any

import pytest

from heptascope.errors import UserError
from heptascope.sources.trace import jsonstream, kineto
from heptascope.sources.trace.events import GpuKind, HostKind, Trace
from support.trace_builder import TRACES, TraceBuilder

TRICKY = 'void f<a>(x) }, { "name" ]}, {\\'


def _built() -> TraceBuilder:
    """Make a trace with names that look like JSON, nested arguments, and all kinds of events."""
    build = TraceBuilder(rank=3, world_size=4, base_ns=10**18)
    for i in range(40):
        build.kernel(f"{TRICKY}{i % 3}", 100.125 * i, 50.5, launched=100 * i - 10, grid=[i, 1, 1], block=[128, 1, 1])
        build.add("cpu_op", "aten::mm", 100 * i - 12, 20, Sizes=[{"a": [1, {"b": 2}]}, {"c": "}, {"}])
    build.copy("Memcpy HtoD (Pageable -> Device)", 5000, 10, launched=4990, bytes=4096)
    build.gpu("gpu_memset", "Memset (Device)", 5020, 1)
    build.add("user_annotation", "step 1", 0, 4000)
    build.add("python_function", "model.py(3): forward", 0, 4000)
    build.add("Trace", "PyTorch Profiler (0)", 0, 9000)
    build.events.append({"ph": "s", "id": 1, "cat": "ac2g", "name": "ac2g", "ts": 1, "pid": 1, "tid": 1})
    build.events.append({"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}})
    return build


def _read(raw: bytes) -> Trace:
    return kineto.read(BytesIO(raw), "t.json")


def _rows(trace: Trace) -> list[tuple[Any, ...]]:
    gpu = trace.gpu
    return [(trace.names[n], int(s), int(e), int(b)) for n, s, e, b in zip(gpu.name, gpu.start, gpu.end, gpu.bytes, strict=True)]


def test_every_field_comes_through() -> None:
    """Times in nanoseconds, names, kinds, shapes, streams, rank and devices are what the file says."""
    trace = _read(_built().text())
    assert (42, 83) == (len(trace.gpu), len(trace.host))
    assert (f"{TRICKY}1", 100_125, 150_625, 0) == _rows(trace)[1]
    assert ("Memcpy HtoD (Pageable -> Device)", 5_000_000, 5_010_000, 4096) == _rows(trace)[-2]
    assert {GpuKind.KERNEL: 40, GpuKind.COPY: 1, GpuKind.SET: 1} == {k: int((trace.gpu.kind == k).sum()) for k in GpuKind}
    assert {HostKind.OP: 40, HostKind.CALL: 41, HostKind.ANNOTATION: 1, HostKind.PYTHON: 1, HostKind.OVERHEAD: 0} == {
        k: int((trace.host.kind == k).sum()) for k in HostKind
    }
    assert 40 == len(set(trace.gpu.shape[trace.gpu.kind == GpuKind.KERNEL].tolist()))
    assert (3, 4, 10**18, {0: "Test GPU"}, ["7"]) == (trace.rank, trace.world_size, trace.base_ns, trace.devices, trace.streams)
    assert [] == trace.notes


@pytest.mark.parametrize("chunk", [64, 100, 333, 1000, 4096])
@pytest.mark.parametrize("indent", [None, 2])
def test_pieces_of_any_size_give_the_same_events(monkeypatch: pytest.MonkeyPatch, chunk: int, indent: int | None) -> None:
    """Cutting never splits an event, wherever a piece of the file ends."""
    raw = _built().text(indent)
    expected = _rows(_read(raw))
    monkeypatch.setattr(jsonstream, "CHUNK", chunk)
    assert expected == _rows(_read(raw))


def test_gzip_of_several_members_reads_as_one() -> None:
    """Concatenated gzip members are one file."""
    raw = _built().text()
    packed = gzip.compress(raw[:3000]) + gzip.compress(raw[3000:])
    assert _rows(_read(raw)) == _rows(_read(packed))


def test_a_file_cut_anywhere_gives_the_events_before_the_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """However a killed profiler leaves the file, the whole events in it are read and a note says that it ends early."""
    monkeypatch.setattr(jsonstream, "CHUNK", 700)
    build = _built()
    raw = build.text()
    expected = {row[:3] for row in _rows(_read(raw))}
    first = raw.index(b'"traceEvents": [') + 17
    counts = []
    for cut in range(first + 300, len(raw) - 40, 97):
        trace = _read(raw[:cut])
        assert ["the JSON ends early: what comes after that point is missing"] == trace.notes
        assert {row[:3] for row in _rows(trace)} <= expected
        counts.append(len(trace.gpu) + len(trace.host))
    assert sorted(counts) == counts
    assert counts[-1] >= 124


def test_truncated_gzip_gives_what_is_there() -> None:
    """A gzip that ends early is read up to its end, and a note says so."""
    raw = (TRACES / "graph-b8.json.gz").read_bytes()
    whole, half = _read(raw), _read(raw[: len(raw) // 2])
    assert ["the gzip data ends early: what comes after that point is missing"] == half.notes
    assert 0 < len(half.gpu) < len(whole.gpu)


@pytest.mark.parametrize("at", [20_000, 60_000, 100_000, 140_000])
def test_damaged_gzip_gives_what_comes_before_the_damage(at: int) -> None:
    """Bytes changed in a gzip end the reading there, with nearly all that comes before."""
    raw = bytearray((TRACES / "tp2-decode-c64-rank0.json.gz").read_bytes())
    intact = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(raw[:at])
    raw[at : at + 400] = b"\xff" * 400
    trace = _read(bytes(raw))
    (note,) = trace.notes
    assert re.fullmatch("the (gzip data|JSON) is damaged: what comes after that point is missing", note)  # some damage still inflates
    assert len(trace.gpu) + len(trace.host) >= 0.98 * (intact.count(b'"ph":"X"') - 4)


def test_wrong_check_sum_of_a_gzip_is_mentioned() -> None:
    """All events are there, but something was changed: a note says that the file is damaged."""
    raw = bytearray((TRACES / "graph-b8.json.gz").read_bytes())
    whole = _read(bytes(raw))
    raw[-8] ^= 1
    trace = _read(bytes(raw))
    assert (len(whole.gpu), 1) == (len(trace.gpu), len(trace.notes))


@pytest.mark.parametrize("junk", [b"\x00\x01}{][", b"nonsense", b'"""', b"}}}}"])
def test_damaged_json_gives_what_comes_before_the_damage(monkeypatch: pytest.MonkeyPatch, junk: bytes) -> None:
    """Events before damaged bytes are kept, in small pieces and in one."""
    raw = _built().text()
    middle = raw.index(b'"name": "aten::mm"', len(raw) // 2)
    bad = raw[:middle] + junk + raw[middle:]
    before = len(json.loads(raw[: raw.rindex(b'{"ph"', 0, middle)].rstrip(b", ") + b"]}")["traceEvents"])
    for chunk in (500, 1 << 20):
        monkeypatch.setattr(jsonstream, "CHUNK", chunk)
        trace = _read(bad)
        assert ["the JSON is damaged: what comes after that point is missing"] == trace.notes
        assert before == len(trace.gpu) + len(trace.host)


@pytest.mark.parametrize("word", ["NaN", "nan", "inf", "-Infinity"])
def test_bare_not_a_number_is_read_over(word: str) -> None:
    """Profilers write NaN and inf where JSON has no word for them."""
    build = _built().kernel("bandwidth", 9000, 10)
    build.events[-1]["args"]["memory bandwidth (GB/s)"] = "WORD"
    raw = build.text().replace(b'"WORD"', word.encode())
    assert ("bandwidth", 9_000_000, 9_010_000, 0) == _rows(_read(raw))[-1]


def test_fields_of_odd_types_are_read_where_they_can_be() -> None:
    """Numbers as text are read; an event without a usable time is left out and counted."""
    build = TraceBuilder()
    build.kernel("usual", 0, 10)
    build.events += [
        "not an event",
        {
            "ph": "X",
            "cat": "kernel",
            "name": "text",
            "pid": 0,
            "tid": 7,
            "ts": "20",
            "dur": "5",
            "args": {"stream": "7", "correlation": "12", "bytes": None},
        },
        {
            "ph": "X",
            "cat": "kernel",
            "name": "huge",
            "pid": 0,
            "tid": 7,
            "ts": 40,
            "dur": 5,
            "args": {"correlation": 10**30, "device": "x", "grid": "big"},
        },
        {"ph": "X", "cat": "kernel", "name": "lost", "pid": 0, "tid": 7, "ts": {}, "dur": 5},
    ]
    trace = build.trace()
    assert [("usual", 0, 10_000, 0), ("text", 20_000, 25_000, 0), ("huge", 40_000, 45_000, 0)] == _rows(trace)
    assert [0, 12, -1] == trace.gpu.correlation.tolist()
    assert ["1 events with a missing or unreadable field were left out", "1 events with an impossible time were left out"] == trace.notes


@pytest.mark.parametrize("text", ["--5", "²", "-", "", "9" * 5000], ids=["signs", "superscript", "sign", "empty", "long"])
def test_text_that_is_no_number_is_as_good_as_missing(text: str) -> None:
    """What only looks like a whole number leaves the event as it is, without that field."""
    trace = TraceBuilder().kernel("usual", 0, 10).kernel("odd", 20, 5, launched=None, bytes=text).trace()
    assert [("usual", 0, 10_000, 0), ("odd", 20_000, 25_000, 0)] == _rows(trace)


def test_fewer_bytes_than_none_are_none() -> None:
    """A copy of a negative size keeps its time."""
    trace = TraceBuilder().copy("Memcpy HtoD (Pageable -> Device)", 0, 10, bytes=-5).copy("Memcpy DtoH", 20, 10, bytes=7).trace()
    assert [0, 7] == trace.gpu.bytes.tolist()


def test_endless_nesting_is_damage() -> None:
    """Brackets within brackets, more than any parser follows, in an event, behind the events and before them."""
    deep = b"[" * 50_000 + b"]" * 50_000
    event = b'{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1,"args":{"a":%b}}'
    for raw in (b'{"traceEvents":[%b]}' % (event % deep), b'{"traceEvents":[%b],"a":%b}' % (event % b"1", deep)):
        (note,) = _read(raw).notes
        assert note.startswith("the JSON ")
    with pytest.raises(UserError, match="JSON without traceEvents"):
        _read(b'{"a":%b,"traceEvents":[]}' % deep)


def test_impossible_times_are_left_out_and_counted() -> None:
    """Negative durations and times beyond any clock are not events."""
    build = TraceBuilder().kernel("good", 0, 10).kernel("backwards", 20, -5).kernel("far", 1e300, 1).kernel("long", 5, 1e300)
    trace = build.trace()
    assert [("good", 0, 10_000, 0)] == _rows(trace)
    assert ["2 events with an impossible time were left out", "1 events with a negative duration were left out"] == trace.notes


def test_plain_array_layout_is_read() -> None:
    """A trace that is only the array, as other writers of the format leave it, is read."""
    raw = json.dumps(_built().events).encode()
    assert _rows(_built().trace()) == _rows(_read(raw))


def test_old_category_names_are_known() -> None:
    """Traces from before torch 1.13 name categories otherwise."""
    build = TraceBuilder().gpu("Kernel", "k", 0, 5).gpu("Memcpy", "Memcpy DtoH (Device -> Pinned)", 10, 5).add("Operator", "aten::mm", 0, 5)
    trace = build.trace()
    assert ([0, 1], [0]) == (trace.gpu.kind.tolist(), trace.host.kind.tolist())


@pytest.mark.parametrize("raw", [b'{"a": 1}', b"{}", b'{"traceEvents": 5}', b'{"note": "\\"traceEvents\\": ["}'])
def test_other_json_is_refused_in_one_line(raw: bytes) -> None:
    """JSON that is no trace is named for what it lacks."""
    with pytest.raises(UserError, match=r"^t\.json: JSON without traceEvents; give a trace"):
        _read(raw)


def test_empty_array_is_a_trace_without_events() -> None:
    """A trace of nothing is read."""
    assert (0, 0) == (len(_read(b'{"traceEvents": []}').gpu), len(_read(b'{"traceEvents": [\n]}').host))
