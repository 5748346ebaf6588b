"""Recordings and given values through the live pipeline: passes in the order of time, and the verdict that held."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from heptascope.config import EngineSettings, Settings
from heptascope.model import Confidence, Layer, Reading, Reason, RuleKind, Sample, VerdictState, labels
from heptascope.offline import STEP_SECONDS, Pass, configured_gpus, held, judge_readings, judge_recording, passes
from heptascope.pipeline import Pipeline
from heptascope.rules.verdict import Claim, Verdict
from heptascope.sources.recording import Recording
from heptascope.sources.replay import Failure
from heptascope.wiring import build_pipeline
from support.recordings import all_recordings, read_lines, write_lines
from support.replays import verdict

START = 1_700_000_000.0
RANK = labels(engine="vllm", rank="0")
RUNNING = "heptascope_engine_requests_running"
IDLE, HEALTHY, DEGRADED, UNKNOWN = VerdictState.IDLE, VerdictState.HEALTHY, VerdictState.DEGRADED, VerdictState.CANNOT_TELL


def page(second: float, running: float = 0.0) -> Reading:
    """Return a reading of an engine."""
    return Reading("vllm", START + second, [Sample(RUNNING, RANK, running), Sample("heptascope_engine_info", RANK, 1.0)])


def pipeline() -> Pipeline:
    """Return a real pipeline."""
    return build_pipeline(Settings(), {})


# passes


def test_a_pass_a_second() -> None:
    """Readings five times a second make one pass a second, the first a second after the first reading."""
    found = list(passes((page(i / 5) for i in range(26)), pipeline()))
    assert [START + second * STEP_SECONDS for second in range(1, 6)] == [p.t for p in found]


def test_a_gap_is_stepped_through() -> None:
    """Where nothing is read for a while the clock goes on: each second is judged."""
    found = list(passes(iter((page(0), page(5))), pipeline()))
    assert [1, 2, 3, 4, 5] == [round(p.t - START) for p in found][:5]


def test_nothing_is_no_pass() -> None:
    """Without a reading there is no time."""
    assert [] == list(passes(iter(()), pipeline()))


def test_a_failure_ends_what_was_read() -> None:
    """A failed read after a good one makes the engine unknown from the next pass on."""
    found = list(passes(iter((page(0), page(0.5), Failure("vllm", START + 1.5, Reason.SOURCE_DOWN, "refused"), page(2.5))), pipeline()))
    assert [IDLE, UNKNOWN, IDLE] == [p.verdict.state for p in found][:3]


@pytest.mark.parametrize(("source", "rule"), [("vllm", "DramBandwidthLimit"), ("nvml", "PowerBrake")])
def test_a_source_that_never_answers_has_its_reason(source: str, rule: str) -> None:
    """From the first failure on the reason stands for everything that such a source gives."""
    news: Iterator[Reading | Failure] = iter(Failure(source, START + second, Reason.NO_PERMISSION, "no entry") for second in range(4))
    (lacking,) = [u for u in list(passes(news, pipeline()))[-1].verdict.cannot_tell if u.rule == rule]
    assert {(Reason.NO_PERMISSION, "no entry")} <= {(m.reason, m.detail) for m in lacking.missing}


def test_a_pipeline_without_rules_is_a_mistake() -> None:
    """Nothing to judge with is a programmer's error, told as that."""
    with pytest.raises(TypeError, match="without rules"):
        list(passes(iter((page(0),)), Pipeline()))


# the verdict that held


def claim(rule: str, kind: RuleKind = RuleKind.FAULT, layer: Layer = Layer.MEMORY) -> Claim:
    """Return a claim."""
    return Claim(rule, layer, "capacity", kind, "warning", RANK, Confidence.DIRECT, "", 0.0, 1.0)


def seen(*verdicts: tuple[VerdictState, str, tuple[str, ...]]) -> Verdict:
    """Return what held over passes with these states, limiters and faults."""
    found = []
    for i, (state, limiter, faults) in enumerate(verdicts):
        limits = claim(limiter, RuleKind.LIMITER, Layer.HARDWARE) if limiter else None
        found.append(Pass(float(i), Verdict(state, Confidence.DIRECT, "vllm", limits, tuple(claim(f) for f in faults), t=float(i))))
    return held(found)


def summary(found: Verdict) -> tuple[VerdictState, str, list[str]]:
    """Return state, limiter and faults."""
    return found.state, found.limiter.rule if found.limiter else "", [c.rule for c in found.faults]


def test_what_stood_for_most_of_the_time_counts() -> None:
    """The commonest state and limiter, and the faults of more than half of the passes."""
    brief = (DEGRADED, "Tensor", ("Full",))
    usual = (HEALTHY, "Dram", ())
    assert (HEALTHY, "Dram", []) == summary(seen(usual, brief, usual, brief, usual))
    assert (DEGRADED, "Tensor", ["Full"]) == summary(seen(brief, usual, brief, usual, brief))


def test_half_of_the_time_is_not_most() -> None:
    """A fault must have stood for longer than not."""
    assert [] == summary(seen((DEGRADED, "", ("Full",)), (HEALTHY, "", ())))[2]


def test_a_fault_that_held_degrades() -> None:
    """Two faults in turn leave neither; one through changing states makes the verdict degraded."""
    assert [] == summary(seen((DEGRADED, "", ("A",)), (DEGRADED, "", ("B",))))[2]
    assert DEGRADED is summary(seen((UNKNOWN, "", ("A",)), (UNKNOWN, "", ("A",)), (HEALTHY, "", ())))[0]


def test_an_idle_verdict_has_no_limiter() -> None:
    """Whatever limited in between."""
    assert (IDLE, "", []) == summary(seen((IDLE, "", ()), (IDLE, "", ()), (HEALTHY, "Dram", ())))


# recordings


def test_the_steady_window_is_what_is_judged() -> None:
    """The verdict's time lies in the steady window of truth.json, not in the idle seconds at either end."""
    steady = Recording.open(all_recordings()["decode-c64"]).steady
    assert steady.end is not None
    assert steady.start <= verdict("decode-c64")["time"] <= steady.end


def copy_of(name: str, folder: Path, **files: list[object]) -> Path:
    """Return a copy of a recording with other rows in some of its files."""
    for path in all_recordings()[name].iterdir():
        stem = path.name.partition(".")[0]
        if stem in files:
            write_lines(folder / path.name, files[stem])
        elif stem != "truth":
            (folder / path.name).write_bytes(path.read_bytes())
    return folder


def test_without_times_the_window_starts_after_three_seconds(tmp_path: Path) -> None:
    """A user's recording has no truth.json, and gets the same verdict."""
    found = judge_recording(Recording.open(copy_of("decode-b1", tmp_path)), Settings())
    assert ("healthy", "DramBandwidthLimit") == (found["state"], found["limiter"]["rule"])


def test_a_damaged_recording_is_judged_by_what_is_left(tmp_path: Path) -> None:
    """Rows of unknown shapes in between are left out and told."""
    source = all_recordings()["decode-b1"]
    gpu: list[object] = list(read_lines(source / "gpu.jsonl.gz"))
    for i in range(20, len(gpu), 40):
        gpu[i] = "{ cut off"
    recording = Recording.open(copy_of("decode-b1", tmp_path, gpu=gpu))
    found = judge_recording(recording, Settings())
    assert ("healthy", "DramBandwidthLimit") == (found["state"], found["limiter"]["rule"])
    assert recording.damage


def test_settings_reach_the_rules() -> None:
    """Overridden thresholds and objectives judge recordings as they judge live."""
    blind = Settings.model_validate({"rules": {"overrides": {"DramBandwidthLimit": {"pressure": 5, "alone": 5}}}})
    assert None is judge_recording(Recording.open(all_recordings()["decode-b1"]), blind)["limiter"]
    slo = Settings.model_validate({"slo": {"inter_token_latency": "1ms"}})
    assert ["InterTokenLatencyHigh"] == [c["rule"] for c in judge_recording(Recording.open(all_recordings()["decode-b1"]), slo)["symptoms"]]


def test_readings_are_judged_to_their_end() -> None:
    """Of steady readings the last verdict counts."""
    assert "idle" == judge_readings((page(second) for second in range(5)), Settings())["state"]


def test_configured_gpus_are_those_of_named_engines() -> None:
    """Only an engine that has a name can be told which GPUs are its."""
    engines = (
        EngineSettings(url="http://a:1", name="a", gpus=("0", "1")),
        EngineSettings(url="http://b:1", gpus=("2",)),
        EngineSettings(url="http://c:1", name="c"),
    )
    assert {"a": ("0", "1")} == configured_gpus(Settings(engines=engines))
