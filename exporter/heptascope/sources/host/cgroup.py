"""The engine's control group: CPU limit, throttling, memory. Version 2 here, version 1 in cgroup_v1.py.

It is the engine's group that counts, not the one of this process: a sidecar has its own. Where the group lies outside what
this process has mounted, the mount of the engine itself is used (/proc/PID/root), which needs the rights to trace it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

from heptascope.model import Reason
from heptascope.sources.host import cgroup_v1
from heptascope.sources.host.procfs import ProcFs
from heptascope.sources.host.row import Collected

MOUNT = "sys/fs/cgroup"
CGROUP_SIGNALS = tuple(
    f"heptascope_host_cgroup_{what}"
    for what in (
        "cpu_quota",
        "cpu_seconds_total",
        "cpu_throttled_seconds_total",
        "cpu_periods_total",
        "cpu_throttled_periods_total",
        "memory_used_bytes",
        "memory_limit_bytes",
        "page_cache_bytes",
    )
)
_CPU_STAT = {"usage_usec": "usage_us", "throttled_usec": "throttled_us", "nr_periods": "periods", "nr_throttled": "throttled_periods"}
_LIMITS = {"quota": "cpu_quota", "memory_limit": "memory_limit_bytes"}
_OUT_OF_SIGHT = (
    "the engine's control group is not in sight: run heptascope as the engine's user with shareProcessNamespace: true, "
    "or mount the host's /sys/fs/cgroup"
)


class Limit(NamedTuple):
    """The tightest limit on a group or one of its parents, and the folder that sets it."""

    value: float
    folder: str


class CgroupCollector:
    """Reads the control group of one process for each engine."""

    def __init__(self, files: ProcFs) -> None:
        """Read through `files`."""
        self._files = files

    def collect(self, leaders: Mapping[str, int], hidden: Mapping[str, tuple[Reason, str]]) -> Collected:
        """Return `cgroups`, one entry an engine; `leaders` gives each engine's process, `hidden` the engines without one."""
        collected = Collected({"cgroups": []})
        for engine, (reason, detail) in hidden.items():
            _lack_all(collected, engine, reason, detail)
        for engine, pid in leaders.items():
            entry = self._v1_entry(engine, pid) if self._is_v1() else self._v2_entry(engine, pid)
            if entry is None:
                _lack_all(collected, engine, Reason.NO_PERMISSION, _OUT_OF_SIGHT)
                continue
            collected.fields["cgroups"].append(entry)
            for key in _LIMITS.keys() - entry.keys():
                detail = "the engine's control group has no limit"
                collected.lacks(f"heptascope_host_cgroup_{_LIMITS[key]}", Reason.NOT_CONFIGURED, detail, engine=engine)
        return collected

    def _is_v1(self) -> bool:
        return self._files.text(MOUNT, "cgroup.controllers") is None and bool(self._files.entries(MOUNT))

    def _folders(self, pid: int) -> list[str]:
        """Return the folders of a process's group and its parents, innermost first; empty if they cannot be read."""
        lines = (self._files.text("proc", str(pid), "cgroup") or "").splitlines()
        path = next((line[3:] for line in lines if line.startswith("0::")), None)
        if path is None:
            return []
        if ".." not in path.split("/"):
            parts = [part for part in path.split("/") if part]
            folders = ["/".join((MOUNT, *parts[:depth])) for depth in range(len(parts), -1, -1)]
            if self._files.text(folders[0], "cpu.stat") is not None:
                return folders
        own = f"proc/{pid}/root/{MOUNT}"
        # a mount without cpu.max shows the machine's root group, not the process's own
        return [own] if self._files.text(own, "cpu.max") is not None else []

    def _v1_entry(self, engine: str, pid: int) -> dict[str, Any] | None:
        group = cgroup_v1.read_group(self._files, pid)
        known = {key: value for key, value in asdict(group).items() if value is not None} if group else {}
        return {"engine": engine} | known if known else None

    def _v2_entry(self, engine: str, pid: int) -> dict[str, Any] | None:
        folders = self._folders(pid)
        if not folders:
            return None
        quota, memory = self._tightest(folders, "cpu.max"), self._tightest(folders, "memory.max")
        stats = [parse_flat(self._files.text(folder, "cpu.stat")) for folder in ([quota.folder] if quota else folders)]
        stat = next((stat for stat in stats if "nr_periods" in stat), stats[0])
        entry: dict[str, Any] = {"engine": engine} | {key: stat[name] for name, key in _CPU_STAT.items() if name in stat}
        limited = memory.folder if memory else folders[0]
        used = self._files.text(limited, "memory.current")
        if used is not None and used.strip().isdigit():
            entry["memory"] = int(used)
        cached = parse_flat(self._files.text(limited, "memory.stat"))
        if "file" in cached:
            entry["page_cache"] = cached["file"]
        return entry | {key: limit.value for key, limit in (("quota", quota), ("memory_limit", memory)) if limit is not None}

    def _tightest(self, folders: list[str], name: str) -> Limit | None:
        limits = [(parse_limit(self._files.text(folder, name)), folder) for folder in folders]
        return min((Limit(value, folder) for value, folder in limits if value is not None), default=None, key=lambda limit: limit.value)


def parse_limit(text: str | None) -> float | None:
    """Return the limit in `cpu.max` (cores: quota over period) or `memory.max` (bytes); None for `max` and for no file."""
    words = (text or "").split()
    try:
        return int(words[0]) / (int(words[1]) if len(words) > 1 else 1)
    except (ValueError, IndexError, ZeroDivisionError):
        return None


def parse_flat(text: str | None) -> dict[str, int]:
    """Parse a flat keyed file such as `cpu.stat`."""
    pairs = (line.split() for line in (text or "").splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _lack_all(collected: Collected, engine: str, reason: Reason, detail: str) -> None:
    for signal in CGROUP_SIGNALS:
        collected.lacks(signal, reason, detail, engine=engine)
