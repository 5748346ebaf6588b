"""The pipeline: readings in, one consistent picture out, whatever fails in between."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heptascope.config import Settings
from heptascope.model import Labels, Reading, Reason, Sample, SourceStatus, labels
from heptascope.pipeline import Pipeline
from heptascope.signals.schema import SCHEMA
from heptascope.signals.snapshot import EMPTY
from heptascope.signals.store import Store
from heptascope.signals.window import Window
from heptascope.wiring import build_pipeline

START = 1_700_000_000.0
RANK, GPU = labels(engine="vllm", rank="0"), labels(gpu="0", uuid="GPU-a")
RUNNING, GAP = "heptascope_engine_requests_running", "heptascope_engine_step_host_gap_ratio"


def second(pipeline: Pipeline, number: int, **values: float) -> None:
    """Take a second's readings of an engine and a GPU."""
    pipeline.ingest(Reading("vllm", START + number, [Sample(RUNNING, RANK, values.get("running", 1.0))]))
    active = Sample("heptascope_gpu_graphics_engine_active_ratio", GPU, values.get("active", 0.75), 1.0)
    pipeline.ingest(Reading("nvml", START + number, [active]))


class Judge:
    """A rules room that notes when it was asked."""

    def __init__(self) -> None:
        """Know nothing."""
        self.asked: list[tuple[float, float]] = []
        self.latest: object = None

    def step(self, store: Store, now: float) -> None:
        """Note the time, and what was derived before."""
        self.asked.append((now, dict(store.current(GAP)).get(RANK, -1.0)))
        self.latest = now

    def values(self) -> Mapping[str, tuple[tuple[Labels, float], ...]]:
        """Return one series, and one without any."""
        return {"heptascope_verdict": ((labels(state="idle"), 1.0),), "heptascope_limiter": ()}

    def verdict(self) -> dict[str, Any] | None:
        """Return an object."""
        return {"state": "idle"}


def test_rules_see_what_was_derived_in_the_same_pass() -> None:
    """Derivation comes first, judging second, and both are of the pass's time."""
    judge = Judge()
    pipeline = Pipeline(judge=judge)
    for number in range(12):
        second(pipeline, number)
        pipeline.step(START + number)
    assert (START + 11, 0.25) == judge.asked[-1]


def test_the_snapshot_holds_everything_of_one_moment() -> None:
    """Read, derived and judged values are in one picture, with the statuses of the sources."""
    pipeline = Pipeline(judge=Judge())
    status = SourceStatus("vllm", "engine", True, START, 0.1)
    for number in range(12):
        second(pipeline, number)
        snapshot = pipeline.step(START + number, [status])
    assert (1.0, 0.25, (status,)) == (snapshot.value(RUNNING, RANK), snapshot.value(GAP, RANK), snapshot.sources)
    assert 1.0 == snapshot.value("heptascope_verdict", labels(state="idle"))
    assert "heptascope_limiter" not in snapshot.values
    assert snapshot is pipeline.snapshot
    assert [] == [name for name in snapshot.values if name not in SCHEMA]


def test_a_snapshot_does_not_change() -> None:
    """What a reader holds stays what it was."""
    pipeline = Pipeline()
    second(pipeline, 0)
    first = pipeline.step(START)
    second(pipeline, 1, running=9.0)
    pipeline.step(START + 1)
    assert (1.0, first.version + 1) == (first.value(RUNNING, RANK), pipeline.snapshot.version)


def test_a_failure_shows_in_the_next_picture() -> None:
    """Its signals are gone, with the reason; derived ones too."""
    pipeline = Pipeline()
    for number in range(12):
        second(pipeline, number)
        pipeline.step(START + number)
    pipeline.fail("nvml", START + 12, Reason.SOURCE_DOWN, "hung")
    snapshot = pipeline.step(START + 12)
    assert (None, None) == (snapshot.value("heptascope_gpu_graphics_engine_active_ratio", GPU), snapshot.value(GAP, RANK))
    assert (Reason.SOURCE_DOWN, "hung") in {
        (m.reason, m.detail) for m in snapshot.missing if m.signal == "heptascope_gpu_graphics_engine_active_ratio"
    }


def test_it_measures_itself() -> None:
    """How long each stage took, how much memory the history takes, and what was refused of each source."""
    pipeline = Pipeline(judge=Judge())
    pipeline.ingest(Reading("vllm", START, [Sample("heptascope_surprise", RANK, 1.0)]))
    second(pipeline, 1)
    snapshot = pipeline.step(START + 1)
    assert {"ingest", "derive", "rules"} == {dict(pairs)["stage"] for pairs, _ in snapshot.values["heptascope_pass_duration_seconds"]}
    assert all(value >= 0 for _, value in snapshot.values["heptascope_pass_duration_seconds"])
    assert float(pipeline.window.nbytes()) == snapshot.value("heptascope_window_bytes", ())
    assert ((labels(source="vllm"), 1.0),) == snapshot.values["heptascope_series_dropped_total"]


def test_old_series_are_forgotten() -> None:
    """A series that ended longer ago than the history reaches leaves it."""
    pipeline = Pipeline(window=Window(retention=60))
    second(pipeline, 0)
    pipeline.step(START)
    pipeline.fail("nvml", START + 1, Reason.SOURCE_DOWN)
    pipeline.step(START + 100)
    assert None is pipeline.window.get("heptascope_gpu_graphics_engine_active_ratio", GPU)


def test_before_anything() -> None:
    """A new pipeline has an empty picture, no verdict, and says so."""
    pipeline = Pipeline()
    assert (EMPTY, None, None) == (pipeline.snapshot, pipeline.verdict, pipeline.latest)
    ruled = build_pipeline(Settings(), {})
    assert (None, None) == (ruled.verdict, ruled.latest)
    ruled.step(START)
    assert ruled.verdict is not None
    assert "cannot-tell" == ruled.verdict["state"]


def test_without_rules_there_is_no_verdict() -> None:
    """Signals alone are served without one."""
    pipeline = Pipeline()
    second(pipeline, 0)
    assert "heptascope_verdict" not in pipeline.step(START).values
    assert None is pipeline.verdict
