"""From findings to the verdict: its state, the limiter and how sure it is, roots and what they explain, next steps."""

from __future__ import annotations

import pytest

from heptascope.model import Confidence, Layer, Missing, Reason, RuleKind, VerdictState, labels
from heptascope.rules.diagnose import CLEAR_LEAD, SMALL_LEAD
from heptascope.rules.rule import Action, EvidenceItem
from heptascope.rules.verdict import Verdict
from support.judging import KV, POWER, RUNNING, WAITING, WORK, A, Room, limiter, resource_limiter, rule

IDLE, HEALTHY, DEGRADED, UNKNOWN = VerdictState.IDLE, VerdictState.HEALTHY, VerdictState.DEGRADED, VerdictState.CANNOT_TELL
PRESSURE = "heptascope_engine_resource_pressure_ratio"
GPU = labels(gpu="0", uuid="GPU-a")
B = labels(engine="b", rank="0")
BUSY = ((RUNNING, A, 1.0), (WORK, A, 1.0))
FULL, SLOW = (KV, A, 0.95), (WAITING, A, 50.0)
LIMIT = limiter("Dram", f"{RUNNING} > 0")
SYMPTOM = rule("Slow", f"{WAITING} > 10", kind=RuleKind.SYMPTOM, layer=Layer.APPLICATION, topic="slo")


def names(verdict: Verdict) -> dict[str, list[str]]:
    """Return the names of what a verdict claims."""
    return {what: [c.rule for c in getattr(verdict, what)] for what in ("faults", "consequences", "symptoms")}


# state


def test_healthy_is_a_limiter_and_no_fault() -> None:
    """A busy engine whose limiter is known and that has no fault is healthy."""
    verdict = Room(LIMIT, rule(), hold=0.0).see(*BUSY, (KV, A, 0.5))
    assert (HEALTHY, "Dram") == (verdict.state, verdict.limiter.rule if verdict.limiter else "")


def test_a_fault_degrades() -> None:
    """One root fault is enough."""
    verdict = Room(LIMIT, rule(), hold=0.0).see(*BUSY, FULL)
    assert (DEGRADED, ["Full"]) == (verdict.state, names(verdict)["faults"])


def test_a_symptom_without_a_cause_degrades() -> None:
    """What users feel is no less true because nobody knows why; the verdict is then a weak one."""
    verdict = Room(LIMIT, SYMPTOM, rule(), hold=0.0).see(*BUSY, SLOW, (KV, A, 0.5))
    assert (DEGRADED, Confidence.WEAK, [], ["Slow"]) == (
        verdict.state,
        verdict.confidence,
        names(verdict)["faults"],
        names(verdict)["symptoms"],
    )


def test_a_symptom_with_a_cause_is_shown_with_it() -> None:
    """A symptom that a firing fault explains carries its name, and the verdict is as sure as the fault."""
    verdict = Room(LIMIT, SYMPTOM, rule(explains=("Slow",), confidence=Confidence.DIRECT), hold=0.0).see(*BUSY, SLOW, FULL)
    assert (DEGRADED, Confidence.DIRECT, ("Full",)) == (verdict.state, verdict.confidence, verdict.symptoms[0].because)


def test_without_work_it_is_idle() -> None:
    """An engine that is known to have no work is idle, and has no limiter whatever the GPU does."""
    verdict = Room(LIMIT, hold=0.0).see((RUNNING, A, 1.0), (WORK, A, 0.0))
    assert (IDLE, None, Confidence.DIRECT) == (verdict.state, verdict.limiter, verdict.confidence)


def test_unknown_work_cannot_be_told() -> None:
    """Where nothing says whether there is work, the verdict is not idle and not healthy."""
    verdict = Room(LIMIT, hold=0.0).see((RUNNING, A, 1.0))
    assert UNKNOWN is verdict.state


def test_an_unknown_limiter_cannot_be_told() -> None:
    """Work without a limiter, where a resource is unknown, is not healthy."""
    verdict = Room(resource_limiter("Dram", "dram"), hold=0.0).see(*BUSY)
    assert (UNKNOWN, None, ["Dram"]) == (verdict.state, verdict.limiter, [u.rule for u in verdict.cannot_tell])


def test_a_light_load_needs_no_limiter() -> None:
    """Where every resource of a step is known and none of them limits, the engine is healthy without a limiter."""
    room = Room(*(resource_limiter(name, name.lower()) for name in ("Dram", "Tensor", "Host")), hold=0.0)
    low = [(PRESSURE, labels(resource=name, **dict(A)), 0.1) for name in ("dram", "tensor", "host")]
    verdict = room.see(*BUSY, *low)
    assert (HEALTHY, None) == (verdict.state, verdict.limiter)
    assert UNKNOWN is room.see(*BUSY, *low[:2]).state


HIDDEN = limiter("Launch", f"{KV} > 0.5", layer=Layer.OPERATOR, topic="launch", explains=("Dram",))


def test_a_limiter_that_may_be_a_fault_is_not_healthy() -> None:
    """Where another limiter, a fault too, may be the real one and cannot be judged, nothing is called healthy."""
    room = Room(LIMIT, HIDDEN, rule("LaunchFault", f"{KV} > 0.9", layer=Layer.OPERATOR, topic="launch"), hold=0.0)
    verdict = room.see(*BUSY)
    assert (UNKNOWN, "Dram") == (verdict.state, verdict.limiter.rule if verdict.limiter else "")
    assert HEALTHY is room.see(*BUSY, (KV, A, 0.1)).state


def test_an_unknown_limiter_that_is_no_fault_does_no_harm() -> None:
    """Where the other limiter has no fault of its topic, which of the two it is does not matter to health."""
    assert HEALTHY is Room(LIMIT, HIDDEN, rule("Other", f"{KV} > 0.9"), hold=0.0).see(*BUSY).state


# limiter


def ranked(*scores: float, **other: Confidence) -> tuple[str, Confidence]:
    """Return the limiter, and its confidence, of limiters A, B, ... with these scores."""
    signals = (
        "heptascope_engine_gpu_dram_active_ratio",
        "heptascope_engine_gpu_tensor_active_ratio",
        "heptascope_engine_gpu_sm_active_ratio",
    )
    rules = [limiter(f"L{i}", f"{signals[i]} > 0", **other) for i in range(len(scores))]
    verdict = Room(*rules, hold=0.0).see(*BUSY, *((signals[i], A, score) for i, score in enumerate(scores)))
    assert verdict.limiter is not None
    return verdict.limiter.rule, verdict.limiter.confidence


def test_the_highest_score_limits() -> None:
    """The limiter is the resource that is nearest to what can be had of it."""
    assert "L1" == ranked(0.4, 0.8, 0.6)[0]


@pytest.mark.parametrize(
    ("lead", "confidence"),
    [
        (CLEAR_LEAD + 0.01, Confidence.DIRECT),
        (CLEAR_LEAD - 0.01, Confidence.INFERRED),
        (SMALL_LEAD + 0.01, Confidence.INFERRED),
        (SMALL_LEAD - 0.01, Confidence.WEAK),
    ],
)
def test_the_lead_is_the_confidence(lead: float, confidence: Confidence) -> None:
    """How far the second resource is behind says how sure the first one is."""
    assert ("L0", confidence) == ranked(0.7, 0.7 - lead)


def test_no_surer_than_its_rule() -> None:
    """A lead does not make a rule surer than it says of itself."""
    assert ("L0", Confidence.INFERRED) == ranked(0.9, confidence=Confidence.INFERRED)


def test_the_same_limit_on_another_rank_is_no_rival() -> None:
    """Two ranks that are bound by the same resource agree; they do not make each other doubtful."""
    other = labels(engine="a", rank="1")
    verdict = Room(limiter("Dram", f"{KV} > 0"), hold=0.0).see(*BUSY, (RUNNING, other, 1.0), (KV, A, 0.7), (KV, other, 0.71))
    assert verdict.limiter is not None
    assert Confidence.DIRECT is verdict.limiter.confidence


def test_an_explained_limiter_gives_way() -> None:
    """A limiter that another firing one explains is not the limiter, whatever its score."""
    verdict = Room(limiter("Cause", f"{KV} > 0", explains=("Dram",)), LIMIT, hold=0.0).see(*BUSY, (KV, A, 0.1))
    assert "Cause" == (verdict.limiter.rule if verdict.limiter else "")


# causes


def test_chains_leave_one_root() -> None:
    """In a chain of faults only the first is the root; each other names what explains it directly."""
    chain = [rule("First", explains=("Second",)), rule("Second", explains=("Third",)), rule("Third")]
    verdict = Room(*chain, hold=0.0).see(*BUSY, FULL)
    assert ["First"] == names(verdict)["faults"]
    assert {"Second": ("First",), "Third": ("Second",)} == {c.rule: c.because for c in verdict.consequences}


def test_a_silent_cause_explains_nothing() -> None:
    """An edge counts only while its cause fires."""
    verdict = Room(rule("Cause", f"{KV} > 0.99", explains=("Full",)), rule(), hold=0.0).see(*BUSY, FULL)
    assert (["Full"], []) == (names(verdict)["faults"], names(verdict)["consequences"])


def serving(*gpus: str) -> list[tuple[str, tuple[tuple[str, str], ...], float]]:
    """Return the infos that say that these GPUs serve engine a."""
    return [("heptascope_engine_gpu_info", labels(gpu=gpu, uuid=f"GPU-{gpu}", **dict(A)), 1.0) for gpu in gpus]


@pytest.mark.parametrize(("gpus", "explained"), [(("0",), True), (("1",), False), ((), False)])
def test_a_gpu_explains_the_engine_that_it_serves(gpus: tuple[str, ...], explained: bool) -> None:
    """A fault of a GPU explains faults of the engines that it serves, and of no other."""
    hot = rule("Hot", f"{POWER} > 500", entity="gpu", explains=("Full",))
    verdict = Room(hot, rule(), hold=0.0).see(
        *BUSY, FULL, (POWER, labels(gpu="0", uuid="GPU-0"), 700.0), (POWER, labels(gpu="1", uuid="GPU-1"), 1.0), *serving(*gpus)
    )
    assert explained is ("Full" in names(verdict)["consequences"])


# several engines


def test_each_engine_has_its_verdict_and_the_worst_stands_for_all() -> None:
    """With two engines there is a verdict for each; over all, the worst state, every fault, and each thing once."""
    room = Room(LIMIT, rule(), hold=0.0)
    verdict = room.see(*BUSY, FULL, (RUNNING, B, 1.0), (WORK, B, 1.0), (KV, B, 0.1))
    assert {"a": DEGRADED, "b": HEALTHY} == {each.engine: each.state for each in verdict.engines}
    assert (DEGRADED, "", ["Full"]) == (verdict.state, verdict.engine, names(verdict)["faults"])


def test_one_engine_idle_beside_a_busy_one() -> None:
    """An idle engine keeps the pod from nothing."""
    verdict = Room(LIMIT, hold=0.0).see(*BUSY, (RUNNING, B, 1.0), (WORK, B, 0.0))
    assert ({"a": HEALTHY, "b": IDLE}, HEALTHY) == ({each.engine: each.state for each in verdict.engines}, verdict.state)


def test_one_engine_alone_has_no_list() -> None:
    """With one engine its verdict is the verdict."""
    verdict = Room(LIMIT, hold=0.0).see(*BUSY)
    assert ("a", ()) == (verdict.engine, verdict.engines)


# the rest


def test_since_lasts_while_the_answer_is_the_same() -> None:
    """`since` is when state, limiter and roots became what they are; the numbers behind them may change."""
    room = Room(LIMIT, rule(), hold=0.0)
    first = room.see(*BUSY, (KV, A, 0.5)).since
    assert first == room.see(*BUSY, (KV, A, 0.6)).since
    assert first < room.see(*BUSY, FULL).since


def test_graver_and_surer_faults_come_first() -> None:
    """Faults stand in the order of severity, then confidence."""
    faults = [rule("Info", severity="info"), rule("Weak", confidence=Confidence.WEAK), rule("Sure"), rule("Grave", severity="critical")]
    assert ["Grave", "Sure", "Weak", "Info"] == names(Room(*faults, hold=0.0).see(*BUSY, FULL))["faults"]


STEPS = (Action("any", "look"), Action("vllm", "flag v"), Action("sglang", "flag s"), Action("kubernetes", "limits"))


@pytest.mark.parametrize(
    ("kind", "steps"),
    [
        ("vllm", ("look", "flag v", "limits")),
        ("llamacpp", ("look", "limits")),
        ("", ("look", "[vllm] flag v", "[sglang] flag s", "[kubernetes] limits")),
    ],
)
def test_next_steps_are_for_this_engine(kind: str, steps: tuple[str, ...]) -> None:
    """Flags are those of the engine that runs; where that is unknown, each says which engine it is for."""
    info = [("heptascope_engine_info", labels(kind=kind, **dict(A)), 1.0)] if kind else []
    verdict = Room(rule(actions=STEPS), hold=0.0).see(*BUSY, FULL, *info)
    assert steps == verdict.faults[0].actions


def test_evidence_stands_behind_a_claim() -> None:
    """A claim shows its signals with the threshold that they were held against."""
    held = rule(expr=f"{KV} > $full", thresholds={"full": 0.9}, evidence=(EvidenceItem(KV, ">", "full"),))
    (shown,) = Room(held, hold=0.0).see(*BUSY, FULL).faults[0].evidence
    assert (KV, 0.95, 0.9, ">") == (shown.signal, shown.value, shown.threshold, shown.comparison)


def test_what_could_not_be_judged_is_listed_with_reasons() -> None:
    """Each rule that cannot be told is in the verdict with what it lacks."""
    verdict = Room(LIMIT, rule(), hold=0.0).see(*BUSY, missing=(Missing(KV, Reason.FLAG_OFF, "start it with --x", A),))
    assert [("Full", (KV, Reason.FLAG_OFF, "start it with --x"))] == [(u.rule, tuple(u.missing[0][:3])) for u in verdict.cannot_tell]
