"""Recordings on disk: folders that hold what the sources read, and the events in them in the order of time.

A folder holds `gpu.jsonl.gz` (a `header` line, then `gpu`, `slow`, `host` and `failure` lines), and `engine.jsonl.gz` or one
`engine-<name>.jsonl.gz` for each engine; at least one of these files. `label.json` (what a right verdict is) and
`truth.json` (of which only the times of the steady window are used) may stand beside them.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import quote, unquote

from heptascope.errors import UserError
from heptascope.sources.jsonl import Damage, Row, number, read_rows

GPU_FILE = "gpu.jsonl.gz"
LONE_ENGINE_FILE = "engine.jsonl.gz"
_SUFFIX = ".jsonl.gz"
_WHAT_IT_IS = f"give a folder that holds {GPU_FILE} or engine*{_SUFFIX}; `heptascope record` writes one"
DEFAULT_LEAD_SECONDS = 3.0
"""Where nothing says when the load is steady, it counts as steady so long after the start."""
REORDER_SECONDS = 10.0
"""Sources write when a read ends, so lines of different kinds may stand out of order by a read's timeout."""
_MOST_LINES_BEFORE_HEADER = 200
_KINDS = ("header", "gpu", "slow", "host", "failure")
_PER_GPU = ("gpu", "slow")
_MAY_REPEAT = ("header", "failure")  # several sources may fail at one moment


class Event(NamedTuple):
    """What was read at one moment: `kind` is header, gpu, slow, host, engine or failure; `rows` has one row per GPU, else one row."""

    t: float
    kind: str
    rows: list[Row]
    engine: str = ""  # its name, of `Recording.engines`


class Steady(NamedTuple):
    """The window that a label speaks about, in Unix seconds; `end` is None where only the recording's end ends it."""

    start: float
    end: float | None


class Recording:
    """One recording. Nothing is kept in memory: `events` reads the files anew each time."""

    def __init__(self, path: Path, machine: Path | None, engines: list[Path]) -> None:
        """Use `open`."""
        self.path, self.name = path, path.resolve().name
        self._found, self._beside = Damage(), Damage()
        self._machine = machine
        self._engines = self._name_engines(engines)
        self.header: Row = {} if machine is None else _header(machine)
        self.label: dict[str, Any] | None = _read_json(path / "label.json", self._beside)
        self._times = _read_json(path / "truth.json", self._beside) or {}
        self.start = 0.0

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """Open a folder. Raises UserError if it is none, or holds nothing that can be used, with the first thing that is wrong."""
        path = _folder(path)
        machine, engines = _find_files(path)
        if machine is None and not engines:
            raise UserError(f"holds neither {GPU_FILE} nor engine*{_SUFFIX}", where=str(path), hint=_WHAT_IT_IS)
        recording = cls(path, machine, engines)
        first = next((event for event in recording.events() if event.kind not in _MAY_REPEAT), None)
        if first is None:
            wrong = next(iter(recording.damage), "the files are empty")
            raise UserError(f"nothing in this recording can be used: {wrong}", where=str(path))
        recording.start = first.t
        return recording

    @property
    def damage(self) -> list[str]:
        """Lines on what could not be used; complete once `events` has been read to its end."""
        return [*self._beside.lines(), *self._found.lines()]

    @property
    def engines(self) -> tuple[str, ...]:
        """Names of the engines, one for each page file; "" for the lone engine of a recording that does not name it."""
        return tuple(self._engines)

    @property
    def steady(self) -> Steady:
        """The steady window: as `truth.json` has it, else from three seconds after the start."""
        start, end = number(self._times.get("t_steady")), number(self._times.get("t1"))
        return Steady(self.start + DEFAULT_LEAD_SECONDS if start is None else start, end)

    def events(self) -> Iterator[Event]:
        """Yield everything in the order of time. What cannot be used is left out and noted in `damage`."""
        self._found = damage = Damage()
        streams = [_engine_events(name, path, damage) for name, path in self._engines.items()]
        if self._machine is not None:
            streams.append(_in_order(_machine_events(self._machine, damage), damage))
        yield from heapq.merge(*streams, key=lambda event: event.t)

    def note(self, file: str, what: str) -> None:
        """Note damage that only a reader of the rows can see."""
        self._found.note(file, what)

    def _name_engines(self, paths: list[Path]) -> dict[str, Path]:
        """Return the page files by engine: the name that the rows have, else the file's own."""
        named: dict[str, Path] = {}
        for path in paths:
            first: Row = next((row for _, row in read_rows(path, Damage())), {})
            name = first.get("engine") or unquote(path.name.removesuffix(_SUFFIX).removeprefix("engine").removeprefix("-"))
            if name in named:
                self._beside.note(path.name, f"engine {name!r} is also in {named[name].name}; this file is left out")
            else:
                named[name] = path
        return named


def find_recordings(path: Path | str) -> list[Path]:
    """Return `path` if it is a recording, else the recordings among its subfolders in order of name. Raises UserError if there are none."""
    path = _folder(path)
    if any(_find_files(path)):
        return [path]
    found = [folder for folder in sorted(path.iterdir()) if folder.is_dir() and any(_find_files(folder))]
    if not found:
        raise UserError("no recording here", where=str(path), hint=_WHAT_IT_IS)
    return found


def engine_file(engine: str) -> str:
    """Return the name of an engine's file where there are several engines."""
    return f"engine-{quote(engine, safe='')}{_SUFFIX}"


def _folder(path: Path | str) -> Path:
    path = Path(path)
    try:
        next(iter(path.iterdir()), None)
    except FileNotFoundError:
        raise UserError("no such folder", where=str(path), hint=_WHAT_IT_IS) from None
    except NotADirectoryError:
        raise UserError("not a folder", where=str(path), hint=_WHAT_IT_IS) from None
    except OSError as exc:
        raise UserError(f"cannot be read: {exc.strerror}", where=str(path), hint=_WHAT_IT_IS) from exc
    return path


def _find_files(path: Path) -> tuple[Path | None, list[Path]]:
    """Return the machine's file and the engines' page files."""
    files = sorted(file for file in path.glob(f"*{_SUFFIX}") if file.is_file())
    machine = next((file for file in files if file.name == GPU_FILE), None)
    return machine, [file for file in files if file.name == LONE_ENGINE_FILE or file.name.startswith("engine-")]


def _read_json(path: Path, damage: Damage) -> dict[str, Any] | None:
    if not path.exists():
        return None
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError) as exc:
        damage.note(path.name, f"left aside: {exc}")
        return None
    if not isinstance(content, dict):
        damage.note(path.name, "left aside: not a JSON object")
        return None
    return content


def _header(path: Path) -> Row:
    """Return the header line that stands before the first GPU row, or an empty one: rows without it lack identity and limits, no more.

    A header that knows no GPU may stand before it, from the time when the GPUs had not been read yet.
    """
    found: Row = {}
    for _, row in islice(read_rows(path, Damage()), _MOST_LINES_BEFORE_HEADER):
        if row.get("kind") in _PER_GPU or found.get("gpus"):
            break
        if row.get("kind") == "header":
            found = row
    return found


def _machine_events(path: Path, damage: Damage) -> Iterator[tuple[int, Event]]:
    """Yield the events of the GPU file in its own order with their line numbers, rows of different GPUs joined into one event."""
    group: list[Row] = []
    headers = line = 0
    for line, row in read_rows(path, damage):
        wrong = _wrong(row)
        if wrong:
            damage.note(path.name, wrong, line)
            continue
        headers += row["kind"] == "header"
        if group and not _same_instant(group, row):
            yield line - 1, _event(group)
            group = []
        group.append(row)
    if group:
        yield line, _event(group)
    if not headers:
        damage.note(path.name, "no header line, so the GPUs have no names and no limits")


def _wrong(row: Row) -> str:
    """Return what makes a line of the GPU file useless, or ""."""
    kind = row.get("kind")
    if kind not in _KINDS:
        return "unknown kind of line"
    if number(row.get("t")) is None:
        return "no time"
    return "no GPU index" if kind in _PER_GPU and not isinstance(row.get("gpu"), int) else ""


def _same_instant(group: list[Row], row: Row) -> bool:
    """Return whether `row` belongs to the GPUs just read: same kind, a GPU not seen yet."""
    kind = row["kind"]
    return kind in _PER_GPU and kind == group[0]["kind"] and all(other["gpu"] != row["gpu"] for other in group)


def _event(group: list[Row]) -> Event:
    return Event(max(float(row["t"]) for row in group), group[0]["kind"], group)


def _engine_events(name: str, path: Path, damage: Damage) -> Iterator[Event]:
    """Yield the pages of one engine; an event's time is when the answer was complete."""
    last = float("-inf")
    for line, row in read_rows(path, damage):
        t, dt = number(row.get("t")), number(row.get("dt", 0.0))
        if t is None or dt is None or dt < 0 or not (isinstance(row.get("text"), str) or "error" in row):
            damage.note(path.name, "no time, or neither page nor error", line)
        elif t + dt <= last:
            damage.note(path.name, "time goes backwards", line)
        else:
            last = t + dt
            yield Event(last, "engine", [row], name)


def _in_order(events: Iterator[tuple[int, Event]], damage: Damage) -> Iterator[Event]:
    """Sort events that are late by a few seconds; drop those that are later still, or go backwards within their kind."""
    waiting: list[tuple[float, int, Event]] = []
    newest: dict[str, float] = {}
    emitted = float("-inf")
    for line, event in events:
        repeated = event.kind not in _MAY_REPEAT and event.t <= newest.get(event.kind, float("-inf"))
        if repeated or event.t < emitted:
            damage.note(GPU_FILE, "time goes backwards", line)
            continue
        newest[event.kind] = event.t
        heapq.heappush(waiting, (event.t, line, event))
        horizon = max(newest.values()) - REORDER_SECONDS
        while waiting and waiting[0][0] <= horizon:
            emitted, _, ready = heapq.heappop(waiting)
            yield ready
    while waiting:
        yield heapq.heappop(waiting)[2]
