"""Per-process memory and SM use from a `slow` row, where the driver shows processes."""

from __future__ import annotations

from heptascope.model import Labels, Reason
from heptascope.sources.gpu.layout import Row
from heptascope.sources.gpu.page import Page, Why, possible, reason_of

MEMORY = "process_memory_bytes"
UTILIZATION = "process_sm_utilization_ratio"
SIGNALS = (MEMORY, UTILIZATION)

HIDDEN_BYTES = 2**30
"""An empty process list beside more used memory than this means that the processes are hidden (an empty Hopper card uses some 0.6 GiB)."""

_IDLE: Why = (Reason.IDLE, "no process uses this GPU")
_HIDDEN: Why = (Reason.NO_PERMISSION, "memory is in use, but no process is visible: share the host's process ids (hostPID)")
_NO_MEMORY: Why = (Reason.NO_PERMISSION, "the driver hides the memory of processes here")


def put(row: Row, page: Page) -> None:
    """Add the memory of each process of `procs` and the SM share of each of `proc_util` (its newest sample)."""
    _memory(row, page)
    _utilization(row, page)


def _memory(row: Row, page: Page) -> None:
    listed = row.get("procs")
    if listed is None:
        page.miss(MEMORY, reason_of(row, "procs"))
        return
    for pid, used in listed:
        if possible(used, 2.0**50):
            page.put(MEMORY, float(used), extra=_pid(pid))
    if not listed:
        page.miss(MEMORY, _HIDDEN if (row.get("mem_used") or 0) > HIDDEN_BYTES else _IDLE)
    elif not any(possible(used, 2.0**50) for _, used in listed):
        page.miss(MEMORY, _NO_MEMORY)


def _utilization(row: Row, page: Page) -> None:
    listed = row.get("proc_util")
    if listed is None:
        page.miss(UTILIZATION, reason_of(row, "proc_util"))
        return
    newest: dict[int, tuple[float, float]] = {}
    for pid, sm, _memory_percent, t in listed:
        if possible(sm, 100.0) and t >= newest.get(pid, (0.0, 0.0))[0]:
            newest[pid] = (t, sm / 100.0)
    for pid, (_, share) in newest.items():
        page.put(UTILIZATION, share, extra=_pid(pid))
    if not newest:
        page.miss(UTILIZATION, _IDLE)


def _pid(pid: int) -> Labels:
    return (("pid", str(pid)),)
