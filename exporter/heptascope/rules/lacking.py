"""Why a rule cannot be judged: which of the signals that it reads are not there, and the reason that the signals room has for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from heptascope.model import Labels, Missing, Reason
from heptascope.rules import promql
from heptascope.rules.instances import Instance, concerns
from heptascope.signals.schema import SCHEMA, signal_of
from heptascope.signals.schema_row import Kind
from heptascope.signals.window import Window

NOT_APPLICABLE = (Reason.NOT_CONFIGURED, Reason.IDLE)
"""Reasons that make a rule clear: what it looks for is switched off, or cannot exist without work."""

WHICH_LABELS = ("latency", "resource", "role", "cause")
"""Labels that say what a value is about: another resource's series does not make up for one that is missing. All other labels class
events (a reason, a status), which have no series before the first event."""

_MAIN = {"engine": "heptascope_engine_requests_running", "gpu": "heptascope_gpu_power_watts"}
"""Signals whose reason is that of everything while no engine or no GPU is known."""

Reasons = Mapping[str, Sequence[Missing]]


class Presence:
    """Which selectors have live series for an instance, at one moment."""

    def __init__(self, window: Window) -> None:
        """Look into `window` as it is now."""
        self._window = window
        self._labels: dict[promql.SelectorInfo, list[Labels]] = {}

    def has(self, selector: promql.SelectorInfo, instance: Instance) -> bool:
        """Return whether a live series could be what `selector` reads for `instance`."""
        rows = self._labels.get(selector)
        if rows is None:
            about = _about(selector)
            rows = self._labels[selector] = [s.pairs for s in self._window.series(selector.metric) if s.live and about.matches(s.labels)]
        return any(concerns(row, instance) for row in rows)


def _about(selector: promql.SelectorInfo) -> promql.SelectorInfo:
    """Return a selector without the matchers that its series may fail and yet be known; an info's series are a complete list."""
    row = SCHEMA.get(selector.metric)
    kept = () if row is not None and row.kind is Kind.INFO else tuple(m for m in selector.matchers if m.label in WHICH_LABELS)
    return selector._replace(matchers=kept)


def by_signal(missing: Iterable[Missing]) -> Reasons:
    """Index reasons by the signal that they are about."""
    out: dict[str, list[Missing]] = {}
    for m in missing:
        out.setdefault(m.signal, []).append(m)
    return out


def explain(selector: promql.SelectorInfo, instance: Instance, reasons: Reasons) -> Missing:
    """Return why a selector finds no value for the instance."""
    metric, row = selector.metric, signal_of(selector.metric)
    allowed = {*instance.pairs, *(pair for row in instance.related for pair in row)}
    allowed |= {(m.label, m.value) for m in selector.matchers if m.op == "="}
    for found in (*reasons.get(metric, ()), *(reasons.get(row.name, ()) if row is not None and row.name != metric else ())):
        if not instance.pairs or set(found.labels) <= allowed:
            return found
    told = next(iter(reasons.get(_MAIN[instance.kind], ())), None) if not instance.pairs else None
    return told._replace(signal=metric) if told is not None else Missing(metric, Reason.NO_SOURCE, "no source supplies it", instance.pairs)
