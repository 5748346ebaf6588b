"""What `heptascope trace` says by the catalogue's rules: the same rules, values and thresholds as live, in every form."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heptascope import cli
from heptascope.model import FindingState
from heptascope.rules.load import load
from heptascope.sources.trace import run
from heptascope.surfaces import trace_command
from heptascope.surfaces.trace_judgement import Judgement, judge, judgement_sections
from support.trace_builder import TRACES, TraceBuilder

FIRING, CLEAR, UNKNOWN = FindingState.FIRING, FindingState.CLEAR, FindingState.CANNOT_TELL
EAGER, GRAPH, COUNTERS = (str(TRACES / name) for name in ("eager-b8.json.gz", "graph-b8.json.gz", "h200-ncu-raw.csv"))
PAIR = [str(TRACES / f"tp2-decode-c64-rank{i}.json.gz") for i in (0, 1)]
TABLE = """"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","gather<a>","Duration","us","90"
"0","gather<a>","SM Throughput","%","10"
"0","gather<a>","Memory Throughput","%","75"
"0","gather<a>","DRAM Throughput","%","70"
"0","gather<a>","L2 Cache Throughput","%","35"
"0","gather<a>","Achieved Occupancy","%","90"
"1","small<a>","Duration","us","60"
"1","small<a>","SM Throughput","%","20"
"1","small<a>","Memory Throughput","%","5"
"1","small<a>","DRAM Throughput","%","4"
"1","small<a>","L2 Cache Throughput","%","5"
"1","small<a>","Achieved Occupancy","%","12"
"""


def _states(*files: str) -> dict[str, FindingState]:
    return {one.rule.name: one.state for one in trace_command.build([Path(file) for file in files]).judgement()}


def _run(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    assert 0 == cli.run(["trace", *args])
    return capsys.readouterr().out


def _named(states: dict[str, FindingState], state: FindingState) -> set[str]:
    return {name for name, one in states.items() if one is state}


def test_a_trace_is_asked_by_every_rule_about_traces() -> None:
    """None is left out, none is typed a second time; what a trace of one rank cannot answer is unknown, not fine."""
    states = _states(EAGER)
    assert {rule.name for rule in load() if rule.about_trace} == set(states)
    assert {"TraceLaunchGaps", "TraceGapLimit"} == _named(states, FIRING)
    assert {"TraceSyncGaps", "TraceCopies", "TraceCompilation"} == _named(states, CLEAR)


def test_ranks_of_one_run_are_judged_together() -> None:
    """Between two ranks there may be a straggler; without send and receive there are no bubbles to speak of."""
    states = _states(*PAIR)
    assert (FIRING, CLEAR, UNKNOWN) == (states["TraceStraggler"], states["TraceCommunicationLimit"], states["TraceBubbles"])


def test_counters_are_judged_by_the_side_that_bounds_them(tmp_path: Path) -> None:
    """A memory-bound kernel short of DRAM and L2 and a latency-bound one with few warps are told; a good copy and product are fine."""
    path = tmp_path / "t.csv"
    path.write_text(TABLE)
    profiled = {rule.name for rule in load() if rule.name.startswith("Profiled")}
    assert profiled == _named(_states(str(path)), FIRING)
    assert profiled == _named(_states(COUNTERS), CLEAR)


def test_counters_of_several_tables_count_together(tmp_path: Path) -> None:
    """Two tables give one value for each signal, as one table with all kernels would."""
    head, *rows = TABLE.splitlines()
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for path, mine in zip(paths, (rows[:6], rows[6:]), strict=True):
        path.write_text("\n".join([head, *mine]))
    whole = tmp_path / "t.csv"
    whole.write_text(TABLE)
    assert sorted(trace_command.build([whole]).samples()) == sorted(trace_command.build(paths).samples())


def test_a_changed_threshold_changes_the_answer() -> None:
    """The rules' own thresholds decide: at 0.9 an eager trace would be fine."""
    samples = trace_command.build([Path(EAGER)]).samples()
    relaxed = [replace(rule, overridden={"gap": 0.9}) if rule.name == "TraceLaunchGaps" else rule for rule in load()]
    states = {one.rule.name: one.state for one in judge(samples, relaxed)}
    assert CLEAR is states["TraceLaunchGaps"]


def test_a_trace_without_launches_is_not_called_fine() -> None:
    """Where no launch is in the trace nobody knows why the GPU waited."""
    build = TraceBuilder().kernel("k", 0, 100).kernel("k", 900, 100)
    states = {one.rule.name: one.state for one in judge(run.measure([build.trace()]).to_samples())}
    assert [UNKNOWN] * 3 == [states[name] for name in ("TraceGapLimit", "TraceLaunchGaps", "TraceSyncGaps")]


def _table(found: list[Judgement]) -> dict[str, list[list[str]]]:
    return {section.title: section.rows for section in judgement_sections(found)}


def test_what_fires_comes_first_with_value_threshold_and_what_to_do() -> None:
    """A fault before a limit before what is fine; each held value stands beside its threshold."""
    tables = _table(trace_command.build([Path(EAGER)]).judgement())
    assert ["TraceLaunchGaps", "fault", "gap_ratio [cause launch rank 0]", "86.0 %", "> 20.0 %"] == tables["Judgement"][0]
    assert ["TraceGapLimit", "limits", "work_gap_ratio [rank 0]", "86.3 %", "> 5.0 %"] == tables["Judgement"][2]
    assert {"fine"} == {row[1] for row in tables["Judgement"][3:] if row[0]}
    said = [row[1] for row in tables["What to do"]]
    assert "In the trace the GPU idles while the host launches kernels one by one." == said[0]
    assert any(step.startswith("[vllm] Remove --enforce-eager") for step in said)


def test_a_side_that_no_kernel_is_on_says_so(tmp_path: Path) -> None:
    """With nothing but memory-bound kernels, rules about latency are fine and have no value to show."""
    path = tmp_path / "t.csv"
    path.write_text("\n".join(TABLE.splitlines()[:7]))
    rows = _table(trace_command.build([path]).judgement())["Judgement"]
    assert ["ProfiledLatencyLimit", "fine", "nothing of that kind", "–", "–"] in rows


@pytest.mark.parametrize(
    ("form", "fault", "step"),
    [
        ("text", r"TraceLaunchGaps +fault +gap_ratio \[cause launch rank 0\] +86\.0 % +> 20\.0 %", r"\[vllm\] Remove --enforce-eager"),
        ("markdown", r"\| TraceLaunchGaps \| fault \| gap_ratio \[cause launch rank 0\] \| 86\.0 % \| > 20\.0 % \|", r"\[vllm\] Remove"),
        ("html", r'<tr class="strong"><td class="text" title="TraceLaunchGaps">TraceLaunchGaps</td>', r"<td [^>]+>\[vllm\] Remove"),
    ],
)
def test_every_form_for_people_has_the_judgement(capsys: pytest.CaptureFixture[str], form: str, fault: str, step: str) -> None:
    """Rule, state, value, threshold, and what to do."""
    out = _run(capsys, "--format", form, EAGER)
    assert re.search(fault, out)
    assert re.search(step, out)


def test_json_has_the_judgement(capsys: pytest.CaptureFixture[str]) -> None:
    """The same for programs: state, evidence with unit and threshold, actions by engine, and what was missing."""
    document: dict[str, Any] = json.loads(_run(capsys, "--format", "json", EAGER))
    found = {row["rule"]: row for row in document["judgement"]}
    launch, bubbles = found["TraceLaunchGaps"], found["TraceBubbles"]
    assert ("firing", "operator", "launch", "fault") == tuple(launch[key] for key in ("state", "layer", "topic", "kind"))
    held = launch["evidence"][0]
    assert ("heptascope_trace_gap_ratio", "ratio", 0.2, ">") == tuple(held[key] for key in ("signal", "unit", "threshold", "comparison"))
    assert 0.86 == pytest.approx(held["value"], abs=0.001)
    assert "vllm" in {action["when"] for action in launch["actions"]}
    assert ("cannot-tell", "heptascope_trace_pipeline_bubble_ratio") == (bubbles["state"], bubbles["missing"][0]["signal"])


def test_a_comparison_is_not_judged(capsys: pytest.CaptureFixture[str]) -> None:
    """Two runs are compared; a judgement would not say of which."""
    assert "judgement" not in json.loads(_run(capsys, "--format", "json", EAGER, GRAPH))
    assert "Judgement" not in _run(capsys, EAGER, GRAPH)
