"""From a recording's events to readings, through the same pure code as live."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from heptascope.model import Reading, Reason
from heptascope.sources.base import SourceError
from heptascope.sources.commandlines import settings_by_engine
from heptascope.sources.engine.cmdline import CommandLine
from heptascope.sources.engine.page import Document
from heptascope.sources.engine.reader import EngineReader
from heptascope.sources.gpu.rows import GpuRows
from heptascope.sources.host.rows import HostRows
from heptascope.sources.jsonl import Row
from heptascope.sources.recording import Event, Recording

_HTTP_OK = 200
_PAGES_TO_TRY = 5


class Failure(NamedTuple):
    """A read of `source` that failed at `t` (Unix seconds): its series end there."""

    source: str
    t: float
    reason: Reason
    message: str


class RowReaders:
    """Turns the events of one recording, in their order, into readings. Keeps what the rows' readers keep."""

    def __init__(self, recording: Recording) -> None:
        """Look at the first pages of an unnamed engine, whose name is its kind."""
        self._recording = recording
        self._engines = {name: EngineReader(name or None) for name in recording.engines}
        self._told: dict[str, CommandLine] = {}
        self._recognise()
        self._gpus = GpuRows(recording.header)
        cpus = recording.header.get("host_cpus")
        self._host = HostRows([reader.name for reader in self._engines.values()], cpus if isinstance(cpus, int) else None)

    def play(self, event: Event) -> Reading | Failure | None:
        """Return what the event says; None if it only tells about later ones, or its row is damaged (noted in the recording's damage)."""
        try:
            return self._play(event)
        except SourceError as exc:
            return Failure(self._engines[event.engine].name, event.t, exc.reason, str(exc))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as exc:
            self._recording.note(event.kind, f"row of an unknown shape: {type(exc).__name__}: {exc}")
            return None

    def _play(self, event: Event) -> Reading | Failure | None:
        row = event.rows[0]
        if event.kind == "gpu":
            return self._gpus.fast(event.rows)
        if event.kind == "slow":
            return self._gpus.slow(event.rows)
        if event.kind == "host":
            self._learn(row)
            return self._host.read(row)
        if event.kind == "engine":
            return self._page(self._engines[event.engine], event)
        if event.kind == "failure":
            return Failure(str(row["source"]), event.t, _reason(row), str(row["error"]))
        self._gpus.begin(row)
        return None

    def _learn(self, row: Row) -> None:
        """Give the engines what their command lines tell, as it happens live."""
        told = settings_by_engine(row.get("procs") or ())
        if told != self._told:
            self._told = told
            for reader in self._engines.values():
                line = told.get(reader.name, CommandLine())
                reader.settings, reader.config = dict(line.settings), dict(line.config)

    def _page(self, reader: EngineReader, event: Event) -> Reading:
        row = event.rows[0]
        if "error" in row:
            raise SourceError(_reason(row), str(row["error"]))
        if row.get("status", _HTTP_OK) != _HTTP_OK:
            raise SourceError(Reason.SOURCE_DOWN, f"HTTP {row['status']}")
        reading = reader.read_page(row["text"], str(row.get("content_type", "")), event.t, str(row.get("version", "")))
        return Reading(reader.name, event.t, reading.samples, reading.histograms, reading.missing, reading.quality, raw=row)

    def _recognise(self) -> None:
        """Let a lone engine without a name be recognised, so that host rows before its first page can be labelled."""
        reader = self._engines.get("")
        if reader is None:
            return
        pages = (event.rows[0] for event in self._recording.events() if event.kind == "engine" and event.engine == "")
        for row in islice(pages, _PAGES_TO_TRY):
            text, version = row.get("text"), str(row.get("version", ""))
            if not isinstance(text, str):
                continue
            try:
                reader.detect(Document(self._recording.name, text, str(row.get("content_type", ""))), lambda _: version)  # noqa: B023  # called at once
            except SourceError:
                continue
            return


def replay_readings(recording: Recording) -> Iterator[Reading | Failure]:
    """Yield every reading and failure of a recording in the order of time, as fast as it can be read."""
    readers = RowReaders(recording)
    for event in recording.events():
        found = readers.play(event)
        if found is not None:
            yield found


def _reason(row: Row) -> Reason:
    """Return the reason that a failed read's row has; recordings of other tools have none."""
    try:
        return Reason(row["reason"])
    except (KeyError, ValueError):
        return Reason.SOURCE_DOWN
