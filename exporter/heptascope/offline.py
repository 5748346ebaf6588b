"""Recordings and given values through the live pipeline, faster than real time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from heptascope.config import Settings
from heptascope.daemon import never_read
from heptascope.model import Reading, SourceStatus, VerdictState
from heptascope.pipeline import Pipeline
from heptascope.rules.verdict import Claim, Verdict, verdict_json
from heptascope.sources.recording import Recording
from heptascope.sources.replay import Failure, replay_readings
from heptascope.wiring import build_pipeline

T = TypeVar("T")
STEP_SECONDS = 1.0
_MACHINE = {"nvml": "gpu", "nvml_slow": "gpu", "host": "host"}
"""Kinds of the sources in a recording that are no engines."""
HELD_SHARE = 0.5
"""A claim belongs to the verdict of a window if it stood for more than this share of its passes."""


@dataclass(frozen=True, slots=True)
class Pass:
    """The verdict of one pass."""

    t: float
    verdict: Verdict


def passes(news: Iterable[Reading | Failure], pipeline: Pipeline) -> Iterator[Pass]:
    """Feed readings in the order of time, step once a second of their time, and yield each pass."""
    due: float | None = None
    seen: set[str] = set()
    for item in news:
        while due is not None and item.t > due:
            yield _step(pipeline, due)
            due += STEP_SECONDS
        due = item.t + STEP_SECONDS if due is None else due
        if isinstance(item, Reading):
            seen.add(item.source)
            pipeline.ingest(item)
        elif item.source in seen:
            pipeline.fail(item.source, item.t, item.reason, item.message)
        else:
            kind = _MACHINE.get(item.source, "engine")
            pipeline.ingest(never_read(SourceStatus(item.source, kind, False, None, None, item.reason, item.message), item.t))
    if due is not None:
        yield _step(pipeline, due)


def _step(pipeline: Pipeline, now: float) -> Pass:
    pipeline.step(now)
    verdict = pipeline.latest
    if not isinstance(verdict, Verdict):
        raise TypeError("a pipeline without rules has no verdict")
    return Pass(now, verdict)


def held(found: list[Pass]) -> Verdict:
    """Return the verdict that stood for most of these passes: the commonest state, and the claims that stood for most of them."""
    last = found[-1].verdict
    state = _commonest(p.verdict.state for p in found) or VerdictState.CANNOT_TELL
    limiter = _commonest(p.verdict.limiter.rule if p.verdict.limiter else "" for p in found)
    match = [p.verdict for p in found if p.verdict.state is state] or [last]
    stood = next((v.limiter for p in reversed(found) if (v := p.verdict).limiter is not None and v.limiter.rule == limiter), None)
    faults = _held(found, "faults")
    if faults:
        state = VerdictState.DEGRADED
    return replace(
        match[-1],
        state=state,
        limiter=stood if state is not VerdictState.IDLE else None,
        faults=faults,
        consequences=_held(found, "consequences"),
        symptoms=_held(found, "symptoms"),
    )


def _held(found: list[Pass], what: str) -> tuple[Claim, ...]:
    count: Counter[tuple[str, object]] = Counter()
    latest: dict[tuple[str, object], Claim] = {}
    for p in found:
        for claim in getattr(p.verdict, what):
            count[claim.rule, claim.entity] += 1
            latest[claim.rule, claim.entity] = claim
    return tuple(claim for key, claim in latest.items() if count[key] > HELD_SHARE * len(found))


def _commonest(values: Iterable[T]) -> T | None:
    ranked = Counter(values).most_common(1)
    return ranked[0][0] if ranked else None


def judge_recording(recording: Recording, settings: Settings) -> dict[str, Any]:
    """Replay one recording as `settings` would judge it; return the verdict of its steady window as JSON-ready data."""
    pipeline = build_pipeline(settings, configured_gpus(settings))
    found = list(passes(replay_readings(recording), pipeline))
    steady = recording.steady
    inside = [p for p in found if p.t >= steady.start and (steady.end is None or p.t <= steady.end)]
    return verdict_json(held(inside or found))


def judge_readings(news: Iterable[Reading], settings: Settings) -> dict[str, Any]:
    """Feed steady readings to the end; return the last verdict as JSON-ready data."""
    *_, last = passes(news, build_pipeline(settings, configured_gpus(settings)))
    return verdict_json(last.verdict)


def configured_gpus(settings: Settings) -> dict[str, Sequence[str]]:
    """Return the GPUs of each named engine in the configuration."""
    return {engine.name: engine.gpus for engine in settings.engines if engine.name and engine.gpus}
