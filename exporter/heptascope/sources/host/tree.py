"""Which processes belong to which engine: by the listening port, by parentage, and where both are hidden by name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from heptascope.sources.host.procfs import ProcFs, Stat
from heptascope.sources.host.roles import API_SERVER, ENGINE_CORE, OTHER, role_by_title

_LISTEN = "0A"  # state LISTEN in /proc/net/tcp (include/net/tcp_states.h)
_VLLM_DEFAULT_PORT = "8000"


class Engine(NamedTuple):
    """An engine of this machine: our name for it and the port on which it listens."""

    name: str
    port: int


class Member(NamedTuple):
    """A process of an engine; `engine` is "" if it cannot be told which."""

    pid: int
    engine: str
    role: str


def listening_sockets(files: ProcFs, ports: Iterable[int]) -> dict[int, set[str]]:
    """Return the inodes of the sockets that listen on each of `ports`, from /proc/net/tcp and tcp6."""
    wanted = {f"{port:04X}": port for port in ports}
    found: dict[int, set[str]] = {}
    for table in ("tcp", "tcp6"):
        for line in (files.text("proc/net", table) or "").splitlines()[1:]:
            fields = line.split()
            if len(fields) > 9 and fields[3] == _LISTEN:
                port = wanted.get(fields[1].rpartition(":")[2])
                if port is not None:
                    found.setdefault(port, set()).add(fields[9])
    return found


def socket_holders(files: ProcFs, pids: Iterable[int], inodes: set[str]) -> dict[str, set[int]]:
    """Return, for each of `inodes`, the processes among `pids` that hold the socket; those whose files we may not see are left out."""
    targets = {f"socket:[{inode}]": inode for inode in inodes}
    holders: dict[str, set[int]] = {}
    for pid in pids:
        for number in files.entries("proc", str(pid), "fd"):
            try:
                inode = targets.get(os.readlink(files.path("proc", str(pid), "fd", number)))
            except OSError:
                continue
            if inode is not None:
                holders.setdefault(inode, set()).add(pid)
    return holders


def command_line(files: ProcFs, pid: int) -> list[str]:
    """Return the arguments of a process; empty for a kernel thread or one that is gone."""
    return [word for word in (files.text("proc", str(pid), "cmdline") or "").split("\0") if word]


def servers_by_name(files: ProcFs, stats: Mapping[int, Stat]) -> list[int]:
    """Return the parents of processes titled as engine cores: servers whose listening socket we may not see."""
    parents = sorted({stat.ppid for stat in stats.values() if role_by_title(stat.comm) == ENGINE_CORE})
    return [pid for pid in parents if pid in stats and any("vllm" in word for word in command_line(files, pid))]


def port_flag(words: Sequence[str]) -> str:
    """Return the port that a server's command line names, "" if it names none."""
    port = ""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == "--port":
            port = following
        elif word.startswith("--port="):
            port = word.partition("=")[2]
    return port


def engine_by_port_flag(words: Sequence[str], engines: Sequence[Engine]) -> str:
    """Return the engine whose port a server's command line names (its default if it names none), or ""."""
    port = port_flag(words) or _VLLM_DEFAULT_PORT
    return next((engine.name for engine in engines if str(engine.port) == port), "")


def topmost(pids: set[int], stats: Mapping[int, Stat]) -> list[int]:
    """Return those of `pids` that have no ancestor among them."""
    return sorted(pid for pid in pids if pids.isdisjoint(_ancestors(pid, stats)))


def members(root: int, engine: str, stats: Mapping[int, Stat]) -> list[Member]:
    """Return a server and all its descendants, each with its role.

    The server is the API server unless children are titled so: then it only launched them.
    """
    family = [root, *_descendants(root, stats)]
    titled = {pid: role_by_title(stats[pid].comm) for pid in family}
    if titled[root] is None:
        titled[root] = OTHER if API_SERVER in titled.values() else API_SERVER
    return [Member(pid, engine, titled[pid] or OTHER) for pid in family]


def _ancestors(pid: int, stats: Mapping[int, Stat]) -> Iterator[int]:
    seen = {pid}
    while pid in stats and stats[pid].ppid not in seen:
        pid = stats[pid].ppid
        seen.add(pid)
        yield pid


def _descendants(root: int, stats: Mapping[int, Stat]) -> list[int]:
    children: dict[int, list[int]] = {}
    for stat in stats.values():
        children.setdefault(stat.ppid, []).append(stat.pid)
    found: list[int] = []
    queue = [root]
    while queue:
        for child in sorted(children.get(queue.pop(0), ())):
            if child != root and child not in found:
                found.append(child)
                queue.append(child)
    return found
