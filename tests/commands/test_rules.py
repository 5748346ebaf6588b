"""`heptascope rules`: list, show, check."""

from __future__ import annotations

from pathlib import Path

import pytest

from heptascope.cli import run
from support.rule_cases import RULES


def answer(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """Run the command; return status, output and errors."""
    status = run(["rules", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each rule: layer, kind, topic, name, what it says."""
    status, out, err = answer(capsys, "list")
    rows = [line.split(maxsplit=4) for line in out.splitlines()]
    assert (0, "") == (status, err)
    assert [[r.layer, r.kind, r.topic, r.name, r.summary] for r in RULES.values()] == rows


@pytest.mark.parametrize("name", RULES)
def test_show(capsys: pytest.CaptureFixture[str], name: str) -> None:
    """Each rule can be shown: where it stands, its PromQL as evaluated, thresholds with sources, next steps, its edges."""
    rule = RULES[name]
    status, out, _ = answer(capsys, "show", name)
    lines = out.splitlines()
    assert (0, rule.summary) == (status, lines[1])
    assert f"Defined at {rule.where};" in lines[2]
    assert rule.text("10s") in out
    assert all(f"threshold {key} = {value:g}: {rule.source[key]}" in lines for key, value in rule.thresholds.items())
    assert all(f"next ({action.when}): {action.do}" in out for action in rule.actions)
    causes = [other.name for other in RULES.values() if name in other.explains]
    assert (f"explained by: {', '.join(causes)}" in lines) is bool(causes)
    assert any(line.startswith("explains: ") for line in lines) is bool(rule.explains)


def test_a_baseline_rule_says_where_it_is_evaluated(capsys: pytest.CaptureFixture[str]) -> None:
    """It is Prometheus' alone."""
    assert "evaluated Prometheus only (needs a baseline of earlier days)" in answer(capsys, "show", "PrefixCacheCollapsed")[1]


@pytest.mark.parametrize(
    ("name", "hint"),
    [("KVCachePremption", "did you mean 'KVCachePreemption'?"), ("qqq", "heptascope rules list prints all")],
)
def test_an_unknown_rule(capsys: pytest.CaptureFixture[str], name: str, hint: str) -> None:
    """A name that is nearly right is put right."""
    assert (2, "", f"heptascope: no rule '{name}'; {hint}\n") == answer(capsys, "show", name)


def test_check(capsys: pytest.CaptureFixture[str]) -> None:
    """The catalogue that ships is right, and counted."""
    edges = sum(len(rule.explains) for rule in RULES.values())
    assert (0, f"{len(RULES)} rules, {edges} edges: all right\n", "") == answer(capsys, "check")


BAD = """\
rules:
  - rule: Full
    layer: memory
    topic: capacity
    kind: fault
    entity: engine
    expr: {expr}
    summary: It is full.
    evidence: [heptascope_engine_kv_cache_usage_ratio]
"""


@pytest.mark.parametrize(
    ("expr", "message"),
    [
        ("rate(heptascope_engine_preemptions_total)", "3-memory.yaml:2: "),
        ("sum by (rank) (", "3-memory.yaml:2: "),
        ("heptascope_engine_kv_cache_usage_ratio > $full", "3-memory.yaml:7: rule Full: placeholder $full is no threshold of this rule"),
    ],
)
def test_a_bad_rule_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], expr: str, message: str) -> None:
    """Bad PromQL and bad rules are one line with file and line, status 2."""
    (tmp_path / "3-memory.yaml").write_text(BAD.format(expr=expr), encoding="utf-8")
    status, out, err = answer(capsys, "check", tmp_path)
    assert (2, "", 1) == (status, out, err.count("\n"))
    assert message in err


def test_a_folder_without_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing to check is a mistake."""
    assert (2, "", f"heptascope: {tmp_path}: no rule files (*.yaml) here\n") == answer(capsys, "check", tmp_path)
