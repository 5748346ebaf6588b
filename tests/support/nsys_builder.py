"""Writes a hand-built trace as an Nsight Systems SQLite export, in the schema of one generation of nsys."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

from support.trace_builder import TraceBuilder

PID = 4321
_GLOBAL_PID = PID << 24
_COPY = {"HtoD": 1, "DtoH": 2, "DtoD": 8, "PtoP": 10}
_MEMORY = {"Pageable": 0, "Pinned": 1, "Device": 2}
_KERNEL = "start end deviceId contextId streamId correlationId globalPid demangledName shortName gridX gridY gridZ blockX blockY blockZ"
# generation: what it lacks of the newest one's columns and tables
GENERATIONS: dict[str, set[str]] = {
    "2024": set(),
    "2021": {"graphNodeId"},
    "2019": {"graphNodeId", "globalPid", "textId", "TARGET_INFO_CUDA_DEVICE"},
}
_TABLES = {
    "CUPTI_ACTIVITY_KIND_KERNEL": f"{_KERNEL} graphNodeId",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start end deviceId streamId correlationId globalPid bytes copyKind srcKind dstKind graphNodeId",
    "CUPTI_ACTIVITY_KIND_MEMSET": "start end deviceId streamId correlationId globalPid bytes graphNodeId",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start end eventClass globalTid correlationId nameId",
    "NVTX_EVENTS": "start end eventType text globalTid textId",
    "StringIds": "id value",
    "TARGET_INFO_GPU": "id name",
    "TARGET_INFO_CUDA_DEVICE": "gpuId cudaId pid",
}


class NsysWriter:
    """One database being written."""

    def __init__(self, path: Path, generation: str = "2024") -> None:
        self.path, self._lacks = path, GENERATIONS[generation]
        self._db = sqlite3.connect(path)
        self._strings: dict[str, int] = {}
        self.columns = {t: [c for c in columns.split() if c not in self._lacks] for t, columns in _TABLES.items() if t not in self._lacks}
        for table, columns in self.columns.items():
            self._db.execute(f"CREATE TABLE {table} ({', '.join(columns)})")  # the words are this file's own

    def string(self, text: str) -> int:
        """Return the number of a string."""
        return self._strings.setdefault(text, len(self._strings) + 1)

    def row(self, table: str, **values: Any) -> None:
        """Insert a row; columns that the generation lacks are dropped."""
        if table in self.columns:
            columns = self.columns[table]
            marks = ", ".join("?" * len(columns))
            self._db.execute(f"INSERT INTO {table} VALUES ({marks})", [values.get(column) for column in columns])  # noqa: S608  # own words

    def close(self) -> Path:
        """Write the strings and finish."""
        for text, number in self._strings.items():
            self.row("StringIds", id=number, value=text)
        self._db.commit()
        self._db.close()
        return self.path


def write(build: TraceBuilder, path: Path, generation: str = "2024") -> Path:
    """Write the events of a built trace."""
    writer = NsysWriter(path, generation)
    writer.row("TARGET_INFO_GPU", id=0, name="Test GPU")
    writer.row("TARGET_INFO_CUDA_DEVICE", gpuId=0, cudaId=0, pid=PID)
    for event in build.events:
        start, end = round(event["ts"] * 1e3), round((event["ts"] + event["dur"]) * 1e3)
        args, name = event["args"], event["name"]
        place = {"start": start, "end": end, "deviceId": args.get("device"), "streamId": args.get("stream"), "globalPid": _GLOBAL_PID}
        place |= {"correlationId": args.get("correlation"), "bytes": args.get("bytes", 0)}
        thread = {"start": start, "end": end, "globalTid": _GLOBAL_PID | event["tid"], "correlationId": args.get("correlation")}
        if event["cat"] == "kernel":
            grid, block = args.get("grid", [1, 1, 1]), args.get("block", [1, 1, 1])
            sizes = {
                f"{what}{axis}": size for what, three in (("grid", grid), ("block", block)) for axis, size in zip("XYZ", three, strict=True)
            }
            writer.row(_t("KERNEL"), **place, demangledName=writer.string(name), graphNodeId=0, **sizes)
        elif event["cat"] == "gpu_memcpy":
            found = re.match(r"Memcpy (\w+) \((\w+) -> (\w+)\)", name)
            assert found is not None
            kinds = {"copyKind": _COPY[found[1]], "srcKind": _MEMORY[found[2]], "dstKind": _MEMORY[found[3]]}
            writer.row(_t("MEMCPY"), **place, **kinds)
        elif event["cat"] == "gpu_memset":
            writer.row(_t("MEMSET"), **place)
        elif event["cat"] == "cuda_runtime":
            writer.row(_t("RUNTIME"), **thread, nameId=writer.string(f"{name}_v7000"))
        elif event["cat"] == "user_annotation":
            text = {"text": name} if "textId" in GENERATIONS[generation] else {"textId": writer.string(name)}
            writer.row("NVTX_EVENTS", **thread, eventType=59, **text)
    return writer.close()


def _t(kind: str) -> str:
    return f"CUPTI_ACTIVITY_KIND_{kind}"
