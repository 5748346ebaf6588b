"""Reads Nsight Systems' SQLite exports, of any schema since 2019: a column or table that is not there is done without."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heptascope.errors import UserError
from heptascope.sources.trace.columns import Tables, encode, pick
from heptascope.sources.trace.events import NONE, GpuKind, HostKind, Trace

FORMAT = "nsys"
_ROWS = 50_000  # rows fetched at a time
_VERSION = re.compile(r"(_v\d+|_pt?sz|_ptds)+$")
# CUpti_ActivityMemcpyKind
_COPY_KINDS = {1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD", 9: "HtoH", 10: "PtoP"}
# ENUM_CUDA_MEM_KIND of the exports that have it; those before it use the same numbers
_MEMORY_KINDS = {0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed", 5: "Device Static", 6: "Managed Static"}
# NvtxPushPopRange, NvtxStartEndRange
_NVTX_RANGES = (59, 60)
_THREAD_BITS = 24  # the low bits of globalTid hold the thread; globalPid is the same number with them zero
_PROCESS_MASK = 0xFFFFFF  # the process, in the bits above them
_KERNEL, _COPY, _SET, _GRAPH = (f"CUPTI_ACTIVITY_KIND_{name}" for name in ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE"))
_CALLS = ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER")
_SIZES = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")
Row = tuple[Any, ...]


def read(path: Path) -> Trace:
    """Read one export. Raises UserError if the file is not one."""
    where = str(path)
    try:
        database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        try:
            return _Reader(database, where).trace()
        finally:
            database.close()
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # SQLite's message may quote the damaged bytes
        said = "unreadable text" if isinstance(error, UnicodeDecodeError) else str(error)
        raise UserError(f"damaged SQLite file ({said})", where=where, hint="export it again with nsys export --type sqlite") from error


class _Reader:
    def __init__(self, database: sqlite3.Connection, where: str) -> None:
        self._db, self._where = database, where
        database.text_factory = lambda raw: raw.decode("utf-8", "replace")
        self._columns = {
            name: self._columns_of(name) for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        self._refuse_others()
        self._tables = Tables()
        self._strings: dict[Any, str] = {}
        self._owned = "globalPid" in self._columns.get(_KERNEL, set())
        self._gpus = self._gpus_of_processes()

    def _columns_of(self, table: str) -> set[str]:
        quoted = table.replace('"', '""')
        return {row[1] for row in self._db.execute(f'PRAGMA table_info("{quoted}")')}

    def _refuse_others(self) -> None:
        if "StringTable" in self._columns and "StringIds" not in self._columns:
            raise UserError("this is an nvprof database", where=self._where, hint="record it with Nsight Systems or the PyTorch profiler")
        if "StringIds" not in self._columns and not any(name.startswith("CUPTI_ACTIVITY_KIND_") for name in self._columns):
            raise UserError(
                "a SQLite file, but not an Nsight Systems export", where=self._where, hint="make one with nsys export --type sqlite"
            )
        usable = {_KERNEL: {"start", "end"}, _COPY: {"start", "end", "bytes"}, _SET: {"start", "end"}}
        for table, needed in usable.items():
            missing = needed - self._columns.get(table, needed)
            if missing:
                raise UserError(
                    f"table {table} has no column {min(missing)}", where=self._where, hint="export it again with a current nsys"
                )

    def trace(self) -> Trace:
        """Read all tables that are there."""
        if "StringIds" in self._columns:
            self._strings = dict(self._db.execute("SELECT id, value FROM StringIds"))
        self._gpu(_KERNEL, GpuKind.KERNEL, self._kernel_names, _SIZES)
        self._gpu(_COPY, GpuKind.COPY, self._copy_names, ("copyKind", "srcKind", "dstKind"))
        self._gpu(_SET, GpuKind.SET, lambda rows: ["Memset (Device)"] * len(rows), ())
        self._gpu(_GRAPH, GpuKind.KERNEL, lambda rows: ["CUDA graph"] * len(rows), ())
        for table in _CALLS:
            self._host(table, HostKind.CALL, "nameId", "")
        self._host("NVTX_EVENTS", HostKind.ANNOTATION, "textId", f"eventType IN {_NVTX_RANGES}")
        return self._join()

    def _rows(self, table: str, columns: Sequence[str], where: str = "") -> Iterator[list[Row]]:
        """Yield rows of a table in lots; a column that it lacks reads NULL."""
        there = self._columns.get(table)
        if there is None or not {"start", "end"} <= there:
            return
        picked = ", ".join(f'"{name}"' if name in there else "NULL" for name in columns)
        condition = f" WHERE {where}" if where and all(word in there for word in re.findall(r"\b[a-z]\w*", where)) else ""
        cursor = self._db.execute(f"SELECT {picked} FROM {table}{condition}")  # noqa: S608  # names of our own tables
        while rows := cursor.fetchmany(_ROWS):
            yield rows

    def _gpu(self, table: str, kind: GpuKind, names: Callable[[list[Row]], list[str]], extra: tuple[str, ...]) -> None:
        shared = (
            "start",
            "end",
            "deviceId",
            "streamId",
            "correlationId",
            "globalPid",
            "bytes",
            "graphNodeId",
            "demangledName",
            "shortName",
        )
        for rows in self._rows(table, (*shared, *extra)):
            tables, at = self._tables, list(zip(*rows, strict=True))
            start, end = _numbers(at[0], NONE), _numbers(at[1], NONE)
            sizes = at[len(shared) :] if kind is GpuKind.KERNEL and extra else ()
            columns: dict[str, NDArray[Any]] = {
                "start": start,
                "end": end,
                "name": encode(names(rows), tables.names),
                "kind": np.full(len(rows), kind, np.int8),
                "correlation": self._correlations(at[4], at[5]),
                "device": self._device_numbers(at[2], at[5]),
                "stream": encode(at[3], tables.streams),
                "shape": self._shapes(sizes, len(rows)),
                "group": np.full(len(rows), NONE, np.int32),
                "node": _numbers(at[7], 1 if table == _GRAPH else 0),
                "bytes": np.maximum(_numbers(at[6], 0), 0),
                "occupancy": np.full(len(rows), np.nan, np.float32),
            }
            tables.gpu.add(**pick(columns, tables.plausible(start, end - start)))

    def _correlations(self, correlation: Sequence[Any], process: Sequence[Any]) -> NDArray[np.int64]:
        """Return numbers that are unique across processes: each process counts its own. Exports before 2020 have one process."""
        number = _numbers(correlation, NONE)
        owner = _process(process) if self._owned else 0
        return np.where(number > 0, (owner << 32) | (number & 0xFFFFFFFF), NONE)

    def _gpus_of_processes(self) -> dict[tuple[int, int], int]:
        """Return which GPU a process means by a number: each may see other GPUs."""
        if not {"gpuId", "cudaId", "pid"} <= self._columns.get("TARGET_INFO_CUDA_DEVICE", set()):
            return {}
        rows = self._db.execute("SELECT pid, cudaId, gpuId FROM TARGET_INFO_CUDA_DEVICE")
        return {(pid, number): gpu for pid, number, gpu in rows if isinstance(gpu, int)}

    def _device_numbers(self, number: Sequence[Any], process: Sequence[Any]) -> NDArray[np.int32]:
        seen, gpus = _numbers(number, 0), self._gpus
        if not gpus:
            return seen.astype(np.int32)
        mapped = [gpus.get(key, key[1]) for key in zip(_process(process).tolist(), seen.tolist(), strict=True)]
        return np.array(mapped, np.int64).astype(np.int32)

    def _shapes(self, sizes: Sequence[Sequence[Any]], count: int) -> NDArray[np.int32]:
        if not sizes or any(column[0] is None for column in sizes):
            return np.full(count, NONE, np.int32)
        return encode(list(zip(*sizes, strict=True)), self._tables.shapes)

    def _kernel_names(self, rows: list[Row]) -> list[str]:
        return [self._text(row[8] if row[8] is not None else row[9]) for row in rows]

    def _copy_names(self, rows: list[Row]) -> list[str]:
        unknown = "Unknown"
        return [
            f"Memcpy {_COPY_KINDS.get(row[10], unknown)} ({_MEMORY_KINDS.get(row[11], unknown)} -> {_MEMORY_KINDS.get(row[12], unknown)})"
            for row in rows
        ]

    def _text(self, key: Any) -> str:
        return self._strings.get(key, str(key)) if isinstance(key, int) else str(key)

    def _host(self, table: str, kind: HostKind, name_column: str, where: str) -> None:
        for rows in self._rows(table, ("start", "end", name_column, "text", "globalTid", "correlationId"), where):
            tables, at = self._tables, list(zip(*[row for row in rows if row[1] is not None], strict=True))
            if not at:
                continue
            start, end = _numbers(at[0], NONE), _numbers(at[1], NONE)
            texts = [self._text(key) if key is not None else str(text or "") for key, text in zip(at[2], at[3], strict=True)]
            columns: dict[str, NDArray[Any]] = {
                "start": start,
                "end": end,
                "name": encode([_VERSION.sub("", text) for text in texts], tables.names),
                "kind": np.full(len(start), kind, np.int8),
                "correlation": self._correlations(at[5], at[4]) if kind is HostKind.CALL else np.full(len(start), NONE, np.int64),
                "thread": encode(at[4], tables.threads),
            }
            tables.host.add(**pick(columns, tables.plausible(start, end - start)))

    def _join(self) -> Trace:
        tables = self._tables
        gpu, host = tables.finish()
        names, threads, streams = tables.names.texts(), tables.threads.texts(), tables.streams.texts()
        notes = tables.notes()
        if len(gpu) and "CUDA graph" in tables.names:
            notes.append("graphs were recorded as wholes: record with --cuda-graph-trace=node to see their kernels")
        return Trace(self._where, FORMAT, gpu, host, names, threads, streams, devices=self._devices(), notes=notes)

    def _devices(self) -> dict[int, str]:
        if not {"id", "name"} <= self._columns.get("TARGET_INFO_GPU", set()):
            return {}
        return {
            int(number): str(name) for number, name in self._db.execute("SELECT id, name FROM TARGET_INFO_GPU") if isinstance(number, int)
        }


def _numbers(column: Sequence[Any], default: int) -> NDArray[np.int64]:
    return np.array([value if isinstance(value, int) else default for value in column], np.int64)


def _process(column: Sequence[Any]) -> NDArray[np.int64]:
    """Return the process of global process or thread numbers."""
    process: NDArray[np.int64] = (_numbers(column, 0) >> _THREAD_BITS) & _PROCESS_MASK
    return process
