"""The last ten minutes of what the sources read, compressed in memory: a recording for whoever asks after the fact.

A tap of the daemon, written by the sources' threads. What is handed out has the layout that `heptascope replay` reads.

Of an engine's page only the lines that changed are kept: from one second to the next most stand still, and zlib sees no further back
than 32 KiB, less than one page.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import threading
import zlib
from collections import deque
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from heptascope.model import Reading, Reason, SourceStatus
from heptascope.sources.recording import GPU_FILE, LONE_ENGINE_FILE, engine_file

KEPT_SECONDS = 600.0
CHUNK_SECONDS = 10.0
MOST_BYTES = 8 * 2**20
"""Of compressed rows: ten minutes of one engine with a page of 45 KB take about 0.6 MB; beyond, the oldest go."""
_LEVEL = 1
_GZIP = 31  # zlib's window bits for the gzip format
_ANOTHER_CLOCK_SECONDS = 5.0
"""Rows older than this are a recording's that plays now: they get the times at which they were played."""
_MACHINE = ""
_PAGE, _CHANGED = "text", "changed"

Row = dict[str, Any]


class _Chunk(NamedTuple):
    t: float
    engine: str
    body: bytes


class _Open:
    """A gzip member that grows: rows are compressed as they come, so that no page waits in memory."""

    def __init__(self, t: float) -> None:
        self.t = t
        self._member = zlib.compressobj(_LEVEL, wbits=_GZIP)
        self._parts: list[bytes] = []
        self._before: list[str] = []

    def add(self, row: Row) -> None:
        self._parts.append(self._member.compress(_line(self._short(row)).encode()))

    def body(self) -> bytes:
        """Return the member as if it ended here."""
        return b"".join((*self._parts, self._member.copy().flush()))

    def _short(self, row: Row) -> Row:
        """Return a row whose page holds only the lines that differ from the page before, by their numbers."""
        if _PAGE not in row:
            return row
        before, self._before = self._before, row[_PAGE].split("\n")
        if len(before) != len(self._before):
            return row
        changed = {i: line for i, (old, line) in enumerate(zip(before, self._before, strict=True)) if old != line}
        return {**{name: value for name, value in row.items() if name != _PAGE}, _CHANGED: changed}


def _whole(member: bytes) -> Iterator[Row]:
    """Yield the rows of a member with their whole pages."""
    before: list[str] = []
    for line in gzip.decompress(member).splitlines():
        row = json.loads(line)
        if _CHANGED in row:
            for number, text in row.pop(_CHANGED).items():
                before[int(number)] = text
            row[_PAGE] = "\n".join(before)
        elif _PAGE in row:
            before = row[_PAGE].split("\n")
        yield row


class Lookback:
    """Keeps the rows; `write` and `write_failure` are the tap."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._lock = threading.Lock()
        self._chunks: deque[_Chunk] = deque()
        self._bytes = 0
        self._open: dict[str, _Open] = {}
        self._engines: dict[str, str] = {}
        self._seen: dict[str, object] = {}

    def write(self, reading: Reading) -> None:
        """Take one reading."""
        raw = reading.raw
        if raw is None or self._seen.get(reading.source) is raw:  # a recording that plays shows slow rows several times
            return
        self._seen[reading.source] = raw
        rows = raw.get("rows", [raw])
        machine = "rows" in raw or raw.get("kind") == "host"
        self._put(_MACHINE if machine else self._engine(reading), [_on_time(row, reading.t) for row in rows], reading.t)

    def write_failure(self, status: SourceStatus, row: Mapping[str, Any]) -> None:
        """Take one failed read."""
        if status.reason is Reason.NO_SOURCE:
            return
        if status.kind == "engine":
            self._put(self._engines.get(status.name, status.name), [dict(row)], row["t"])
        else:
            self._put(_MACHINE, [{"kind": "failure", "source": status.name, **row}], row["t"])

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._chunks.clear()
            self._bytes = 0
            self._open, self._engines, self._seen = {}, {}, {}

    def tar(self, header: Mapping[str, Any] | None, now: float) -> bytes:
        """Return a tar archive of one folder with what is kept; `header` tells about the GPUs."""
        with self._lock:
            self._forget(now)
            young = {engine: member for engine, member in self._open.items() if member.t > now - KEPT_SECONDS}
            parts = [*self._chunks, *(_Chunk(member.t, engine, member.body()) for engine, member in young.items())]
        first = {"kind": "header", "gpus": [], **(header or {}), "t": min((part.t for part in parts), default=now)}
        files = {_MACHINE: [gzip.compress(_line(first).encode(), mtime=0)]}
        for part in parts:
            files.setdefault(part.engine, []).append(part.body if part.engine == _MACHINE else _packed(part.body))
        folder, buffer = f"heptascope-{datetime.fromtimestamp(now, UTC):%Y%m%d-%H%M%SZ}", io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for engine, members in files.items():
                info = tarfile.TarInfo(f"{folder}/{_file(engine, len(files))}")
                info.size, info.mtime = sum(map(len, members)), int(now)
                archive.addfile(info, io.BytesIO(b"".join(members)))
        return buffer.getvalue()

    def _engine(self, reading: Reading) -> str:
        """Return the name that the engine's series have, which is the source's own until the engine was recognised."""
        name = next((value for sample in reading.samples for label, value in sample.labels if label == "engine"), reading.source)
        self._engines[reading.source] = name
        return name

    def _put(self, engine: str, rows: list[Row], t: float) -> None:
        with self._lock:
            member = self._open.setdefault(engine, _Open(t))
            for row in rows:
                member.add(row if engine == _MACHINE else row | {"engine": engine})
            if t - member.t >= CHUNK_SECONDS:
                del self._open[engine]
                self._chunks.append(_Chunk(member.t, engine, member.body()))
                self._bytes += len(self._chunks[-1].body)
                self._forget(t)

    def _forget(self, now: float) -> None:
        while self._chunks and (self._chunks[0].t < now - KEPT_SECONDS or self._bytes > MOST_BYTES):
            self._bytes -= len(self._chunks.popleft().body)


def _packed(member: bytes) -> bytes:
    """Return a member with whole pages."""
    return gzip.compress(b"".join(_line(row).encode() for row in _whole(member)), _LEVEL, mtime=0)


def _on_time(row: Mapping[str, Any], t: float) -> Row:
    late = t - float(row["t"])
    return {**row, "t": row["t"] + late} if abs(late) > _ANOTHER_CLOCK_SECONDS else dict(row)


def _file(engine: str, files: int) -> str:
    if engine == _MACHINE:
        return GPU_FILE
    return LONE_ENGINE_FILE if files <= 2 else engine_file(engine)


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, separators=(",", ":")) + "\n"
