"""Public threads about slow inference or misleading counters, asked as `heptascope diagnose --signals` would be.

Each file holds what its poster saw; what a thread does not tell is left out, or filled in as on a server that is well otherwise. The
answers were written down before the rules were tried on them; where one was corrected since, it holds what the verdict must go on to say.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from heptascope.config import Settings
from heptascope.given import read_given, readings
from heptascope.offline import judge_readings
from support.untraced import untraced

FOLDER = Path(__file__).parent


class Answer(NamedTuple):
    """What may be said: the state, the topics of the root faults, and the limiter's layer."""

    state: str
    faults: tuple[str, ...] = ()
    limiter: str = ""


ANSWERS = {
    "batch-beyond-graphs": Answer("degraded", ("operator/graph-coverage",), "scheduling"),
    "cache-low-is-fine": Answer("healthy", (), "hardware"),
    "cache-nearly-full": Answer("healthy", (), "hardware"),
    "clients-hang-engine-empty": Answer("idle"),
    "clients-time-out": Answer("degraded", ("application/aborts",)),
    "failing-memory": Answer("degraded", ("hardware/fault",)),
    "few-accepted-yet-faster": Answer("healthy", (), "hardware"),
    "grammar-compilation-throttled": Answer("degraded", ("scheduling/host-cpu",)),
    "graphs-lost-with-drafts": Answer("degraded", ("operator/graph-coverage",), "hardware"),
    "graphs-not-used": Answer("degraded", ("operator/graph-coverage",), "scheduling"),
    "half-busy-behind-the-api": Answer("cannot-tell"),
    "hits-by-recompute": Answer("degraded", ("memory/preemption",)),
    "hung-engine": Answer("degraded", ("scheduling/stall",)),
    "idle-scheduler-spins": Answer("idle"),
    "no-peer-to-peer": Answer("cannot-tell"),
    "one-runs-fourteen-wait": Answer("cannot-tell"),
    "openmp-threads": Answer("degraded", ("scheduling/host-cpu",)),
    "pcie-gen2": Answer("degraded", ("hardware/pcie",)),
    "pipeline-of-eight": Answer("degraded", ("parallel/bubble",), "parallel"),
    "pipeline-two-of-eight": Answer("degraded", ("parallel/bubble", "parallel/idle-gpu"), "parallel"),
    "power-cap-in-decode": Answer("healthy", (), "hardware"),
    "prefill-burst": Answer("cannot-tell", (), "hardware"),
    "prefix-shorter-than-block": Answer("healthy", (), "hardware"),
    "ranks-with-queues": Answer("degraded", ("memory/capacity", "parallel/imbalance")),
    "ranks-within-seven-per-cent": Answer("cannot-tell"),
    "sixteen-adapters": Answer("degraded", ("application/switching",)),
    "slow-detokeniser": Answer("degraded", ("application/frontend",)),
    "small-model-full-cache": Answer("degraded", ("memory/capacity", "scheduling/host-step")),
    "spinning-without-requests": Answer("idle"),
    "streams-freeze": Answer("degraded", ("scheduling/prefill-starvation",)),
    "thermal-counter-of-the-past": Answer("healthy", (), "hardware"),
    "32-drafts": Answer("degraded", ("speculative/acceptance",), "hardware"),
    "threads-beyond-quota": Answer("degraded", ("scheduling/host-cpu",)),
    "transfer-is-quick": Answer("cannot-tell"),
    "video-preprocessing": Answer("degraded", ("application/frontend",)),
    "xid-of-a-cleanup": Answer("healthy", (), "hardware"),
}


def answer(name: str, *without: str) -> Answer:
    """Return what is said of an incident, with the signals of some kinds left out."""
    given = [g for g in read_given(FOLDER / f"{name}.yaml") if not g.signal.name.startswith(tuple(f"heptascope_{w}_" for w in without))]
    with untraced():
        verdict = judge_readings(readings(given), Settings())
    limiter = verdict["limiter"]
    topics = sorted({f"{fault['layer']}/{fault['topic']}" for fault in verdict["faults"]})
    return Answer(verdict["state"], tuple(topics), limiter["layer"] if limiter else "")


def test_every_file_has_its_answer() -> None:
    """Each file begins with one line that names the thread and its numbers, and is asked."""
    heads = {path.stem: path.read_text(encoding="utf-8").splitlines()[0] for path in FOLDER.glob("*.yaml")}
    assert sorted(ANSWERS) == sorted(heads)
    assert [] == [name for name, head in heads.items() if not re.match(r"# [\w.-]+/[\w.-]+#\d+: .+[.]$", head)]


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_an_incident(name: str) -> None:
    """The layer that the thread found is named, and nothing else; where the thread found none, nothing is claimed."""
    assert ANSWERS[name] == answer(name)


@pytest.mark.parametrize("without", [("gpu", "host"), ("host",)])
@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_less_to_go_by_makes_no_other_claim(name: str, without: tuple[str, ...]) -> None:
    """With only the engine's page, or without the host's lines, the same faults are named or none."""
    kept = [g for g in read_given(FOLDER / f"{name}.yaml") if not g.signal.name.startswith(tuple(f"heptascope_{w}_" for w in without))]
    assert set(ANSWERS[name].faults) >= (set(answer(name, *without).faults) if kept else set())
