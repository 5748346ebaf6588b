"""The verdict as series: findings, what is unknown, limiter, layers, state."""

from __future__ import annotations

from heptascope.model import Layer, RuleKind, VerdictState, labels
from heptascope.rules.export import LAYER_STATES, Values
from support.judging import KV, POWER, RUNNING, WAITING, WORK, A, Room, limiter, rule

B = labels(engine="b", rank="1")
GPU = labels(gpu="0", uuid="GPU-a")
BUSY = ((RUNNING, A, 1.0), (WORK, A, 1.0))


def values(room: Room, *seen: tuple[str, tuple[tuple[str, str], ...], float]) -> Values:
    """Return the series after a pass."""
    room.see(*seen)
    return room.judge.values()


def chosen(found: Values, name: str, **where: str) -> list[str]:
    """Return the states of the series of one name and labels whose value is 1."""
    return [dict(pairs)["state"] for pairs, value in found[name] if value == 1 and where.items() <= dict(pairs).items()]


ROOM_RULES = (
    limiter("Dram", f"{RUNNING} > 0"),
    rule(),
    rule("Slow", f"{WAITING} > 10", kind=RuleKind.SYMPTOM, layer=Layer.APPLICATION, topic="slo", severity="info"),
    rule("Hot", f"{POWER} > 500", entity="gpu", layer=Layer.OPERATOR, topic="occupancy", severity="critical"),
    rule("Cap", "heptascope_engine_sequence_limit > 0", layer=Layer.SCHEDULING, topic="sequence-cap"),
)


def test_a_firing_rule_is_a_finding() -> None:
    """Each firing rule is a series of value 1 with rule, layer, kind, severity and what it is about; empty labels are left out."""
    found = values(Room(*ROOM_RULES, hold=0.0), *BUSY, (KV, A, 0.95), (WAITING, A, 1.0), (POWER, GPU, 700.0))
    assert {
        labels(rule="Full", layer="memory", kind="fault", severity="warning", engine="a", rank="0"): 1.0,
        labels(rule="Hot", layer="operator", kind="fault", severity="critical", gpu="0"): 1.0,
        labels(rule="Dram", layer="hardware", kind="limiter", severity="warning", engine="a", rank="0"): 1.0,
    } == dict(found["heptascope_finding"])


def test_a_root_fault_is_its_own_series() -> None:
    """A fault that another one explains is a finding, but not one to mend."""
    tax = rule("Tax", f"{WAITING} > 0", topic="recompute")
    found = values(Room(rule(explains=("Tax",)), tax, hold=0.0), *BUSY, (KV, A, 0.95), (WAITING, A, 5.0))
    assert ["Full", "Tax"] == sorted(dict(pairs)["rule"] for pairs, _ in found["heptascope_finding"])
    assert ((labels(rule="Full", layer="memory", severity="warning", engine="a", rank="0"), 1.0),) == found["heptascope_finding_root"]


def test_an_unknown_rule_is_its_own_series() -> None:
    """What cannot be judged is never the absence of a finding."""
    found = values(Room(*ROOM_RULES, hold=0.0), *BUSY, (KV, A, 0.1), (WAITING, A, 1.0), (POWER, GPU, 1.0))
    assert [labels(rule="Cap", layer="scheduling", kind="fault", engine="a", rank="0")] == [
        p for p, _ in found["heptascope_finding_unknown"]
    ]


def test_the_limiter_is_one_series() -> None:
    """The limiter has its rule, layer and engine; an idle engine has none."""
    room = Room(*ROOM_RULES, hold=0.0)
    assert ((labels(rule="Dram", layer="hardware", engine="a"), 1.0),) == values(room, *BUSY)["heptascope_limiter"]
    assert () == values(room, (RUNNING, A, 1.0), (WORK, A, 0.0))["heptascope_limiter"]


def test_the_state_is_one_of_four() -> None:
    """Every state has a series, of which one is 1."""
    found = values(Room(*ROOM_RULES, hold=0.0), *BUSY, (KV, A, 0.95))["heptascope_verdict"]
    assert {state.value: float(state is VerdictState.DEGRADED) for state in VerdictState} == {dict(p)["state"]: v for p, v in found}


def test_layers() -> None:
    """A layer is faulty, shows a symptom, limits, is clear, or could not be judged at all."""
    found = values(Room(*ROOM_RULES, hold=0.0), *BUSY, (KV, A, 0.95), (WAITING, A, 50.0), (POWER, GPU, 1.0))
    wanted = {
        "hardware": "limiting",
        "operator": "clear",
        "memory": "faulty",
        "scheduling": "cannot-tell",
        "parallel": "cannot-tell",
        "speculative": "cannot-tell",
        "application": "symptom",
    }
    assert {layer: [state] for layer, state in wanted.items()} == {
        layer.value: chosen(found, "heptascope_layer_state", layer=layer.value) for layer in Layer
    }
    assert len(Layer) * len(LAYER_STATES) == len(found["heptascope_layer_state"])


def test_several_engines_have_their_own_series() -> None:
    """Each engine has its state, limiter and layers, and none stands for all."""
    found = values(Room(*ROOM_RULES, hold=0.0), *BUSY, (KV, A, 0.95), (RUNNING, B, 1.0), (WORK, B, 1.0), (KV, B, 0.1))
    assert {"a": ["degraded"], "b": ["healthy"]} == {e: chosen(found, "heptascope_verdict", engine=e) for e in ("a", "b")}
    assert {"a": ["faulty"], "b": ["clear"]} == {e: chosen(found, "heptascope_layer_state", engine=e, layer="memory") for e in ("a", "b")}
    assert {"a", "b"} == {dict(pairs)["engine"] for pairs, _ in found["heptascope_verdict"]}


def test_before_the_first_pass_there_is_nothing() -> None:
    """No verdict, no series."""
    assert ({}, None) == (Room(*ROOM_RULES).judge.values(), Room(*ROOM_RULES).judge.verdict())


def test_a_layer_is_not_clear_because_no_trace_says_anything() -> None:
    """Where live rules of a layer cannot be judged, a rule about traces that is clear does not make up for them; one that fires shows."""
    traced = rule("Traced", f"heptascope_engine_trace_info * {KV} > 0.9", layer=Layer.SCHEDULING, topic="sequence-cap", kind=RuleKind.FAULT)
    cap = rule("Cap", "heptascope_engine_sequence_limit > 0", layer=Layer.SCHEDULING, topic="sequence-cap")
    info = ("heptascope_engine_trace_info", A, 1.0)
    assert ["cannot-tell"] == chosen(
        values(Room(cap, traced, hold=0.0), *BUSY, info, (KV, A, 0.1)), "heptascope_layer_state", layer="scheduling"
    )
    assert ["faulty"] == chosen(
        values(Room(cap, traced, hold=0.0), *BUSY, info, (KV, A, 0.95)), "heptascope_layer_state", layer="scheduling"
    )


def test_a_layer_is_not_clear_because_one_condition_fails() -> None:
    """A fault that cannot fire whatever is missing is no finding and not unknown; its layer is nevertheless not known to be well."""
    both = rule(expr=f"{KV} > 0.9 and on ($entity) heptascope_engine_sequence_limit > 0")
    found = values(Room(both, hold=0.0), *BUSY, (KV, A, 0.1))
    assert ((), ["cannot-tell"]) == (found.get("heptascope_finding_unknown", ()), chosen(found, "heptascope_layer_state", layer="memory"))
