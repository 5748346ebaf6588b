"""Rules are judged by the part that failed last, and by what was worked out before: the findings are those of a judge without memory."""

from __future__ import annotations

from functools import cache

import pytest

from heptascope.config import Settings
from heptascope.model import labels
from heptascope.offline import passes
from heptascope.rules import promql
from heptascope.rules.diagnose import Diagnoser
from heptascope.rules.export import verdict_values
from heptascope.rules.judge import Finding, RuleJudge
from heptascope.rules.refuted import Case
from heptascope.signals.window import STALE, Window
from heptascope.sources.replay import replay_readings
from heptascope.wiring import build_pipeline
from support.feeding import START
from support.replays import opened
from support.untraced import untraced

A, B = labels(engine="a", rank="0"), labels(engine="b", rank="0")
BUSY, FULL, QUEUE = "heptascope_engine_requests_running", "heptascope_engine_kv_cache_usage_ratio", "heptascope_engine_requests_waiting"
TEXT = f"{BUSY} > 1 and on (engine, rank) {FULL} > 0.5 and on (engine, rank) {QUEUE} > 0"


compiled = cache(promql.compile)


def value_without_memory(finding: Finding, judge: RuleJudge, window: Window, t: float) -> float | None:
    """Return what the rule's whole expression gives for the finding's engine rank or GPU."""
    text = finding.rule.text(f"{round(judge.settings.window * 1000)}ms")
    result = compiled(text).evaluate(window, t)
    mine = dict(finding.instance.pairs)
    own = ("engine", "rank") if finding.instance.kind == "engine" else ("gpu", "uuid")
    items = result if isinstance(result, list) else []
    return max((i.value for i in items if all(mine.get(k) == v for k, v in i.labels if k in own)), default=None)


@pytest.mark.parametrize(
    ("recording", "change"), [("kv-severe", "whole"), ("tp2-straggler", "whole"), ("decode-c64", "without GPM"), ("idle", "whole")]
)
def test_the_values_are_those_of_the_whole_expressions(recording: str, change: str) -> None:
    """In every second of a recording, for every rule and instance; and the series say what the findings say."""
    pipeline = build_pipeline(Settings(), {})
    room = pipeline.judge
    assert isinstance(room, Diagnoser)
    compared = 0
    with untraced():
        for found in passes(replay_readings(opened(recording, change)), pipeline):
            for finding in room.findings:
                if not finding.rule.needs_baseline:
                    assert value_without_memory(finding, room.judge, pipeline.window, found.t) == finding.value, (
                        found.t,
                        finding.rule.name,
                    )
                    compared += 1
            assert verdict_values(found.verdict, room.findings) == room.values()
    assert compared > 1000


def filled(window: Window, second: float, **values: float) -> promql.Pass:
    """Give both engines these values of BUSY, FULL and QUEUE; return a pass at that second."""
    for name, value in zip((BUSY, FULL, QUEUE), (values["busy"], values["full"], values["queue"]), strict=True):
        for pairs in (A, B):
            window.append(name, pairs, START + second, value)
    return promql.Pass(window, START + second, promql.Mode.PROMETHEUS_3, {})


def case(pairs: tuple[tuple[str, str], ...] = A) -> Case:
    """Return the case of TEXT for one engine."""
    return Case(promql.compile(TEXT).conjuncts, dict(pairs), ("engine", "rank"))


def test_a_part_that_goes_on_failing_settles_the_rule() -> None:
    """Before anything is learnt nothing stands; then the failing part stands until it holds, whatever the others do."""
    window, one = Window(), case()
    this = filled(window, 0, busy=5, full=0.9, queue=0)
    assert not one.stands(this)
    one.learn(this)
    assert one.stands(this)
    assert one.stands(filled(window, 1, busy=0, full=0.1, queue=0))
    assert not one.stands(filled(window, 2, busy=0, full=0.1, queue=3))


def test_a_rule_that_holds_has_no_failing_part() -> None:
    """It is evaluated whole in every pass."""
    window, one = Window(), case()
    this = filled(window, 0, busy=5, full=0.9, queue=3)
    one.learn(this)
    assert not one.stands(this)


def test_a_signal_without_series_settles_the_rule_until_one_begins() -> None:
    """Nothing is evaluated until then; `forget` is called when the set of series changes."""
    window, one = Window(), case()
    window.append(BUSY, A, START, 5.0)
    window.append(FULL, A, START, 0.9)
    one.learn(promql.Pass(window, START, promql.Mode.PROMETHEUS_3, {}))
    window.append(QUEUE, A, START + 1, 3.0)
    this = promql.Pass(window, START + 1, promql.Mode.PROMETHEUS_3, {})
    assert one.stands(this)
    one.forget()
    assert not one.stands(this)


def test_an_ended_series_may_still_be_in_the_range() -> None:
    """That a signal is gone settles nothing while its last points count: only one that never had a series does."""
    window, one = Window(), Case(promql.compile(f"sum_over_time({QUEUE}[10s]) > 5").conjuncts, dict(A), ("engine", "rank"))
    window.append(QUEUE, A, START, 3.0)
    window.append(QUEUE, A, START + 1, STALE)
    one.learn(promql.Pass(window, START + 1, promql.Mode.PROMETHEUS_3, {}))
    window.append(QUEUE, A, START + 2, 4.0)
    assert not one.stands(promql.Pass(window, START + 2, promql.Mode.PROMETHEUS_3, {}))


def test_each_engine_has_its_own_failing_part() -> None:
    """What fails for one engine says nothing of the other."""
    window = Window()
    this = filled(window, 0, busy=5, full=0.9, queue=3)
    window.append(QUEUE, A, START + 1, 0.0)
    window.append(QUEUE, B, START + 1, 3.0)
    this = promql.Pass(window, START + 1, promql.Mode.PROMETHEUS_3, {})
    first, second = case(A), case(B)
    first.learn(this)
    second.learn(this)
    assert (True, False) == (first.stands(this), second.stands(this))


def test_samples_that_prometheus_would_refuse_settle_nothing() -> None:
    """The rule is then evaluated whole, which says what is wrong."""
    window = Window()
    text = f"{BUSY} > 1 and on (engine) ({FULL} / on (engine) {QUEUE}) > 0"
    one = Case(promql.compile(text).conjuncts, dict(A), ("engine", "rank"))
    this = filled(window, 0, busy=0, full=0.9, queue=3)
    one.learn(this)
    window.append(BUSY, A, START + 1, 5.0)
    window.append(QUEUE, labels(engine="a", rank="1"), START + 1, 1.0)
    this = promql.Pass(window, START + 1, promql.Mode.PROMETHEUS_3, {})
    assert not one.stands(this)
    with pytest.raises(promql.EvaluationError):
        one.learn(this)


def test_what_is_missing_does_not_matter_once_a_known_part_fails() -> None:
    """Only parts whose selectors are all there are looked at; the answer follows their values."""
    window, one = Window(), case()

    def known(selector: promql.SelectorInfo) -> bool:
        return selector.metric != FULL

    assert one.fails_by_what_is_known(known, filled(window, 0, busy=5, full=0.9, queue=0))
    assert not one.fails_by_what_is_known(known, filled(window, 1, busy=5, full=0.1, queue=2))
    assert one.fails_by_what_is_known(known, filled(window, 2, busy=1, full=0.9, queue=2))
