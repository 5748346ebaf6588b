"""The one table of signals: a signal exists here or nowhere.

`/metrics`, panel titles and units, the metric reference and the tests are all made from `SCHEMA`.
"""

from __future__ import annotations

from heptascope.signals import schema_engine, schema_engine_inside, schema_gpu, schema_host, schema_trace
from heptascope.signals.schema_row import Kind, Signal

_PAGES = (schema_gpu, schema_engine, schema_engine_inside, schema_trace, schema_host)
SCHEMA: dict[str, Signal] = {row.name: row for page in _PAGES for row in page.ROWS}
"""Every signal by name, in the order in which `/metrics` shows them."""

HISTOGRAM_SUFFIXES = ("_bucket", "_sum", "_count")


def signal_of(series: str) -> Signal | None:
    """Return the signal behind a series name; a histogram's `_bucket`, `_sum` and `_count` lead to it."""
    found = SCHEMA.get(series)
    if found is not None:
        return found
    for suffix in HISTOGRAM_SUFFIXES:
        if series.endswith(suffix):
            base = SCHEMA.get(series[: -len(suffix)])
            return base if base is not None and base.kind is Kind.HISTOGRAM else None
    return None
