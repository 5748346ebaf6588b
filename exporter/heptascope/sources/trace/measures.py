"""What a trace says, as numbers: per rank and for the whole run. `docs/trace.md` defines every measure.

All times are seconds, all ratios 0 to 1. A measure that the trace cannot give is None or empty, never 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from heptascope.model import Labels, labels

NANOSECONDS = 1e9
SampleRow = tuple[str, Labels, float]
_P = "heptascope_trace_"


def seconds(nanoseconds: float) -> float:
    """Return nanoseconds as seconds."""
    return float(nanoseconds) / NANOSECONDS


class GapCause(StrEnum):
    """Why no kernel ran."""

    COPY = "copy"  # a copy or a fill ran instead
    LAUNCH = "launch"  # the host was preparing or making the launch
    SYNC = "sync"  # the launching thread waited for the GPU
    EMPTY = "empty"  # the launching thread recorded nothing: it had no work, or waited for another process
    DEVICE = "device"  # launched before the gap began: dependencies, events, the device's own latency
    UNKNOWN = "unknown"  # the launch is not in the trace


@dataclass(frozen=True, slots=True)
class Spread:
    """A distribution in short; percentiles by nearest rank."""

    count: int
    min: float
    p50: float
    p99: float
    max: float


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies of one direction between one pair of kinds of memory."""

    direction: str  # HtoD, DtoH, DtoD, PtoP, set
    memory: str  # pinned, pageable, device, managed: the host's side where there is one
    count: int
    seconds: float
    ratio: float  # of the wall time
    bytes: int


@dataclass(frozen=True, slots=True)
class Sync:
    """Waits of host threads for the GPU, by call and by what called it."""

    call: str
    caller: str
    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Kernel:
    """All runs of one kernel. An outlier took at least 3 times the median of its kernel and shape."""

    name: str
    kernel_class: str
    count: int
    seconds: float
    share: float  # of all kernel time
    mean: float
    p50: float
    p99: float
    max: float
    outliers: int
    outlier_seconds: float  # time over the median


@dataclass(frozen=True, slots=True)
class ClassTime:
    """Time and runs of one class of GPU work; `share` is of all GPU work's time."""

    kernel_class: str
    count: int
    seconds: float
    share: float


@dataclass(frozen=True, slots=True)
class GapBucket:
    """Idle gaps with a length up to `upper` (seconds; None: any) and above the bucket before."""

    upper: float | None
    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Collectives:
    """Communication: time in which at least one collective ran, and how much of it compute kernels covered."""

    count: int
    seconds: float
    ratio: float  # of the wall time
    overlap_ratio: float  # of `seconds`
    exposed_ratio: float  # of the wall time


@dataclass(frozen=True, slots=True)
class Steps:
    """The trace cut into steps. `period` is from begin to begin on the GPU, `gpu` the kernel time of one step."""

    how: str  # the name of the ranges, digits as #, or "gaps"
    count: int
    period: Spread
    gpu: Spread


@dataclass(frozen=True, slots=True)
class Late:
    """Work that belongs before serving: compilations, module loads, graph captures."""

    compilations: int
    compilation_seconds: float
    module_loads: int
    module_load_seconds: float
    graph_captures: int


@dataclass(slots=True)
class Measures:
    """Everything measured on one GPU's part of one trace."""

    rank: str
    file: str
    format: str
    device: str
    wall_seconds: float
    busy_seconds: float
    kernel_seconds: float
    kernels: int
    streams: int
    gap_ratio: float
    gap_causes: dict[str, float]
    gap_count: int
    gap_histogram: list[GapBucket]
    copy_ratio: float
    copies: list[Copies]
    tiny_ratio: float | None
    tiny_time_ratio: float | None
    graph_kernel_ratio: float | None
    graph_time_ratio: float | None
    graph_launches: int
    launch_delay: Spread | None
    sync_count: int
    sync_ratio: float
    syncs: list[Sync]
    top: list[Kernel]
    outliers: int
    outlier_seconds: float
    classes: list[ClassTime]
    collectives: Collectives | None
    steps: Steps | None
    late: Late
    occupancy_estimate_ratio: float | None
    timeline: dict[str, list[float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def busy_ratio(self) -> float:
        """Share of the wall time in which the GPU did anything."""
        return self.busy_seconds / self.wall_seconds if self.wall_seconds else 0.0

    def to_samples(self) -> list[SampleRow]:
        """Return the measures as (signal, labels, value)."""
        rows = [*self._times(), *self._operator(), *self._launching(), *self._classes()]
        return [(_P + name, labels(trace_rank=self.rank, **extra), float(value)) for name, extra, value in rows if value is not None]

    def _times(self) -> Iterator[tuple[str, dict[str, str], float | None]]:
        yield "wall_seconds", {}, self.wall_seconds
        yield "gpu_busy_ratio", {}, self.busy_ratio
        yield "kernel_gap_ratio", {}, self.gap_ratio
        yield from self._gaps()
        yield "copy_ratio", {}, self.copy_ratio
        for copy in self.copies:
            kind = {"direction": copy.direction, "memory": copy.memory}
            yield "copy_kind_ratio", kind, copy.ratio
            yield "copy_kind_bytes", kind, copy.bytes
        if self.steps is not None:
            yield "steps", {}, self.steps.count
            yield from _spread("step_seconds", self.steps.period)

    def _gaps(self) -> Iterator[tuple[str, dict[str, str], float | None]]:
        """Where most launches are not in the trace, only the causes that need none are told."""
        unknown = self.gap_causes.get(GapCause.UNKNOWN, 0.0)
        told = {cause: ratio for cause, ratio in self.gap_causes.items() if cause not in (GapCause.UNKNOWN, GapCause.COPY)}
        blind = unknown > sum(told.values())
        for cause, ratio in self.gap_causes.items():
            yield "gap_ratio", {"cause": str(cause)}, None if blind and cause in told else ratio
        if self.gap_causes and not blind:
            yield "work_gap_ratio", {}, sum(ratio for cause, ratio in told.items() if cause != GapCause.EMPTY)

    def _operator(self) -> Iterator[tuple[str, dict[str, str], float | None]]:
        yield "kernels", {}, self.kernels
        yield "tiny_kernel_ratio", {}, self.tiny_ratio
        yield "tiny_kernel_time_ratio", {}, self.tiny_time_ratio
        yield "kernel_outliers", {}, self.outliers
        yield "kernel_outlier_ratio", {}, self.outlier_seconds / self.wall_seconds if self.wall_seconds else None
        yield "occupancy_estimate_ratio", {}, self.occupancy_estimate_ratio
        yield "compilations", {}, self.late.compilations
        yield "module_loads", {}, self.late.module_loads
        yield "graph_captures", {}, self.late.graph_captures

    def _launching(self) -> Iterator[tuple[str, dict[str, str], float | None]]:
        yield "graph_kernel_ratio", {}, self.graph_kernel_ratio
        yield "graph_time_ratio", {}, self.graph_time_ratio
        yield "graph_launches", {}, self.graph_launches
        yield "host_syncs", {}, self.sync_count
        yield "host_sync_ratio", {}, self.sync_ratio
        if self.launch_delay is not None:
            yield from _spread("launch_delay_seconds", self.launch_delay)

    def _classes(self) -> Iterator[tuple[str, dict[str, str], float | None]]:
        for row in self.classes:
            yield "class_ratio", {"class": row.kernel_class}, row.share
        if self.collectives is not None:
            yield "collective_ratio", {}, self.collectives.ratio
            yield "collective_overlap_ratio", {}, self.collectives.overlap_ratio
            yield "collective_exposed_ratio", {}, self.collectives.exposed_ratio


def _spread(name: str, values: Spread) -> Iterator[tuple[str, dict[str, str], float | None]]:
    for stat in ("p50", "p99"):
        yield name, {"stat": stat}, getattr(values, stat)


@dataclass(frozen=True, slots=True)
class Arrival:
    """One rank's part in the collectives of its group. `last` counts those in which it came last by more than the noise."""

    rank: str
    matched: int
    last: int
    last_ratio: float  # of `matched`
    lateness: Spread | None  # by how much it came after the one before it, where it was last
    waited_seconds: float  # from its own arrival to the last one's
    waited_ratio: float  # of its wall time


@dataclass(frozen=True, slots=True)
class Group:
    """Ranks that talk to each other. `skew` is what was taken off each rank's clock to align the collectives' ends."""

    ranks: list[str]
    arrivals: list[Arrival]
    skew: dict[str, float]
    residual: float  # seconds: median disagreement of the ends that is left


@dataclass(slots=True)
class Run:
    """One run: all its ranks, what holds between them, and the whole."""

    ranks: list[Measures]
    groups: list[Group] = field(default_factory=list)
    bubbles: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def to_samples(self) -> list[SampleRow]:
        """Return all measures as (signal, labels, value)."""
        rows = [row for rank in self.ranks for row in rank.to_samples()]
        for group in self.groups:
            for arrival in group.arrivals:
                mine = labels(trace_rank=arrival.rank)
                rows.append((_P + "collective_wait_ratio", mine, arrival.waited_ratio))
                rows.append((_P + "collective_last_ratio", mine, arrival.last_ratio))
                rows.append((_P + "clock_skew_seconds", mine, group.skew[arrival.rank]))
                if arrival.lateness is not None:
                    rows += [
                        (_P + "collective_lateness_seconds", labels(trace_rank=arrival.rank, stat=s), getattr(arrival.lateness, s))
                        for s in ("p50", "p99")
                    ]
        rows += [(_P + "pipeline_bubble_ratio", labels(trace_rank=rank), ratio) for rank, ratio in self.bubbles.items()]
        return rows
