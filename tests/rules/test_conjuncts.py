"""What is missing does not matter where another part of a rule is known to fail, and matters everywhere else."""

from __future__ import annotations

from itertools import product

import pytest

from heptascope.model import FindingState, Labels, Layer, RuleKind, labels
from heptascope.rules import promql
from heptascope.rules.judge import Finding
from heptascope.rules.rule import Rule
from support.judging import KV, RUNNING, WAITING, WORK, A, Room, limiter, rule
from support.rule_cases import JUDGED, RULES

CLEAR, UNKNOWN, FIRING, PENDING = FindingState.CLEAR, FindingState.CANNOT_TELL, FindingState.FIRING, FindingState.PENDING
B = labels(engine="b", rank="0")
DEFERRED = "heptascope_engine_requests_deferred"
BOTH = rule(expr=f"{KV} > 0.9 and on ($entity) {WAITING} > 10")
Seen = tuple[str, Labels, float]


def _states(room: Room, seconds: int, *seen: Seen) -> list[FindingState]:
    states = []
    for _ in range(seconds):
        room.see((RUNNING, A, 1.0), (WORK, A, 1.0), *seen)
        states.append(room.state())
    return states


def _after(made: Rule, *seen: Seen) -> Finding:
    """Return the finding of a rule for the engine A once any hold is over."""
    room = Room(made)
    _states(room, 6, *seen)
    return next(f for f in room.judge.findings if f.instance.pairs == A)


def test_a_part_that_fails_settles_it_after_the_hold() -> None:
    """A free cache is enough to know that the rule does not fire; what was missing is kept, but for as long as a firing rule would stay."""
    room = Room(BOTH)
    assert [UNKNOWN, UNKNOWN, UNKNOWN, CLEAR, CLEAR] == _states(room, 5, (KV, A, 0.5))
    (finding,) = room.judge.findings
    assert ((), [WAITING]) == (finding.missing, [m.signal for m in finding.spared])


def test_a_part_that_holds_settles_nothing() -> None:
    """With a full cache the queue decides, and that is not known."""
    finding = _after(BOTH, (KV, A, 0.95))
    assert (UNKNOWN, ()) == (finding.state, finding.spared)


def test_a_part_that_fails_now_and_then_settles_nothing() -> None:
    """A rule that fires outlives dips shorter than the hold, so a dip cannot clear one of which too little is known."""
    room = Room(BOTH)
    for _ in range(5):
        assert {UNKNOWN} == {*_states(room, 2, (KV, A, 0.5)), *_states(room, 1, (KV, A, 0.95))}


@pytest.mark.parametrize("levels", [*product((None, 0, 1), repeat=3)])
def test_nothing_that_could_fire_is_called_clear(levels: tuple[int | None, int | None, int | None]) -> None:
    """Of three parts, each holding, failing or unknown: clear is what fires in no completion of the unknown, firing what does in all."""
    names = (KV, WAITING, DEFERRED)
    made = rule(expr=" and on ($entity) ".join(f"{name} > 0.5" for name in names))
    finding = _after(made, *((name, A, float(level)) for name, level in zip(names, levels, strict=True) if level is not None))
    completions = [all(choice) for choice in product(*((0, 1) if level is None else (level,) for level in levels))]
    expected = FIRING if all(completions) else UNKNOWN if any(completions) else CLEAR
    assert expected is finding.state


@pytest.mark.parametrize(
    ("expr", "seen", "state"),
    [
        # the left part may lack what the right one settles
        (f"{WAITING} > 10 and on ($entity) {KV} > 0.9", [(KV, A, 0.5)], CLEAR),
        # `unless` takes away only: its left side settles, its right side never does
        (f"({KV} > 0.9 and on ($entity) {WAITING} > 10) unless on ($entity) {DEFERRED} > 1", [(KV, A, 0.5)], CLEAR),
        (f"{WAITING} > 10 unless on ($entity) {KV} > 0.9", [(KV, A, 0.5)], UNKNOWN),
        # one side of an `or` is not enough
        (f"({KV} > 0.9 or {WAITING} > 10) and on ($entity) {DEFERRED} > 1", [(KV, A, 0.5)], UNKNOWN),
        # a comparison of two signals is one part, which needs both
        (f"{KV} > on ($entity) {WAITING} and on ($entity) {DEFERRED} > 1", [(KV, A, 0.5)], UNKNOWN),
        # parts that match by other labels than named ones are left alone
        (f"{WAITING} > 10 and ignoring (rank) {KV} > 0.9", [(KV, A, 0.5)], UNKNOWN),
        # a value of the whole engine, or of everything, counts for each of its ranks
        (f"{WAITING} > 10 and on ($engine) max by ($engine) ({KV}) > 0.9", [(KV, A, 0.5)], CLEAR),
        (f"{WAITING} > 10 and on ($engine) max by ($engine) ({KV}) > 0.9", [(KV, A, 0.95)], UNKNOWN),
        (f"{WAITING} > 10 and on ($pod) max by ($pod) ({KV}) > 0.9", [(KV, A, 0.5)], CLEAR),
        (f"{WAITING} > 10 and on ($pod) max by ($pod) ({KV}) > 0.9", [(KV, A, 0.5), (KV, B, 0.95)], UNKNOWN),
        # another engine's part settles nothing for this one
        (f"{WAITING} > 10 and on ($entity) {KV} > 0.9", [(KV, B, 0.5)], UNKNOWN),
        (f"{WAITING} > 10 and on ($entity) {KV} > 0.9", [(KV, A, 0.95), (KV, B, 0.5)], UNKNOWN),
    ],
)
def test_which_parts_settle_a_rule(expr: str, seen: list[Seen], state: FindingState) -> None:
    """Only a part that must hold, that is wholly known and that can only be about this engine."""
    assert state is _after(rule(expr=expr), *seen).state


def test_samples_that_do_not_fit_settle_nothing() -> None:
    """Where Prometheus would refuse the samples, the rule stays unknown."""
    other = labels(engine="a", rank="1")
    made = rule(expr=f"{WAITING} > 10 and on ($entity) ({KV} > on (engine) {DEFERRED})")
    assert UNKNOWN is _after(made, (KV, A, 0.5), (DEFERRED, A, 1.0), (DEFERRED, other, 1.0)).state


def test_limiters_stay_unknown() -> None:
    """That a limiter is clear is taken for its resource being free; of that its other parts say nothing."""
    assert UNKNOWN is _after(limiter("Full", f"{KV} > 0.9 and on ($entity) {WAITING} > 10"), (KV, A, 0.5)).state


def test_without_an_engine_nothing_is_settled() -> None:
    """The rule that stands for all engines while none is known stays unknown."""
    room = Room(rule(expr=f"{WAITING} > 10 and on () vector(1) > 2"))
    for _ in range(6):
        room.see(("heptascope_gpu_power_watts", labels(gpu="0"), 100.0))
    assert UNKNOWN is room.state(pairs=())


def test_what_may_limit_unseen_is_still_not_healthy() -> None:
    """A fault that is clear although a signal is missing does not vouch for the limiter of its topic, which cannot be judged."""
    hidden = limiter("Launch", f"{WAITING} > 0.5", layer=Layer.OPERATOR, topic="launch", explains=("Dram",))
    fault = rule("LaunchFault", f"{WAITING} > 1 and on ($entity) {KV} > 0.9", layer=Layer.OPERATOR, topic="launch")
    room = Room(limiter("Dram", f"{RUNNING} > 0"), hidden, fault)
    for _ in range(6):
        verdict = room.see((RUNNING, A, 1.0), (WORK, A, 1.0), (KV, A, 0.5))
    assert (CLEAR, "cannot-tell") == (room.state("LaunchFault"), verdict.state.value)


@pytest.mark.parametrize("name", JUDGED)
def test_parts_of_the_catalogue_are_what_they_stand_for(name: str) -> None:
    """Each rule has a part whose labels its result has; every other is matched by labels of an engine or a GPU, or of nobody."""
    made = RULES[name]
    parts = promql.compile(made.text("10s"), where=made.where).conjuncts
    assert 1 == sum(part.on is None for part in parts)
    assert {"engine", "rank", "gpu"} >= {label for part in parts for label in part.on or ()}
    assert made.guard == "none" or len(parts) > 1
    assert made.kind is not RuleKind.SYMPTOM or parts
