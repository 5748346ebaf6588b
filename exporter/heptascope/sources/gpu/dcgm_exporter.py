"""An existing dcgm-exporter as a source: any generation, one or several pages, read over HTTP.

Its values are old when they come (it collects every 30 s by default) and have no time stamps, so a page may go on to show what it saw
last for ever: values that must change (energy) tell a living page from a frozen one. Everything from here is approximate.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence

from heptascope.model import Missing, Reading, Reason
from heptascope.sources.base import SourceError
from heptascope.sources.engine.fetch import Fetcher, split_credentials
from heptascope.sources.engine.page import Document
from heptascope.sources.gpu.attribution import POD, SHARED, Owned, Way
from heptascope.sources.gpu.dcgm_exporter_node import Here
from heptascope.sources.gpu.dcgm_exporter_page import Board, ExporterReader, Unit
from heptascope.sources.gpu.dcgm_exporter_rows import BoardRows
from heptascope.sources.gpu.layout import PREFIX, Row
from heptascope.sources.gpu.rows import GpuRows

INTERVAL_SECONDS = 5.0
"""The page changes every 30 s by default; a shorter interval finds the change sooner and costs the exporter a page each time."""
TIMEOUT_SECONDS = 10.0


class _Page:
    """One exporter: its connection and its reader."""

    def __init__(self, url: str, unit: Unit) -> None:
        self.url, credentials = split_credentials(url)
        self._fetcher, self._reader = Fetcher(TIMEOUT_SECONDS / 2, credentials=credentials), ExporterReader(unit)

    def read(self) -> dict[str, Board]:
        fetched = self._fetcher.get(self.url)
        boards = self._reader.read(Document(self.url, fetched.text, fetched.content_type))
        if not boards:
            raise SourceError(Reason.NO_SOURCE, f"{self.url}: the page has no GPU; is this a dcgm-exporter?")
        return boards

    def close(self) -> None:
        self._fetcher.close()


class DcgmExporterSource:
    """Reads the GPUs of one or several dcgm-exporters."""

    name, kind = "dcgm_exporter", "gpu"

    def __init__(
        self,
        urls: Sequence[str],
        devices: Sequence[str] = (),
        interval: float = INTERVAL_SECONDS,
        unit: Unit = "auto",
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """Read `urls`; only the GPUs of `devices` (indexes or UUIDs; empty: all), and none of another node than NODE_NAME."""
        self.interval, self.timeout = interval, TIMEOUT_SECONDS
        self._pages = [_Page(url, unit) for url in urls]
        self._wanted, self._clock, self._now, self._here = tuple(devices), clock, now, Here(environ)
        self._rows = GpuRows({"source": self.name})
        self._states: dict[str, BoardRows] = {}
        self._boards: dict[str, Board] = {}
        self.header: Row | None = None

    def read(self, now: float) -> Reading:
        """Read every page once. Raises SourceError if none can be read or all are frozen; one that fails costs its own GPUs."""
        problems: list[SourceError] = []
        boards: dict[str, Board] = {}
        for page in self._pages:
            try:
                boards.update(self._here.boards(page.url, page.read(), self._wanted))
            except SourceError as exc:
                problems.append(exc)
        if not boards:
            raise problems[0]
        self._boards = {key: board for key, board in boards.items() if self._chosen(board)}
        if not self._boards:
            there = ", ".join(f"{board.index} ({board.uuid or 'no uuid'})" for board in boards.values())
            raise SourceError(Reason.NO_SOURCE, f"none of the GPUs asked for ({', '.join(self._wanted)}) is there; the pages show: {there}")
        reading = self._reading(now)
        reading.missing.extend(Missing(PREFIX + "up", exc.reason, str(exc)) for exc in problems)
        return reading

    def close(self) -> None:
        """Close the connections."""
        for page in self._pages:
            page.close()

    def own_pod(self, environ: Mapping[str, str]) -> Way:
        """Return the way of the pages' pod labels: the GPUs of the pod whose name is POD_NAME (else HOSTNAME)."""
        here = Here(environ)

        def ask() -> Owned | str:
            ids: set[str] = set()
            shared = False
            for board in self._boards.values():
                mine = here.parts(board)
                if mine and board.uuid:
                    ids |= {f"MIG-{board.uuid}/{part}/0" if part else board.uuid for part in mine}
                    shared |= len({(ns, name) for ns, name, part in board.pods if part in mine}) > 1
            if not ids:
                return f"no GPU on the page has this pod's labels ({here.pod or 'POD_NAME is not set'})"
            return Owned(frozenset(ids), SHARED if shared else POD, "the pod labels of dcgm-exporter")

        return ask

    def _chosen(self, board: Board) -> bool:
        return not self._wanted or str(board.index) in self._wanted or (bool(board.uuid) and board.uuid in self._wanted)

    def _reading(self, now: float) -> Reading:
        states = []
        for key, board in self._boards.items():
            state = self._states.setdefault(key, BoardRows(self._clock))
            state.take(board)
            states.append((board, state))
        if all(state.frozen for _, state in states):
            age = min(state.age for _, state in states)
            raise SourceError(Reason.STALE, f"{self._pages[0].url}: nothing on the page has changed for {age:.0f} s; restart dcgm-exporter")
        self._take_header([state.entry(board) for board, state in states])
        fast = self._rows.fast([state.fast(board, now) for board, state in states], now)
        slow = self._rows.slow([state.slow(board, now) for board, state in states], now)
        raw = {"rows": [*(fast.raw or {})["rows"], *(slow.raw or {})["rows"]]}
        quality = {**fast.quality, **slow.quality}
        return Reading(self.name, now, fast.samples + slow.samples, missing=fast.missing + slow.missing, quality=quality, raw=raw)

    def _take_header(self, entries: list[Row]) -> None:
        driver = next((board.labels["driver"] for board in self._boards.values() if "driver" in board.labels), None)
        known = {} if self.header is None else {key: self.header[key] for key in ("driver", "gpus")}
        if known != {"driver": driver, "gpus": entries}:
            self.header = {
                "kind": "header",
                "t": self._now(),
                "source": self.name,
                "energy_in_fast": True,
                "driver": driver,
                "gpus": entries,
            }
            self._rows.begin(self.header)
