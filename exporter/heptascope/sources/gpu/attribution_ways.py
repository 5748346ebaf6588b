"""The ways to tell which GPUs are the pod's own, each of which answers or says in words why it cannot."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from heptascope.sources.gpu.attribution import NODE, POD, Owned, Way

_INITIAL_PID_NAMESPACE = "pid:[4026531836]"
"""The kernel's number of the first pid namespace (PROC_PID_INIT_INO): only there are NVML's process ids ours too."""
_VARIABLES = ("NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
_PREFIXES = ("GPU-", "MIG-")


def explicit(devices: Sequence[str], environ: Mapping[str, str] = os.environ) -> Way:
    """Return the way of an explicit list: `gpu.devices`, which the sources keep to, or the UUIDs that this container was given."""

    def ask() -> Owned | str:
        if devices:
            return Owned(None, POD, "gpu.devices")
        mine = device_ids(environ)
        return Owned(mine, POD, "NVIDIA_VISIBLE_DEVICES of this container") if mine else "no GPUs are configured"

    return ask


def stated(scope: str) -> Way:
    """Return the way of `gpu.scope`: with a shared claim (DRA) the visible GPUs are the pod's, and nothing can show that from inside."""
    return lambda: Owned(None, POD if scope == "pod" else NODE, f"gpu.scope is {scope}") if scope != "auto" else "gpu.scope is auto"


def process_environment(pids: Callable[[], Collection[int]], proc: Path = Path("/proc")) -> Way:
    """Return the way of the engines' environment, readable where the pod shares its process ids and the user is the same."""

    def ask() -> Owned | str:
        found: set[str] = set()
        reasons = []
        for pid in pids():
            try:
                text = (proc / str(pid) / "environ").read_bytes().decode("utf-8", "replace")
            except OSError as exc:
                reasons.append(f"the environment of process {pid} cannot be read ({exc.strerror})")
                continue
            found |= device_ids(dict(part.split("=", 1) for part in text.split("\0") if "=" in part))
        if found:
            return Owned(frozenset(found), POD, "the engine's environment")
        return reasons[0] if reasons else "no engine process here names its GPUs in its environment"

    return ask


def listed_processes(
    pids: Callable[[], Collection[int]], users: Callable[[], Mapping[str, Collection[int]]], proc: Path = Path("/proc")
) -> Way:
    """Return the way of process ids: `users` gives the ids that NVML lists on each GPU, by uuid."""

    def ask() -> Owned | str:
        try:
            namespace = os.readlink(proc / "self" / "ns" / "pid")
        except OSError:
            namespace = ""
        if namespace != _INITIAL_PID_NAMESPACE:
            return "process ids are not the host's (hostPID), so that those of NVML cannot be matched"
        mine = set(pids())
        found = frozenset(uuid for uuid, listed in users().items() if mine & set(listed))
        return Owned(found, POD, "process ids on the GPU") if found else "no engine process is listed on a GPU"

    return ask


def device_ids(environ: Mapping[str, str]) -> frozenset[str]:
    """Return the device ids that an environment names; indexes, `all` and `void` (CDI) name none."""
    for variable in _VARIABLES:
        named = frozenset(part.strip() for part in environ.get(variable, "").split(",") if part.strip().startswith(_PREFIXES))
        if named:
            return named
    return frozenset()
