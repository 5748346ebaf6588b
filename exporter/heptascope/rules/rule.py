"""What a rule is: one entry of the catalogue, with its text ready to be evaluated, rendered or quoted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from heptascope.model import Confidence, Layer, RuleKind

TOPICS: Final[Mapping[Layer, tuple[str, ...]]] = {
    Layer.HARDWARE: ("dram", "compute", "power", "pcie", "contention", "thermal", "fault", "spin", "memory-leak", "slow-gpu", "link"),
    Layer.OPERATOR: (
        "launch",
        "eager",
        "backend",
        "recompile",
        "occupancy",
        "graph-coverage",
        "latency",
        "gaps",
        "sync",
        "copies",
        "roofline",
    ),
    Layer.MEMORY: (
        "capacity",
        "preemption",
        "prefix-cache-off",
        "sizing",
        "fragmentation",
        "eviction",
        "offload",
        "recompute",
        "allocation",
        "draft-model",
    ),
    Layer.SCHEDULING: (
        "sequence-cap",
        "token-budget",
        "host-step",
        "host-cpu",
        "overload",
        "prefill-starvation",
        "numa",
        "queue",
        "step-regression",
        "stall",
    ),
    Layer.PARALLEL: ("communication", "straggler", "bubble", "imbalance", "idle-gpu", "peer-access"),
    Layer.SPECULATIVE: ("acceptance", "overhead", "positions"),
    Layer.APPLICATION: ("frontend", "aborts", "errors", "rejections", "retries", "bursty", "client", "slo", "switching"),
}
"""The closed list of topics: what a claim is about, within its layer."""

ENTITY_LABELS: Final[Mapping[str, tuple[str, ...]]] = {"engine": ("engine", "rank"), "gpu": ("gpu",)}
"""The labels behind the placeholder `$entity`."""

GUARDS: Final[Mapping[str, str]] = {
    "engine": "heptascope_engine_has_work == 1",
    "gpu": "heptascope_gpu_has_work == 1",
    "none": "",
}
"""What a rule's expression is joined with, so that it is silent without work."""

OF_TRACE: Final = "heptascope_engine_trace_info"
"""What every rule about a trace reads: which engine rank the served trace is of."""

JOINS: Final = ("entity", "rank", "engine", "gpu", "trace_rank")
"""Placeholders for join labels: those of the rule's entity, of an engine rank, of an engine whatever its rank, of a GPU, of a rank of
the served trace.

Rendered rules put the labels of the pod (`$pod`, nothing in-process) in front, so that no pod's series meet another's.
"""

_PLACEHOLDER = re.compile(r"\$([a-z_][a-z0-9_]*)")


@dataclass(frozen=True, slots=True)
class EvidenceItem:
    """One value to show beside a claim; `threshold` names one of the rule's thresholds, `only` a label value that series must have."""

    signal: str
    comparison: str = ""
    threshold: str = ""
    only: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """A next step; `when` names the engine kind it is for (any: every engine)."""

    when: str
    do: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the catalogue. `where` is file:line, `hold` the alert's `for` in seconds.

    `shared` says of a threshold that is another rule's (rule, threshold): one number, one source.
    """

    name: str
    layer: Layer
    topic: str
    kind: RuleKind
    entity: str
    expr: str
    guard: str
    thresholds: Mapping[str, float]
    source: Mapping[str, str]
    hold: float
    severity: str
    confidence: Confidence
    summary: str
    evidence: tuple[EvidenceItem, ...] = ()
    actions: tuple[Action, ...] = ()
    explains: tuple[str, ...] = ()
    needs_baseline: bool = False
    gain: str = ""
    gain_text: str = ""
    where: str = ""
    shared: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    overridden: Mapping[str, float] = field(default_factory=dict)

    @property
    def about_trace(self) -> bool:
        """Whether the rule speaks of a trace, which is a short sample of what was."""
        return OF_TRACE in self.expr

    def text(self, window: str, pod: str = "") -> str:
        """Return the PromQL with guard, thresholds and `window` (a PromQL duration) filled in; `pod` are the pod's own join labels."""
        guard = GUARDS[self.guard]
        expr = f"(\n{self.expr.strip()}\n)\nand on ($entity) {guard}" if guard else self.expr.strip()
        return self.fill(expr, window, pod)

    def fill(self, expr: str, window: str, pod: str = "") -> str:
        """Fill the placeholders of `expr`. Raises KeyError with the name of an unknown one."""
        names = {"window": window, "pod": pod}
        for join in JOINS:
            own = {"entity": ENTITY_LABELS[self.entity], "rank": ENTITY_LABELS["engine"]}.get(join, (join,))
            names[join] = ", ".join((*(label for label in pod.split(", ") if label), *own))

        def value(match: re.Match[str]) -> str:
            name = match.group(1)
            return names[name] if name in names else f"{self.threshold(name):.12g}"

        return _PLACEHOLDER.sub(value, expr)

    def threshold(self, name: str) -> float:
        """Return a threshold, overridden or as written. Raises KeyError for an unknown name."""
        return self.overridden[name] if name in self.overridden else self.thresholds[name]

    def placeholders(self) -> set[str]:
        """Return the names of thresholds that the expression uses."""
        return {name for name in _PLACEHOLDER.findall(f"{self.expr} {self.gain}") if name not in (*JOINS, "window", "pod")}
