"""What part a process plays in an engine, told from its name; and for rows that only hold names, from their company."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

API_SERVER, ENGINE_CORE, WORKER, OTHER = "api_server", "engine_core", "worker", "other"

# Process titles as the kernel keeps them: the first 15 bytes. vLLM's from captures and recordings of 0.25 and 0.32; SGLang's from its
# source (a scheduler is engine core and worker in one, one for each GPU).
_TITLES = (
    ("VLLM::EngineCor", ENGINE_CORE),
    ("VLLM::Worker", WORKER),
    ("VLLM::APIServer", API_SERVER),
    ("sglang::schedul", ENGINE_CORE),
    ("sglang::tokeniz", API_SERVER),
)
_ANY_TITLE = ("VLLM::", "sglang::")
_RANK = re.compile(r"_(DP|PP|TP)(\d+)")
_RANK_ORDER = ("DP", "PP", "TP")


def role_by_title(title: str) -> str | None:
    """Return the role that a process title names, or None for a title that says nothing (`python3`, `vllm`)."""
    for start, role in _TITLES:
        if title.startswith(start):
            return role
    return OTHER if title.startswith(_ANY_TITLE) else None


def rank_of(title: str) -> tuple[int, ...]:
    """Return the data, pipeline and tensor parallel rank that a full title such as `VLLM::Worker_PP0_TP1` names; 0 where it names none."""
    found = {axis: int(number) for axis, number in _RANK.findall(title)}
    return tuple(found.get(axis, 0) for axis in _RANK_ORDER)


def roles_by_company(processes: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Return pid -> role for rows that hold neither roles nor parents (recordings made by other tools).

    A server starts its engine core, so its pid is the nearest one below the core's; the helpers that Python starts beside
    the core (resource tracker, compilers) run one thread, a server dozens. Whatever else is in the row only shares the machine.
    """
    roles = {process["pid"]: role_by_title(process["comm"]) for process in processes}
    cores = [pid for pid, role in roles.items() if role == ENGINE_CORE]
    if cores and API_SERVER not in roles.values():
        below = [p["pid"] for p in processes if roles[p["pid"]] is None and p["threads"] > 1 and p["pid"] < min(cores)]
        if below:
            roles[max(below)] = API_SERVER
    return {pid: role or OTHER for pid, role in roles.items()}
