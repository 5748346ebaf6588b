"""The shapes of the JSON API, as OpenAPI shows them.

The bodies themselves are built as plain objects (`views`), which is several times faster; a test holds them against these models.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from heptascope.model import Layer, Reason
from heptascope.signals.schema_row import Kind


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Value(_Shape):
    """One series of a gauge, counter or info signal."""

    labels: dict[str, str] = Field(description="The labels of the series.")
    value: float | None = Field(description="The value in the signal's unit; null if it is not a finite number.")
    text: str = Field(description="The value for people, with a unit; for an info signal, its facts.")
    rate: float | None = Field(None, description="Counters: increase per second over the last 10 seconds, where it is known.")
    rate_text: str | None = Field(None, description="The rate for people.")


class Distribution(_Shape):
    """One series of a histogram signal; all figures count from the start of the engine."""

    labels: dict[str, str] = Field(description="The labels of the series.")
    count: float = Field(description="Observations.")
    sum: float = Field(description="Sum of the observations, in the signal's unit.")
    quantiles: dict[str, float] = Field(description="0.5 and 0.99 quantile, linear inside a bucket; empty without observations.")
    buckets: list[tuple[str, float]] = Field(description="Upper bound and cumulative count of each bucket; the last bound is +Inf.")
    text: str = Field(description="Median, 99th percentile and count for people.")


class Signal(_Shape):
    """One signal and its current values."""

    name: str = Field(description="Name of the signal, the same as on /metrics.")
    kind: Kind
    unit: str = Field(description="Base unit: seconds, bytes, ratio (0 to 1) …; empty for plain counts.")
    layer: Layer | None = Field(description="Layer that the signal speaks for; null for identity and for heptascope itself.")
    help: str = Field(description="What the signal is and where it comes from.")
    label_names: list[str] = Field(description="Labels that its series may have.")
    values: list[Value | Distribution]


class Signals(_Shape):
    """The current values of one moment."""

    t: float = Field(description="Time of the snapshot, Unix seconds.")
    age_seconds: float = Field(description="Age of the snapshot; more than a few seconds means that heptascope is stuck.")
    version: int = Field(description="Grows by one with each snapshot.")
    shape: str = Field(description="Changes when series come or go or a state changes; a page that shows them is then built anew.")
    signals: list[Signal]


class Source(_Shape):
    """One source of readings."""

    name: str
    kind: str = Field(description="gpu, engine, host, trace or recording.")
    up: bool = Field(description="Whether its last read succeeded.")
    age_seconds: float | None = Field(description="Age of its last good reading; null if there was none.")
    duration_seconds: float | None = Field(description="Time that its last read took.")
    failures: int = Field(description="Failed reads since the start.")
    reason: Reason | None = Field(description="Why it is down.")
    message: str = Field(description="One line for people.")
    age_text: str
    duration_text: str


class Sources(_Shape):
    """All sources."""

    t: float = Field(description="Time of the snapshot, Unix seconds.")
    sources: list[Source]


class Gap(_Shape):
    """A signal that has no value on some engine or GPU."""

    signal: str
    layer: Layer | None
    reason: Reason
    reason_text: str = Field(description="The reason in words.")
    detail: str = Field(description="What exactly is missing, where that is known.")
    labels: dict[str, str] = Field(description="The engine or GPU without the value; empty: everywhere.")


class Unavailable(_Shape):
    """Every signal without a value, and why."""

    t: float = Field(description="Time of the snapshot, Unix seconds.")
    unavailable: list[Gap]


class HistorySeries(_Shape):
    """The points of one series."""

    name: str = Field(description="Name of the series; a histogram has several.")
    labels: dict[str, str]
    points: list[tuple[float, float | None]] = Field(description="Unix seconds and value; null where the series ended.")


class History(_Shape):
    """The recent past of one signal."""

    signal: str
    unit: str
    seconds: float = Field(description="How far back the points reach.")
    series: list[HistorySeries]


class SourceReadiness(_Shape):
    """Whether one source is up."""

    up: bool
    reason: Reason | None


class Readiness(_Shape):
    """Whether there is anything to show yet."""

    ready: bool
    sources: dict[str, SourceReadiness]


class Liveness(_Shape):
    """Whether the pipeline's loop runs."""

    alive: bool


class Error(_Shape):
    """What went wrong, in one line."""

    error: str


Verdict = dict[str, Any]
"""What `rules.verdict` prints; the same object as on the command line."""
