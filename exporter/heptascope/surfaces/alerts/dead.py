"""Alerts that can never fire with this engine build and these sources, and why: `heptascope check --rules`.

An alert is dead if its expression cannot be decided without a signal that is absent for a reason which time does not cure. A signal that
is absent because nobody works, or because its source is down at the moment, may come back: such an alert sleeps, it is not dead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from heptascope.model import Labels, Missing, Reason
from heptascope.quantities import format_duration
from heptascope.rules import promql
from heptascope.rules.lacking import WHICH_LABELS
from heptascope.rules.rule import Rule
from heptascope.signals.schema import HISTOGRAM_SUFFIXES, SCHEMA, signal_of
from heptascope.signals.schema_row import Kind
from heptascope.signals.snapshot import Snapshot
from heptascope.surfaces.alerts.catalogue import alerting
from heptascope.surfaces.alerts.settings import RenderSettings
from heptascope.surfaces.alerts.slo import INDICATORS, latency
from heptascope.surfaces.alerts.written import written_files
from heptascope.surfaces.prometheus import number_text
from heptascope.surfaces.words import REASON_WORDS

PASSING: Final = (Reason.IDLE, Reason.STALE, Reason.SOURCE_DOWN, Reason.INVALID)
"""Reasons that may be gone in a minute."""

_WINDOW: Final = "5m"
_FLEET: Final = "fleet"
_GPU_MAP: Final = ("heptascope_engine_gpu_info", "heptascope_engine_gpus")
_GPU_IDENTITY: Final = "heptascope_gpu_info"
_NOTHING_SUPPLIES: Final = "nothing supplies "
_FEW_SIGNALS = 2


@dataclass(frozen=True, slots=True)
class Dead:
    """An alert that can never fire here, and the signals that it lacks."""

    alert: str
    missing: tuple[Missing, ...]


def looked_at(rules: Iterable[Rule], snapshot: Snapshot, settings: RenderSettings) -> list[Dead]:
    """Return every alert about servers and fleets, with the signals without which it can never fire; `snapshot` is all there is."""
    rules, present = list(rules), Presence(snapshot)
    found = [Dead(rule.name, present.lacking(rule)) for rule in alerting(rules)]
    found += [Dead(indicator.alert, tuple(_no_indicator(indicator.slo, snapshot, present, settings))) for indicator in INDICATORS]
    files = written_files(rules, settings)
    recorded = {rule.name: rule.expr for file in files for rule in file.recordings}
    return found + [
        Dead(alert.name, tuple(dict.fromkeys(present.lacking_of(alert.expr, recorded))))
        for file in files
        if file.name == _FLEET
        for alert in file.alerts
    ]


def dead_alerts(rules: Iterable[Rule], snapshot: Snapshot, settings: RenderSettings) -> list[Dead]:
    """Return the alerts that can never fire where `snapshot` is all that can be read."""
    return [one for one in looked_at(rules, snapshot, settings) if one.missing]


class Presence:
    """Which signals there are, and why others are not."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Look at `snapshot`."""
        self._snapshot = snapshot
        self._reasons: dict[str, list[Missing]] = {}
        for gap in snapshot.missing:
            self._reasons.setdefault(gap.signal, []).append(gap)

    def lacking(self, rule: Rule) -> tuple[Missing, ...]:
        """Return the signals without which a rule can never fire."""
        expression = promql.compile(rule.text(_WINDOW), where=rule.where)
        absent = expression.missing(lambda selector: self.may_come(selector))
        return tuple(dict.fromkeys(self.why(base_of(selector.metric)) for selector in absent))

    def lacking_of(self, expr: str, recorded: Mapping[str, str]) -> Iterator[Missing]:
        """Yield the signals without which an expression has no result; series in `recorded` are followed to what they are made from."""

        def has(selector: promql.SelectorInfo) -> bool:
            made_from = recorded.get(selector.metric)
            return self.may_come(selector) if made_from is None else not list(self.lacking_of(made_from, recorded))

        for selector in promql.compile(expr).missing(has):
            made_from = recorded.get(selector.metric)
            yield from (self.why(base_of(selector.metric)),) if made_from is None else self.lacking_of(made_from, recorded)

    def may_come(self, selector: promql.SelectorInfo) -> bool:
        """Whether a selector has series, or may have them without anybody changing anything."""
        base = base_of(selector.metric)
        row = SCHEMA.get(base)
        known = [pairs for pairs, _ in self._snapshot.values.get(base, ())]
        known += [histogram.labels for histogram in self._snapshot.histograms.get(base, ())]
        kept = () if row is not None and row.kind is Kind.INFO else tuple(m for m in selector.matchers if m.label in WHICH_LABELS)
        if _any_matches(selector._replace(matchers=kept), known):
            return True
        reasons = self._reasons.get(base, ())
        if not reasons:
            return self._made_here(base) and not self._about_gpus_that_are_not_there(base)
        return any(gap.reason in PASSING or self._input_is_there(gap) for gap in reasons)

    def why(self, signal: str) -> Missing:
        """Return why a signal is absent."""
        about = _GPU_IDENTITY if self._about_gpus_that_are_not_there(signal) and signal not in self._reasons else signal
        reasons = self._reasons.get(about)
        return reasons[0]._replace(signal=signal, labels=()) if reasons else Missing(signal, Reason.NO_SOURCE, "nothing supplies it here")

    def _made_here(self, signal: str) -> bool:
        """Whether a signal is worked out from others, or says what was found: with no reason against it, it comes with the next work."""
        row = SCHEMA.get(signal)
        return row is not None and not {"derived", "self"}.isdisjoint(row.suppliers)

    def _about_gpus_that_are_not_there(self, signal: str) -> bool:
        return (signal.startswith("heptascope_gpu_") or signal in _GPU_MAP) and _GPU_IDENTITY not in self._snapshot.values

    def _input_is_there(self, gap: Missing) -> bool:
        """Whether a derived signal only waits for its input to grow."""
        return gap.detail.removeprefix(_NOTHING_SUPPLIES) in self._snapshot.values if gap.detail.startswith(_NOTHING_SUPPLIES) else False


def _any_matches(selector: promql.SelectorInfo, rows: Iterable[Labels]) -> bool:
    return any(selector.matches(dict(pairs)) for pairs in rows)


def base_of(metric: str) -> str:
    """Return the signal behind a series name."""
    signal = signal_of(metric)
    return signal.name if signal is not None else metric


def _no_indicator(slo: str, snapshot: Snapshot, present: Presence, settings: RenderSettings) -> Iterator[Missing]:
    """Yield why an objective cannot be watched: no histogram, or none with a bucket that ends at the promise."""
    promise = latency(settings, slo)
    name = "heptascope_engine_http_requests_total" if promise is None else f"heptascope_engine_{slo}_seconds"
    selector = promql.compile(f"{name}{HISTOGRAM_SUFFIXES[2]}" if promise is not None else name).selectors[0]
    if not present.may_come(selector):
        yield present.why(name)
        return
    bounds = [histogram.bounds for histogram in snapshot.histograms.get(name, ())] if promise is not None else []
    if promise is not None and bounds and not any(promise.seconds in one for one in bounds):
        yield Missing(
            name, Reason.ENGINE, f"no bucket ends at {format_duration(promise.seconds)}; near it {_near(bounds[0], promise.seconds)}"
        )


def _near(bounds: Iterable[float], seconds: float) -> str:
    below, above = [b for b in bounds if b < seconds][-1:], [b for b in bounds if b > seconds][:1]
    return " and ".join(f"{number_text(bound)} s" for bound in (*below, *above))


def as_object(found: Iterable[Dead], total: int) -> dict[str, Any]:
    """Return the result as JSON-ready data; `total` is the number of alerts looked at."""
    rows = [
        {"alert": one.alert, "missing": [{"signal": m.signal, "reason": m.reason.value, "detail": m.detail} for m in one.missing]}
        for one in found
    ]
    return {"alerts": total, "dead": rows}


def lines(found: Iterable[Dead], total: int) -> list[str]:
    """Return the result for people: alerts by the reason, with what they lack where that is little."""
    found = list(found)
    if not found:
        return [f"Each of {total} alerts can fire here."]
    out = [f"{len(found)} of {total} alerts can never fire here:"]
    for (reason, detail), rows in _by_reason(found).items():
        out.append(f"\n  {reason}: {detail or REASON_WORDS[Reason(reason)]}")
        out += [f"    {', '.join(alerts)}{without}" for without, alerts in rows.items()]
    return out


def _by_reason(found: Iterable[Dead]) -> Mapping[tuple[str, str], dict[str, list[str]]]:
    """Group alerts by the first reason of each, and by what they lack for it."""
    grouped: dict[tuple[str, str], dict[str, list[str]]] = {}
    for one in found:
        first = one.missing[0]
        signals = [
            gap.signal.removeprefix("heptascope_") for gap in one.missing if (gap.reason, gap.detail) == (first.reason, first.detail)
        ]
        without = f"  (without {', '.join(signals)})" if len(signals) <= _FEW_SIGNALS else ""
        grouped.setdefault((first.reason.value, first.detail), {}).setdefault(without, []).append(one.alert)
    return grouped
