"""Samples the engines' Python processes with py-spy: who owns the interpreter lock, and whether the event loop is busy.

Off by default. One process is looked at in a read, in turn, without stopping it; a look costs about 14 ms of CPU (py-spy 0.4, as measured
beside vLLM 0.32), so shares need minutes to mean much.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from heptascope.model import Missing, Quality, Reading, Reason, Sample, labels
from heptascope.sources.base import SourceError
from heptascope.sources.host.discovery import Discovery
from heptascope.sources.host.procfs import ProcFs
from heptascope.sources.host.roles import API_SERVER, ENGINE_CORE, WORKER
from heptascope.sources.host.rows import INTERPRETER_SIGNALS, HostRows
from heptascope.sources.host.tree import Engine, Member, command_line

NAME = "interpreter"
DUMP_SECONDS = 3.0
"""A look that takes longer is given up; the slowest of 400 beside a busy vLLM took 0.1 s."""
SCAN_SECONDS = 10.0
MOST_SAMPLES = 120
FEWEST_SAMPLES = 10
"""Shares of fewer looks are not shown: one of ten is the coarsest that still tells 10 % from nothing (own choice)."""
MOST_MISSES = 20
MOST_THREADS = 3
_SAMPLED = (API_SERVER, ENGINE_CORE, WORKER)
_LOCK, _LOCK_THREAD, _LOOP = INTERPRETER_SIGNALS
_LOOP_FRAMES = frozenset({"run_forever", "run_until_complete"})
_IDLE_FRAMES = _LOOP_FRAMES | {"run", "select", "poll", "_run_once", "wrapper"}
_LOOP_FILES = ("asyncio", "uvloop", "selectors")
_DENIED = ("Permission Denied", "Operation not permitted", "EPERM", "ptrace")

Dump = Callable[[int], str]
"""Returns py-spy's JSON dump of a process. Raises SourceError."""


class Look(NamedTuple):
    """What one dump shows: the thread that owns the lock ("": none), and whether the event loop is busy (None: there is no loop)."""

    owner: str
    loop_busy: bool | None


def read_dump(text: str) -> Look:
    """Return what a dump shows. Raises ValueError, KeyError or TypeError for something else than a dump."""
    owner, busy = "", None
    for thread in json.loads(text):
        if thread["owns_gil"]:
            owner = str(thread["thread_name"] or "unnamed")
        frames = [(str(frame["name"]).rpartition(".")[2], str(frame["filename"])) for frame in thread["frames"]]
        if any(name in _LOOP_FRAMES or (name == "run" and _of_loop(file)) for name, file in frames):
            name, file = frames[0]
            busy = bool(busy) or not (name in _IDLE_FRAMES and _of_loop(file))
    return Look(owner, busy)


def _of_loop(file: str) -> bool:
    return any(part in file for part in _LOOP_FILES)


def py_spy(pid: int) -> str:
    """Return a dump of a process that goes on running. Raises SourceError without py-spy, without the right, or if it takes too long."""
    program = shutil.which("py-spy", path=str(Path(sys.executable).parent)) or shutil.which("py-spy")
    if program is None:
        raise SourceError(Reason.NO_SOURCE, "py-spy is not installed; pip install 'heptascope[interpreter]'")
    command = [program, "dump", "--json", "--nonblocking", "--pid", str(pid)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DUMP_SECONDS, check=False)  # noqa: S603  # our own program
    except subprocess.TimeoutExpired:
        raise SourceError(Reason.SOURCE_DOWN, f"py-spy took longer than {DUMP_SECONDS:g} s; it is tried again") from None
    if done.returncode == 0:
        return done.stdout
    said = next((line for line in done.stderr.splitlines() if line.strip()), "no word")
    if any(word in done.stderr for word in _DENIED):
        text = f"py-spy may not look into the engine ({said.strip()}); run as its user and give CAP_SYS_PTRACE"
        raise SourceError(Reason.NO_PERMISSION, text)
    raise SourceError(Reason.SOURCE_DOWN, f"py-spy could not read process {pid}: {said.strip()}")


class InterpreterSource:
    """Looks at one Python process of an engine in each read."""

    kind = "host"

    def __init__(
        self,
        engines: Callable[[], Sequence[tuple[str, int]]],
        *,
        root: str = "/",
        interval: float = 1.0,
        dump: Dump = py_spy,
    ) -> None:
        """Watch the processes of `engines` (name and local port of each); `interval` in seconds limits how often one is looked at."""
        self.name, self.interval, self.timeout = NAME, interval, DUMP_SECONDS + 2.0
        self._engines, self._dump = engines, dump
        self._files = ProcFs(root)
        self._discovery = Discovery(self._files)
        self._names = HostRows()
        self._next_scan = 0.0
        self._asked: tuple[tuple[str, int], ...] = ()
        self._processes: list[dict[str, Any]] = []
        self._looks: dict[tuple[int, int], deque[Look]] = {}
        self._turn = self._missed = 0

    def read(self, now: float) -> Reading:
        """Look at the next process and return the shares of all. Raises SourceError if none can be looked at."""
        asked = tuple(self._engines())
        if now >= self._next_scan or asked != self._asked:
            self._scan(now, asked)
        if not self._processes:
            raise SourceError(Reason.NO_SOURCE, "no Python process of an engine is in sight")
        self._turn += 1
        self._look(self._processes[self._turn % len(self._processes)])
        return self._reading(now)

    def close(self) -> None:
        """Nothing is held open."""

    def _scan(self, now: float, engines: Sequence[tuple[str, int]]) -> None:
        self._next_scan, self._asked = now + SCAN_SECONDS, tuple(engines)
        found = self._discovery.scan(now, [Engine(*pair) for pair in engines])
        rows = [self._row(member) for member in found.members if member.engine and member.role in _SAMPLED]
        self._processes = [row for row in rows if row]
        known = {(row["pid"], row["start"]) for row in self._processes}
        self._looks = {key: looks for key, looks in self._looks.items() if key in known}

    def _row(self, member: Member) -> dict[str, Any]:
        stat = self._files.stat(member.pid)
        if stat is None:
            return {}
        told = {"engine": member.engine, "role": member.role, "comm": stat.comm, "cmdline": command_line(self._files, member.pid)[:1]}
        return {"pid": stat.pid, "start": stat.start, **told}

    def _look(self, process: Mapping[str, Any]) -> None:
        """Look at a process; it runs on meanwhile, so a look may miss. Only many misses in a row are a failure."""
        try:
            look = read_dump(self._dump(process["pid"]))
        except (ValueError, LookupError, TypeError):
            self._missed += 1
        except SourceError as error:
            self._missed += 1
            if error.reason is not Reason.SOURCE_DOWN or self._missed >= MOST_MISSES:
                self._next_scan = 0.0
                raise
        else:
            self._missed = 0
            self._looks.setdefault((process["pid"], process["start"]), deque(maxlen=MOST_SAMPLES)).append(look)

    def _reading(self, now: float) -> Reading:
        reading = Reading(NAME, now)
        names = self._names.name(self._processes)
        for key, looks in self._looks.items():
            if len(looks) >= FEWEST_SAMPLES and key in names:
                reading.samples.extend(_shares(dict(names[key]), list(looks)))
        given = {sample.name for sample in reading.samples}
        reading.missing.extend(Missing(s, Reason.IDLE, "too few looks yet") for s in INTERPRETER_SIGNALS if s not in given)
        reading.quality.update({(sample.name, sample.labels): Quality.APPROXIMATE for sample in reading.samples})
        return reading


def _shares(pairs: dict[str, str], looks: Sequence[Look]) -> list[Sample]:
    owners: dict[str, int] = {}
    for look in looks:
        owners[look.owner] = owners.get(look.owner, 0) + 1
    free = owners.pop("", 0)
    found = [Sample(_LOCK, labels(**pairs), 1 - free / len(looks))]
    most = sorted(owners.items(), key=lambda item: (-item[1], item[0]))[:MOST_THREADS]
    found += [Sample(_LOCK_THREAD, labels(**pairs, thread=thread), count / len(looks)) for thread, count in most]
    loops = [look.loop_busy for look in looks if look.loop_busy is not None]
    if loops:
        found.append(Sample(_LOOP, labels(**pairs), sum(loops) / len(loops)))
    return found
