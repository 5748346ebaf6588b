"""Reads Nsight Compute's CSV tables: hardware counters of single kernels, long (`--csv`) or wide (`--csv --page raw`)."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite
from typing import BinaryIO

from heptascope.errors import UserError
from heptascope.model import labels
from heptascope.sources.trace.bytesource import ByteSource
from heptascope.sources.trace.kernels import classify, short_name
from heptascope.sources.trace.measures import SampleRow

FORMAT = "ncu"
LARGEST = 512 << 20
"""Bytes: a table of counters is far smaller."""
LONGEST = 86_400.0
"""Seconds: no kernel runs for a day, so a longer duration is damage, and would outweigh all others."""
OVERSHOOT = 1.05
"""Shares of peak a little above 1 come from clocks that differ between the passes of a profile; more than that is no share."""
LATENCY_BELOW = 0.6
"""Below this share of peak for both compute and memory a kernel waits for latency (the Speed-of-Light rule of Nsight Compute)."""
_HEADER = re.compile(rb'^\s*"?ID"?,', re.MULTILINE)
# measure: metric names of the raw page, labels of the details page
_RATIOS = {
    "occupancy": ("sm__warps_active.avg.pct_of_peak_sustained_active", "Achieved Occupancy"),
    "sm": ("sm__throughput.avg.pct_of_peak_sustained_elapsed", "Compute (SM) Throughput", "SM Throughput", "Compute (SM) [%]", "SM [%]"),
    "memory": ("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "Memory Throughput", "Memory [%]"),
    "dram": (
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        "DRAM Throughput",
    ),
    "l2": ("lts__throughput.avg.pct_of_peak_sustained_elapsed", "L2 Cache Throughput", "L2 Throughput"),
}
_DURATION = ("gpu__time_duration.sum", "gpu__time_duration.avg", "Duration")
_TENSOR = re.compile(r"^sm__(inst_executed_)?pipe_tensor\w*\.(avg|sum)\.pct_of_peak_sustained_(active|elapsed)$")
_STALLS = (
    re.compile(r"^smsp__average_warps_issue_stalled_(\w+?)_per_issue_active\.ratio$"),
    re.compile(r"^smsp__average_warp_latency_issue_stalled_(\w+?)\.ratio$"),
    re.compile(r"^smsp__pcsamp_warps_issue_stalled_(\w+?)$"),
)
_NOT_STALLED = frozenset({"selected"})  # the warp that issued
_SECONDS = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "s": 1.0}
_DECIMAL_COMMA = re.compile(r'"\d{1,3},(?:\d{1,2}|\d{4,})"|"\d{1,3}(?:\.\d{3})+,\d+"')
_PLAIN = re.compile(r"^-?[\d.,\s\u202f]+$")


@dataclass(slots=True)
class Counters:
    """One profiled run of one kernel: ratios 0 to 1, None where the table lacks the metric."""

    name: str
    kernel_class: str
    seconds: float | None = None
    occupancy: float | None = None
    sm: float | None = None
    memory: float | None = None
    dram: float | None = None
    l2: float | None = None
    tensor: float | None = None
    stalls: dict[str, float] = field(default_factory=dict)

    @property
    def bound(self) -> str:
        """The side of the roofline: compute, memory, or latency; empty if the table cannot tell."""
        memory = max((value for value in (self.memory, self.dram, self.l2) if value is not None), default=None)
        if self.sm is None or memory is None:
            return ""
        if max(self.sm, memory) < LATENCY_BELOW:
            return "latency"
        return "compute" if self.sm > memory else "memory"


@dataclass(slots=True)
class KernelTable:
    """All kernels of one table."""

    path: str
    kernels: list[Counters]
    notes: list[str] = field(default_factory=list)
    format: str = FORMAT

    def mean(self, measure: str, bound: str | None = None) -> float | None:
        """Return a ratio's mean over the kernels that have it (of one `bound`, or all), weighted by their time."""
        used = [kernel for kernel in self.kernels if bound is None or kernel.bound == bound]
        rows = [(value, kernel.seconds or 0.0) for kernel in used if (value := getattr(kernel, measure)) is not None]
        weight = sum(w for _, w in rows)
        return sum(v * w for v, w in rows) / weight if weight else (sum(v for v, _ in rows) / len(rows) if rows else None)

    def _weights(self) -> list[tuple[Counters, float]]:
        """Return each kernel with its time; where none has one, they count alike."""
        timed = any(kernel.seconds for kernel in self.kernels)
        return [(kernel, (kernel.seconds or 0.0) if timed else 1.0) for kernel in self.kernels]

    def stalls(self) -> dict[str, float]:
        """Return each stall reason's share of all stalls, most first, weighted by the kernels' time."""
        total: dict[str, float] = {}
        for kernel, weight in self._weights():
            for reason, share in kernel.stalls.items():
                total[reason] = total.get(reason, 0.0) + share * weight
        whole = sum(total.values())
        return {reason: value / whole for reason, value in sorted(total.items(), key=lambda item: -item[1])} if whole else {}

    def bounds(self) -> dict[str, float]:
        """Return the share of the time in kernels that compute, memory or latency bounds."""
        total: dict[str, float] = {}
        for kernel, weight in self._weights():
            if kernel.bound:
                total[kernel.bound] = total.get(kernel.bound, 0.0) + weight
        whole = sum(total.values())
        return {bound: value / whole for bound, value in total.items()} if whole else {}

    def to_samples(self) -> list[SampleRow]:
        """Return the table's measures as (signal, labels, value): means over the kernels of each bound, which are unlike each other."""
        prefix = "heptascope_trace_profiled_"
        sides = sorted({kernel.bound for kernel in self.kernels})
        means = ((measure, side, self.mean(measure, side)) for measure in (*_RATIOS, "tensor") for side in sides)
        rows = [(f"{prefix}{measure}_ratio", labels(bound=side), value) for measure, side, value in means if value is not None]
        rows += [(f"{prefix}stall_ratio", labels(reason=reason), share) for reason, share in self.stalls().items()]
        return rows + [(f"{prefix}bound_ratio", labels(bound=bound), share) for bound, share in self.bounds().items()]


def looks_like(head: bytes) -> bool:
    """Tell whether a file that begins so can be a table of Nsight Compute, perhaps after the profiled program's output."""
    found = _HEADER.search(head)
    return found is not None and b"Kernel Name" in head[found.start() : found.start() + 4096].partition(b"\n")[0]


def read(file: BinaryIO, where: str) -> KernelTable:
    """Read one table. Raises UserError if it has no kernel or none of the metrics."""
    source = ByteSource(file)
    raw = source.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise UserError(f"larger than {LARGEST >> 20} MiB", where=where, hint="profile fewer kernels")
    begin = _HEADER.search(raw)
    text = raw[begin.start() if begin else 0 :].decode("utf-8", "replace")
    kernels: list[Counters] = []
    impossible: list[float] = []
    problem = source.problem
    try:
        kernels.extend(_kernels(text, impossible))
    except csv.Error as error:
        problem = f"the table is damaged ({error})"
    if not kernels:
        raise UserError("a table without kernels", where=where, hint="profile at least one kernel: ncu --csv --page raw PROGRAM")
    if not any(kernel.seconds or kernel.occupancy or kernel.sm or kernel.dram for kernel in kernels):
        raise UserError("a table without known metrics", where=where, hint="profile with ncu --set full --csv --page raw")
    notes = [f"{problem}: later kernels are missing"] if problem else []
    notes += [f"{len(impossible)} shares of peak below 0 or far above 1 were left out"] if impossible else []
    return KernelTable(where, kernels, notes)


def _kernels(text: str, impossible: list[float]) -> Iterator[Counters]:
    comma = _DECIMAL_COMMA.search(text) is not None
    lines = csv.DictReader(line for line in io.StringIO(text) if not line.startswith("=="))
    if "Metric Name" in (lines.fieldnames or ()):
        yield from _long(lines, comma, impossible)
    else:
        yield from _wide(lines, comma, impossible)


def _long(rows: csv.DictReader[str], comma: bool, impossible: list[float]) -> Iterator[Counters]:
    """One row for each metric of each kernel; rows of one kernel have the same ID."""
    current, counters = "", None
    for row in rows:
        if counters is None or row.get("ID") != current:
            if counters is not None:
                yield _shared(counters)
            current, counters = row.get("ID") or "", _new(row)
        metric, unit, text = (row.get(f"Metric {what}") or "" for what in ("Name", "Unit", "Value"))
        impossible += _put(counters, metric, unit, text, comma)
    if counters is not None:
        yield _shared(counters)


def _wide(rows: csv.DictReader[str], comma: bool, impossible: list[float]) -> Iterator[Counters]:
    """One row for each kernel, after a row of units."""
    units: dict[str, str] = {}
    for row in rows:
        if not row.get("ID"):
            units = {name: unit or "" for name, unit in row.items()}
            continue
        counters = _new(row)
        for name, value in row.items():
            if isinstance(value, str):
                impossible += _put(counters, name, units.get(name, ""), value, comma)
        yield _shared(counters)


def _new(row: dict[str, str]) -> Counters:
    name = row.get("Kernel Name") or ""
    return Counters(short_name(name), str(classify(name)))


def _put(counters: Counters, metric: str, unit: str, text: str, comma: bool) -> list[float]:
    """Keep a value if it is one of the known metrics; return shares that cannot be."""
    value = _number(text, comma)
    if value is None:
        return []
    if metric in _DURATION and 0 <= (length := value * _SECONDS.get(unit[:1], 1e-9)) <= LONGEST:
        counters.seconds = length
    wanted = [measure for measure, names in _RATIOS.items() if metric in names and (unit == "%" or "pct" in metric or "[%]" in metric)]
    if (wanted or _TENSOR.match(metric)) and not 0 <= value / 100 <= OVERSHOOT:
        return [value]
    for measure in wanted:
        setattr(counters, measure, min(value / 100, 1.0))
    if _TENSOR.match(metric):
        counters.tensor = max(counters.tensor or 0.0, min(value / 100, 1.0))
    _put_stall(counters, metric, value)
    return []


def _put_stall(counters: Counters, metric: str, value: float) -> None:
    """Keep stalls of the first family of metrics that the table has."""
    for rank, pattern in enumerate(_STALLS):
        found = pattern.match(metric)
        if found and found[1] not in _NOT_STALLED and not found[1].endswith("not_issued"):
            counters.stalls[f"{rank}{found[1]}"] = value


def _shared(counters: Counters) -> Counters:
    """Turn stall numbers into shares of their sum."""
    family = min((key[0] for key in counters.stalls), default="")
    kept = {key[1:]: value for key, value in counters.stalls.items() if key[0] == family and value > 0}
    whole = sum(kept.values())
    counters.stalls = {reason: value / whole for reason, value in kept.items()}
    return counters


def _number(text: str, comma: bool) -> float | None:
    """Read a number with separators of thousands, in the file's own style."""
    if not _PLAIN.match(text):
        return None
    plain = re.sub(r"[\s\u202f]", "", text)
    plain = plain.replace(".", "").replace(",", ".") if comma else plain.replace(",", "")
    try:
        number = float(plain)
    except ValueError:
        return None
    return number if isfinite(number) else None
