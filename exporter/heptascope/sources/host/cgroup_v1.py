"""Control groups of version 1: each controller has a tree of its own, times are nanoseconds, no limit is -1 or a huge number."""

from __future__ import annotations

from dataclasses import dataclass

from heptascope.sources.host.procfs import ProcFs

MOUNT = "sys/fs/cgroup"
_UNLIMITED_BYTES = 1 << 60
"""The kernel writes the largest multiple of a page below 2^63 for no limit; no machine has a thousandth of that."""
_NS_PER_US = 1000


@dataclass(frozen=True)
class Group:
    """One engine's group; None is what cannot be read or is not limited. Times in microseconds, as version 2 has them."""

    usage_us: int | None = None
    throttled_us: int | None = None
    periods: int | None = None
    throttled_periods: int | None = None
    quota: float | None = None
    memory: int | None = None
    memory_limit: float | None = None
    page_cache: int | None = None


def read_group(files: ProcFs, pid: int) -> Group | None:
    """Return the group of a process, None if neither its CPU nor its memory controller is in sight."""
    paths = controller_paths(files.text("proc", str(pid), "cgroup") or "")
    cpu, account, memory = (_folders(files, pid, name, paths) for name in ("cpu", "cpuacct", "memory"))
    if not cpu and not memory:
        return None
    quota, limiting = _tightest_quota(files, cpu)
    stat = _flat(files, limiting or (cpu[0] if cpu else ""), "cpu.stat")
    usage, throttled = _number(files, account, "cpuacct.usage"), stat.get("throttled_time")
    limits = [limit for limit in (_limit(files, folder) for folder in memory) if limit is not None]
    cached = _flat(files, memory[0] if memory else "", "memory.stat")
    return Group(
        usage_us=None if usage is None else usage // _NS_PER_US,
        throttled_us=None if throttled is None else throttled // _NS_PER_US,
        periods=stat.get("nr_periods"),
        throttled_periods=stat.get("nr_throttled"),
        quota=quota,
        memory=_number(files, memory, "memory.usage_in_bytes"),
        memory_limit=min(limits, default=None),
        page_cache=cached.get("total_cache", cached.get("cache")),
    )


def controller_paths(text: str) -> dict[str, str]:
    """Return the path of each controller's group from /proc/PID/cgroup."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        found |= dict.fromkeys(names.split(","), path) if names else {}
    return found


def _folders(files: ProcFs, pid: int, controller: str, paths: dict[str, str]) -> list[str]:
    """Return the folders of a process's group and its parents, innermost first.

    Where the path is not below our mount, the engine's own mount shows its group at the top.
    """
    path = paths.get(controller)
    if path is None:
        return []
    mounts = [name for name in files.entries(MOUNT) if controller in name.split(",")]
    parts = [part for part in path.split("/") if part]
    for mount in mounts if ".." not in parts else ():
        folders = ["/".join((MOUNT, mount, *parts[:depth])) for depth in range(len(parts), -1, -1)]
        if files.entries(folders[0]):
            return folders
    own = [f"proc/{pid}/root/{MOUNT}/{name}" for name in files.entries("proc", str(pid), "root", MOUNT) if controller in name.split(",")]
    return own[:1]


def _tightest_quota(files: ProcFs, folders: list[str]) -> tuple[float | None, str]:
    """Return the smallest CPU limit in cores among a group and its parents, and the folder that sets it."""
    found: list[tuple[float, str]] = []
    for folder in folders:
        quota, period = _number(files, [folder], "cpu.cfs_quota_us"), _number(files, [folder], "cpu.cfs_period_us")
        if quota is not None and period and quota > 0:
            found.append((quota / period, folder))
    return min(found, default=(None, ""), key=lambda limit: limit[0])


def _limit(files: ProcFs, folder: str) -> float | None:
    limit = _number(files, [folder], "memory.limit_in_bytes")
    return None if limit is None or limit >= _UNLIMITED_BYTES else float(limit)


def _number(files: ProcFs, folders: list[str], name: str) -> int | None:
    text = (files.text(folders[0], name) or "").strip() if folders else ""
    return int(text) if text.lstrip("-").isdigit() else None


def _flat(files: ProcFs, folder: str, name: str) -> dict[str, int]:
    pairs = (line.split() for line in (files.text(folder, name) or "").splitlines()) if folder else ()
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}
