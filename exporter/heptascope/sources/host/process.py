"""The engines' processes: CPU, run-queue wait, threads, memory, allowed CPUs."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from heptascope.model import Reason
from heptascope.sources.host.discovery import Discovery, Found
from heptascope.sources.host.numa import Placement, parse_cpus, remote_share
from heptascope.sources.host.procfs import ProcFs, Stat
from heptascope.sources.host.roles import ENGINE_CORE, OTHER
from heptascope.sources.host.row import Collected
from heptascope.sources.host.threads import OpenFiles, ThreadReader, Times
from heptascope.sources.host.tree import Engine, Member, command_line

SCAN_SECONDS = 10.0
"""Time between two looks at all processes of the machine (0.6 ms for 80 of them); one that dies is noticed at once."""
PROCESS_SIGNALS = tuple(
    f"heptascope_host_process_{what}"
    for what in (
        "info",
        "cpu_seconds_total",
        "run_queue_seconds_total",
        "busiest_thread_cpu_seconds_total",
        "busiest_thread_info",
        "threads",
        "resident_bytes",
        "allowed_cpus",
    )
)
_BUSIEST = "heptascope_host_process_busiest_thread_info"
_SCHEDSTAT_SIGNALS = (
    "heptascope_host_process_run_queue_seconds_total",
    "heptascope_host_process_busiest_thread_cpu_seconds_total",
    _BUSIEST,
)
_REMOTE = "heptascope_host_process_remote_cpu_ratio"
_MOST_ARGUMENTS = 128
_MOST_ARGUMENT_CHARS = 512
_SECRET = re.compile(r"(?:^|[-_])(?:api_?key|key|token|secret|passw(?:or)?d|passphrase|credentials?|authorization)$", re.IGNORECASE)
_HIDDEN = "***"


class Process:
    """One process that is read at every turn."""

    def __init__(self, files: ProcFs, pid: int, open_files: OpenFiles, placement: Placement) -> None:
        """Open nothing yet; `settle` must follow."""
        self._files, self._pid, self._placement = files, pid, placement
        self._threads = ThreadReader(files, pid, open_files)
        self._busiest_ns = 0
        self.gpu_nodes: set[int] = set()
        self.remote: float | None = None

    @property
    def engine(self) -> str:
        """Return the engine that it belongs to."""
        return self._member.engine

    def place(self, near: Collection[int]) -> None:
        """Take the nodes of its GPUs: its own, or those of its engine (`near`) if it holds none itself."""
        self.remote = remote_share(self._cpus, self._placement.nodes(), self.gpu_nodes or near)

    def settle(self, member: Member) -> None:
        """Read what rarely changes: processes get their titles and their CPUs after they start."""
        self._member = member
        self._cpus = allowed_cpus(self._files, self._pid)
        self.gpu_nodes = self._placement.gpu_nodes(self._pid) if member.engine else set()
        words = command_line(self._files, self._pid)
        if not member.engine and member.role == OTHER:
            words = words[:1]  # a stranger's arguments are none of ours
        self._command = visible_arguments(words)

    def row(self, stat: Stat) -> dict[str, Any]:
        """Return the process as a recording keeps it; times in s (user, sys) and ns."""
        times = self._threads.read(stat.threads)
        row = {
            "pid": stat.pid,
            "comm": stat.comm,
            "user_s": stat.user_s,
            "sys_s": stat.sys_s,
            "threads": stat.threads,
            "rss": stat.rss,
            "ppid": stat.ppid,
            "start": stat.start,
            "engine": self._member.engine,
            "role": self._member.role,
            "cmdline": self._command,
        }
        if self._cpus:
            row["affinity_n"] = len(self._cpus)
        if self.remote is not None:
            row["remote_cpu"] = self.remote
        return row if times is None else row | self._schedstat(times)

    def close(self) -> None:
        """Close its files."""
        self._threads.close()

    def _schedstat(self, times: Times) -> dict[str, Any]:
        self._busiest_ns += times.busiest_ns
        row: dict[str, Any] = {"run_ns": times.run_ns, "wait_ns": times.wait_ns, "busiest_thread_ns": self._busiest_ns}
        return row if times.busiest is None else row | {"busiest_thread": list(times.busiest)}


class ProcessCollector:
    """Keeps track of the processes of all engines and reads each."""

    def __init__(self, files: ProcFs) -> None:
        """Read through `files`."""
        self._files = files
        self._discovery = Discovery(files)
        self._open_files = OpenFiles()
        self._placement = Placement(files)
        self._processes: dict[tuple[int, int], Process] = {}
        self._found = Found()
        self._asked: tuple[Engine, ...] | None = None
        self._next_scan = 0.0

    def collect(self, now: float, engines: Sequence[Engine]) -> Collected:
        """Return `procs`, and why the processes of an engine are not there."""
        if now >= self._next_scan or tuple(engines) != self._asked:
            self._scan(now, engines)
        rows = self._rows()
        if rows is None:
            self._scan(now, engines)
            rows = self._rows() or []
        collected = Collected({"procs": rows})
        for engine, (reason, detail) in self._found.hidden.items():
            for signal in PROCESS_SIGNALS:
                collected.lacks(signal, reason, detail, engine=engine)
        if not any("remote_cpu" in row for row in rows):
            collected.lacks(_REMOTE, Reason.NO_SOURCE, "no process of an engine holds an NVIDIA GPU whose NUMA node is known")
        if any("wait_ns" not in row for row in rows):
            for signal in _SCHEDSTAT_SIGNALS:
                collected.lacks(signal, Reason.NOT_SUPPORTED, "the kernel keeps no /proc/PID/task/TID/schedstat (CONFIG_SCHED_INFO)")
        elif any(row["engine"] for row in rows) and not any("busiest_thread" in row for row in rows):
            collected.lacks(_BUSIEST, Reason.IDLE, "no thread has run since the first look, or the second one is still to come")
        return collected

    def leaders(self) -> dict[str, int]:
        """Return, by engine, the process whose control group stands for the engine: its core, or else its first one."""
        found: dict[str, int] = {}
        for member in self._found.members:
            if member.engine and (member.role == ENGINE_CORE or member.engine not in found):
                found[member.engine] = member.pid
        return found

    def hidden(self) -> Mapping[str, tuple[Reason, str]]:
        """Return the engines whose processes cannot be seen, with reason and detail."""
        return self._found.hidden

    def close(self) -> None:
        """Close all files."""
        for process in self._processes.values():
            process.close()
        self._processes = {}

    def _scan(self, now: float, engines: Sequence[Engine]) -> None:
        self._next_scan, self._asked = now + SCAN_SECONDS, tuple(engines)
        self._found = self._discovery.scan(now, engines)
        kept: dict[tuple[int, int], Process] = {}
        for member in self._found.members:
            stat = self._files.stat(member.pid)
            if stat is None:
                continue
            key = (stat.pid, stat.start)
            process = self._processes.pop(key, None) or Process(self._files, stat.pid, self._open_files, self._placement)
            process.settle(member)
            kept[key] = process
        self.close()
        self._processes = kept
        near: dict[str, set[int]] = {}
        for process in kept.values():
            near.setdefault(process.engine, set()).update(process.gpu_nodes)
        for process in kept.values():
            process.place(near[process.engine])

    def _rows(self) -> list[dict[str, Any]] | None:
        """Return a row for each process; None if one has vanished (or another one took its pid)."""
        rows = []
        for (pid, start), process in self._processes.items():
            stat = self._files.stat(pid)
            if stat is None or stat.start != start or stat.rss == 0:
                return None
            rows.append(process.row(stat))
        return rows


def allowed_cpus(files: ProcFs, pid: int) -> set[int]:
    """Return the CPUs on which a process may run (/proc/PID/status), none if that cannot be read."""
    _, _, rest = (files.text("proc", str(pid), "status") or "").partition("\nCpus_allowed_list:")
    return parse_cpus(rest.partition("\n")[0])


def visible_arguments(words: Sequence[str]) -> list[str]:
    """Return a command line that may be written down: values of flags that sound like secrets are hidden, long ones are cut."""
    shown: list[str] = []
    hide_next = False
    for word in words[:_MOST_ARGUMENTS]:
        name, equals, _ = word.partition("=")
        secret = bool(_SECRET.search(name)) and (name.startswith("-") or bool(equals))
        if hide_next and not word.startswith("--"):
            shown.append(_HIDDEN)  # such a flag may take several values
            continue
        shown.append(f"{name}={_HIDDEN}" if secret and equals else word[:_MOST_ARGUMENT_CHARS])
        hide_next = secret and not equals
    return shown
