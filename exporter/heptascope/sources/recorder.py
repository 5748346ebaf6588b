"""Writes what the sources read, from a thread of its own: the readers never wait for the disk, and never see its errors."""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from heptascope.sources.jsonl import Row
from heptascope.sources.segments import FullError, Limits, Segments

log = logging.getLogger(__name__)

FLUSH_SECONDS = 5.0
"""Rows are gathered for so long before they are written: what a killed process loses at most."""
RETRY_SECONDS = 30.0
MOST_QUEUED_BYTES = 32 * 2**20
"""What may wait for a slow disk (minutes of one engine and one GPU); more is dropped and counted."""
MACHINE_SOURCES = ("gpu", "nvml", "nvml_slow", "dcgm", "dcgm_slow", "dcgm_exporter", "host")
"""Sources that are no engines; `gpu` stands in for those that are not found yet."""
_ROW_BYTES = 2000  # a row without its page, roughly


class RecorderStatus(NamedTuple):
    """How the recording goes: `message` says why it pauses, `bytes` is the size of all that is kept."""

    folder: Path
    writing: bool
    message: str
    rows: int
    dropped: int
    bytes: int


class _Item(NamedTuple):
    row: Row
    engine: str | None = None
    header: bool = False

    @property
    def size(self) -> int:
        """Bytes in memory, roughly."""
        return _ROW_BYTES + len(self.row.get("text", ""))


class Recorder:
    """Takes readings and failures from any thread, without ever blocking or raising, and appends them to a recording."""

    def __init__(
        self,
        folder: Path,
        limits: Limits | None = None,
        *,
        header: Callable[[], Mapping[str, Any] | None] = lambda: None,
        free_bytes: Callable[[Path], int] | None = None,
    ) -> None:
        """Record below `folder`; `header` gives the facts about the GPUs once they are known.

        Raises UserError if the folder cannot be used from the start.
        """
        self._header = header
        self._last_header: dict[str, Any] = {}
        self._segments = Segments(folder, limits or Limits(), free_bytes)
        self._queue: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self._queued_bytes = 0
        self._lock = threading.Lock()
        self._rows = self._dropped = 0
        self._paused = ""
        self._lost_in_pause = 0
        self._retry_at = self._flush_at = 0.0
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def write(self, source: str, row: Mapping[str, Any]) -> None:
        """Take what `source` read (`Reading.raw`), or the row of a failed read: `t`, `dt`, `reason`, `error`."""
        if "rows" in row:
            for one in row["rows"]:
                self._look_at_header(one["t"])
                self._put(_Item(one))
        elif row.get("kind") == "host":
            self._put(_Item(dict(row)))
        elif source in MACHINE_SOURCES:
            self._put(_Item({"kind": "failure", "source": source, **row}))
        else:
            self._put(_Item(dict(row), source))

    def status(self) -> RecorderStatus:
        """Return how it goes."""
        segments = self._segments
        with self._lock:
            return RecorderStatus(segments.folder, not self._paused, self._paused, self._rows, self._dropped, segments.total_bytes)

    def close(self, timeout: float = 2.0) -> None:
        """Write what is waiting and end, within `timeout` seconds if the disk answers."""
        self._queue.put(None)
        self._thread.join(timeout)

    def _look_at_header(self, t: float) -> None:
        header = self._header()
        if header is not None and header != self._last_header:
            self._last_header = dict(header)
            self._put(_Item(self._last_header | {"t": t}, header=True))

    def _put(self, item: _Item) -> None:
        with self._lock:
            if self._queued_bytes + item.size > MOST_QUEUED_BYTES:
                self._dropped += 1
                return
            self._queued_bytes += item.size
        self._queue.put(item)

    def _drop(self, rows: int = 1) -> None:
        with self._lock:
            self._dropped += rows
            self._lost_in_pause += rows

    def _run(self) -> None:
        self._flush_at = time.monotonic() + FLUSH_SECONDS
        while True:
            try:
                item = self._queue.get(timeout=max(0.0, self._flush_at - time.monotonic()))
            except queue.Empty:
                self._flush()
                continue
            if item is None:
                self._flush()
                return
            self._take(item)
            if time.monotonic() >= self._flush_at:
                self._flush()

    def _take(self, item: _Item) -> None:
        with self._lock:
            self._queued_bytes -= item.size
        if self._paused and time.monotonic() < self._retry_at and not item.header:
            self._drop()
            return
        try:
            if item.header:
                self._segments.set_header(item.row, item.row["t"])
            else:
                self._segments.add(item.row, item.engine)
        except OSError as exc:
            self._drop()
            self._pause(str(exc))
        except (TypeError, ValueError) as exc:
            self._drop()
            log.debug("recorder: a row that is no JSON: %s", exc)
        else:
            with self._lock:
                self._rows += not item.header

    def _flush(self) -> None:
        self._flush_at = time.monotonic() + FLUSH_SECONDS
        try:
            wrote = self._segments.flush(time.time())
        except FullError as exc:
            self._drop(exc.lost)
            self._pause(str(exc), exc.final)
            return
        if wrote and self._paused:
            log.info("recording goes on in %s; %d rows were lost", self._segments.folder, self._lost_in_pause)
            with self._lock:
                self._paused, self._lost_in_pause = "", 0

    def _pause(self, why: str, final: bool = False) -> None:
        self._retry_at = math.inf if final else time.monotonic() + RETRY_SECONDS
        if not self._paused:
            log.warning("recording %s: %s", "has ended" if final else f"pauses, and is tried again every {RETRY_SECONDS:.0f} s", why)
        with self._lock:
            self._paused = why
