"""Without work no rule fires, whatever its gauges say, and the verdict is that the server is idle."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from heptascope.model import FindingState, VerdictState
from heptascope.signals.schema import SCHEMA
from heptascope.signals.schema_gpu import ACTIVITY
from heptascope.signals.schema_row import Kind
from support.rule_cases import JUDGED, RULES, diagnosed, firing_case, merged
from support.scenes import ENGINE, Scene, engine_identity, idle_gpu, judged, processes

LOAD = ("requests_running", "requests_waiting", "requests_deferred")
_RESTING = {
    **{f"heptascope_engine_{name}": 0.0 for name in LOAD},
    **{f"heptascope_gpu_{what}_ratio": 0.0 for what in ACTIVITY},
    "heptascope_gpu_utilization_ratio": 0.0,
    "heptascope_gpu_power_watts": 129.0,
}


def resting(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return signals as they are without work: counters and histograms stand still, nothing runs or waits, the GPU rests."""
    found: list[dict[str, Any]] = [
        {"name": f"heptascope_engine_{LOAD[0]}", "value": 0.0},
        {"name": "heptascope_gpu_utilization_ratio", "value": 0.0},
    ]
    for entry in entries:
        kind, name = SCHEMA[entry["name"]].kind, entry["name"]
        where = {"name": name, "labels": entry.get("labels", {})}
        if kind is Kind.COUNTER:
            found.append({**where, "rate": 0.0})
        elif kind is Kind.HISTOGRAM:
            found.append({**where, "distribution": {**entry["distribution"], "rate": 0.0}})
        else:
            found.append({**where, "value": _RESTING.get(name, entry.get("value", 1.0))})
    return found


@pytest.mark.parametrize("name", JUDGED)
def test_no_rule_fires_without_work(name: str) -> None:
    """With the signals in which a rule fires, but nothing running and all counters flat, no guarded rule fires."""
    judge = diagnosed(merged(resting(firing_case(name).entries), {}), tuple(RULES[other] for other in JUDGED))
    firing = {f.rule.name for f in judge.findings if f.state is FindingState.FIRING}
    assert set() == {rule for rule in firing if RULES[rule].guard != "none"}
    assert judge.latest is not None
    assert (VerdictState.DEGRADED if firing else VerdictState.IDLE) is judge.latest.state
    assert judge.latest.limiter is None


def test_what_idle_servers_may_be_told() -> None:
    """Rules without a guard speak of what is broken or wrong whether or not there is work."""
    hardware = {"XidErrors", "GpuRecoveryWanted", "GpusMissing", "GpuLost", "EccUncorrected", "RowRemapPending", "ProfilingStuck"}
    assert {*hardware, "KVCacheSmallerThanRequest", "EngineErrors", "ClientErrors"} == {
        name for name in JUDGED if RULES[name].guard == "none"
    }


def test_an_idle_server_is_idle_in_every_pass() -> None:
    """A whole pod without a request is idle from the second poll on, with nothing claimed and nothing to complain of."""
    scene = processes_at_rest(engine_at_rest(idle_gpu(Scene(seconds=20))))
    verdicts = [found.verdict for found in judged(scene)][1:]
    assert {VerdictState.IDLE} == {verdict.state for verdict in verdicts}
    assert [] == [claim for verdict in verdicts for claim in (*verdict.faults, *verdict.consequences, *verdict.symptoms)]


def engine_at_rest(scene: Scene) -> Scene:
    """Add an engine that has just started, or whose users sleep."""
    engine_identity(scene, ENGINE)
    scene.set(ENGINE, **{f"engine_{name}": 0.0 for name in LOAD}, engine_kv_cache_usage_ratio=0.0)
    counters = (
        "prompt_tokens",
        "generation_tokens",
        "steps",
        "step_tokens",
        "preemptions",
        "prefix_cache_queried_tokens",
        "prefix_cache_hit_tokens",
    )
    return scene.set(ENGINE, **{f"engine_{name}_total": 0.0 for name in counters})


def processes_at_rest(scene: Scene) -> Scene:
    """Add its processes."""
    processes(scene, dict(ENGINE)["engine"], core=0.01, server=0.02)
    return scene
