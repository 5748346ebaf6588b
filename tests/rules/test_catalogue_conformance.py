"""Every expression of the catalogue, over the history of replayed recordings, gives what a real Prometheus gives."""

from __future__ import annotations

from heptascope.config import Settings
from heptascope.offline import passes
from heptascope.sources.replay import replay_readings
from heptascope.wiring import build_pipeline
from support.conformance import assert_conforms
from support.prometheus import Samples
from support.replays import opened
from support.rule_cases import JUDGED, RULES

RECORDINGS = ("kv-severe", "tp2-straggler")
INSTANTS = (6.0, 14.0, 20.5, 27.25)  # seconds after the start: as load begins, and three in steady load, on polls and between them


def history(name: str) -> tuple[Samples, float]:
    """Return everything that a replay puts into the window, times in whole milliseconds as Prometheus keeps them, and when it began."""
    recording = opened(name)
    pipeline = build_pipeline(Settings(), {})
    for _ in passes(replay_readings(recording), pipeline):
        pass
    samples = {}
    for metric in pipeline.window.names():
        for series in pipeline.window.series(metric):
            points = {round(t, 3): v for t, v in zip(series.t, series.v, strict=True) if v == v}
            samples[metric, series.pairs] = sorted(points.items())
    return samples, recording.start


def expressions() -> list[str]:
    """Return each rule's condition and each gain, as they are evaluated in-process."""
    conditions = [RULES[name].text("10s") for name in JUDGED]
    return conditions + [rule.fill(rule.gain, "10s") for rule in RULES.values() if rule.gain]


def test_the_catalogue_agrees_with_prometheus() -> None:
    """On two recordings, one with preemption and one on two GPUs, at four instants, all expressions give the same label sets and values."""
    for name in RECORDINGS:
        samples, start = history(name)
        tally = assert_conforms(expressions(), samples, [round(start + second, 3) for second in INSTANTS])
        assert len(expressions()) * len(INSTANTS) == tally.compared
        assert tally.telling >= 20
