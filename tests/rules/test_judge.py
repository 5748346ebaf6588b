"""The judge: pending, firing, kept, clear, and cannot tell with its reasons, for each engine rank and GPU."""

from __future__ import annotations

import pytest

from heptascope.errors import UserError
from heptascope.model import FindingState, Missing, Reason, labels
from heptascope.rules.instances import Instance
from heptascope.rules.judge import JudgeSettings, RuleJudge
from heptascope.signals.store import Store
from support.judging import KV, POWER, RUNNING, WORK, A, Room, rule

FIRING, PENDING, CLEAR, UNKNOWN = FindingState.FIRING, FindingState.PENDING, FindingState.CLEAR, FindingState.CANNOT_TELL
B = labels(engine="b", rank="0")
FULL, FREE = 0.95, 0.5


def run(room: Room, *levels: float) -> list[FindingState]:
    """Return the state after each second with these KV cache levels."""
    states = []
    for level in levels:
        room.see((RUNNING, A, 1.0), (KV, A, level))
        states.append(room.state())
    return states


def test_fires_after_the_hold() -> None:
    """A condition is pending until it has held for three seconds."""
    assert [CLEAR, PENDING, PENDING, PENDING, FIRING, FIRING] == run(Room(rule()), FREE, FULL, FULL, FULL, FULL, FULL)


def test_stays_for_as_long_as_it_took() -> None:
    """A firing rule clears when its condition has been gone for three seconds, and not before."""
    room = Room(rule())
    run(room, FULL, FULL, FULL, FULL)
    assert [FIRING, FIRING, CLEAR, CLEAR] == run(room, FREE, FREE, FREE, FREE)


def test_flapping_does_not_flap() -> None:
    """A condition that comes and goes every second neither starts a finding nor ends one."""
    assert {CLEAR, PENDING} == set(run(Room(rule()), *(FULL, FREE) * 6))
    room = Room(rule())
    run(room, FULL, FULL, FULL, FULL)
    assert {FIRING} == set(run(room, *(FREE, FULL) * 6))


def test_since_is_when_the_state_began() -> None:
    """A finding says since when it has been pending, and since when firing."""
    room = Room(rule())
    begin = room.t
    run(room, FREE, FULL, FULL)
    assert begin + 2 == room.judge.findings[0].since
    run(room, FULL, FULL, FULL)
    assert begin + 5 == room.judge.findings[0].since


def test_no_hold_fires_at_once() -> None:
    """With a hold of nothing the first pass decides."""
    assert [FIRING, CLEAR] == run(Room(rule(), hold=0.0), FULL, FREE)


def test_an_absent_signal_cannot_be_told() -> None:
    """A rule whose signal is absent is not clear; the reason is the one that its source gave."""
    room = Room(rule())
    room.see((RUNNING, A, 1.0), missing=(Missing(KV, Reason.ENGINE_TOO_OLD, "since 0.9", A),))
    assert (UNKNOWN, (Missing(KV, Reason.ENGINE_TOO_OLD, "since 0.9", A),)) == (room.state(), room.why())


def test_an_absent_signal_without_a_reason_has_no_source() -> None:
    """Where nobody says why a signal is absent, nobody supplies it."""
    room = Room(rule())
    room.see((RUNNING, A, 1.0))
    assert [(KV, Reason.NO_SOURCE)] == [(m.signal, m.reason) for m in room.why()]


def test_a_reason_for_another_engine_is_none_for_this() -> None:
    """A reason that is labelled with one engine does not excuse another."""
    room = Room(rule())
    room.see((RUNNING, A, 1.0), (RUNNING, B, 1.0), missing=(Missing(KV, Reason.FLAG_OFF, "", A),))
    assert [Reason.FLAG_OFF, Reason.NO_SOURCE] == [room.why(pairs=pairs)[0].reason for pairs in (A, B)]


def test_a_firing_rule_that_loses_its_signal_cannot_be_told_at_once() -> None:
    """The hold keeps a finding over a gap in its condition, not over the loss of what it rests on."""
    room = Room(rule())
    run(room, FULL, FULL, FULL, FULL)
    room.see((RUNNING, A, 1.0))
    assert UNKNOWN is room.state()


@pytest.mark.parametrize("reason", [Reason.NOT_CONFIGURED, Reason.IDLE])
def test_what_does_not_apply_is_clear(reason: Reason) -> None:
    """What is switched off, or undefined without work, cannot be wrong."""
    room = Room(rule())
    room.see((RUNNING, A, 1.0), missing=(Missing(KV, reason, "", A),))
    assert CLEAR is room.state()


@pytest.mark.parametrize("reason", [reason for reason in Reason if reason not in (Reason.NOT_CONFIGURED, Reason.IDLE)])
def test_every_other_reason_is_unknown(reason: Reason) -> None:
    """No other reason of the closed list makes a rule clear."""
    room = Room(rule())
    room.see((RUNNING, A, 1.0), missing=(Missing(KV, reason, "", A),))
    assert (UNKNOWN, reason) == (room.state(), room.why()[0].reason)


def test_samples_that_do_not_fit_cannot_be_told() -> None:
    """Where Prometheus would refuse the samples, the rule says so and the others go on."""
    signal = "heptascope_engine_requests_finished_total"
    room = Room(rule("Many", f"{KV} > on ($entity) {signal}"), rule(), hold=0.0)
    several = tuple((signal, labels(reason=reason, **dict(A)), 1.0) for reason in ("stop", "length"))
    room.see((RUNNING, A, 1.0), (KV, A, FULL), *several)
    assert (UNKNOWN, FIRING) == (room.state("Many"), room.state())
    assert Reason.AMBIGUOUS is room.why("Many")[0].reason


def test_two_engines_have_their_own_findings() -> None:
    """One engine's full cache says nothing of another's."""
    room = Room(rule(), hold=0.0)
    room.see((RUNNING, A, 1.0), (RUNNING, B, 1.0), (KV, A, FULL), (KV, B, FREE))
    assert (FIRING, CLEAR) == (room.state(pairs=A), room.state(pairs=B))


def test_two_ranks_have_their_own_findings() -> None:
    """Nor does one rank's."""
    first, second = labels(engine="a", rank="0"), labels(engine="a", rank="1")
    room = Room(rule(), hold=0.0)
    room.see((RUNNING, first, 1.0), (RUNNING, second, 1.0), (KV, first, FREE), (KV, second, FULL))
    assert (CLEAR, FIRING) == (room.state(pairs=first), room.state(pairs=second))


def test_two_gpus_have_their_own_findings() -> None:
    """A GPU's rule is judged for each GPU, and for no engine."""
    hot, cool = labels(gpu="0", uuid="GPU-a"), labels(gpu="1", uuid="GPU-b")
    room = Room(rule("Hot", f"{POWER} > 500", entity="gpu"), hold=0.0)
    room.see((POWER, hot, 700.0), (POWER, cool, 100.0))
    assert (FIRING, CLEAR) == (room.state("Hot", hot), room.state("Hot", cool))
    assert [hot, cool] == [f.instance.pairs for f in room.judge.findings]


def test_an_engine_wide_value_counts_for_each_rank() -> None:
    """A result that names only the engine, as those about its processes do, is a result for all its ranks."""
    ranks = [labels(engine="a", rank=str(rank)) for rank in range(2)]
    cpu = "heptascope_host_process_threads"
    room = Room(rule("Busy", f"max by ($engine) ({cpu}) > 5"), hold=0.0)
    room.see(*((RUNNING, rank, 1.0) for rank in ranks), (cpu, labels(engine="a", role="engine_core", process="engine_core"), 9.0))
    assert [FIRING, FIRING] == [room.state("Busy", rank) for rank in ranks]


def test_without_work_a_guarded_rule_is_clear() -> None:
    """An engine without work is clear of guarded rules, even where their signals are absent."""
    room = Room(rule(guard="engine"))
    room.see((RUNNING, A, 0.0), (WORK, A, 0.0))
    assert CLEAR is room.state()


def test_with_work_a_guarded_rule_is_judged() -> None:
    """With work the same absence cannot be told, and the condition fires."""
    room = Room(rule(guard="engine"), hold=0.0)
    room.see((RUNNING, A, 1.0), (WORK, A, 1.0))
    assert UNKNOWN is room.state()
    room.see((RUNNING, A, 1.0), (WORK, A, 1.0), (KV, A, FULL))
    assert FIRING is room.state()


@pytest.mark.parametrize(
    ("signal", "label", "there"),
    [
        ("heptascope_engine_resource_pressure_ratio", "resource", "dram"),
        ("heptascope_host_process_threads", "role", "engine_core"),
        ("heptascope_engine_slo_seconds", "latency", "e2e_latency"),
    ],
)
def test_a_value_about_something_else_is_no_value(signal: str, label: str, there: str) -> None:
    """A series about another resource, role or latency does not make up for the one that a rule is about."""
    room = Room(rule(expr=f'{signal}{{{label}="wanted"}} > 0'))
    row = {"engine": "a", label: there} if label == "role" else {**dict(A), label: there}
    room.see(
        (RUNNING, A, 1.0), (signal, labels(**row), 1.0), missing=(Missing(signal, Reason.FLAG_OFF, "", labels(**{**row, label: "wanted"})),)
    )
    assert (UNKNOWN, Reason.FLAG_OFF) == (room.state(), room.why()[0].reason)


def test_an_event_that_never_happened_is_no_absent_signal() -> None:
    """A counter by reason has no series before the first event; while it has others, the rule is clear."""
    signal = "heptascope_engine_requests_finished_total"
    room = Room(rule(expr=f'rate({signal}{{reason="error"}}[$window]) > 0'))
    room.see((RUNNING, A, 1.0), (signal, labels(reason="stop", **dict(A)), 1.0))
    assert CLEAR is room.state()


def test_an_info_without_a_row_is_an_answer() -> None:
    """Where processes are listed and none is a worker, there is none."""
    info = "heptascope_host_process_info"
    room = Room(rule(expr=f'count by ($engine) ({info}{{role="worker"}}) > 1'))
    room.see((RUNNING, A, 1.0), (info, labels(engine="a", role="engine_core", process="engine_core", pid="1"), 1.0))
    assert CLEAR is room.state()


def test_without_any_engine_its_rules_cannot_be_told() -> None:
    """With the only engine unreachable, rules about engines do not vanish: they say what lacks, and why."""
    room = Room(rule(guard="engine"), hold=0.0)
    room.see((RUNNING, A, 1.0), (KV, A, FREE), (WORK, A, 1.0))
    room.store.fail("source", room.t, Reason.SOURCE_DOWN, "connection refused")
    room.judge.step(room.store, room.t + 1)
    assert UNKNOWN is room.state(pairs=())
    assert {(KV, Reason.SOURCE_DOWN, "connection refused"), (WORK, Reason.SOURCE_DOWN, "connection refused")} == {
        (m.signal, m.reason, m.detail) for m in room.why(pairs=())
    }


def test_nothing_known_at_all() -> None:
    """Before the first reading both kinds are unknown, and nothing is claimed."""
    judge = RuleJudge([rule(), rule("Hot", f"{POWER} > 500", entity="gpu")])
    assert [UNKNOWN, UNKNOWN] == [f.state for f in judge.step(Store(), 1.0)]
    assert [Instance("engine", (), ()), Instance("gpu", (), ())] == judge.instances


def test_a_gone_engine_leaves_no_finding() -> None:
    """A finding ends with what it was about."""
    room = Room(rule(), hold=0.0)
    room.see((RUNNING, A, 1.0), (RUNNING, B, 1.0), (KV, A, FULL), (KV, B, FULL))
    room.see((RUNNING, B, 1.0), (KV, B, FULL))
    assert [B] == [f.instance.pairs for f in room.judge.findings]


def test_the_gain_is_a_share() -> None:
    """What mending is worth is told as a share of something, and not at all where it cannot be worked out."""
    gained = rule(gain=f"{KV} / 2", gain_text="of it comes back")
    room = Room(gained, rule("Odd", gain=f"{KV} * 5", gain_text="?"), rule("None"), hold=0.0)
    verdict = room.see((RUNNING, A, 1.0), (KV, A, 0.96))
    assert {"Full": "48% of it comes back", "Odd": "", "None": ""} == {claim.rule: claim.gain for claim in verdict.faults}


def test_the_window_is_what_is_configured() -> None:
    """`[$window]` stands for the configured seconds."""
    judge = RuleJudge([rule(expr=f"avg_over_time({KV}[$window]) > 0.9")], JudgeSettings(window=2.0, hold=0.0))
    room = Room(rule())
    for level in (FREE, FREE, FULL, FULL):
        room.see((RUNNING, A, 1.0), (KV, A, level))
    assert [FIRING] == [f.state for f in judge.step(room.store, room.t) if f.instance.pairs]


def test_a_rule_that_is_no_promql_is_refused_with_its_place() -> None:
    """A condition that cannot be read is an error before anything runs, at the rule's file and line."""
    with pytest.raises(UserError, match=r"rules\.yaml:7: "):
        RuleJudge([rule(expr="rate(", where="rules.yaml:7")])
