"""Host rows and heptascope's own rows of the signal table."""

from __future__ import annotations

from heptascope.model import Layer
from heptascope.signals.schema_row import Fold, Kind, Signal

_SCHED, _APP = Layer.SCHEDULING, Layer.APPLICATION
_PROCESS = ("engine", "role", "process")


def _h(name: str, kind: Kind, unit: str, labels: tuple[str, ...], help: str) -> Signal:
    return Signal(f"heptascope_host_{name}", kind, unit, _SCHED, labels, ("host",), help, Fold.LAST)


def _own(name: str, kind: Kind, unit: str, labels: tuple[str, ...], help: str) -> Signal:
    return Signal(f"heptascope_{name}", kind, unit, None, labels, ("self",), help, Fold.LAST)


_G, _C, _I = Kind.GAUGE, Kind.COUNTER, Kind.INFO
ROWS: list[Signal] = [
    _h("cpus", _G, "", (), "Processors of this machine."),
    _h("load1", _G, "", (), "Load average over one minute (/proc/loadavg)."),
    _h("cpu_seconds_total", _C, "seconds", ("mode",), "CPU time of the whole machine, busy and idle (/proc/stat)."),
    _h("pressure_waiting_seconds_total", _C, "seconds", ("resource",), "Time in which some task waited for the resource (/proc/pressure)."),
    _h("cgroup_cpu_quota", _G, "", ("engine",), "CPU limit of the engine's control group, in cores; absent without a limit."),
    _h("cgroup_cpu_seconds_total", _C, "seconds", ("engine",), "CPU time of the engine's control group."),
    _h("cgroup_cpu_throttled_seconds_total", _C, "seconds", ("engine",), "Time for which the engine's group was stopped at its CPU limit."),
    _h("cgroup_cpu_periods_total", _C, "", ("engine",), "Enforcement periods of the CPU limit."),
    _h("cgroup_cpu_throttled_periods_total", _C, "", ("engine",), "Enforcement periods in which the CPU limit stopped the engine's group."),
    _h("cgroup_memory_used_bytes", _G, "bytes", ("engine",), "Memory of the engine's control group, page cache included."),
    _h("cgroup_memory_limit_bytes", _G, "bytes", ("engine",), "Memory limit of the engine's control group; absent without a limit."),
    _h("cgroup_page_cache_bytes", _G, "bytes", ("engine",), "Page cache in that memory, which the kernel takes back under pressure."),
    _h(
        "process_info",
        _I,
        "",
        (*_PROCESS, "pid", "command"),
        "A process of an engine (role: api_server, engine_core, worker) or beside it (role: other), value 1.",
    ),
    _h("process_cpu_seconds_total", _C, "seconds", _PROCESS, "CPU time of the process, all threads."),
    _h(
        "process_run_queue_seconds_total",
        _C,
        "seconds",
        _PROCESS,
        "Time for which threads of the process were runnable and waited for a CPU (schedstat).",
    ),
    _h("process_busiest_thread_cpu_seconds_total", _C, "seconds", _PROCESS, "CPU time of the thread that ran most, summed per interval."),
    _h(
        "process_busiest_thread_info",
        _I,
        "",
        (*_PROCESS, "thread", "tid"),
        "The thread that ran most over the last ten reads: its name and its number, value 1.",
    ),
    _h("process_threads", _G, "", _PROCESS, "Threads of the process."),
    _h("process_resident_bytes", _G, "bytes", _PROCESS, "Resident memory of the process."),
    _h("process_allowed_cpus", _G, "", _PROCESS, "CPUs on which the process may run (affinity)."),
    _h(
        "process_remote_cpu_ratio",
        _G,
        "ratio",
        _PROCESS,
        "Share of the CPUs that the process may use which lie on another NUMA node than its GPU.",
    ),
    _h(
        "process_interpreter_lock_ratio",
        _G,
        "ratio",
        _PROCESS,
        "Share of samples in which a thread of the process owned the Python interpreter lock.",
    ),
    _h(
        "process_interpreter_lock_thread_ratio",
        _G,
        "ratio",
        (*_PROCESS, "thread"),
        "Share of samples in which this thread owned the lock, of the three threads that did most.",
    ),
    _h("process_event_loop_blocked_ratio", _G, "ratio", _PROCESS, "Share of samples in which the event loop of the process was busy."),
    # the pod, as its environment tells; the labels are not those that Prometheus gives a target
    Signal(
        "heptascope_pod_info",
        _I,
        "",
        None,
        ("pod_name", "pod_namespace", "node_name"),
        ("pod",),
        "Pod, namespace and node by the downward API, value 1.",
        Fold.LAST,
    ),
    Signal(
        "heptascope_pod_group_info",
        _I,
        "",
        None,
        ("manager", "group", "role", "worker_index", "group_size"),
        ("pod",),
        "Place of this pod among those that serve one model together (LeaderWorkerSet, Ray, JobSet, Job, torchrun, StatefulSet), value 1.",
        Fold.LAST,
    ),
    Signal(
        "heptascope_kubelet_device_info",
        _I,
        "",
        None,
        ("uuid", "pod_namespace", "pod_name", "container_name"),
        ("kubelet",),
        "Container that the kubelet gave a GPU or a MIG instance (uuid) to, value 1; where heptascope speaks for a whole node.",
        Fold.LAST,
    ),
    # heptascope itself
    _own("build_info", _I, "", ("version", "python"), "Version of heptascope, value 1."),
    _own(
        "source_info",
        _I,
        "",
        ("source", "kind", "quality"),
        "A source, its kind, and whether its window ratios are exact or approximate, value 1.",
    ),
    _own("source_up", _G, "", ("source",), "1 if the last read of the source succeeded."),
    _own("source_age_seconds", _G, "seconds", ("source",), "Age of the last good reading of the source, right to one second."),
    _own("source_duration_seconds", _G, "seconds", ("source",), "Time that the last read of the source took."),
    _own("source_failures_total", _C, "", ("source",), "Reads of the source that failed."),
    _own(
        "signal_unavailable",
        _G,
        "",
        ("signal", "reason"),
        "1 for a signal that has no value on at least one engine or GPU, with the reason.",
    ),
    _own("series_dropped_total", _C, "", ("source",), "Values refused because they were impossible or not in the signal table."),
    _own("pass_duration_seconds", _G, "seconds", ("stage",), "Time that one pass of a stage took (ingest, derive, rules, render)."),
    _own("clock_timestamp_seconds", _G, "seconds", (), "Unix time on this machine's clock when the page was made, to tell clock skew."),
    _own("window_bytes", _G, "bytes", (), "Memory of the in-process history."),
    _own("process_cpu_seconds_total", _C, "seconds", (), "CPU time used by heptascope."),
    _own("process_resident_bytes", _G, "bytes", (), "Resident memory of heptascope."),
    # the verdict
    _own("finding", _G, "", ("rule", "layer", "kind", "severity", "engine", "rank", "gpu"), "1 while a rule of the catalogue fires."),
    _own(
        "finding_root",
        _G,
        "",
        ("rule", "layer", "severity", "engine", "rank", "gpu"),
        "1 for a firing fault that no other fault explains: what to mend.",
    ),
    _own("finding_unknown", _G, "", ("rule", "layer", "kind", "engine", "rank", "gpu"), "1 while a rule cannot be judged."),
    _own("limiter", _G, "", ("layer", "rule", "engine"), "1 for the rule that says what bounds the engine now."),
    _own("layer_state", _G, "", ("layer", "state", "engine"), "1 for the state that a layer is in, 0 for the others."),
    _own("verdict", _G, "", ("state", "engine"), "1 for the state that the engine is in, 0 for the others."),
]
