"""The rules under the checks that pint would make, and promtool's own."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import promql_parser
import pytest

from heptascope.rules.load import load
from heptascope.surfaces.alerts.model import Alert, Recording
from heptascope.surfaces.alerts.render import rule_files
from heptascope.surfaces.alerts.settings import RenderSettings
from support.pint import CHECKS, DISABLED, complaints, disabled, slow_groups, unknown_names, used_names
from support.prometheus import promtool

REPOSITORY = Path(__file__).parents[2]
FILES = rule_files(load(), RenderSettings())
RULES = [rule for file in FILES for group in file.groups for rule in group.rules]
RECORDED = {rule.name for rule in RULES if isinstance(rule, Recording)}


def _alert(expr: str, **changes: object) -> Alert:
    texts = {"summary": "s", "description": "d", "runbook_url": "u"}
    return Alert(**{"name": "A", "expr": expr, "hold": 60.0, "keep": 0.0, "labels": {"severity": "info"}, "annotations": texts, **changes})  # type: ignore[arg-type]


BAD = {
    "comparison": _alert("heptascope_engine_requests_running"),
    "severity": _alert("heptascope_engine_requests_running > 1", labels={"severity": "page"}),
    "annotations": _alert("heptascope_engine_requests_running > 1", annotations={"summary": "it is {{ $value }}"}),
    "templates": _alert("max by (pod) (heptascope_gpu_up) > 1", annotations={"description": "{{ $labels.gpu }}"}),
    "for": _alert("heptascope_engine_requests_running > 1", hold=0.0),
    "absent": _alert('absent(up{job="x"})', hold=60.0),
    "counters": _alert("heptascope_engine_preemptions_total > 1"),
    "possible": _alert("max by (engine) (heptascope_engine_requests_running) > on (gpu) heptascope_gpu_up"),
    "steady": _alert("topk(1, heptascope_engine_requests_running) > 1"),
    "job": Recording("cluster2:a:sum", "sum by (cluster) (heptascope_engine_requests_running)"),
    "record": Recording("pod_engine_rank:running:avg1m", "avg_over_time(heptascope_engine_requests_running[5m])"),
    "regexes": _alert('heptascope_engine_requests_running{engine=~"vllm"} > 1'),
    "retention": _alert("avg_over_time(heptascope_engine_requests_running[90d]) > 1"),
    "up": _alert("up == 0"),
}


def test_rules_are_clean() -> None:
    """No check has anything to say about any rule; what is switched off is named with its reason."""
    assert [] == [complaint for rule in RULES for complaint in complaints(rule)]


@pytest.mark.parametrize("check", CHECKS)
def test_each_check_finds_its_fault(check: str) -> None:
    """A rule that is wrong in the way of a check is found by it."""
    assert [] != list(CHECKS[check](BAD[check]))


def test_nothing_is_switched_off_in_vain() -> None:
    """Each exception is needed by some rule."""
    needed = {key for key in DISABLED for rule in RULES if disabled(key[0], rule.name) and list(CHECKS[key[0]](rule))}
    assert set(DISABLED) == needed


def test_every_name_is_known() -> None:
    """Every metric that a rule reads is a signal of the table, a recorded series, or Prometheus' own."""
    assert {} == {rule.name: unknown for rule in RULES if (unknown := unknown_names(rule.expr, RECORDED))}


def test_every_recorded_series_is_read() -> None:
    """A recorded series is read by a rule, a board, or named in the documentation as one for boards."""
    texts = [
        path.read_text(encoding="utf-8")
        for folder in ("docs", "dashboards")
        for path in (REPOSITORY / folder).rglob("*.*")
        if path.suffix in (".md", ".json")
    ]
    read = {name for rule in RULES for name in used_names(rule.expr)}
    assert [] == sorted(name for name in RECORDED - read if not any(name in text for text in texts))


def test_nothing_is_there_twice() -> None:
    """No two alerts have the same name and labels, no two recordings the same name and labels."""
    keys = Counter((rule.name, tuple(sorted(rule.labels.items()))) for rule in RULES)
    assert [] == [key for key, number in keys.items() if number > 1]


def test_results_outlive_their_interval() -> None:
    """No group is evaluated so rarely that its results vanish in between."""
    assert [] == slow_groups([group for file in FILES for group in file.groups])


def test_promtool_and_the_parser_agree() -> None:
    """The real promtool finds every file clean with all its lints, and the parser reads every expression."""
    paths = sorted((REPOSITORY / "alerts" / "rules").glob("*.yaml"))
    done = promtool("check", "rules", "--lint=all", "--lint-fatal", *paths)
    assert (0, len(FILES)) == (done.returncode, done.stdout.count("SUCCESS")), done.stdout + done.stderr
    for rule in RULES:
        promql_parser.parse(rule.expr)
