"""The shapes of the page's own answers, as OpenAPI shows them; a test holds the bodies, built as plain objects, against these."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from heptascope.model import Confidence, FindingState, Layer, Reason, RuleKind, VerdictState


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Said(_Shape):
    """The verdict on one engine, its claims by their keys."""

    state: VerdictState
    confidence: Confidence
    since: float = Field(description="Since when it stands, Unix seconds.")
    limiter: str | None = Field(None, description="Key of the claim that says what bounds throughput.")
    faults: list[str] = Field(description="Keys of the root faults.")
    consequences: list[str] = Field(description="Keys of the faults that others explain.")
    symptoms: list[str] = Field(description="Keys of what users feel.")
    unknown: list[str] = Field(description="Rules that could not be judged.")


class LayerState(_Shape):
    """One layer of one engine."""

    state: str = Field(description="clear, limiting, symptom, faulty, or cannot-tell.")
    rules: int = Field(description="Rules of the layer for this engine and its GPUs; those about traces only where they fire.")
    judged: int = Field(description="How many of them could be judged.")
    firing: int
    pending: int


class Engine(_Shape):
    """One engine."""

    ranks: list[str]
    kind: str | None = None
    version: str | None = None
    model: str | None = None


class Gpu(_Shape):
    """One GPU."""

    engines: list[str] = Field(description="The engines that it serves, as far as that is known.")
    model: str | None = None
    driver: str | None = None
    uuid: str | None = None


class PageSource(_Shape):
    """One source."""

    up: bool
    kind: str
    reason: str | None = None
    message: str | None = None


class ServedTrace(_Shape):
    """The trace that is served."""

    file: str
    written: float = Field(description="Unix seconds, right to a few seconds.")


class Band(_Shape):
    """One finding from its beginning to its end."""

    key: str
    rule: str
    layer: Layer
    kind: RuleKind
    entity: dict[str, str]
    begin: float
    end: float | None = Field(None, description="Absent while it fires.")


class Page(_Shape):
    """The page."""

    t: float = Field(description="Time of the snapshot, Unix seconds.")
    said: float | None = Field(None, description="Time of the verdicts, Unix seconds.")
    engines: dict[str, Engine]
    gpus: dict[str, Gpu]
    sources: dict[str, PageSource]
    trace: ServedTrace | None = Field(None, description="The trace that is served; absent without one.")
    gaps: int = Field(description="Signals that have no value on some engine or GPU.")
    verdicts: dict[str, Said] = Field(description="By engine; the key is empty while no engine is known.")
    overall: Said | None = Field(None, description="The worst of them, where there are several engines.")
    claims: dict[str, dict[str, Any]] = Field(description="The claims of /api/v1/verdict, by key: rule and entity.")
    layers: dict[str, dict[Layer, LayerState]] = Field(description="By engine and layer.")
    bands: dict[str, Band] = Field(description="The findings of the last ten minutes.")


class Chart(_Shape):
    """One chart."""

    signal: str
    unit: str
    rate: bool = Field(description="Whether the values are rates per second of a counter.")
    layer: Layer
    lines: dict[str, list[float | None]] = Field(description="By engine and rank, or by GPU; one value a second, oldest first.")


class Charts(_Shape):
    """All charts."""

    t: int = Field(description="Second of the last value, Unix time.")
    seconds: int
    charts: dict[str, Chart]
    leading: dict[Layer, list[str]] = Field(description="The charts that stand for a layer, best first.")


class Action(_Shape):
    """A next step."""

    when: str = Field(description="Engine kind that it is for, or any.")
    do: str


class CatalogueRule(_Shape):
    """One rule of the catalogue."""

    rule: str
    layer: Layer
    topic: str
    kind: RuleKind
    entity: str
    severity: str
    confidence: Confidence
    summary: str
    promql: str = Field(description="The expression as it is evaluated here; alerts use the same one over minutes.")
    hold_seconds: float = Field(description="How long the alert waits.")
    thresholds: dict[str, float]
    source: dict[str, str] = Field(description="Where each threshold comes from.")
    actions: list[Action]
    explains: list[str]
    explained_by: list[str]
    needs_baseline: bool
    runbook: str = Field(description="Markdown; empty if there is no page.")
    runbook_zh: str = Field(description="The same in Chinese; empty if there is no such page.")


class Rules(_Shape):
    """The catalogue."""

    rules: list[CatalogueRule]


class Lack(_Shape):
    """A signal that a rule lacks."""

    signal: str
    reason: Reason
    detail: str


class Finding(_Shape):
    """The state of one rule for one engine rank or GPU."""

    key: str
    rule: str
    layer: Layer
    kind: RuleKind
    entity: dict[str, str]
    state: FindingState
    since: float
    missing: list[Lack]
    evidence: list[dict[str, Any]]


class Findings(_Shape):
    """Every rule's state."""

    t: float
    findings: list[Finding]


class TrendLine(_Shape):
    """One line of a trend."""

    labels: dict[str, str]
    values: list[float | None]


class Trend(_Shape):
    """The recent past of one signal of a rule."""

    signal: str
    unit: str
    rate: bool
    lines: list[TrendLine]
    threshold: float | None = None
    comparison: str | None = None


class Trends(_Shape):
    """The recent past of what a rule looks at."""

    rule: str
    t: int
    seconds: int
    trends: list[Trend]
