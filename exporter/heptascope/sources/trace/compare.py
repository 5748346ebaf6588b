"""What changed between two runs: where the time went, by part, kernel and measure, largest contribution first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from heptascope.sources.trace.measures import GapCause, Measures, Run
from heptascope.sources.trace.overall import overall

_Amounts = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Change:
    """One amount in both runs. `contribution` is its part of the sum of all changes of its list, with the change's sign."""

    name: str
    before: float | None
    after: float | None
    delta: float
    contribution: float


@dataclass(slots=True)
class Comparison:
    """Two runs compared. Times are seconds per step where both runs have steps of one kind, else seconds of the whole trace.

    `parts` are the classes of GPU work and the causes of gaps; without overlap between streams they add up to `total`.
    """

    unit: str  # "step" or "trace"
    total: Change
    parts: list[Change]
    kernels: list[Change]
    measures: list[Change]
    notes: list[str] = field(default_factory=list)


def compare(before: Run, after: Run) -> Comparison:
    """Compare two runs; ranks of a run are averaged."""
    per_step = _steps_of(before) is not None and _steps_of(before) == _steps_of(after)
    notes = [] if per_step else ["the runs have no steps of one kind in common: amounts are of whole traces, so their lengths matter"]

    def amounts(get: Callable[[Measures], _Amounts]) -> list[Change]:
        return _changes(_mean(before, get, per_step), _mean(after, get, per_step))

    total = amounts(lambda m: {"total": m.wall_seconds})[0]
    scalars = _relative(_changes(_scalars(before), _scalars(after)))
    return Comparison("step" if per_step else "trace", total, amounts(_parts), amounts(_kernels), scalars, notes)


def _steps_of(run: Run) -> str | None:
    """Return what the steps of a run are; None where a rank has none."""
    kinds = {rank.steps.how if rank.steps else None for rank in run.ranks}
    return kinds.pop() if len(kinds) == 1 else None


def _mean(run: Run, get: Callable[[Measures], _Amounts], per_step: bool) -> dict[str, float]:
    """Average amounts over ranks, each divided by its number of steps."""
    total: dict[str, float] = {}
    for rank in run.ranks:
        steps = rank.steps.count if per_step and rank.steps else 1
        for name, amount in get(rank).items():
            total[name] = total.get(name, 0.0) + amount / steps / len(run.ranks)
    return total


def _parts(rank: Measures) -> dict[str, float]:
    times = {row.kernel_class: row.seconds for row in rank.classes}
    gaps = {f"gap: {cause}": ratio * rank.wall_seconds for cause, ratio in rank.gap_causes.items() if cause != GapCause.COPY}
    return times | gaps


def _kernels(rank: Measures) -> dict[str, float]:
    times: dict[str, float] = {}
    for kernel in rank.top:
        times[kernel.name] = times.get(kernel.name, 0.0) + kernel.seconds
    return times


def _scalars(run: Run) -> dict[str, float]:
    """Return the measures that are one number a rank, averaged over ranks, by signal name."""
    return {whole.name: whole.mean for whole in overall(run)}


def _changes(before: _Amounts, after: _Amounts) -> list[Change]:
    """Pair amounts by name, the largest change first."""
    names: Iterable[str] = dict.fromkeys((*before, *after))
    deltas = {name: after.get(name, 0.0) - before.get(name, 0.0) for name in names}
    whole = sum(abs(delta) for delta in deltas.values()) or 1.0
    rows = [Change(name, before.get(name), after.get(name), delta, delta / whole) for name, delta in deltas.items()]
    return sorted(rows, key=lambda row: (-abs(row.delta), row.name))


def _relative(changes: Iterable[Change]) -> list[Change]:
    """Sort numbers of different units by relative change, which becomes their contribution; what did not change is left out."""
    rows = []
    for change in changes:
        largest = max(abs(change.before or 0.0), abs(change.after or 0.0))
        if change.delta:
            rows.append(replace(change, contribution=change.delta / largest))
    return sorted(rows, key=lambda row: (-abs(row.contribution), row.name))
