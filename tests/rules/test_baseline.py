"""Rules that compare with yesterday, over a day of samples."""

from __future__ import annotations

import pytest

from heptascope.model import FindingState, Labels, Reading, Sample, labels
from heptascope.pipeline import Pipeline
from heptascope.rules import promql
from heptascope.rules.diagnose import Diagnoser
from heptascope.rules.judge import BASELINE
from heptascope.signals.window import Window
from support.rule_cases import RULES

DAY, NOW, MARGIN = 86_400.0, 1_700_000_000.0, 0.03
RANK = labels(engine="vllm", rank="0")
HIT, ACCEPTED = "heptascope_engine_prefix_cache_hit_ratio", "heptascope_engine_spec_acceptance_ratio"
STEP, RUNNING = "heptascope_engine_step_seconds", "heptascope_engine_requests_running"


def a_day(yesterday: dict[str, float], today: dict[str, float]) -> Window:
    """Return a window with a sample a minute, of which the last half hour is today's."""
    window = Window(retention=2 * DAY)
    for minute in range(int(DAY / 60) + 15, -1, -1):
        values = today if minute < 30 else yesterday
        for name, value in {**values, "heptascope_engine_has_work": 1.0}.items():
            window.append(name, RANK, NOW - 60 * minute, value)
    return window


def fires(rule: str, yesterday: dict[str, float], today: dict[str, float]) -> list[Labels]:
    """Return the entities for which a rule, as Prometheus evaluates it, holds."""
    result = promql.compile(RULES[rule].text("5m")).evaluate(a_day(yesterday, today), NOW)
    assert isinstance(result, list)
    return [tuple(pair for pair in item.labels if pair[0] != "__name__") for item in result]


def test_prefix_cache_collapsed() -> None:
    """A hit ratio fires below the share of yesterday's that the rule names, if yesterday's was worth something."""
    limits = RULES["PrefixCacheCollapsed"].thresholds
    fall, worth = limits["fall"], limits["worth"]
    assert [RANK] == fires("PrefixCacheCollapsed", {HIT: 0.8}, {HIT: 0.8 * fall * (1 - MARGIN)})
    assert [] == fires("PrefixCacheCollapsed", {HIT: 0.8}, {HIT: 0.8 * fall * (1 + MARGIN)})
    assert [] == fires("PrefixCacheCollapsed", {HIT: 0.8}, {HIT: 0.8 * fall})
    assert [] == fires("PrefixCacheCollapsed", {HIT: worth * (1 - MARGIN)}, {HIT: 0.0})
    assert [RANK] == fires("PrefixCacheCollapsed", {HIT: worth * (1 + MARGIN)}, {HIT: 0.0})


def test_acceptance_collapsed() -> None:
    """Acceptance fires below the share of yesterday's that the rule names."""
    fall = RULES["AcceptanceCollapsed"].thresholds["fall"]
    assert [RANK] == fires("AcceptanceCollapsed", {ACCEPTED: 0.5}, {ACCEPTED: 0.5 * fall * (1 - MARGIN)})
    assert [] == fires("AcceptanceCollapsed", {ACCEPTED: 0.5}, {ACCEPTED: 0.5 * fall})
    assert [] == fires("AcceptanceCollapsed", {ACCEPTED: 0.5}, {ACCEPTED: 0.5 * fall * (1 + MARGIN)})


def test_step_time_regression() -> None:
    """A step fires above the factor over yesterday's, unless the batch grew by as much as the rule allows for."""
    limits = RULES["StepTimeRegression"].thresholds
    slow, grown = 0.01 * limits["factor"], 40 * limits["load_factor"]
    before = {STEP: 0.01, RUNNING: 40.0}
    assert [RANK] == fires("StepTimeRegression", before, {STEP: slow * (1 + MARGIN), RUNNING: 40.0})
    assert [] == fires("StepTimeRegression", before, {STEP: slow * (1 - MARGIN), RUNNING: 40.0})
    assert [RANK] == fires("StepTimeRegression", before, {STEP: slow * 2, RUNNING: grown * (1 - MARGIN)})
    assert [] == fires("StepTimeRegression", before, {STEP: slow * 2, RUNNING: grown * (1 + MARGIN)})


def test_they_are_all_here() -> None:
    """A new rule with a baseline needs a test here."""
    assert {"PrefixCacheCollapsed", "AcceptanceCollapsed", "StepTimeRegression"} == {n for n, r in RULES.items() if r.needs_baseline}


@pytest.mark.parametrize("name", ["PrefixCacheCollapsed", "AcceptanceCollapsed", "StepTimeRegression"])
def test_in_process_they_cannot_tell(name: str) -> None:
    """The daemon's own history is too short for them, so there they say that, and not that all is clear."""
    judge = Diagnoser((RULES[name],))
    pipeline = Pipeline(judge=judge)
    pipeline.ingest(Reading("vllm", NOW, [Sample(RUNNING, RANK, 4.0), Sample(HIT, RANK, 0.1), Sample(ACCEPTED, RANK, 0.1)]))
    pipeline.step(NOW)
    assert [(FindingState.CANNOT_TELL, BASELINE)] == [(f.state, f.missing[0].detail) for f in judge.findings]
