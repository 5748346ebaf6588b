"""From findings to the verdict: root faults, consequences, the limiter, what could not be judged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from heptascope.model import Confidence, FindingState, RuleKind, VerdictState
from heptascope.rules.evidence import gather
from heptascope.rules.export import Values, each_engine, verdict_values
from heptascope.rules.graph import Node, roots
from heptascope.rules.instances import concerns
from heptascope.rules.judge import Finding, JudgeSettings, RuleJudge
from heptascope.rules.rule import Action, Rule
from heptascope.rules.verdict import Claim, Unknown, Verdict, verdict_json
from heptascope.signals.store import Store

CLEAR_LEAD, SMALL_LEAD = 0.15, 0.05
"""Distance of the limiter's score to the next one from which it is direct, or at least inferred (own choice: the spread of a
resource's pressure between one-second windows of the H200 recordings is below 0.05)."""

STEP_RESOURCES = ("dram", "tensor", "host")
"""Resources that every step uses: a load that none of them limits is too light for anything to."""

_ORDER = (Confidence.WEAK, Confidence.INFERRED, Confidence.DIRECT)
_WORST = (VerdictState.IDLE, VerdictState.HEALTHY, VerdictState.CANNOT_TELL, VerdictState.DEGRADED)


class Diagnoser:
    """The rules room as the pipeline sees it: judges once a pass, and remembers since when the verdict stands."""

    def __init__(self, rules: Iterable[Rule], settings: JudgeSettings | None = None) -> None:
        """Judge with `rules`."""
        self.judge = RuleJudge(rules, settings)
        self.findings: list[Finding] = []
        self.latest: Verdict | None = None
        self._since: dict[str, tuple[object, float]] = {}
        self._shown: tuple[object, Values] = (None, {})

    def step(self, store: Store, now: float) -> None:
        """Judge at `now` and make the verdict."""
        self.findings = self.judge.step(store, now)
        self.latest = self._overall(store, now)

    def verdict(self) -> dict[str, Any] | None:
        """Return the latest verdict as JSON-ready data."""
        return verdict_json(self.latest) if self.latest is not None else None

    def values(self) -> Values:
        """Return findings and verdict as series; the same object while they say the same."""
        if self.latest is None:
            return {}
        said = [(v.engine, v.state, v.limiter and v.limiter.rule, [(c.rule, c.entity) for c in v.faults]) for v in each_engine(self.latest)]
        key = (self.judge.version, said)
        if key != self._shown[0]:
            self._shown = (key, verdict_values(self.latest, self.findings))
        return self._shown[1]

    def _overall(self, store: Store, now: float) -> Verdict:
        engines = sorted({dict(i.pairs).get("engine", "") for i in self.judge.instances if i.kind == "engine"})
        if len(engines) <= 1:
            return self._one(engines[0] if engines else "", self.findings, store, now)
        each = tuple(self._one(engine, [f for f in self.findings if _serves(f, engine)], store, now) for engine in engines)
        worst = max(each, key=lambda v: _WORST.index(v.state))
        return Verdict(
            worst.state, worst.confidence, "", worst.limiter,
            _unique(c for v in each for c in v.faults), _unique(c for v in each for c in v.consequences),
            _unique(c for v in each for c in v.symptoms), tuple(dict.fromkeys(u for v in each for u in v.cannot_tell)),
            worst.since, now, each,
        )  # fmt: skip

    def _one(self, engine: str, findings: Sequence[Finding], store: Store, now: float) -> Verdict:
        firing = {Node(f.rule.name, f.instance.pairs): f for f in findings if f.state is FindingState.FIRING}
        faults = {node: f for node, f in firing.items() if f.rule.kind is not RuleKind.LIMITER}
        causes = roots(faults, self.judge.rules, lambda a, b: _related(faults[a], faults[b]))
        kinds = _engine_kinds(store, engine)
        traced = [f for f in firing.values() if f.rule.about_trace]
        claims = {node: self._claim(f, causes[node], store, now, kinds, traced) for node, f in faults.items()}
        root = [c for n, c in claims.items() if c.kind is RuleKind.FAULT and not causes[n]]
        effects = [c for n, c in claims.items() if c.kind is RuleKind.FAULT and causes[n]]
        symptoms = [c for c in claims.values() if c.kind is RuleKind.SYMPTOM]
        limiter = self._limiter(findings, store, now, kinds, traced)
        unknown = tuple(
            Unknown(f.rule.name, f.rule.layer, f.rule.topic, f.rule.kind, f.instance.pairs, f.missing)
            for f in findings if f.state is FindingState.CANNOT_TELL
        )  # fmt: skip
        state = _state(store, engine, root, symptoms, known=limiter is not None or _light(findings))
        if state is VerdictState.HEALTHY and limiter is not None and self._may_be_fault(limiter, findings):
            state = VerdictState.CANNOT_TELL
        signature = (state, tuple(sorted(c.rule for c in root)))
        known = self._since.get(engine)
        since = known[1] if known is not None and known[0] == signature else now
        self._since[engine] = (signature, since)
        return Verdict(
            state, _confidence(state, root, symptoms, limiter), engine, limiter if state is not VerdictState.IDLE else None,
            _sorted(root), _sorted(effects), _sorted(symptoms), unknown, since, now,
        )  # fmt: skip

    def _claim(
        self,
        f: Finding,
        because: Sequence[Node],
        store: Store,
        now: float,
        kinds: set[str],
        traced: Sequence[Finding],
        confidence: Confidence | None = None,
    ) -> Claim:
        rule = f.rule
        alike = corroborating(f, traced)
        span = self.judge.settings.window
        actions = tuple(_step(a, kinds) for a in rule.actions if a.when in ("any", "kubernetes") or a.when in kinds or not kinds)
        return Claim(
            rule.name, rule.layer, rule.topic, rule.kind, rule.severity, f.instance.pairs,
            _surer(confidence or rule.confidence, alike), rule.summary,
            f.since, f.value if f.value is not None else 0.0, tuple(gather(rule, f.instance, store.window, now, span)),
            actions, tuple(dict.fromkeys(node.rule for node in because)), self.judge.gain(f, store.window, now),
            tuple(dict.fromkeys(other.rule.name for other in alike)),
        )  # fmt: skip

    def _limiter(self, findings: Sequence[Finding], store: Store, now: float, kinds: set[str], traced: Sequence[Finding]) -> Claim | None:
        """Choose the firing limiter with the highest score that no other one explains; its lead over the next gives the confidence.

        What limits now is for live signals to say: a trace only makes the answer surer.
        """
        firing = {
            Node(f.rule.name, f.instance.pairs): f
            for f in findings
            if f.rule.kind is RuleKind.LIMITER and f.state is FindingState.FIRING and f.value is not None and not f.rule.about_trace
        }
        causes = roots(firing, self.judge.rules, lambda a, b: _related(firing[a], firing[b]))
        ranked = sorted((firing[node] for node, explained in causes.items() if not explained), key=lambda f: -(f.value or 0.0))
        if not ranked:
            return None
        best = ranked[0]
        rival = next((f for f in ranked if f.rule is not best.rule), None)  # the same limit on another rank or GPU is none
        lead = (best.value or 0.0) - (rival.value or 0.0) if rival is not None else 1.0
        sure = Confidence.DIRECT if lead >= CLEAR_LEAD else Confidence.INFERRED if lead >= SMALL_LEAD else Confidence.WEAK
        return self._claim(best, (), store, now, kinds, traced, min(sure, best.rule.confidence, key=_ORDER.index))

    def _may_be_fault(self, limiter: Claim, findings: Sequence[Finding]) -> bool:
        """Whether another limiter, which is a fault too, may be what really limits, and neither can be judged: then nothing is healthy."""
        unknown = [f.rule for f in findings if (f.state is FindingState.CANNOT_TELL or f.spared) and not f.rule.about_trace]
        faults = {(rule.layer, rule.topic) for rule in unknown if rule.kind is RuleKind.FAULT}
        return any(
            rule.kind is RuleKind.LIMITER and limiter.rule in rule.explains and (rule.layer, rule.topic) in faults for rule in unknown
        )


def corroborating(f: Finding, traced: Iterable[Finding]) -> list[Finding]:
    """Return the firing findings of a fresh trace that say the same of the same engine as a live finding: layer and topic agree.

    A rule about a trace fires only while the trace is fresh, so a stale one corroborates nothing.
    """
    about = (f.rule.layer, f.rule.topic)
    return [] if f.rule.about_trace else [t for t in traced if (t.rule.layer, t.rule.topic) == about and _related(f, t)]


def _surer(confidence: Confidence, alike: Sequence[Finding]) -> Confidence:
    """Return the next higher confidence if a trace shows the same: two independent looks at one thing."""
    return _ORDER[min(_ORDER.index(confidence) + 1, len(_ORDER) - 1)] if alike else confidence


def _step(action: Action, kinds: set[str]) -> str:
    """Return a next step as text; where the engine's kind is not known, engine-specific steps say which engine they are for."""
    return action.do if action.when == "any" or kinds else f"[{action.when}] {action.do}"


def _serves(f: Finding, engine: str) -> bool:
    rows = (f.instance.pairs, *f.instance.related) if f.instance.kind == "gpu" else (f.instance.pairs,)
    return any(dict(row).get("engine") == engine for row in rows) or (f.instance.kind == "gpu" and not f.instance.related)


def _related(a: Finding, b: Finding) -> bool:
    """Whether two findings concern each other: one engine's ranks, one GPU, or a GPU and the engine that it serves."""
    if a.instance.kind == b.instance.kind:
        return a.instance.pairs == b.instance.pairs or bool(set(a.instance.related) & set(b.instance.related))
    return concerns(a.instance.pairs, b.instance) or concerns(b.instance.pairs, a.instance)


def _engine_kinds(store: Store, engine: str) -> set[str]:
    rows = [dict(pairs) for pairs, _ in store.current("heptascope_engine_info")]
    return {row["kind"] for row in rows if row.get("kind") and (not engine or row.get("engine") == engine)}


def _light(findings: Sequence[Finding]) -> bool:
    """Whether it is known of every resource of a step that it does not limit."""
    wanted = {("resource", resource) for resource in STEP_RESOURCES}
    about = [f for f in findings if f.rule.kind is RuleKind.LIMITER and any(item.only in wanted for item in f.rule.evidence)]
    return bool(about) and all(f.state is FindingState.CLEAR for f in about)


def _state(store: Store, engine: str, root: Sequence[Claim], symptoms: Sequence[Claim], *, known: bool) -> VerdictState:
    """Return the state; `known` says whether what limits the engine is known, be it nothing."""
    if root or any(not s.because for s in symptoms):
        return VerdictState.DEGRADED
    work = [value for pairs, value in store.current("heptascope_engine_has_work") if not engine or dict(pairs).get("engine") == engine]
    if not work:
        return VerdictState.CANNOT_TELL
    if not any(work):
        return VerdictState.IDLE
    return VerdictState.HEALTHY if known else VerdictState.CANNOT_TELL


def _confidence(state: VerdictState, root: Sequence[Claim], symptoms: Sequence[Claim], limiter: Claim | None) -> Confidence:
    if state is VerdictState.DEGRADED:
        return max((c.confidence for c in root), key=_ORDER.index, default=Confidence.WEAK if symptoms else Confidence.INFERRED)
    if state is VerdictState.HEALTHY:
        return limiter.confidence if limiter is not None else Confidence.INFERRED
    return Confidence.DIRECT if state is VerdictState.IDLE else Confidence.WEAK


def _sorted(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    severity = ("critical", "warning", "info")
    return tuple(sorted(claims, key=lambda c: (severity.index(c.severity), -_ORDER.index(c.confidence), c.since, c.rule)))


def _unique(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    return tuple({(c.rule, c.entity): c for c in claims}.values())
