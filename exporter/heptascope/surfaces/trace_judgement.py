"""What the catalogue says of a trace: its rules about traces, evaluated on the measures as the daemon would evaluate them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from heptascope.model import Evidence, FindingState, Missing, Reading, RuleKind, Sample, labels
from heptascope.rules.evidence import gather
from heptascope.rules.findings import missing_json
from heptascope.rules.judge import JudgeSettings, RuleJudge
from heptascope.rules.load import load
from heptascope.rules.rule import OF_TRACE, Action, Rule
from heptascope.rules.verdict import evidence_json
from heptascope.signals.schema import SCHEMA
from heptascope.signals.store import Store
from heptascope.sources.trace.measures import SampleRow
from heptascope.surfaces.trace_sections import Section, number, percent

_ENGINE = labels(engine="trace", rank="0")
_NOW, _SPAN = 1.0, 10.0  # any moment will do: there is one reading
_PREFIX = "heptascope_trace_"
_STATE_WORDS = {
    (FindingState.FIRING, RuleKind.FAULT): "fault",
    (FindingState.FIRING, RuleKind.LIMITER): "limits",
    (FindingState.CLEAR, RuleKind.FAULT): "fine",
    (FindingState.CLEAR, RuleKind.LIMITER): "fine",
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one rule says of a trace: firing, clear, or cannot-tell where the trace lacks what the rule asks for."""

    rule: Rule
    state: FindingState
    evidence: tuple[Evidence, ...]
    missing: tuple[Missing, ...]


def judge(samples: Iterable[SampleRow], rules: Iterable[Rule] | None = None) -> list[Judgement]:
    """Judge measures by the rules about traces (those of the catalogue by default), as those of a new trace of an engine at work."""
    about = [rule for rule in (load() if rules is None else rules) if rule.about_trace]
    own = [("heptascope_trace_age_seconds", labels(), 0.0)]
    own += [(name, _ENGINE, 1.0) for name in ("heptascope_engine_info", "heptascope_engine_has_work", OF_TRACE)]
    store = Store()
    store.ingest(Reading("trace", _NOW, [Sample(*row) for row in (*samples, *own)]))
    findings = RuleJudge(about, JudgeSettings(hold=0.0)).step(store, _NOW)
    return [
        Judgement(f.rule, f.state, tuple(gather(f.rule, f.instance, store.window, _NOW, _SPAN)), f.missing)
        for f in findings
        if f.instance.pairs == _ENGINE
    ]


def judgement_json(found: Iterable[Judgement]) -> list[dict[str, Any]]:
    """Return what the rules say as JSON-ready data."""
    return [
        {
            "rule": one.rule.name,
            "layer": one.rule.layer.value,
            "topic": one.rule.topic,
            "kind": one.rule.kind.value,
            "state": one.state.value,
            "summary": one.rule.summary,
            "evidence": [evidence_json(e) for e in one.evidence],
            "missing": [missing_json(m) for m in one.missing],
            "actions": [{"when": action.when, "do": action.do} for action in one.rule.actions],
        }
        for one in found
    ]


def judgement_sections(found: Sequence[Judgement]) -> list[Section]:
    """Return the tables of what the rules say and of what to do; rules that cannot be asked stand in a note."""
    order = (RuleKind.FAULT, RuleKind.LIMITER)
    told = sorted(
        (one for one in found if one.state is not FindingState.CANNOT_TELL),
        key=lambda one: (one.state is not FindingState.FIRING, order.index(one.rule.kind)),
    )
    unknown = [one.rule.name for one in found if one.state is FindingState.CANNOT_TELL]
    note = "The catalogue's rules, as the daemon asks them of fresh traces; lines of one rule count together. A profiler widens gaps."
    note += f" Not in these files: what {', '.join(unknown)} ask for." if unknown else ""
    rows = [(row, one.state is FindingState.FIRING) for one in told for row in _rows(one)]
    strong = {i for i, (_, fires) in enumerate(rows) if fires}
    columns = ["rule", "says", "measure", "value", "fires at"]
    made = [
        Section("Judgement", columns, [row for row, _ in rows], note, {"says", "measure"}, strong=strong),
        Section("What to do", ["rule", "why and what"], [row for one in told for row in _steps(one)], words={"why and what"}, wrapped=True),
    ]
    return [section for section in made if section.rows]


def _rows(one: Judgement) -> list[list[str]]:
    """Return a line for each value that the rule holds against a threshold; the rule's name stands in the first."""
    held = [e for e in one.evidence if e.threshold is not None]
    lead = [one.rule.name, _STATE_WORDS[one.state, one.rule.kind]]
    rows = [[*(lead if i == 0 else ["", ""]), *_cells(e)] for i, e in enumerate(held)]
    return rows or [[*lead, "nothing of that kind", "–", "–"]]


def _cells(e: Evidence) -> list[str]:
    where = e.text.replace("trace_rank=", "rank ").replace("=", " ")
    return [f"{e.signal.removeprefix(_PREFIX)}{f' [{where}]' if where else ''}", _shown(e.signal, e.value), _limit(e)]


def _limit(e: Evidence) -> str:
    return f"{e.comparison} {_shown(e.signal, e.threshold)}"


def _shown(signal: str, value: float | None) -> str:
    return percent(value) if SCHEMA[signal].unit == "ratio" else number(value)


def _steps(one: Judgement) -> list[list[str]]:
    if one.state is not FindingState.FIRING:
        return []
    return [[one.rule.name, one.rule.summary], *(["", _step(action)] for action in one.rule.actions)]


def _step(action: Action) -> str:
    return action.do if action.when == "any" else f"[{action.when}] {action.do}"
