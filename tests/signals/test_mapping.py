"""Which GPU serves which engine rank."""

from __future__ import annotations

import pytest

from heptascope.model import labels
from heptascope.signals.mapping import known_engines, known_gpus, map_gpus
from heptascope.signals.window import Window
from support.feeding import START

GPUS = [("0", "GPU-a"), ("1", "GPU-b"), ("2", "GPU-c")]


class Pod:
    """A window with identities."""

    def __init__(self, engines: tuple[tuple[str, str], ...] = (("vllm", "0"),), gpus: int = 2) -> None:
        """Know these engine ranks and so many GPUs."""
        self.window = Window()
        for engine, rank in engines:
            self.add("engine_info", engine=engine, rank=rank)
        for gpu, uuid in GPUS[:gpus]:
            self.add("gpu_info", gpu=gpu, uuid=uuid)

    def add(self, name: str, value: float = 1.0, **pairs: str) -> Pod:
        """Add one series."""
        self.window.append(f"heptascope_{name}", labels(**pairs), START, value)
        return self

    def process(self, engine: str, role: str, pid: str, *gpus: int) -> Pod:
        """Add a process, and that it holds memory on GPUs."""
        self.add("host_process_info", engine=engine, role=role, process=f"{role}-{pid}", pid=pid)
        for gpu in gpus:
            self.add("gpu_process_memory_bytes", 1e9, gpu=GPUS[gpu][0], uuid=GPUS[gpu][1], pid=pid)
        return self


A, B = ("a", "0"), ("b", "0")


def test_a_lone_engine_is_served_by_every_gpu() -> None:
    """One engine, one rank: what we see is its."""
    assert ({("vllm", "0"): GPUS[:2]}, set()) == map_gpus(Pod().window, {})


def test_two_engines_are_ambiguous() -> None:
    """Two engines and nothing to tell them apart: nobody is served by anything."""
    assert ({}, {A, B}) == map_gpus(Pod((A, B)).window, {})


def test_without_gpus_nothing_is_ambiguous() -> None:
    """Where no GPU is known there is nothing to tell."""
    assert ({}, set()) == map_gpus(Pod((A, B), gpus=0).window, {})


@pytest.mark.parametrize("named", [("0", "1"), ("GPU-a", "1")])
def test_configuration_by_index_or_uuid(named: tuple[str, ...]) -> None:
    """What is configured counts, for the engine that it is configured for."""
    found, ambiguous = map_gpus(Pod((A, B), gpus=3).window, {"a": named})
    assert ({A: GPUS[:2]}, {B}) == (found, ambiguous)


def test_configuration_goes_before_process_ids() -> None:
    """A user who says it knows it."""
    pod = Pod().process("vllm", "engine_core", "7", 0)
    assert {("vllm", "0"): [GPUS[1]]} == map_gpus(pod.window, {"vllm": ["1"]})[0]


def test_process_ids_tell_engines_apart() -> None:
    """A process of an engine that holds memory on a GPU is served by it."""
    pod = Pod((A, B), gpus=3).process("a", "engine_core", "7", 0).process("b", "worker", "8", 1).process("b", "worker", "9", 2)
    assert ({A: GPUS[:1], B: GPUS[1:3]}, set()) == map_gpus(pod.window, {})


def test_only_processes_that_compute_count() -> None:
    """Neither the API server of an engine that has a core, nor a stranger, makes a GPU an engine's."""
    pod = Pod((A, B)).process("a", "api_server", "7", 0).process("a", "engine_core", "9").process("", "other", "8", 1)
    assert ({}, {A, B}) == map_gpus(pod.window, {})


def test_an_engine_in_one_process_computes_there() -> None:
    """llama.cpp is one process, TGI's shards have no titles of their own: whichever of them holds memory tells the GPU."""
    pod = Pod((A, B), gpus=3).process("a", "api_server", "7", 0).process("b", "api_server", "8").process("b", "other", "9", 1, 2)
    assert ({A: GPUS[:1], B: GPUS[1:]}, set()) == map_gpus(pod.window, {})


def test_ranks_of_one_engine_are_ambiguous() -> None:
    """Processes name their engine and not their rank, so data-parallel ranks cannot be told apart; nor by configuration."""
    ranks = (("a", "0"), ("a", "1"))
    pod = Pod(ranks).process("a", "engine_core", "7", 0).process("a", "engine_core", "8", 1)
    assert ({}, set(ranks)) == map_gpus(pod.window, {"a": ["0", "1"]})


RESTING = {GPUS[1]}


def test_a_gpu_that_rests_is_not_a_lone_engines() -> None:
    """Beside GPUs that work, one that rests belongs to someone else, or to nobody."""
    assert {("vllm", "0"): GPUS[:1]} == map_gpus(Pod().window, {}, RESTING)[0]


def test_where_all_rest_all_are_its() -> None:
    """An idle engine's GPUs rest with it."""
    assert {("vllm", "0"): GPUS[:2]} == map_gpus(Pod().window, {}, set(GPUS[:2]))[0]


@pytest.mark.parametrize(
    ("tensor", "pipeline", "found", "ambiguous"),
    [
        (2.0, None, GPUS[:2], False),
        (1.0, 2.0, GPUS[:2], False),
        (1.0, None, GPUS[:1], False),
        (4.0, None, None, True),
        (None, 2.0, GPUS[:1], False),
    ],
)
def test_parallel_sizes_say_how_many_it_needs(
    tensor: float | None, pipeline: float | None, found: list[tuple[str, str]] | None, ambiguous: bool
) -> None:
    """Where the sizes are known, they decide: all that is needed is its, resting or not; a number that fits nothing cannot be told."""
    pod = Pod()
    for axis, size in (("tensor", tensor), ("pipeline", pipeline)):
        if size is not None:
            pod.add(f"engine_{axis}_parallel_size", size, engine="vllm", rank="0")
    mapping, unclear = map_gpus(pod.window, {}, RESTING)
    assert (found, ambiguous) == (mapping.get(("vllm", "0")), bool(unclear))


def test_gpus_are_known_by_identity_or_by_what_they_show() -> None:
    """A source without identities still shows GPUs; they are ordered by index as a number."""
    pod = Pod(gpus=0)
    for gpu in ("10", "9"):
        pod.add("gpu_power_watts", 1.0, gpu=gpu, uuid=f"GPU-{gpu}")
    assert [("9", "GPU-9"), ("10", "GPU-10")] == known_gpus(pod.window)


def test_a_lost_gpu_is_still_known() -> None:
    """A GPU of which only that it is down is told is one of which rules speak."""
    assert [("0", "GPU-a")] == known_gpus(Pod(gpus=0).add("gpu_up", 0.0, gpu="0", uuid="GPU-a").window)


def test_engines_are_known_by_identity_or_load() -> None:
    """An engine that shows requests is one, whether or not it says what it is; ended series are none."""
    pod = Pod((A,), gpus=0).add("engine_requests_running", 1.0, engine="b", rank="0")
    assert [A, B] == known_engines(pod.window)
    pod.window.mark_stale("heptascope_engine_info", labels(engine="a", rank="0"), START + 1)
    assert [B] == known_engines(pod.window)
