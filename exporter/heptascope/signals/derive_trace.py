"""Which engine the served trace is of, and what that trace does not tell."""

from __future__ import annotations

from collections.abc import Sequence

from heptascope.model import Labels, Missing, Quality, Reason
from heptascope.signals.engine_context import PREFIX, Collector
from heptascope.signals.schema import SCHEMA
from heptascope.signals.window import Window

AGE = "heptascope_trace_age_seconds"
OWNER = PREFIX + "trace_info"
_TRACED = [name for name, row in SCHEMA.items() if "trace" in row.suppliers]
_WHICH = "it cannot be told which engine rank the trace is of"


def derive_trace(window: Window, ranks: Sequence[Labels], engine: str, reasons: Sequence[Missing], out: Collector) -> None:
    """Say which of the engine `ranks` the served trace is of: the one of `engine`, or (empty) the only one there is."""
    if not any(series.live for series in window.series(AGE)):
        why = next(((m.reason, m.detail) for m in reasons if m.signal == AGE), (Reason.NOT_CONFIGURED, "no trace is served"))
        for pairs in ranks:
            out.lack(OWNER, pairs, *why)
        return
    own = [pairs for pairs in ranks if not engine or dict(pairs).get("engine") == engine]
    for pairs in ranks:
        if own == [pairs]:
            out.add(OWNER, pairs, 1.0, Quality.EXACT)
        elif pairs in own:
            out.lack(OWNER, pairs, Reason.AMBIGUOUS, _WHICH if engine else f"{_WHICH}; set trace.engine")
        else:
            out.lack(OWNER, pairs, Reason.NOT_CONFIGURED, f"the trace is of {engine}")
    for name in _TRACED:
        if not any(series.live for series in window.series(name)):
            out.lack(name, (), Reason.NOT_CONFIGURED, "the trace that is served does not tell it")
