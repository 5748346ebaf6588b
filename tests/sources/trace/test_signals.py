"""The signals that traces give are those that docs/trace.md lists."""

from __future__ import annotations

import re
from pathlib import Path

from heptascope.signals.schema import SCHEMA
from heptascope.sources.trace import run
from heptascope.sources.trace.load import load
from heptascope.sources.trace.measures import SampleRow
from heptascope.sources.trace.ncu import KernelTable
from heptascope.sources.trace.watch import OWN_SIGNALS
from support.trace_builder import TRACES, TraceBuilder

DOCS = Path(__file__).parents[3] / "docs" / "trace.md"
_ROW = re.compile(r"^\| `(heptascope_trace_\w+)` \| (\w*) ?\| ([\w, ]*?) ?\| (\w*) ?\| (.+) \|$", re.MULTILINE)


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


def test_docs_list_all_signals_with_their_labels() -> None:
    """Neither a signal nor a label is missing or too many."""
    documented = {name: set(re.findall(r"\w+", pairs)) for name, _, pairs, _, _ in _ROW.findall(DOCS.read_text(encoding="utf-8"))}
    given: dict[str, set[str]] = {name: set(names) for name, names in OWN_SIGNALS.items()}
    for name, pairs, _ in _all_kinds():
        given.setdefault(name, set()).update(key for key, _ in pairs)
    assert documented == given


def test_docs_say_what_the_signal_table_says() -> None:
    """Name, unit, labels, layer and help of each row are those of the table."""
    rows = [row for row in SCHEMA.values() if "trace" in row.suppliers]
    expected = [(r.name, r.unit, ", ".join(r.labels), r.layer or "", r.help) for r in rows]
    assert expected == _ROW.findall(DOCS.read_text(encoding="utf-8"))


def test_units_fit_the_names() -> None:
    """Names end in their unit."""
    rows = _ROW.findall(DOCS.read_text(encoding="utf-8"))
    assert [] == [name for name, unit, _, _, words in rows if not name.endswith(unit) or not words.endswith(".")]
