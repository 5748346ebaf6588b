"""Judges every rule for every engine rank and GPU: firing, pending, clear, or cannot tell and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from heptascope.model import FindingState, Labels, Missing, Reason, RuleKind
from heptascope.rules import promql
from heptascope.rules.instances import Instance, instances
from heptascope.rules.lacking import NOT_APPLICABLE, Presence, Reasons, by_signal, explain
from heptascope.rules.refuted import Case
from heptascope.rules.rule import ENTITY_LABELS, Rule
from heptascope.signals.store import Store
from heptascope.signals.window import Window

BASELINE = "needs a baseline of earlier days; this rule is evaluated by Prometheus only"

_Row = tuple[dict[str, str], float]


@dataclass(slots=True)
class Finding:
    """The state of one rule for one instance. `since` is when the state began, `value` what the expression gave last.

    `missing` is why it cannot be judged, `spared` what was missing and could not matter.
    """

    rule: Rule
    instance: Instance
    state: FindingState = FindingState.CLEAR
    since: float = 0.0
    value: float | None = None
    missing: tuple[Missing, ...] = ()
    spared: tuple[Missing, ...] = ()
    true_since: float | None = field(default=None, repr=False)
    last_true: float | None = field(default=None, repr=False)
    refuted_since: float | None = field(default=None, repr=False)

    def told(self) -> tuple[object, ...]:
        """Return what others are told of: when this is the same as before, nothing has changed but the value."""
        return self.state, self.since, self.missing, self.spared


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """In-process evaluation: `window` seconds for `[$window]`, `hold` seconds before a rule fires and after which it clears."""

    window: float = 10.0
    hold: float = 3.0


@dataclass(slots=True)
class _Line:
    """A finding with what was worked out for it, and whether it stays as it is until something changes."""

    finding: Finding
    case: Case
    lacks: tuple[Missing, ...] | None = None
    rests: bool = False


class _Moment(NamedTuple):
    """What all rules of one pass look at: the evaluation, which selectors have series, why others have none, who has no work."""

    this: promql.Pass
    presence: Presence
    reasons: Reasons
    resting: AbstractSet[Labels]


class RuleJudge:
    """Evaluates the catalogue once a pass and keeps the state of each rule and instance.

    `version` grows with each pass in which the state of a finding changed, or what is missing for it, so that others need not compare.
    """

    def __init__(self, rules: Iterable[Rule], settings: JudgeSettings | None = None) -> None:
        """Compile every rule for the in-process window. Raises UserError naming file and line."""
        self.settings = settings or JudgeSettings()
        self.rules = {rule.name: rule for rule in rules}
        duration = f"{round(self.settings.window * 1000)}ms"
        self._compiled = {rule.name: _compiled(rule.text(duration), rule.where) for rule in self.rules.values() if not rule.needs_baseline}
        self._gains = {rule.name: _compiled(rule.fill(rule.gain, duration), rule.where) for rule in self.rules.values() if rule.gain}
        self.instances: list[Instance] = []
        self._lines: dict[str, list[_Line]] = {}
        self._shape = -1
        self._reasons: list[Missing] = []
        self.version = 0

    def step(self, store: Store, now: float) -> list[Finding]:
        """Judge every rule for every instance known at `now`."""
        reasons = self._forget_what_changed(store, now)
        this = promql.Pass(store.window, now, promql.Mode.PROMETHEUS_3, {})
        moment = _Moment(this, Presence(store.window), reasons, _resting(store))
        changed = False
        for rule in self.rules.values():
            lines = self._lines[rule.name]
            values, complaint = self._evaluate(rule, lines, this)
            for line in lines:
                if line.rests and not values and not complaint:
                    continue
                before = line.finding.told()
                self._judge(line, values, complaint, moment)
                changed = changed or before != line.finding.told()
        self.version += changed
        return [line.finding for lines in self._lines.values() for line in lines]

    def _judge(self, line: _Line, values: list[_Row], complaint: tuple[Missing, ...], at: _Moment) -> None:
        finding = line.finding
        value = _value_for(values, finding.instance)
        silent = value is not None or (finding.rule.guard != "none" and finding.instance.pairs in at.resting)
        finding.missing = () if silent else complaint or self._lacking(line, at)
        refuted = bool(finding.missing) and not complaint and self._refuted(line, at)
        self._spare(finding, refuted, at.this.t)
        self._advance(finding, value, at.this.t)
        line.rests = line.lacks == () and finding.state is FindingState.CLEAR and finding.true_since is None

    def _forget_what_changed(self, store: Store, now: float) -> Reasons:
        """Note who is there and why what is missing, and keep what was worked out from that only while it is the same."""
        reasons, found = store.missing(), instances(store.window)
        if found != self.instances or not self._lines:
            self.instances = found
            self.version += 1
            self._lines = {rule.name: self._lines_of(rule, now) for rule in self.rules.values()}
        moved = self._shape != store.window.shape
        if moved or reasons != self._reasons:
            for line in (line for lines in self._lines.values() for line in lines):
                line.lacks, line.rests = None, False
                if moved:
                    line.case.forget()
        self._shape, self._reasons = store.window.shape, reasons
        return by_signal(reasons)

    def _lines_of(self, rule: Rule, now: float) -> list[_Line]:
        """Return a line for every instance of the rule; those that were there before keep their finding."""
        before = {line.finding.instance.pairs: line.finding for line in self._lines.get(rule.name, ())}
        expression, own = self._compiled.get(rule.name), ENTITY_LABELS[rule.entity]
        lines = []
        for instance in self.instances:
            if instance.kind == rule.entity:
                finding = before.get(instance.pairs) or Finding(rule, instance, since=now)
                finding.instance = instance
                lines.append(_Line(finding, Case(expression.conjuncts if expression else (), dict(instance.pairs), own)))
        return lines

    def gain(self, finding: Finding, window: Window, now: float) -> str:
        """Return what mending a fault is worth, as text; empty where it cannot be computed."""
        expression = self._gains.get(finding.rule.name)
        if expression is None:
            return ""
        try:
            value = _value_for(_by_entity(expression.evaluate(window, now), finding.rule), finding.instance)
        except promql.EvaluationError:
            return ""
        return "" if value is None or not 0 < value <= 1 else f"{value:.0%} {finding.rule.gain_text}"

    def _evaluate(self, rule: Rule, lines: Sequence[_Line], this: promql.Pass) -> tuple[list[_Row], tuple[Missing, ...]]:
        """Return a rule's values, or why the samples do not fit its expression."""
        expression = self._compiled.get(rule.name)
        if expression is None or all(line.case.stands(this) for line in lines):
            return [], ()
        try:
            values = _by_entity(expression.evaluate_in(this), rule)
            for line in lines:
                line.case.learn(this)
        except promql.EvaluationError as error:
            return [], (Missing(rule.name, Reason.AMBIGUOUS, str(error)),)
        return values, ()

    def _lacking(self, line: _Line, at: _Moment) -> tuple[Missing, ...]:
        if line.lacks is None:
            rule, instance = line.finding.rule, line.finding.instance
            expression = self._compiled.get(rule.name)
            if expression is None:
                line.lacks = (Missing(rule.name, Reason.NO_SOURCE, BASELINE, instance.pairs),)
            else:
                absent = expression.undecided(lambda selector: at.presence.has(selector, instance))
                found = tuple(dict.fromkeys(explain(selector, instance, at.reasons) for selector in absent))
                line.lacks = () if any(m.reason in NOT_APPLICABLE for m in found) else found
        return line.lacks

    def _refuted(self, line: _Line, at: _Moment) -> bool:
        """Whether a part of the rule that must hold is known not to: then nothing that is missing could make the rule fire.

        Limiters stay unknown: that one is clear is taken for its resource being free, and of that the other parts say nothing.
        """
        rule, instance = line.finding.rule, line.finding.instance
        if rule.kind is RuleKind.LIMITER or not instance.pairs:
            return False
        return line.case.fails_by_what_is_known(lambda selector: at.presence.has(selector, instance), at.this)

    def _spare(self, finding: Finding, refuted: bool, now: float) -> None:
        """Let missing signals not matter once the rule has been refuted for `hold` seconds: for as long a firing rule would have stayed."""
        finding.refuted_since = None if not refuted else now if finding.refuted_since is None else finding.refuted_since
        finding.spared = ()
        if finding.refuted_since is not None and now - finding.refuted_since >= self.settings.hold:
            finding.missing, finding.spared = (), finding.missing

    def _advance(self, finding: Finding, value: float | None, now: float) -> None:
        """Fire after the condition held for `hold` seconds; clear after it was gone for as long."""
        hold = self.settings.hold
        finding.value = value
        if value is not None:
            finding.true_since = now if finding.true_since is None else finding.true_since
            finding.last_true = now
            state = (
                FindingState.FIRING if finding.state is FindingState.FIRING or now - finding.true_since >= hold else FindingState.PENDING
            )
        elif (
            finding.state is FindingState.FIRING
            and finding.last_true is not None
            and now - finding.last_true < hold
            and not finding.missing
        ):
            state = FindingState.FIRING
        else:
            finding.true_since = None
            state = FindingState.CANNOT_TELL if finding.missing else FindingState.CLEAR
        if state is not finding.state:
            finding.state, finding.since = state, now


@cache
def _compiled(text: str, where: str) -> promql.Expression:
    """Compile once for all judges of this process: an expression keeps nothing of what it is evaluated on."""
    return promql.compile(text, where=where)


def _resting(store: Store) -> set[Labels]:
    """Return the instances that are known to have no work: guarded rules are clear there, whatever else is unknown."""
    return {
        pairs for name in ("heptascope_engine_has_work", "heptascope_gpu_has_work") for pairs, value in store.current(name) if value == 0
    }


def _by_entity(result: float | list[promql.Item], rule: Rule) -> list[_Row]:
    """Reduce an expression's result to its entity labels and value."""
    if isinstance(result, float | int):
        return []
    names = ENTITY_LABELS[rule.entity]
    return [({k: v for k, v in item.labels if k in names}, item.value) for item in result]


def _value_for(values: list[_Row], instance: Instance) -> float | None:
    mine = dict(instance.pairs)
    return max((value for row, value in values if all(mine.get(k) == v for k, v in row.items())), default=None)
