"""The host source: the machine, the engines' control groups and processes, once a second."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from heptascope.model import Reading, Reason
from heptascope.sources.base import SourceError
from heptascope.sources.host.cgroup import CGROUP_SIGNALS, CgroupCollector
from heptascope.sources.host.machine import MachineCollector
from heptascope.sources.host.process import PROCESS_SIGNALS, ProcessCollector
from heptascope.sources.host.procfs import ProcFs
from heptascope.sources.host.row import Collected
from heptascope.sources.host.rows import SOURCE, HostRows
from heptascope.sources.host.tree import Engine

TIMEOUT_SECONDS = 5.0


class HostSource:
    """Reads /proc and /sys. Needs no rights; with fewer, less is visible, and the reading says what and why."""

    kind = "host"

    def __init__(
        self,
        engines: Callable[[], Sequence[tuple[str, int]]],
        *,
        root: str = "/",
        name: str = SOURCE,
        interval: float = 1.0,
        timeout: float = TIMEOUT_SECONDS,
        interpreter: bool = False,
    ) -> None:
        """Watch the processes of `engines` (name and local port of each, asked at every read) below `root`.

        `interpreter` says that an InterpreterSource runs beside this one.
        """
        self.name, self.interval, self.timeout = name, interval, timeout
        self._engines = engines
        files = ProcFs(root)
        self._machine, self._processes, self._cgroups = MachineCollector(files), ProcessCollector(files), CgroupCollector(files)
        self._rows = HostRows(interpreter=interpreter)

    def read(self, now: float) -> Reading:
        """Return one reading at `now` (Unix seconds). Raises SourceError if there is no /proc at all."""
        machine = self._machine.collect()
        if "cpu_total_s" not in machine.fields:
            raise SourceError(Reason.NOT_SUPPORTED, "no /proc/stat here: the host signals need Linux")
        processes = self._processes.collect(now, [Engine(*pair) for pair in self._engines()])
        leaders, hidden = self._processes.leaders(), self._processes.hidden()
        row: dict[str, Any] = {"kind": "host", "t": now, "missing": []}
        for part in (machine, processes, self._cgroups.collect(leaders, hidden), _nothing_to_watch(bool(leaders or hidden))):
            row |= part.fields
            row["missing"] += part.missing
        return self._rows.read(row)

    def close(self) -> None:
        """Close the files that are kept open."""
        self._processes.close()


def _nothing_to_watch(known: bool) -> Collected:
    collected = Collected()
    if not known:
        for signal in (*PROCESS_SIGNALS, *CGROUP_SIGNALS):
            collected.lacks(signal, Reason.NO_SOURCE, "no engine is known on this machine yet")
    return collected
