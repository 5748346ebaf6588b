"""The metric reference, made from the signal table: `python -m heptascope.surfaces.reference > docs/metrics.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import NamedTuple

from heptascope.model import Layer, Reason
from heptascope.signals import schema_engine, schema_engine_inside, schema_gpu, schema_host, schema_trace
from heptascope.signals.label_values import ROLES, VALUES
from heptascope.signals.schema_row import ENGINE, GPU, Signal
from heptascope.surfaces.words import LAYER_WORDS, REASON_WORDS

_HEAD = """\
# Metrics

Every series that heptascope exports. This page is made from the signal table (`heptascope/signals/schema.py`) by
`python -m heptascope.surfaces.reference`; change the table, not the page.

- Units are base units: seconds, bytes, watts, hertz, ratios from 0 to 1. A counter ends in `_total`; nothing else does.
- A value that cannot be had is absent, never 0. `heptascope_signal_unavailable` then tells the signal and the reason (below).
- A signal whose name ends in `_info` is a gauge of value 1; its labels carry the facts.
- `gpu` is the index and `uuid` the identity of a GPU. `engine` is heptascope's name for an engine, `rank` its data-parallel rank.
- A ratio is the mean over the last sampling window. For an exact mean over any range, divide the rates of the two counters beside
  it: `rate(heptascope_gpu_sm_active_seconds_total[5m]) / rate(heptascope_gpu_sm_active_sampled_seconds_total[5m])`.
- Histograms are classic ones with the engine's own buckets: `_bucket`, `_sum` and `_count`.
- "From" names the kinds of source that can supply a signal; `derived` ones are computed by heptascope from others.
"""
_COLUMNS = ("Signal", "Kind", "Unit", "Labels", "Layer", "From", "Meaning")
_HOST_PREFIX = "heptascope_host_"


class _Section(NamedTuple):
    title: str
    words: str
    common: tuple[str, ...]  # labels that all its signals share, left out of the table
    rows: list[Signal]


_ENGINE_ROWS = schema_engine.ROWS + schema_engine_inside.ROWS
_SECTIONS = (
    _Section("GPU", "All but `heptascope_gpus_…` have the labels `gpu` and `uuid`; the table names further ones.", GPU, schema_gpu.ROWS),
    _Section("Engine", "All have the labels `engine` and `rank`; the table names further ones.", ENGINE, _ENGINE_ROWS),
    _Section("Trace", "The newest trace of `trace.dir`; `trace_rank` is the rank inside the traced run.", (), schema_trace.ROWS),
    _Section("Host", "The machine around the engine.", (), [row for row in schema_host.ROWS if row.name.startswith(_HOST_PREFIX)]),
    _Section("heptascope", "Sources, own cost, verdict.", (), [row for row in schema_host.ROWS if not row.name.startswith(_HOST_PREFIX)]),
)


def page() -> str:
    """Return the reference as Markdown."""
    parts = [_HEAD]
    for section in _SECTIONS:
        parts += [f"## {section.title}\n\n{section.words}\n", _table(_COLUMNS, (_row(row, section.common) for row in section.rows))]
    listed = ((f"`{label}`", f"`{name}`", ", ".join(f"`{value}`" for value in known)) for (name, label), known in VALUES.items())
    roles = (f"`{ROLES[0]}`", "`heptascope_host_process_…`", ", ".join(f"`{value}`" for value in ROLES[1]))
    parts += ["## Values of labels\n\nWhere the list is closed.\n", _table(("Label", "Signal", "Values"), (*listed, roles))]
    layers = ((f"`{layer}`", LAYER_WORDS[layer]) for layer in Layer)
    reasons = ((f"`{reason}`", REASON_WORDS[reason]) for reason in Reason)
    parts += ["## Layers\n", _table(("Layer", "What it is"), layers)]
    parts += ["## Reasons for a missing value\n", _table(("Reason", "What it means"), reasons)]
    return "\n".join(parts)


def _row(row: Signal, common: tuple[str, ...]) -> tuple[str, ...]:
    further = ", ".join(f"`{label}`" for label in row.labels if label not in common)
    return (f"`{row.name}`", row.kind, row.unit, further, row.layer or "", ", ".join(row.suppliers), row.help)


def _table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    columns = tuple(columns)
    lines = [columns, ("---",) * len(columns), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(page())
