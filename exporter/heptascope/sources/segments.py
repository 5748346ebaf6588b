"""The files of a recording as they grow: bounded in size, readable after a kill, harmless to a full disk.

Rows are gathered in memory and appended as complete gzip members (RFC 1952 lets a file hold many), so that a process that is
killed loses the last seconds and nothing else. In a rotating recording each segment is a folder `rec-<UTC time>` that is a whole
recording by itself; the oldest segments are removed when the total grows too large.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from heptascope.errors import UserError
from heptascope.sources.jsonl import Row
from heptascope.sources.recording import GPU_FILE, LONE_ENGINE_FILE, engine_file

COMPRESSION_LEVEL = 6
_SEGMENT = re.compile(r"rec-\d{8}-\d{6}Z(-\d+)?")
_OURS = re.compile(r"(gpu|engine|engine-.+)\.jsonl\.gz")
_MOST_OF_ALL = 4  # a segment may take this part of the total at most, so that removing one leaves some history


@dataclass(frozen=True)
class Limits:
    """Bounds of a recording: sizes in bytes, times in seconds.

    Without `segment_seconds` there is one segment, the folder itself, and writing ends for good at `max_bytes`.
    """

    max_bytes: int = 256 * 2**20
    min_free_bytes: int = 512 * 2**20
    segment_seconds: float | None = 600.0


class FullError(Exception):
    """Nothing can be written now (`final`: nor later); the message says why, `lost` how many rows went with it."""

    lost = 0
    final = False


class Segments:
    """Appends rows to the files of the current segment. Used by one thread; time and free space are handed in."""

    def __init__(self, folder: Path, limits: Limits, free_bytes: Callable[[Path], int] | None = None) -> None:
        """Write below `folder`. Raises UserError if it cannot be made, or already holds a recording that this one would mix with."""
        self.folder, self.limits = folder, limits
        self._free_bytes = free_bytes or (lambda path: shutil.disk_usage(path).free)
        self._header: Row = {"gpus": []}
        self._current: Path | None = None
        self._began = 0.0
        self._headed = False  # whether the current segment has its header line
        self._written = 0
        self._buffers: dict[str | None, list[bytes]] = {}  # by engine, None for the machine
        self._gathered = 0  # rows in the buffers, header lines apart
        self._engines: list[str] = []
        _prepare(folder, limits)
        self.total_bytes = self._size()

    def segments(self) -> list[Path]:
        """Return the folders of all segments, oldest first."""
        if self.limits.segment_seconds is None:
            return [self.folder]
        return sorted(path for path in self.folder.glob("rec-*") if _SEGMENT.fullmatch(path.name))

    def set_header(self, header: Mapping[str, Any], t: float) -> None:
        """Take the facts about the GPUs: each segment begins with them; `t` is Unix seconds."""
        self._header = dict(header)
        if self._current is not None and self._headed:
            self._add(None, self._header_row(t))

    def add(self, row: Row, engine: str | None = None) -> None:
        """Take a row of the machine, or of `engine`; nothing is written before `flush`.

        Raises OSError if no segment can be begun, TypeError or ValueError for a row that is no JSON.
        """
        if self._current is None:
            self._begin(row["t"])
        if engine is None and not self._headed:
            self._add(None, self._header_row(row["t"]))
        if engine is not None and engine not in self._engines:
            self._engines.append(engine)
        self._add(engine, row if engine is None else row | {"engine": engine})
        self._gathered += 1

    def flush(self, now: float) -> bool:
        """Write what was gathered, and end the segment if it is old or large enough; return whether there was anything.

        `now` is Unix seconds. Raises FullError; what was gathered is lost then.
        """
        buffers, self._buffers = self._buffers, {}
        gathered, self._gathered = self._gathered, 0
        if self._current is None or not buffers:
            return False
        members = {name: gzip.compress(b"".join(lines), COMPRESSION_LEVEL, mtime=int(now)) for name, lines in buffers.items()}
        try:
            self._current.mkdir(parents=True, exist_ok=True)
            self._make_room(sum(map(len, members.values())))
            for name, member in members.items():
                self._append(self._path(self._current, name), member)
        except (OSError, FullError) as exc:
            self.end_segment()
            error = exc if isinstance(exc, FullError) else FullError(f"{self.folder}: {exc.strerror or exc}")
            error.lost = gathered
            raise error from exc
        limit = self.limits.segment_seconds
        if limit is not None and (now - self._began >= limit or self._written * _MOST_OF_ALL > self.limits.max_bytes):
            self.end_segment()
        return True

    def end_segment(self) -> None:
        """Let the next row begin a new segment; what was gathered and not flushed is lost."""
        self._current = None
        self._buffers = {}

    def _begin(self, t: float) -> None:
        self._began, self._written, self._engines, self._headed = t, 0, [], False
        self._current = self.folder if self.limits.segment_seconds is None else self._free_name(t)
        self.total_bytes = self._size()  # people remove folders

    def _size(self) -> int:
        files = (path for segment in self.segments() for path in segment.glob("*.jsonl.gz") if _OURS.fullmatch(path.name))
        return sum(path.stat().st_size for path in files)

    def _free_name(self, t: float) -> Path:
        stem = f"rec-{datetime.fromtimestamp(t, UTC):%Y%m%d-%H%M%SZ}"
        taken = {path.name for path in self.segments()}
        names = (stem, *(f"{stem}-{n}" for n in range(1, len(taken) + 1)))
        return self.folder / next(name for name in names if name not in taken)

    def _header_row(self, t: float) -> Row:
        self._headed = True
        return {"kind": "header", "t": t, "host_cpus": os.cpu_count()} | self._header | {"kind": "header", "t": t}

    def _add(self, engine: str | None, row: Row) -> None:
        line = json.dumps(row, separators=(",", ":"), allow_nan=False) + "\n"
        self._buffers.setdefault(engine, []).append(line.encode())

    def _path(self, segment: Path, engine: str | None) -> Path:
        """Return the file of an engine, or of the machine; when a second engine comes, the first one's file gets its name."""
        if engine is None:
            return segment / GPU_FILE
        lone = segment / LONE_ENGINE_FILE
        if len(self._engines) == 1:
            return lone
        if lone.exists():
            lone.rename(segment / engine_file(self._engines[0]))
        return segment / engine_file(engine)

    def _append(self, path: Path, member: bytes) -> None:
        with path.open("ab", buffering=0) as file:
            size = file.tell()
            rest = memoryview(member)
            try:
                while rest:
                    rest = rest[file.write(rest) :]
            except OSError:
                file.truncate(size)  # half a member would hide all that follows
                raise
        self._written += len(member)
        self.total_bytes += len(member)

    def _make_room(self, size: int) -> None:
        """Remove the oldest segments until `size` more bytes fit. Raises FullError if they do not."""
        assert self._current is not None  # noqa: S101  # for the type checker: `flush` has looked
        oldest = [segment for segment in self.segments() if segment != self._current and self.limits.segment_seconds is not None]
        while oldest and self.total_bytes + size > self.limits.max_bytes:
            self.total_bytes -= _remove(oldest.pop(0))
        if self.total_bytes + size > self.limits.max_bytes:
            full = FullError(f"{self.folder}: the recording has reached its {self.limits.max_bytes} bytes")
            full.final = self.limits.segment_seconds is None
            raise full
        free = self._free_bytes(self.folder)
        if free - size < self.limits.min_free_bytes:
            raise FullError(f"{self.folder}: {free} bytes are free on this disk, and {self.limits.min_free_bytes} are kept free")


def _prepare(folder: Path, limits: Limits) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        holds_one = any(_OURS.fullmatch(path.name) for path in folder.iterdir())
    except OSError as exc:
        raise UserError(
            f"cannot be used for a recording: {exc.strerror}", where=str(folder), hint="give a folder that can be written"
        ) from exc
    if holds_one and limits.segment_seconds is None:
        raise UserError("holds a recording already", where=str(folder), hint="give an empty or new folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UserError("cannot be written", where=str(folder), hint="give a folder that can be written")


def _remove(segment: Path) -> int:
    """Delete our files of a segment, and its folder if nothing else is in it; return the bytes that this freed."""
    freed = 0
    for path in list(segment.iterdir()):
        if _OURS.fullmatch(path.name):
            freed += path.stat().st_size
            path.unlink()
    if not any(segment.iterdir()):
        segment.rmdir()
    return freed
