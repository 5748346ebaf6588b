"""Which GPU serves which engine rank: configuration, process ids, or a lone engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from heptascope.model import Labels
from heptascope.signals.window import Window

Entity = tuple[str, str]  # engine, rank
Gpu = tuple[str, str]  # index, uuid
GPU_SIGNS = tuple(
    f"heptascope_gpu_{name}"
    for name in (
        "graphics_engine_active_ratio",
        "sm_active_ratio",
        "dram_active_ratio",
        "tensor_active_ratio",
        "utilization_ratio",
        "power_watts",
    )
)
"""Signals of which any one shows that there is a GPU, where no source tells its identity."""
_ENGINE_ROLES = ("engine_core", "worker")
"""The processes that compute, where an engine has such; one in a single process, or whose helpers have no titles, computes in any."""


def _live(window: Window, name: str) -> list[dict[str, str]]:
    return [s.labels for s in window.series(name) if s.live]


def known_gpus(window: Window) -> list[Gpu]:
    """Return the GPUs that report, in order of their index."""
    found = {
        (row.get("gpu", ""), row.get("uuid", "")) for name in ("heptascope_gpu_info", "heptascope_gpu_up") for row in _live(window, name)
    }
    if not found:
        found = {(row.get("gpu", ""), row.get("uuid", "")) for name in GPU_SIGNS for row in _live(window, name)}
    return sorted(found, key=lambda g: (len(g[0]), g))


def known_engines(window: Window) -> list[Entity]:
    """Return the engine ranks whose page is read."""
    rows = _live(window, "heptascope_engine_info")
    rows += _live(window, "heptascope_engine_requests_running")
    return sorted({(row.get("engine", ""), row.get("rank", "")) for row in rows})


def _by_process(window: Window, ranks: Mapping[str, list[str]]) -> dict[Entity, list[Gpu]]:
    rows = [row for row in _live(window, "heptascope_host_process_info") if "pid" in row and row.get("engine")]
    divided = {row["engine"] for row in rows if row.get("role") in _ENGINE_ROLES}
    owner = {row["pid"]: row["engine"] for row in rows if row.get("role") in _ENGINE_ROLES or row["engine"] not in divided}
    found: dict[Entity, list[Gpu]] = {}
    for row in _live(window, "heptascope_gpu_process_memory_bytes"):
        engine = owner.get(row.get("pid", ""))
        if engine and len(ranks.get(engine, ())) == 1:
            gpus = found.setdefault((engine, ranks[engine][0]), [])
            gpu = (row.get("gpu", ""), row.get("uuid", ""))
            if gpu not in gpus:
                gpus.append(gpu)
    return {entity: sorted(gpus) for entity, gpus in found.items()}


def gpu_of(pairs: Labels) -> Gpu:
    """Return the index and uuid in a series' labels."""
    row = dict(pairs)
    return row.get("gpu", ""), row.get("uuid", "")


def _size(window: Window, engine: str) -> float | None:
    """Return how many GPUs an engine's parallel sizes ask for, None where they are not known."""
    sizes = [
        {s.labels.get("engine", ""): s.v[-1] for s in window.series(f"heptascope_engine_{axis}_parallel_size") if s.live}.get(engine)
        for axis in ("tensor", "pipeline")
    ]
    return None if sizes[0] is None else sizes[0] * (sizes[1] or 1.0)


def _lone(window: Window, engine: str, gpus: list[Gpu], resting: AbstractSet[Gpu]) -> list[Gpu] | None:
    """Return the GPUs of the only engine: all that it needs or, where that is not known, all that do not rest beside those that work."""
    working = [gpu for gpu in gpus if gpu not in resting] or gpus
    size = _size(window, engine)
    if len(gpus) == 1 or size == len(gpus):
        return gpus
    return working if size is None or size == len(working) else None


def map_gpus(
    window: Window, configured: Mapping[str, Sequence[str]], resting: AbstractSet[Gpu] = frozenset()
) -> tuple[dict[Entity, list[Gpu]], set[Entity]]:
    """Return (GPUs of each engine rank, the ranks for which they cannot be told).

    Process ids show only devices on which a process holds memory. A lone engine with one rank is served by the GPUs that we see, but for
    those in `resting` (they run no kernels) beside others that work: a sidecar may see every GPU of its node.
    """
    gpus, entities = known_gpus(window), known_engines(window)
    ranks: dict[str, list[str]] = {}
    for engine, rank in entities:
        ranks.setdefault(engine, []).append(rank)
    found: dict[Entity, list[Gpu]] = {}
    by_process = _by_process(window, ranks)
    ambiguous: set[Entity] = set()
    for engine, rank in entities:
        wanted = configured.get(engine)
        lone = _lone(window, engine, gpus, resting) if len(entities) == 1 else None
        if wanted is not None and len(ranks[engine]) == 1:
            found[engine, rank] = [g for g in gpus if g[0] in wanted or g[1] in wanted]
        elif (engine, rank) in by_process:
            found[engine, rank] = by_process[engine, rank]
        elif lone is not None:
            found[engine, rank] = lone
        elif gpus:
            ambiguous.add((engine, rank))
    return found, ambiguous
