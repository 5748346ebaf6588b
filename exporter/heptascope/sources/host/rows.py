"""From a host row, as it was read now or stood in a recording, to samples: the pure part that live and replay share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from heptascope.model import Labels, Missing, Quality, Reading, Reason, Sample, labels
from heptascope.sources.host.cgroup import CGROUP_SIGNALS
from heptascope.sources.host.machine import RESOURCES
from heptascope.sources.host.process import PROCESS_SIGNALS
from heptascope.sources.host.roles import OTHER, rank_of, roles_by_company
from heptascope.sources.host.row import parse_missing

SOURCE = "host"
_NS, _US = 1e-9, 1e-6
_NOT_RECORDED = "the recording does not hold it"
_UNREADABLE = (Reason.NOT_SUPPORTED, "it could not be read on this machine")
_MACHINE_FIELDS = (("cpus", "cpus"), ("load1", "load1"), ("cpu_total_s", "cpu_seconds_total"))
_REMOTE = "heptascope_host_process_remote_cpu_ratio"
INTERPRETER_SIGNALS = tuple(
    f"heptascope_host_process_{what}_ratio" for what in ("interpreter_lock", "interpreter_lock_thread", "event_loop_blocked")
)
_NOT_SAMPLED = tuple(Missing(signal, Reason.NOT_CONFIGURED, "needs host.interpreter: true, and py-spy") for signal in INTERPRETER_SIGNALS)
_BUSIEST = ("heptascope_host_process_busiest_thread_cpu_seconds_total", "heptascope_host_process_busiest_thread_info")

# key in an entry of `cgroups`, signal, scale to base units
_CGROUP_FIELDS = (
    ("quota", "cpu_quota", 1.0),
    ("usage_us", "cpu_seconds_total", _US),
    ("throttled_us", "cpu_throttled_seconds_total", _US),
    ("periods", "cpu_periods_total", 1.0),
    ("throttled_periods", "cpu_throttled_periods_total", 1.0),
    ("memory", "memory_used_bytes", 1.0),
    ("memory_limit", "memory_limit_bytes", 1.0),
    ("page_cache", "page_cache_bytes", 1.0),
)
_PROCESS_FIELDS = (
    ("threads", "threads", 1.0),
    ("rss", "resident_bytes", 1.0),
    ("affinity_n", "allowed_cpus", 1.0),
    ("remote_cpu", "remote_cpu_ratio", 1.0),
    ("busiest_thread_ns", "busiest_thread_cpu_seconds_total", _NS),
)


class _Identity(NamedTuple):
    """What one process is called for as long as it lives."""

    engine: str
    role: str
    slot: int

    @property
    def labels(self) -> Labels:
        process = f"{self.role}-{self.slot}" if self.slot else self.role
        return labels(engine=self.engine, role=self.role, process=process)


class _Wait:
    """Run-queue wait of one process as a counter that never falls.

    The row holds the sum over living threads, which falls when one ends; read as a counter's reset that would look like
    hours of waiting. So only rises are counted.
    """

    def __init__(self) -> None:
        self._last: float | None = None
        self._total = 0.0

    def add(self, value: float) -> float:
        self._total += value if self._last is None else max(0.0, value - self._last)
        self._last = value
        return self._total


class HostRows:
    """Turns host rows into readings. Keeps the names of processes, so it must see the rows of one machine in order."""

    def __init__(self, engines: Sequence[str] = (), cpus: int | None = None, *, interpreter: bool = False) -> None:
        """Take what old recordings keep elsewhere: the engines' names (used if there is just one) and the number of processors.

        With `interpreter` another source samples the Python processes, and speaks for its signals itself.
        """
        self._elsewhere = () if interpreter else _NOT_SAMPLED
        self._engine = engines[0] if len(engines) == 1 else ""
        self._cpus = cpus
        self._names: dict[tuple[int, int], _Identity] = {}
        self._waits: dict[tuple[int, int], _Wait] = {}

    def read(self, row: Mapping[str, Any]) -> Reading:
        """Return the reading of one row. Raises KeyError, TypeError or ValueError for a row of another shape."""
        samples = self._machine(row)
        for entry in row.get("cgroups", ()):
            samples += _scaled(_CGROUP_FIELDS, "heptascope_host_cgroup_", entry, labels(engine=entry["engine"]))
        processes = row.get("procs", ())
        self._identify(processes)
        for process in processes:
            samples += self._process(process)
        reading = Reading(SOURCE, float(row["t"]), samples, missing=[*self._missing(row), *self._elsewhere], raw=dict(row))
        reading.quality.update({(_BUSIEST[0], sample.labels): Quality.APPROXIMATE for sample in samples if sample.name == _BUSIEST[0]})
        return reading

    def name(self, processes: Sequence[Mapping[str, Any]]) -> dict[tuple[int, int], Labels]:
        """Return the labels of processes (`pid`, `start`, `engine`, `role`, `comm`, `cmdline` of each) by pid and start."""
        self._identify(processes)
        return {key: identity.labels for key, identity in self._names.items()}

    def _machine(self, row: Mapping[str, Any]) -> list[Sample]:
        found: list[Sample] = []

        def add(signal: str, value: float | None, **pairs: str) -> None:
            if value is not None:
                found.append(Sample(f"heptascope_host_{signal}", labels(**pairs), float(value)))

        add("cpus", row.get("cpus", self._cpus))
        add("load1", row.get("load1"))
        total, idle = row.get("cpu_total_s"), row.get("cpu_idle_s")
        if total is not None and idle is not None:
            add("cpu_seconds_total", total - idle, mode="busy")
            add("cpu_seconds_total", idle, mode="idle")
        for resource in RESOURCES:
            waited = row.get(f"psi_{resource}_some_us")
            add("pressure_waiting_seconds_total", None if waited is None else waited * _US, resource=resource)
        return found

    def _identify(self, processes: Sequence[Mapping[str, Any]]) -> None:
        """Name the processes that are new, after forgetting those that are gone, so that a successor takes the name over."""
        keys = {_key(process): process for process in processes}
        for key in self._names.keys() - keys.keys():
            del self._names[key]
            self._waits.pop(key, None)
        guessed = {} if all("role" in process for process in processes) else roles_by_company(processes)
        for key in sorted(keys, key=lambda key: (rank_of(_title(keys[key])), key)):
            known = self._names.get(key)
            if known is not None and guessed:
                continue  # a guess stands; what is told may change, since processes get their titles after they start
            role = guessed.get(key[0]) or str(keys[key]["role"])
            engine = keys[key].get("engine", self._engine if role != OTHER else "")
            if known is None or (known.engine, known.role) != (engine, role):
                self._names.pop(key, None)
                self._names[key] = _Identity(engine, role, self._free_slot(engine, role))

    def _free_slot(self, engine: str, role: str) -> int:
        taken = {name.slot for name in self._names.values() if (name.engine, name.role) == (engine, role)}
        return next(slot for slot in range(len(taken) + 1) if slot not in taken)

    def _process(self, process: Mapping[str, Any]) -> list[Sample]:
        key = _key(process)
        pairs = self._names[key].labels
        info = dict(pairs) | {"pid": str(process["pid"]), "command": process["comm"]}
        found = [
            Sample("heptascope_host_process_info", labels(**info), 1.0),
            Sample("heptascope_host_process_cpu_seconds_total", pairs, float(process["user_s"] + process["sys_s"])),
        ]
        if process.get("wait_ns") is not None:
            waited = self._waits.setdefault(key, _Wait()).add(process["wait_ns"] * _NS)
            found.append(Sample("heptascope_host_process_run_queue_seconds_total", pairs, waited))
        if process.get("busiest_thread"):
            tid, thread = process["busiest_thread"]
            found.append(Sample("heptascope_host_process_busiest_thread_info", labels(**dict(pairs), thread=thread, tid=tid), 1.0))
        return found + _scaled(_PROCESS_FIELDS, "heptascope_host_process_", process, pairs)

    def _missing(self, row: Mapping[str, Any]) -> list[Missing]:
        """Return the reasons that the row itself gives, and one for each thing that rows of other tools lack."""
        known = {**row, "cpus": row.get("cpus", self._cpus)}
        absent = [Missing(f"heptascope_host_{signal}", *_UNREADABLE) for key, signal in _MACHINE_FIELDS if known.get(key) is None]
        told = [entry for entry in map(parse_missing, row.get("missing", ())) if entry is not None]
        if not any("remote_cpu" in process for process in row.get("procs", ())) and _REMOTE not in {entry.signal for entry in told}:
            absent.append(Missing(_REMOTE, Reason.NO_SOURCE, _NOT_RECORDED))
        if "missing" in row:
            return absent + told
        absent += [Missing(signal, Reason.NO_SOURCE, _NOT_RECORDED) for signal in CGROUP_SIGNALS if "cgroups" not in row]
        for resource in RESOURCES:
            if f"psi_{resource}_some_us" not in row:
                pairs = labels(resource=resource)
                absent.append(Missing("heptascope_host_pressure_waiting_seconds_total", Reason.NO_SOURCE, _NOT_RECORDED, pairs))
        if not row.get("procs"):
            return absent + [Missing(signal, Reason.NO_SOURCE, _NOT_RECORDED) for signal in PROCESS_SIGNALS]
        if not any("busiest_thread_ns" in process for process in row["procs"]):
            absent += [Missing(signal, Reason.NO_SOURCE, _NOT_RECORDED) for signal in _BUSIEST]
        return absent


def _scaled(fields: Sequence[tuple[str, str, float]], prefix: str, entry: Mapping[str, Any], pairs: Labels) -> list[Sample]:
    return [Sample(prefix + signal, pairs, entry[key] * scale) for key, signal, scale in fields if entry.get(key) is not None]


def _key(process: Mapping[str, Any]) -> tuple[int, int]:
    """Return what tells a process from a later one with the same pid, where the row says so."""
    return process["pid"], process.get("start", 0)


def _title(process: Mapping[str, Any]) -> str:
    command = process.get("cmdline") or [process["comm"]]
    return str(command[0])
