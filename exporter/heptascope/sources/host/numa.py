"""Where a process may run against where its GPU sits: NUMA nodes of CPUs and of the NVIDIA devices that it holds open."""

from __future__ import annotations

import os
import re
from collections.abc import Collection

from heptascope.sources.host.procfs import ProcFs

_NODES = "sys/devices/system/node"
_GPUS = "proc/driver/nvidia/gpus"
_DEVICE = re.compile(r"/dev/nvidia(\d+)")
_MINOR = re.compile(r"Device Minor:\s*(\d+)")


class Placement:
    """What does not change while the machine runs: CPUs of each node, node of each GPU."""

    def __init__(self, files: ProcFs) -> None:
        """Read through `files`, at first use."""
        self._files = files
        self._nodes: dict[int, set[int]] | None = None
        self._gpus: dict[int, int] = {}

    def nodes(self) -> dict[int, set[int]]:
        """Return the CPUs of each node."""
        if self._nodes is None:
            names = [name for name in self._files.entries(_NODES) if re.fullmatch(r"node\d+", name)]
            self._nodes = {int(name[4:]): parse_cpus(self._files.text(_NODES, name, "cpulist") or "") for name in names}
            self._gpus = self._gpu_nodes()
        return self._nodes

    def gpu_nodes(self, pid: int) -> set[int]:
        """Return the nodes of the GPUs that a process holds open; empty without one, without the right to see, or on one-node machines."""
        self.nodes()
        found: set[int] = set()
        for number in self._files.entries("proc", str(pid), "fd") if self._gpus else ():
            try:
                device = _DEVICE.fullmatch(os.readlink(self._files.path("proc", str(pid), "fd", number)))
            except OSError:
                continue
            if device is not None and int(device[1]) in self._gpus:
                found.add(self._gpus[int(device[1])])
        return found

    def _gpu_nodes(self) -> dict[int, int]:
        """Return the node of each GPU by the minor number of its device file; those whose node the machine does not tell are left out."""
        found: dict[int, int] = {}
        for bus in self._files.entries(_GPUS):
            minor = _MINOR.search(self._files.text(_GPUS, bus, "information") or "")
            node = (self._files.text("sys/bus/pci/devices", bus.lower(), "numa_node") or "").strip()
            if minor is not None and node.isdigit():
                found[int(minor[1])] = int(node)
        return found


def remote_share(allowed: Collection[int], nodes: dict[int, set[int]], near: Collection[int]) -> float | None:
    """Return the share of the `allowed` CPUs that lie on none of the nodes `near`; None if either is unknown."""
    home = set().union(*(nodes.get(node, set()) for node in near))
    return len(set(allowed) - home) / len(allowed) if allowed and home else None


def parse_cpus(text: str) -> set[int]:
    """Return the CPUs of a kernel list such as `0-3,8`, none if it is no such list."""
    found: set[int] = set()
    try:
        for piece in filter(None, text.strip().split(",")):
            first, _, last = piece.partition("-")
            found |= set(range(int(first), int(last or first) + 1))
    except ValueError:
        return set()
    return found
