"""Nsight Systems exports of several generations, and SQLite files that are none."""

from __future__ import annotations

import sqlite3
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from heptascope.errors import UserError
from heptascope.sources.trace import nsys, run
from heptascope.sources.trace.events import Trace
from support import nsys_builder
from support.nsys_builder import GENERATIONS, PID, NsysWriter
from support.trace_builder import TraceBuilder

SAME_IN_BOTH = {"file", "format", "notes"}


def _build() -> TraceBuilder:
    """Make a trace with steps, a graph, copies, waits and shapes."""
    build = TraceBuilder()
    for i in range(5):
        at = 1000.0 * i
        build.add("user_annotation", f"ProfilerStep#{i}", at, 900)
        build.kernel("nvjet_gemm", at + 20, 100, launched=at + 5, grid=[i, 1, 1], block=[32, 1, 1])
        correlation = build.call("cudaGraphLaunch", at + 60, 30)
        build.kernel("rms_norm", at + 200, 50, correlation=correlation, stream=8).kernel(
            "argmaxops", at + 260, 5, correlation=correlation, stream=8
        )
        build.copy("Memcpy DtoH (Device -> Pageable)", at + 400, 40, launched=at + 380, bytes=256)
        build.call("cudaStreamSynchronize", at + 430, 200)
    return build.gpu("gpu_memset", "Memset (Device)", 5000, 10, bytes=8)


def _measured(trace: Trace) -> dict[str, Any]:
    (measures,) = run.measure([trace]).ranks
    return {name: value for name, value in asdict(measures).items() if name not in SAME_IN_BOTH}


@pytest.mark.parametrize("generation", GENERATIONS)
def test_the_same_events_give_the_same_measures_as_in_a_kineto_trace(tmp_path: Path, generation: str) -> None:
    """Whatever the schema's generation, all measures agree with those of the other format."""
    build = _build()
    trace = nsys.read(nsys_builder.write(build, tmp_path / "t.sqlite", generation))
    assert _measured(build.trace()) == _measured(trace)


def test_processes_with_the_same_correlations_are_kept_apart(tmp_path: Path) -> None:
    """Each process counts its own calls and numbers its own GPUs."""
    writer = NsysWriter(tmp_path / "t.sqlite")
    for pid, gpu in ((PID, 0), (PID + 1, 3)):
        writer.row("TARGET_INFO_CUDA_DEVICE", gpuId=gpu, cudaId=0, pid=pid)
        owner = {"globalPid": pid << 24, "deviceId": 0, "streamId": 7}
        for i in range(3):
            at = 100_000 * i
            name = "cudaLaunchKernel" if gpu == 0 else "cudaGraphLaunch"
            row = {"globalTid": pid << 24 | 9, "correlationId": i + 1, "nameId": writer.string(name)}
            writer.row("CUPTI_ACTIVITY_KIND_RUNTIME", start=at, end=at + 1000, **row)
            writer.row(
                "CUPTI_ACTIVITY_KIND_KERNEL", start=at + 5000, end=at + 9000, correlationId=i + 1, demangledName=writer.string("k"), **owner
            )
    result = run.measure([nsys.read(writer.close())])
    assert {"0": (3, 0.0), "3": (3, 1.0)} == {m.rank: (m.kernels, m.graph_kernel_ratio) for m in result.ranks}


def test_graphs_recorded_as_wholes_are_counted_and_mentioned(tmp_path: Path) -> None:
    """With graph-level tracing there is one row for a whole graph, and no kernels of it."""
    path = nsys_builder.write(TraceBuilder().kernel("k", 0, 10, launched=-5), tmp_path / "t.sqlite")
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start, end, deviceId, streamId, correlationId, globalPid, graphId)")
    database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (20000, 50000, 0, 7, 9, 0, 1)")
    database.commit()
    database.close()
    (measures,) = run.measure([nsys.read(path)]).ranks
    assert (2, 0.5) == (measures.kernels, measures.graph_kernel_ratio)
    assert any("--cuda-graph-trace=node" in note for note in measures.notes)


def test_marks_without_an_end_and_unknown_kinds_are_no_ranges(tmp_path: Path) -> None:
    """NVTX holds marks, domains and resource names too."""
    writer = NsysWriter(tmp_path / "t.sqlite")
    writer.row("NVTX_EVENTS", start=1, end=None, eventType=34, text="mark")
    writer.row("NVTX_EVENTS", start=1, end=9, eventType=75, text="domain")
    writer.row("NVTX_EVENTS", start=1, end=9, eventType=60, text="range")
    trace = nsys.read(writer.close())
    assert ["range"] == [trace.names[name] for name in trace.host.name]


def _database(path: Path, *statements: str) -> Path:
    database = sqlite3.connect(path)
    for statement in statements:
        database.execute(statement)
    database.commit()
    database.close()
    return path


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        (["CREATE TABLE users (id)"], "a SQLite file, but not an Nsight Systems export; make one with nsys export"),
        (
            ["CREATE TABLE StringTable (id, value)", "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end)"],
            "this is an nvprof database; record it",
        ),
        (
            ["CREATE TABLE StringIds (id, value)", "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (begin)"],
            "table CUPTI_ACTIVITY_KIND_KERNEL has no column end",
        ),
    ],
)
def test_other_databases_are_refused_in_one_line(tmp_path: Path, statements: list[str], message: str) -> None:
    """What is missing is named, and what to do."""
    path = _database(tmp_path / "t.sqlite", *statements)
    with pytest.raises(UserError, match=message):
        nsys.read(path)


def test_damaged_database_is_refused_in_one_line(tmp_path: Path) -> None:
    """SQLite's own complaint becomes the message."""
    path = nsys_builder.write(_build(), tmp_path / "t.sqlite")
    raw = bytearray(path.read_bytes())
    raw[100:4096] = b"\xff" * 3996
    path.write_bytes(raw)
    with pytest.raises(UserError, match=r"damaged SQLite file \(.*\); export it again"):
        nsys.read(path)
