"""Finding the engines' processes again and again, at a price that does not show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from heptascope.model import Reason
from heptascope.sources.host.procfs import ProcFs, Stat
from heptascope.sources.host.roles import API_SERVER, OTHER, role_by_title
from heptascope.sources.host.tree import (
    Engine,
    Member,
    command_line,
    engine_by_port_flag,
    listening_sockets,
    members,
    port_flag,
    servers_by_name,
    socket_holders,
    topmost,
)

LOOKUP_SECONDS = 30.0
"""Time between two looks for the servers of engines that have none yet: /proc/net/tcp alone can cost 7 ms."""
MOST_PROCESSES = 128
MOST_NEIGHBOURS = 3
NEIGHBOUR_CORES = 0.25
"""A process outside the engines is reported while it uses at least this many cores between two scans."""


@dataclass(slots=True)
class Found:
    """The processes to read until the next scan, and for each engine without any: reason and detail."""

    members: list[Member] = field(default_factory=list)
    hidden: dict[str, tuple[Reason, str]] = field(default_factory=dict)


class Discovery:
    """Maps engines to their processes. Remembers each server until it dies."""

    def __init__(self, files: ProcFs) -> None:
        """Look through `files`."""
        self._files = files
        self._servers: dict[str, list[Stat]] = {}  # by engine; a Stat tells a process from a later one with the same pid
        self._unattributed: list[Stat] = []
        self._others: list[Stat] = []  # servers at ports of their own, which are none of the engines
        self._listening: set[int] = set()
        self._next_lookup = 0.0
        self._asked: tuple[Engine, ...] = ()
        self._cpu: dict[tuple[int, int], float] = {}
        self._scanned_at = 0.0

    def scan(self, now: float, engines: Sequence[Engine]) -> Found:
        """Look at all processes at `now` (seconds of any clock) and return those of `engines` and their busy neighbours."""
        stats = {pid: stat for pid, stat in self._files.stats().items() if stat.rss > 0}
        self._drop_dead(stats, {engine.name for engine in engines})
        lost = [engine for engine in engines if engine.name not in self._servers]
        if (lost or not engines) and (now >= self._next_lookup or tuple(engines) != self._asked):
            self._next_lookup, self._asked = now + LOOKUP_SECONDS, tuple(engines)
            self._look_up(lost, stats)
        found = Found()
        for name, servers in [*self._servers.items(), ("", self._unattributed), ("", self._others)]:
            for server in servers:
                found.members += members(server.pid, name, stats)
        found.members = found.members[:MOST_PROCESSES]
        found.members += self._neighbours(now, stats, {member.pid for member in found.members})
        found.hidden = {engine.name: self._why_hidden(engine) for engine in engines if engine.name not in self._servers}
        return found

    def _drop_dead(self, stats: Mapping[int, Stat], names: set[str]) -> None:
        def alive(server: Stat) -> bool:
            return server.pid in stats and stats[server.pid].start == server.start

        kept = {name: [s for s in servers if alive(s)] for name, servers in self._servers.items() if name in names}
        died = len(kept) < len(self._servers) or any(not servers for servers in kept.values())
        self._servers = {name: servers for name, servers in kept.items() if servers}
        self._unattributed, self._others = (
            [server for server in servers if alive(server)] for servers in (self._unattributed, self._others)
        )
        if died:
            self._next_lookup = 0.0

    def _look_up(self, lost: Sequence[Engine], stats: Mapping[int, Stat]) -> None:
        sockets = listening_sockets(self._files, [engine.port for engine in lost]) if lost else {}
        self._listening = set(sockets)
        holders = socket_holders(self._files, stats, set().union(*sockets.values())) if sockets else {}
        for engine in lost:
            pids = set().union(*(holders.get(inode, set()) for inode in sockets.get(engine.port, ())))
            # a forked engine core holds its parent's listening socket too
            servers = {pid for pid in pids if role_by_title(stats[pid].comm) in (None, API_SERVER)}
            if servers:
                self._servers[engine.name] = [stats[pid] for pid in topmost(servers, stats)]
        self._look_up_by_name([engine for engine in lost if engine.name not in self._servers], stats)

    def _look_up_by_name(self, lost: Sequence[Engine], stats: Mapping[int, Stat]) -> None:
        known = {server.pid for servers in self._servers.values() for server in servers}
        nameless, self._others = [], []
        for pid in (pid for pid in servers_by_name(self._files, stats) if pid not in known):
            words = command_line(self._files, pid)
            name = engine_by_port_flag(words, lost)
            if name:
                self._servers.setdefault(name, []).append(stats[pid])
            elif self._listens_elsewhere(words):
                self._others.append(stats[pid])
            else:
                nameless.append(stats[pid])
        lost = [engine for engine in lost if engine.name not in self._servers]
        if len(lost) == 1 and len(nameless) == 1:
            self._servers[lost[0].name], nameless = nameless, []
        self._unattributed = nameless

    def _listens_elsewhere(self, words: Sequence[str]) -> bool:
        """Return whether a server names a port on which somebody listens here: then it is not behind a mapped one, but another engine."""
        port = port_flag(words)
        return port.isdigit() and bool(listening_sockets(self._files, [int(port)]))

    def _neighbours(self, now: float, stats: Mapping[int, Stat], known: set[int]) -> list[Member]:
        before, elapsed = self._cpu, now - self._scanned_at
        self._cpu = {(stat.pid, stat.start): stat.user_s + stat.sys_s for stat in stats.values()}
        self._scanned_at = now
        used = [((cpu - before[key]) / elapsed, key[0]) for key, cpu in self._cpu.items() if key in before and elapsed > 0]
        busy = sorted((item for item in used if item[0] >= NEIGHBOUR_CORES and item[1] not in known), reverse=True)
        return [Member(pid, "", OTHER) for _, pid in busy[:MOST_NEIGHBOURS]]

    def _why_hidden(self, engine: Engine) -> tuple[Reason, str]:
        if self._unattributed:
            return Reason.AMBIGUOUS, "engine processes are in sight, but not which of them listens on which port"
        if engine.port in self._listening:
            return Reason.NO_PERMISSION, (
                "the engine's processes are not in sight: set shareProcessNamespace: true on the pod, or run heptascope where it sees them"
            )
        return Reason.SOURCE_DOWN, f"nothing on this machine listens on port {engine.port}"
