"""Judges every rule for every engine rank and GPU: firing, pending, clear, or cannot tell and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from heptascope.model import FindingState, Labels, Missing, Reason, RuleKind
from heptascope.rules import promql
from heptascope.rules.rule import ENTITY_LABELS, Rule
from heptascope.signals.mapping import known_engines, known_gpus
from heptascope.signals.schema import SCHEMA, signal_of
from heptascope.signals.schema_row import Kind
from heptascope.signals.store import Store
from heptascope.signals.window import Window

NOT_APPLICABLE = (Reason.NOT_CONFIGURED, Reason.IDLE)
"""Reasons that make a rule clear: what it looks for is switched off, or cannot exist without work."""

WHICH_LABELS = ("latency", "resource", "role", "cause")
"""Labels that say what a value is about: another resource's series does not make up for one that is missing. All other labels class
events (a reason, a status), which have no series before the first event."""

_MAIN = {"engine": "heptascope_engine_requests_running", "gpu": "heptascope_gpu_power_watts"}
"""Signals whose reason is that of everything while no engine or no GPU is known."""

BASELINE = "needs a baseline of earlier days; this rule is evaluated by Prometheus only"


Reasons = Mapping[str, Sequence[Missing]]
_Row = tuple[dict[str, str], float]


class Instance(NamedTuple):
    """What a rule is judged for: an engine rank or a GPU; `related` are the GPUs that serve it, or the engines it serves.

    Without `pairs` it stands for all of its kind while none is known: its rules cannot be judged, and say so.
    """

    kind: str
    pairs: Labels
    related: tuple[Labels, ...]


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


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """In-process evaluation: `window` seconds for `[$window]`, `hold` seconds before a rule fires and after which it clears."""

    window: float = 10.0
    hold: float = 3.0


def instances(window: Window) -> list[Instance]:
    """Return every engine rank and GPU that is known now, each with its counterpart; one without labels for a kind of which none is."""
    gpus = [_pairs(("gpu", gpu[0]), ("uuid", gpu[1])) for gpu in known_gpus(window)]
    engines = [_pairs(("engine", e[0]), ("rank", e[1])) for e in known_engines(window)]
    served = [s.pairs for s in window.series("heptascope_engine_gpu_info") if s.live]
    serves = [
        (_pairs(*(p for p in row if p[0] in ("engine", "rank"))), _pairs(*(p for p in row if p[0] in ("gpu", "uuid")))) for row in served
    ]
    found = [Instance("engine", pairs, tuple(gpu for engine, gpu in serves if engine == pairs and gpu in gpus)) for pairs in engines]
    found += [Instance("gpu", pairs, tuple(e for e, gpu in serves if gpu == pairs and e in engines)) for pairs in gpus]
    return found + [Instance(kind, (), ()) for kind, known in (("engine", engines), ("gpu", gpus)) if not known]


def _pairs(*pairs: tuple[str, str]) -> Labels:
    return tuple(pair for pair in pairs if pair[1])


class _Presence:
    """Which selectors have live series for an instance, at one moment."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._labels: dict[promql.SelectorInfo, list[Labels]] = {}

    def has(self, selector: promql.SelectorInfo, instance: Instance) -> bool:
        rows = self._labels.get(selector)
        if rows is None:
            about = _about(selector)
            rows = self._labels[selector] = [s.pairs for s in self._window.series(selector.metric) if s.live and about.matches(s.labels)]
        return any(concerns(row, instance) for row in rows)


def _about(selector: promql.SelectorInfo) -> promql.SelectorInfo:
    """Return a selector without the matchers that its series may fail and yet be known; an info's series are a complete list."""
    row = SCHEMA.get(selector.metric)
    kept = () if row is not None and row.kind is Kind.INFO else tuple(m for m in selector.matchers if m.label in WHICH_LABELS)
    return selector._replace(matchers=kept)


def concerns(row: Labels, instance: Instance) -> bool:
    """Whether a series with these labels can say something about the instance."""
    mine = dict(instance.pairs)
    row_labels = dict(row)
    own = ("engine", "rank") if instance.kind == "engine" else ("gpu", "uuid")
    other = ("gpu", "uuid") if instance.kind == "engine" else ("engine", "rank")
    if any(name in row_labels and name in mine and row_labels[name] != mine[name] for name in own):
        return False
    foreign = {name: row_labels[name] for name in other if name in row_labels}
    if not foreign:
        return True
    return any(all(dict(r).get(k, v) == v for k, v in foreign.items()) for r in instance.related)


class RuleJudge:
    """Evaluates the catalogue once a pass and keeps the state of each rule and instance."""

    def __init__(self, rules: Iterable[Rule], settings: JudgeSettings | None = None) -> None:
        """Compile every rule for the in-process window. Raises UserError naming file and line."""
        self.settings = settings or JudgeSettings()
        self.rules = {rule.name: rule for rule in rules}
        duration = f"{round(self.settings.window * 1000)}ms"
        self._compiled = {rule.name: _compiled(rule.text(duration), rule.where) for rule in self.rules.values() if not rule.needs_baseline}
        self._gains = {rule.name: _compiled(rule.fill(rule.gain, duration), rule.where) for rule in self.rules.values() if rule.gain}
        self._findings: dict[tuple[str, str, Labels], Finding] = {}
        self.instances: list[Instance] = []
        self._shape = -1
        self._absent: dict[tuple[str, Labels], tuple[promql.SelectorInfo, ...]] = {}
        self._decidable: dict[tuple[str, Labels], tuple[promql.Conjunct, ...]] = {}

    def step(self, store: Store, now: float) -> list[Finding]:
        """Judge every rule for every instance known at `now`."""
        window, reasons = store.window, by_signal(store.missing())
        before, self.instances = self.instances, instances(window)
        if self._shape != window.shape or before != self.instances:
            self._shape = window.shape
            self._absent.clear()
            self._decidable.clear()
        presence = _Presence(window)
        cache: dict[object, object] = {}
        resting = _resting(store)
        current: dict[tuple[str, str, Labels], Finding] = {}
        for rule in self.rules.values():
            expression = self._compiled.get(rule.name)
            values, complaint = self._evaluate(rule, window, now, cache)
            for instance in self.instances:
                if instance.kind != rule.entity:
                    continue
                key = (rule.name, instance.kind, instance.pairs)
                finding = self._findings.get(key) or Finding(rule, instance, since=now)
                finding.instance = instance
                value = _value_for(values, instance)
                silent = value is not None or (rule.guard != "none" and instance.pairs in resting)
                finding.missing = () if silent else complaint or self._lacking(rule, expression, instance, presence, reasons)
                refuted = bool(finding.missing) and not complaint and self._refuted(rule, instance, presence, window, now, cache)
                self._spare(finding, refuted, now)
                self._advance(finding, value, now)
                current[key] = finding
        self._findings = current
        return list(current.values())

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

    def _evaluate(self, rule: Rule, window: Window, now: float, cache: dict[object, object]) -> tuple[list[_Row], tuple[Missing, ...]]:
        """Return a rule's values, or why the samples do not fit its expression."""
        expression = self._compiled.get(rule.name)
        if expression is None:
            return [], ()
        try:
            return _by_entity(expression.evaluate(window, now, cache=cache), rule), ()
        except promql.EvaluationError as error:
            return [], (Missing(rule.name, Reason.AMBIGUOUS, str(error)),)

    def _lacking(
        self, rule: Rule, expression: promql.Expression | None, instance: Instance, presence: _Presence, reasons: Reasons
    ) -> tuple[Missing, ...]:
        if expression is None:
            return (Missing(rule.name, Reason.NO_SOURCE, BASELINE, instance.pairs),)
        key = (rule.name, instance.pairs)
        absent = self._absent.get(key)
        if absent is None:
            absent = self._absent[key] = tuple(expression.missing(lambda selector: presence.has(selector, instance)))
        found = tuple(dict.fromkeys(explain(selector, instance, reasons) for selector in absent))
        return () if any(m.reason in NOT_APPLICABLE for m in found) else found

    def _spare(self, finding: Finding, refuted: bool, now: float) -> None:
        """Let missing signals not matter once the rule has been refuted for `hold` seconds: for as long a firing rule would have stayed."""
        finding.refuted_since = None if not refuted else now if finding.refuted_since is None else finding.refuted_since
        finding.spared = ()
        if finding.refuted_since is not None and now - finding.refuted_since >= self.settings.hold:
            finding.missing, finding.spared = (), finding.missing

    def _refuted(
        self, rule: Rule, instance: Instance, presence: _Presence, window: Window, now: float, cache: dict[object, object]
    ) -> bool:
        """Whether a part of the rule that must hold is known not to: then nothing that is missing could make the rule fire.

        Limiters stay unknown: that one is clear is taken for its resource being free, and of that the other parts say nothing.
        """
        expression = self._compiled.get(rule.name)
        if expression is None or rule.kind is RuleKind.LIMITER or not instance.pairs:
            return False
        key = (rule.name, instance.pairs)
        parts = self._decidable.get(key)
        if parts is None:
            parts = tuple(part for part in expression.conjuncts if part.known(lambda selector: presence.has(selector, instance)))
            self._decidable[key] = parts
        mine, own = dict(instance.pairs), ENTITY_LABELS[rule.entity]
        try:
            return any(part.fails(mine, own, window, now, cache) for part in parts)
        except promql.EvaluationError:
            return False

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


def by_signal(missing: Iterable[Missing]) -> Reasons:
    """Index reasons by the signal that they are about."""
    out: dict[str, list[Missing]] = {}
    for m in missing:
        out.setdefault(m.signal, []).append(m)
    return out


def explain(selector: promql.SelectorInfo, instance: Instance, reasons: Reasons) -> Missing:
    """Return why a selector finds no value for the instance."""
    metric, row = selector.metric, signal_of(selector.metric)
    allowed = {*instance.pairs, *(pair for row in instance.related for pair in row)}
    allowed |= {(m.label, m.value) for m in selector.matchers if m.op == "="}
    for found in (*reasons.get(metric, ()), *(reasons.get(row.name, ()) if row is not None and row.name != metric else ())):
        if not instance.pairs or set(found.labels) <= allowed:
            return found
    told = next(iter(reasons.get(_MAIN[instance.kind], ())), None) if not instance.pairs else None
    return told._replace(signal=metric) if told is not None else Missing(metric, Reason.NO_SOURCE, "no source supplies it", instance.pairs)


def _by_entity(result: float | list[promql.Item], rule: Rule) -> list[_Row]:
    """Reduce an expression's result to its entity labels and value."""
    if isinstance(result, float | int):
        return []
    names = ENTITY_LABELS[rule.entity]
    return [({k: v for k, v in item.labels if k in names}, item.value) for item in result]


def _value_for(values: list[_Row], instance: Instance) -> float | None:
    mine = dict(instance.pairs)
    return max((value for row, value in values if all(mine.get(k) == v for k, v in row.items())), default=None)
