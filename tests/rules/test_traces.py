"""Rules about traces: what they say of real ones, when they may speak, and what a fresh trace does to a live verdict."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from heptascope.config import Settings
from heptascope.model import Confidence, FindingState, Reading, RuleKind, Sample, VerdictState, labels
from heptascope.offline import passes
from heptascope.rules import promql
from heptascope.rules.diagnose import Diagnoser
from heptascope.rules.verdict import Claim, Verdict
from heptascope.signals.schema import SCHEMA
from heptascope.sources.trace import run
from heptascope.sources.trace.events import Trace
from heptascope.sources.trace.load import load
from heptascope.wiring import build_pipeline
from support.rule_cases import RULES, diagnosed, firing_case, merged
from support.scenes import START, Scene, decode, play
from support.trace_builder import TRACES

TRACED = {name: rule for name, rule in RULES.items() if rule.about_trace}
AGE = "heptascope_trace_age_seconds"
GAP = "heptascope_engine_step_host_gap_ratio"
TWINS = [
    (live.name, traced.name)
    for live in RULES.values()
    for traced in TRACED.values()
    if not live.about_trace and (live.layer, live.topic) == (traced.layer, traced.topic)
]


def _measured(*names: str) -> list[Sample]:
    loaded = [load(TRACES / name) for name in names]
    traces = [one for one in loaded if isinstance(one, Trace)]
    rows = run.measure(traces).to_samples() if traces else [row for one in loaded for row in one.to_samples()]  # type: ignore[union-attr]  # tables
    return [Sample(*row) for row in rows]


def _firing(judge: Diagnoser) -> set[str]:
    return {f.rule.name for f in judge.findings if f.state is FindingState.FIRING}


def _as_signals(samples: list[Sample], age: float = 60.0) -> list[dict[str, Any]]:
    rows = [{"name": s.name, "labels": dict(s.labels), "value": s.value} for s in samples]
    return [*rows, {"name": AGE, "value": age}, {"name": "heptascope_engine_requests_running", "value": 8}]


# the rules themselves


def test_rules_about_traces_are_careful() -> None:
    """Each needs a fresh trace of an engine that works, asks for nothing live, and wakes nobody."""
    for name, rule in TRACED.items():
        needed = {s.metric for s in promql.compile(rule.text("10s"), where=rule.where).selectors if s.required}
        assert {AGE, "heptascope_engine_trace_info", "heptascope_engine_has_work"} <= needed, name
        assert {"trace", "derived"} >= {supplier for metric in needed for supplier in SCHEMA[metric].suppliers}, name
        assert ("engine", "engine", True) == (rule.entity, rule.guard, rule.kind is RuleKind.LIMITER or rule.severity == "info"), name
        assert 900 == rule.threshold("fresh_seconds"), name


def test_rules_that_read_traces_ask_whose_they_are() -> None:
    """No rule reads a trace's measures without asking which engine the trace is of."""
    reading = {name for name, rule in RULES.items() if "heptascope_trace_" in rule.expr}
    assert reading == set(TRACED)


def test_the_docs_list_these_rules() -> None:
    """The table of docs/trace.md has each rule once, with its kind; twins are named beside it."""
    text = (Path(__file__).parents[2] / "docs" / "trace.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| (\w+) \| (limiter|fault) \|", text, re.MULTILINE)
    assert {name: rule.kind.value for name, rule in TRACED.items()} == dict(listed)
    assert len(TRACED) == len(listed)
    section = text.partition("(`corroborated_by`): ")[2].partition(". On")[0].replace("\n", " ")
    told = [
        (live, traced) for part in section.split(", ") for lives, _, traced in [part.partition(" by ")] for live in lives.split(" and ")
    ]
    assert sorted(TWINS) == sorted(told)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["eager-b8.json.gz"], {"TraceGapLimit", "TraceLaunchGaps"}),
        (["graph-b8.json.gz"], {"TraceGapLimit"}),
        (["base-prefill.json.gz"], set()),
        (["tp2-decode-c64-rank0.json.gz", "tp2-decode-c64-rank1.json.gz"], {"TraceGapLimit", "TraceStraggler"}),
        (["h200-eager.json.gz"], {"TraceGapLimit", "TraceLaunchGaps"}),
        (["h200-graph.json.gz"], set()),
        (["h200-ncu-raw.csv"], set()),
    ],
)
def test_what_real_traces_are_judged_to_be(names: list[str], expected: set[str]) -> None:
    """Eager decoding is launch-bound; with graphs the host only limits; prefill and a replayed graph are fine; one rank came late."""
    assert expected == _firing(diagnosed(merged(_as_signals(_measured(*names)), {}), tuple(TRACED.values())))


def test_a_stale_trace_says_nothing() -> None:
    """After a quarter of an hour no rule speaks of it."""
    signals = merged(_as_signals(_measured("eager-b8.json.gz"), age=901), {})
    assert set() == _firing(diagnosed(signals, tuple(TRACED.values())))


def test_live_counters_outrank_a_trace() -> None:
    """A profiler makes gaps and stragglers of its own: where live counters see none, the trace is not believed."""
    eager = merged([*_as_signals(_measured("eager-b8.json.gz")), {"name": GAP, "value": 0.04}], {})
    assert {"TraceGapLimit"} == _firing(diagnosed(eager, tuple(TRACED.values())))
    pair = _as_signals(_measured("tp2-decode-c64-rank0.json.gz", "tp2-decode-c64-rank1.json.gz"))
    level = [{"name": "heptascope_gpu_sm_active_ratio", "labels": {"gpu": gpu}, "value": 0.55} for gpu in ("0", "1")]
    assert {"TraceGapLimit"} == _firing(diagnosed(merged([*pair, *level], {}), tuple(TRACED.values())))


def test_time_without_work_is_no_gap() -> None:
    """Of a trace whose GPU mostly had nothing to do, only what the host cost is held against it."""
    paused = {s.name: s.value for s in _measured("h200-paused.json.gz") if s.labels == labels(trace_rank="0")}
    assert paused["heptascope_trace_work_gap_ratio"] < 0.4 < 0.9 < paused["heptascope_trace_kernel_gap_ratio"]
    signals = [*_as_signals([]), {"name": "heptascope_trace_gap_ratio", "labels": {"trace_rank": "0", "cause": "empty"}, "value": 0.95}]
    signals.append({"name": "heptascope_trace_work_gap_ratio", "labels": {"trace_rank": "0"}, "value": 0.02})
    assert set() == _firing(diagnosed(merged(signals, {}), tuple(TRACED.values())))


# what a trace does to a verdict


def _verdict(*rules: str, signals: list[dict[str, Any]]) -> Verdict:
    verdict = diagnosed(merged(signals, {}), tuple(RULES[name] for name in rules)).latest
    assert verdict is not None
    return verdict


def _both(live: str, traced: str, age: float) -> Verdict:
    signals = [*firing_case(traced).entries, *firing_case(live).entries, {"name": AGE, "value": age}]
    return _verdict(live, traced, signals=signals)


def _claim(verdict: Verdict, name: str) -> Claim:
    claims = (*verdict.faults, *verdict.consequences, *((verdict.limiter,) if verdict.limiter else ()))
    return next(claim for claim in claims if claim.rule == name)


def test_twins_are_those_that_are_meant() -> None:
    """A live rule and one about a trace are of one topic only where they say the same thing."""
    assert {
        ("LaunchLimit", "TraceLaunchGaps"),
        ("LaunchOverhead", "TraceLaunchGaps"),
        ("Recompilation", "TraceCompilation"),
        ("OccupancyLimit", "ProfiledLatencyLimit"),
        ("LowOccupancy", "ProfiledOccupancyLimit"),
        ("LinkLimit", "TraceCommunicationLimit"),
        ("StragglerLimit", "TraceStraggler"),
        ("StragglerRank", "TraceStraggler"),
        ("PipelineBubbleLimit", "TraceBubbles"),
        ("PipelineBubble", "TraceBubbles"),
    } == set(TWINS)


@pytest.mark.parametrize(("live", "traced"), TWINS)
def test_a_fresh_trace_makes_a_live_claim_surer(live: str, traced: str) -> None:
    """The same claim alone, beside a stale trace, and beside a fresh one: only the last is a step surer, and names its witness."""
    order = [Confidence.WEAK, Confidence.INFERRED, Confidence.DIRECT]
    alone = _claim(_verdict(live, signals=list(firing_case(live).entries)), live)
    stale, fresh = _claim(_both(live, traced, 901), live), _claim(_both(live, traced, 60), live)
    surer = order[min(order.index(alone.confidence) + 1, 2)]
    assert (alone.confidence, ()) == (stale.confidence, stale.corroborated_by)
    assert (surer, (traced,)) == (fresh.confidence, fresh.corroborated_by)


def test_the_verdict_is_as_sure_as_its_surest_root() -> None:
    """What a trace adds to the root fault shows in the verdict's own confidence."""
    assert (Confidence.INFERRED, Confidence.DIRECT) == (
        _both("LaunchOverhead", "TraceLaunchGaps", 901).confidence,
        _both("LaunchOverhead", "TraceLaunchGaps", 60).confidence,
    )


def test_a_trace_of_another_topic_changes_nothing() -> None:
    """Copies in a trace are no witness of launches one by one."""
    signals = [*firing_case("TraceCopies").entries, *firing_case("LaunchOverhead").entries]
    claim = _claim(_verdict("LaunchOverhead", "TraceCopies", signals=signals), "LaunchOverhead")
    assert (Confidence.INFERRED, ()) == (claim.confidence, claim.corroborated_by)


def test_a_trace_never_names_the_limiter() -> None:
    """What limits now is for live signals to say: a trace alone leaves the limiter unknown, and the verdict with it."""
    verdict = _verdict("TraceGapLimit", "DramBandwidthLimit", signals=list(firing_case("TraceGapLimit").entries))
    assert (VerdictState.CANNOT_TELL, None) == (verdict.state, verdict.limiter)


def test_what_only_a_trace_shows_is_a_fault_of_its_own() -> None:
    """Compilations in a fresh trace are a root fault, and explain what users feel."""
    signals = [*firing_case("InterTokenLatencyHigh").entries, *firing_case("TraceCompilation").entries]
    verdict = _verdict("InterTokenLatencyHigh", "TraceCompilation", signals=signals)
    assert (VerdictState.DEGRADED, ["TraceCompilation"], ("TraceCompilation",)) == (
        verdict.state,
        [c.rule for c in verdict.faults],
        verdict.symptoms[0].because,
    )


# the whole catalogue beside a healthy load


def _judged(scene: Scene, samples: list[Sample]) -> Verdict:
    news = [*play(scene)]
    news += [Reading("trace", START + s, [*samples, Sample(AGE, (), 60.0 + s)]) for s in range(0, scene.seconds, 5)] if samples else []
    *_, last = passes(sorted(news, key=lambda item: item.t), build_pipeline(Settings(), {}))
    return last.verdict


@pytest.mark.parametrize("name", ["", "eager-b8.json.gz", "graph-b8.json.gz", "base-prefill.json.gz"])
def test_a_healthy_engine_stays_healthy_whatever_its_profiler_did(name: str) -> None:
    """Beside a load whose counters see no gap, no trace makes a fault, another limiter or another confidence, or hides what is unknown."""
    alone = _judged(decode(), [])
    verdict = _judged(decode(), _measured(name) if name else [])
    assert (VerdictState.HEALTHY, "DramBandwidthLimit") == (verdict.state, verdict.limiter.rule if verdict.limiter else "")
    assert (alone.confidence, alone.faults, {u.rule for u in alone.cannot_tell}) == (
        verdict.confidence,
        verdict.faults,
        {u.rule for u in verdict.cannot_tell},
    )
    assert set() == {u.rule for u in verdict.cannot_tell} & set(TRACED)


def test_of_two_engines_nobody_is_blamed() -> None:
    """Where it cannot be told whose trace it is, its rules cannot be judged."""
    scene = decode()
    other = decode(labels(engine="sglang", rank="0"))
    scene.series.update({key: does for key, does in other.series.items() if key[0].startswith("engine")})
    scene.rates.update(other.rates)
    verdict = _judged(scene, _measured("eager-b8.json.gz"))
    assert set() == {c.rule for c in verdict.faults} & set(TRACED)
    assert {"TraceLaunchGaps", "TraceGapLimit"} <= {u.rule for u in verdict.cannot_tell}
