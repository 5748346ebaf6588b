"""The nouns that every room shares: layers, samples, readings, findings, the verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple


class Layer(StrEnum):
    """The seven layers, from the silicon up."""

    HARDWARE = "hardware"
    OPERATOR = "operator"
    MEMORY = "memory"
    SCHEDULING = "scheduling"
    PARALLEL = "parallel"
    SPECULATIVE = "speculative"
    APPLICATION = "application"


class Reason(StrEnum):
    """Why a signal has no value: the closed list behind `heptascope_signal_unavailable`."""

    NOT_SUPPORTED = "not_supported"  # this card, driver or kernel does not have it
    NO_PERMISSION = "no_permission"  # it exists, we may not read it
    PROFILER_LOCKED = "profiler_locked"  # another profiler holds the counters
    ENGINE = "engine"  # the engine does not export it
    ENGINE_TOO_OLD = "engine_too_old"  # a newer version of this engine exports it
    FLAG_OFF = "flag_off"  # the engine needs a start flag to export it
    NOT_CONFIGURED = "not_configured"  # the feature behind it is off, so there is nothing to judge
    SOURCE_DOWN = "source_down"  # its source cannot be read at present
    NO_SOURCE = "no_source"  # no source of this kind was configured or found
    STALE = "stale"  # it had a value, which is too old to use
    INVALID = "invalid"  # the value that came was impossible (NaN, negative counter, sentinel)
    AMBIGUOUS = "ambiguous"  # it cannot be told which engine or GPU it belongs to
    IDLE = "idle"  # defined only while there is work


Labels = tuple[tuple[str, str], ...]
"""Label pairs, sorted by name, without empty values."""


def labels(**pairs: str) -> Labels:
    """Return `pairs` as Labels: sorted, empty values dropped (Prometheus treats them as absent)."""
    return tuple(sorted((k, v) for k, v in pairs.items() if v))


class Sample(NamedTuple):
    """One value of one signal.

    `window` is the number of seconds over which a ratio is an exact mean (0: an instant reading).
    `part` names the piece of a folded series (an API server, a process); samples that share name and
    labels but differ in `part` are folded by the signals room.
    """

    name: str
    labels: Labels
    value: float
    window: float = 0.0
    part: str = ""


class Histogram(NamedTuple):
    """One classic histogram: cumulative `counts` per upper bound in `bounds` (the last one is +Inf)."""

    name: str
    labels: Labels
    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    sum: float
    part: str = ""


class Missing(NamedTuple):
    """A signal without a value, and why; `labels` narrows it to one engine or GPU (empty: everywhere)."""

    signal: str
    reason: Reason
    detail: str = ""
    labels: Labels = ()


class Quality(StrEnum):
    """How a signal was obtained."""

    EXACT = "exact"
    DERIVED = "derived"
    APPROXIMATE = "approximate"


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything one source saw at one moment `t` (Unix seconds).

    A series that was in the source's previous reading and is not in this one is stale at once.
    `quality` names how signals were obtained where it is not EXACT: (signal, labels) to quality.
    `raw` is the row as a recording keeps it (None: nothing to record).
    """

    source: str
    t: float
    samples: list[Sample] = field(default_factory=list)
    histograms: list[Histogram] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    quality: dict[tuple[str, Labels], Quality] = field(default_factory=dict)
    raw: dict[str, Any] | None = None


class SourceStatus(NamedTuple):
    """The runner's view of one source: what `heptascope_source_*` and `/api/v1/sources` show."""

    name: str
    kind: str  # gpu | engine | host | trace | recording
    up: bool
    last_success: float | None  # Unix seconds of the last good reading
    duration: float | None  # seconds that the last read took
    reason: Reason | None = None  # why it is down
    message: str = ""  # one line for people
    failures: int = 0  # failed reads since start


class RuleKind(StrEnum):
    """What a rule says: what bounds throughput, what to fix, what the user feels."""

    LIMITER = "limiter"
    FAULT = "fault"
    SYMPTOM = "symptom"


class FindingState(StrEnum):
    """The state of one rule for one engine or GPU."""

    FIRING = "firing"
    PENDING = "pending"
    CLEAR = "clear"
    CANNOT_TELL = "cannot-tell"


class VerdictState(StrEnum):
    """The one-word answer."""

    IDLE = "idle"
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    CANNOT_TELL = "cannot-tell"


class Confidence(StrEnum):
    """How sure a claim is: seen directly, inferred from other signals, or only hinted at."""

    DIRECT = "direct"
    INFERRED = "inferred"
    WEAK = "weak"


class Evidence(NamedTuple):
    """One value behind a claim, with the threshold it was held against (None: shown for context)."""

    signal: str
    value: float | None
    threshold: float | None = None
    comparison: str = ""
    text: str = ""
