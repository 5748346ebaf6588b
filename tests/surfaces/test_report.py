"""The verdict as text: the answer first, evidence with units and thresholds, next steps, and what is not known."""

from __future__ import annotations

from typing import Any

import pytest

from heptascope.model import Reason, SourceStatus
from heptascope.rules.judge import BASELINE
from heptascope.surfaces.report import MOST_UNKNOWN, entity_text, first_line, summary_text, value_text, verdict_lines
from heptascope.surfaces.words import REASON_WORDS
from support.replays import verdict

KV = "heptascope_engine_kv_cache_usage_ratio"


def claim(rule: str = "Full", kind: str = "fault", **other: Any) -> dict[str, Any]:
    """Return a claim as JSON."""
    made = {
        "rule": rule,
        "layer": "memory",
        "topic": "capacity",
        "kind": kind,
        "severity": "warning",
        "entity": {"engine": "vllm", "rank": "0"},
    }
    made |= {"confidence": "direct", "summary": f"{rule} is true.", "since": 0.0, "evidence": [], "actions": [], "because": []}
    return {**made, **other}


def told(state: str, **other: Any) -> dict[str, Any]:
    """Return a verdict as JSON; what is not said is empty."""
    empty = {"confidence": "direct", "engine": "vllm", "limiter": None, "faults": [], "consequences": [], "symptoms": [], "cannot_tell": []}
    return {"state": state, **empty, **other}


LIMITER = claim("Dram", "limiter", layer="hardware", topic="dram", confidence="inferred")


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (told("idle"), "IDLE: no requests"),
        (
            told("healthy", limiter=LIMITER, confidence="inferred"),
            "HEALTHY: nothing to fix; throughput is bound by hardware/dram [inferred]",
        ),
        (told("healthy", confidence="inferred"), "HEALTHY: nothing to fix; the load is light and nothing limits it [inferred]"),
        (told("degraded", faults=[claim(), claim("Other")]), "DEGRADED: Full is true. [memory/capacity, seen directly]"),
        (told("degraded", symptoms=[claim()], confidence="weak"), "DEGRADED: users feel it, but no cause was found [weak evidence]"),
        (told("cannot-tell"), "CANNOT TELL: too little can be read to judge"),
        (told("cannot-tell", limiter=LIMITER), "CANNOT TELL everything; what can be read points at hardware/dram [inferred]"),
    ],
)
def test_the_first_line_is_the_answer(found: dict[str, Any], line: str) -> None:
    """State first, then what is wrong or what limits, and how sure that is."""
    assert line == first_line(found) == next(verdict_lines(found))


@pytest.mark.parametrize(
    ("entity", "text"),
    [
        ({"engine": "vllm", "rank": "0"}, "vllm"),
        ({"engine": "vllm", "rank": "3"}, "vllm rank 3"),
        ({"engine": "vllm"}, "vllm"),
        ({"gpu": "2", "uuid": "GPU-a"}, "GPU 2"),
        ({}, "engine"),
    ],
)
def test_entities(entity: dict[str, str], text: str) -> None:
    """Engines by name, their ranks where there are several, GPUs by index."""
    assert text == entity_text(entity)


@pytest.mark.parametrize(
    ("evidence", "text"),
    [
        ({"signal": KV, "value": 0.9912, "threshold": 0.97, "comparison": ">"}, "engine_kv_cache_usage_ratio = 99.1 %  (rule: > 97 %)"),
        ({"signal": KV, "value": 0.5}, "engine_kv_cache_usage_ratio = 50 %"),
        ({"signal": "heptascope_engine_preemptions_total", "value": 6.0, "text": "per second"}, "engine_preemptions_total = 6/s"),
        (
            {
                "signal": "heptascope_gpu_throttle_seconds_total",
                "value": 0.4,
                "text": "reason=power_cap per second",
                "threshold": 0.1,
                "comparison": ">",
            },
            "gpu_throttle_seconds_total [reason=power_cap] = 40 %  (rule: > 10 %)",
        ),
        ({"signal": "heptascope_engine_e2e_latency_seconds", "value": 3.97, "text": "mean"}, "engine_e2e_latency_seconds = 3.97 s (mean)"),
        ({"signal": "heptascope_gpu_power_watts", "value": 598.2, "text": "gpu=0"}, "gpu_power_watts [gpu=0] = 598 W"),
        (
            {"signal": "heptascope_gpu_pcie_receive_bytes_total", "value": 5.5e10, "text": "per second"},
            "gpu_pcie_receive_bytes_total = 55 GB/s",
        ),
        ({"signal": "heptascope_gpu_memory_used_bytes", "value": 2.0**30}, "gpu_memory_used_bytes = 1 GiB"),
    ],
)
def test_numbers_have_units(evidence: dict[str, Any], text: str) -> None:
    """Ratios in per cent, counters a second, seconds a second as a share of time, and the threshold in the same unit."""
    assert text == value_text(evidence)


CPU, GAP = "heptascope_host_process_cpu_seconds_total", "heptascope_engine_inter_token_latency_seconds"


@pytest.mark.parametrize(
    ("evidence", "text"),
    [
        ({"signal": CPU, "value": 1.0, "text": "process=api_server role=api_server per second"}, "[process=api_server] = 100 %"),
        ({"signal": CPU, "value": 1.0, "text": "process=other-1 role=other per second"}, "[process=other-1] = 100 %"),
        ({"signal": CPU, "value": 1.0, "text": "process=x role=other per second"}, "[process=x role=other] = 100 %"),
        ({"signal": "heptascope_gpu_power_watts", "value": 598.2, "text": "gpu=1"}, " = 598 W"),
        ({"signal": "heptascope_gpu_power_watts", "value": 598.2, "text": "gpu=0"}, "[gpu=0] = 598 W"),
        ({"signal": CPU, "value": 0.1, "text": "process=x", "threshold": 0.85, "comparison": ">"}, "[process=x] = 10 %"),
        ({"signal": CPU, "value": 0.9, "text": "process=x", "threshold": 0.85, "comparison": ">"}, "= 90 %  (rule: > 85 %)"),
        ({"signal": KV, "value": 0.9, "threshold": 0.8, "comparison": "<"}, "= 90 %"),
        (
            {"signal": GAP, "value": 0.0166, "text": "mean", "threshold": 0.1, "comparison": ">"},
            "= 16.6 ms (mean)  (rule: > 100 ms among the slowest)",
        ),
    ],
)
def test_a_line_says_nothing_twice_and_no_threshold_that_was_not_passed(evidence: dict[str, Any], text: str) -> None:
    """Labels of the claim's own GPU and roles that name a process are left out, and so is what another value has passed."""
    assert value_text(evidence, {"gpu": "1", "uuid": "GPU-a"}).endswith(text)


def test_a_claim_in_full() -> None:
    """Rule, where, layer, how sure; what it means, its numbers, what mending is worth, what to do."""
    full = claim(evidence=[{"signal": KV, "value": 0.99}], gain="36% of it comes back", actions=["first", "second"])
    assert [
        "Fault: Full on vllm (memory/capacity, seen directly)",
        "  Full is true.",
        "    engine_kv_cache_usage_ratio = 99 %",
        "  Worth: 36% of it comes back",
        "  Next: first",
        "  Next: second",
    ] == list(verdict_lines(told("degraded", faults=[full])))[2:]


def test_order_of_the_report() -> None:
    """Faults, then symptoms that nothing explains, then the limiter, then what follows from the faults, then what is not known."""
    unknown = {"rule": "Cap", "missing": [{"signal": "heptascope_engine_sequence_limit", "reason": "engine", "detail": "not on the page"}]}
    found = told(
        "degraded",
        faults=[claim()],
        symptoms=[claim("Slow", "symptom"), claim("Late", "symptom", because=["Full"])],
        limiter={**LIMITER, "actions": ["Quantise."]},
        consequences=[claim("Tax", because=["Full", "Slow"])],
        cannot_tell=[unknown],
    )
    heads = [line for line in verdict_lines(found) if line and not line.startswith("  ")]
    assert [
        "DEGRADED",
        "Fault",
        "Symptom without a known cause",
        "Limiter",
        "Consequences (they go when the cause goes)",
        "Could not be judged",
    ] == [head.partition(":")[0] for head in heads]
    assert "  - Tax on vllm, by Full, Slow: Tax is true." in list(verdict_lines(found))
    assert "  - Late on vllm, by Full: Late is true." in list(verdict_lines(found))
    assert "  Next: Quantise." not in list(verdict_lines(found)), "beside a fault, that is not what to do now"


def test_a_limiter_that_is_the_fault_takes_one_line() -> None:
    """Where fault and limiter are of one topic, the evidence stands once."""
    found = told("degraded", faults=[claim()], limiter=claim("CapacityLimit", "limiter", evidence=[{"signal": KV, "value": 0.99}]))
    assert ["", "Limiter: CapacityLimit, which is the fault itself (memory/capacity)"] == list(verdict_lines(found))[-2:]


def unknown(count: int, **missing: str) -> list[dict[str, Any]]:
    """Return rules that lack one signal each, by turns the same."""
    return [
        {"rule": f"R{i}", "missing": [{"signal": f"heptascope_engine_s{i}", "reason": "engine", "detail": "", **missing}]}
        for i in range(count)
    ]


def test_what_is_not_known_is_told_by_reason() -> None:
    """Each reason once, the one of most rules first, with some of the signals and rules; rules for Prometheus last and named once."""
    many = [*unknown(5, detail="flag is off"), *unknown(5, signal=KV, detail="flag is off")]
    for_prometheus = [
        {"rule": name, "missing": [{"signal": name, "reason": "no_source", "detail": BASELINE}]} for name in ("A", "B", "C", "D", "E", "F")
    ]
    assert [
        "Could not be judged: 12 rules",
        "  - flag is off: engine_s0, engine_kv_cache_usage_ratio, engine_s1 and 3 more (R0, R1, R2 and 2 more)",
        f"  - {REASON_WORDS[Reason.ENGINE]}: engine_s0 (R9)",
        f"  - {BASELINE}: A, B, C and 3 more",
    ] == list(verdict_lines(told("idle", cannot_tell=[*for_prometheus, *_by_turns(many), {**unknown(1)[0], "rule": "R9"}])))[2:]


def _by_turns(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for pair in zip(rows[:5], rows[5:], strict=True) for row in pair]


@pytest.mark.parametrize(("extra", "words"), [(1, "one more reason"), (4, "4 more reasons")])
def test_long_lists_are_counted(extra: int, words: str) -> None:
    """After a few reasons the rest is a number."""
    rows = [row for i in range(MOST_UNKNOWN + extra) for row in unknown(1, detail=f"because {i}")]
    lines = list(verdict_lines(told("idle", cannot_tell=rows)))
    assert f"  - and for {words} (--format json lists all)" == lines[-1]
    assert MOST_UNKNOWN + 1 == sum(line.startswith("  - ") for line in lines)


def test_one_line_for_many_recordings() -> None:
    """State, limiter and root faults; a dash for none."""
    assert "degraded, limiter hardware/dram, faults memory/capacity, memory/capacity" == summary_text(
        told("degraded", limiter=LIMITER, faults=[claim(), claim()])
    )
    assert "idle, limiter -, faults -" == summary_text(told("idle"))


def test_sources_that_are_down() -> None:
    """What could not be read stands below the answer, and its reason once; where all could, nothing is said."""
    down = SourceStatus("vllm", "engine", False, None, None, Reason.SOURCE_DOWN, "connection refused")
    found = told("cannot-tell", cannot_tell=unknown(2, detail="connection refused"))
    answer = "CANNOT TELL: too little can be read to judge"
    rest = ["", "Could not be judged: 2 rules", "  - vllm could not be read: engine_s0, engine_s1 (R0, R1)"]
    assert [answer, "", "Could not be read:", "  - vllm: connection refused", *rest] == list(verdict_lines(found, [down]))
    assert [answer] == list(verdict_lines(told("cannot-tell")))


@pytest.mark.parametrize("name", ["kv-severe", "tp2-straggler", "tokenize-heavy", "idle", "mixed-over-sat"])
def test_reports_of_recordings_read_well(name: str) -> None:
    """No line of a real report is too long for a terminal by much, holds a raw prefix in front of a number, or an unfilled value."""
    lines = list(verdict_lines(verdict(name)))
    assert [] == [line for line in lines if "None" in line or "nan" in line or ("heptascope_" in line.partition("=")[0] and "=" in line)]
    assert lines[0].isascii()
