"""Reading /proc and /sys: small files, missing ones answered with None; the root can be moved for fixtures and mounts."""

from __future__ import annotations

import os
from typing import NamedTuple

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_PIECE_BYTES = 1 << 16  # most files are shorter; a larger buffer would be a mapping of its own, made and thrown away for each file


class Stat(NamedTuple):
    """What heptascope uses of /proc/PID/stat (man proc_pid_stat); times in seconds, `start` in ticks since boot."""

    pid: int
    comm: str
    ppid: int
    user_s: float
    sys_s: float
    threads: int
    start: int
    rss: int


class ProcFs:
    """Access below one root: `/`, a host's root mounted into a container, or a test's fixture."""

    def __init__(self, root: str = "/") -> None:
        """Look for `proc` and `sys` below `root`."""
        self.root = root

    def path(self, *parts: str) -> str:
        """Join `parts` below the root; a leading slash in a part means nothing."""
        return os.path.join(self.root, *(part.lstrip("/") for part in parts))

    def text(self, *parts: str) -> str | None:
        """Return a file's text, or None if it is not there, not ours to read, or gone while it was read."""
        try:
            descriptor = os.open(self.path(*parts), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            return _read_all(descriptor).decode("utf-8", "replace")
        except OSError:
            return None
        finally:
            os.close(descriptor)

    def entries(self, *parts: str) -> list[str]:
        """Return the names in a folder, or none if it cannot be read."""
        try:
            return os.listdir(self.path(*parts))
        except OSError:
            return []

    def stat(self, pid: int) -> Stat | None:
        """Return /proc/PID/stat, or None if the process is gone."""
        text = self.text("proc", str(pid), "stat")
        return parse_stat(text) if text else None

    def stats(self) -> dict[int, Stat]:
        """Return the stat of every process in sight, by pid."""
        found = (self.stat(int(name)) for name in self.entries("proc") if name.isdigit())
        return {stat.pid: stat for stat in found if stat is not None}


def parse_stat(text: str) -> Stat | None:
    """Parse /proc/PID/stat; the command may hold spaces and brackets. None if the line is damaged."""
    head, _, tail = text.rpartition(")")
    pid, _, comm = head.partition("(")
    fields = tail.split()
    try:
        return Stat(
            pid=int(pid),
            comm=comm,
            ppid=int(fields[1]),
            user_s=int(fields[11]) / TICKS_PER_SECOND,
            sys_s=int(fields[12]) / TICKS_PER_SECOND,
            threads=int(fields[17]),
            start=int(fields[19]),
            rss=int(fields[21]) * PAGE_BYTES,
        )
    except (ValueError, IndexError):
        return None


def count_cpus(cpu_list: str) -> int | None:
    """Count the CPUs of a kernel list such as `0-3,8`; None if it is no such list."""
    total = 0
    try:
        for piece in cpu_list.strip().split(","):
            first, _, last = piece.partition("-")
            total += int(last or first) - int(first) + 1
    except ValueError:
        return None
    return total


def _read_all(descriptor: int) -> bytes:
    pieces = []
    while piece := os.read(descriptor, _PIECE_BYTES):
        pieces.append(piece)
    return b"".join(pieces)
