"""The signals that traces give are those of the signal table."""

from __future__ import annotations

from heptascope.signals.schema import SCHEMA
from heptascope.sources.trace import run
from heptascope.sources.trace.load import load
from heptascope.sources.trace.measures import SampleRow
from heptascope.sources.trace.ncu import KernelTable
from heptascope.sources.trace.watch import OWN_SIGNALS
from support.trace_builder import TRACES, TraceBuilder

ROWS = [row for row in SCHEMA.values() if "trace" in row.suppliers]


def _all_kinds() -> list[SampleRow]:
    """Return samples of a run that has everything: ranks, collectives, stages, steps, copies; and of counters."""
    builds = [TraceBuilder(rank, 2) for rank in (0, 1)]
    for i in range(12):
        for rank, build in enumerate(builds):
            at = 1000.0 * i
            build.add("user_annotation", f"ProfilerStep#{i}", at, 900).kernel("gemm", at + 10, 100, launched=at)
            build.kernel("ncclDevKernel_AllReduce", at + 200 + 50 * rank, 100 - 50 * rank, launched=at + 20)
            build.kernel("ncclDevKernel_SendRecv", at + 400, 20, launched=at + 30, **{"est. achieved occupancy %": 5})
            build.copy("Memcpy HtoD (Pinned -> Device)", at + 500, 5, launched=at + 40)
    rows = run.measure([build.trace() for build in builds]).to_samples()
    table = load(TRACES / "h200-ncu-raw.csv")
    assert isinstance(table, KernelTable)
    return rows + table.to_samples()


def test_the_table_has_all_signals_with_their_labels() -> None:
    """Neither a signal nor a label is missing or too many."""
    given: dict[str, set[str]] = {name: set(names) for name, names in OWN_SIGNALS.items()}
    for name, pairs, _ in _all_kinds():
        given.setdefault(name, set()).update(key for key, _ in pairs)
    assert {row.name: set(row.labels) for row in ROWS} == given


def test_units_fit_the_names() -> None:
    """Names end in their unit."""
    assert [] == [row.name for row in ROWS if not row.name.endswith(row.unit)]
