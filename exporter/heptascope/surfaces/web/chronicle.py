"""What was said in the last ten minutes: the verdict as it changed, and when each finding began and ended.

Written in the pipeline's thread after each step, read by the web server's; what is handed out is never changed afterwards.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from heptascope.model import FindingState, Layer
from heptascope.rules.diagnose import Diagnoser
from heptascope.rules.export import each_engine, layer_states
from heptascope.rules.findings import finding_key, of_engine
from heptascope.rules.judge import Finding
from heptascope.rules.verdict import Verdict
from heptascope.surfaces.web.states import States

KEPT_SECONDS = 600.0
LONGEST_SECONDS = 15.0
"""A verdict that stands is kept anew after so long, so that its numbers are not those of its beginning."""
MOST_BANDS = 500

Layers = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Moment:
    """What was said at `t` (Unix seconds); `layers` holds each engine's seven layers."""

    t: float
    verdict: Verdict
    layers: dict[str, Layers]


@dataclass(slots=True)
class Band:
    """One finding from its beginning to its end; `end` is None while it fires."""

    key: str
    finding: Finding
    begin: float
    end: float | None = None


class Chronicle:
    """Remembers the moments and the bands."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.latest: Moment | None = None
        self._moments: deque[Moment] = deque()
        self._bands: dict[str, Band] = {}
        self._ended: deque[Band] = deque(maxlen=MOST_BANDS)
        self._signature: object = None
        self._known: object = None
        self.states = States()

    def note(self, judge: Diagnoser) -> None:
        """Take what the rules room says now."""
        verdict, findings = judge.latest, judge.findings
        if verdict is None:
            return
        key = (judge.judge.version, [(v.engine, v.limiter and v.limiter.layer) for v in each_engine(verdict)])
        if key != self._known or self.latest is None:
            self._known = key
            self._note_bands(findings, verdict.t)
            self.states.note(findings, verdict.t)
            layers = {v.engine: layers_of(v, findings) for v in each_engine(verdict)}
        else:
            layers = self.latest.layers
        self.states.forget(verdict.t - KEPT_SECONDS)
        moment = Moment(verdict.t, verdict, layers)
        signature = _signature(moment)
        if signature != self._signature or not self._moments or moment.t - self._moments[-1].t >= LONGEST_SECONDS:
            self._signature = signature
            self._moments.append(self._slim(moment))
        while self._moments and self._moments[0].t < moment.t - KEPT_SECONDS:
            self._moments.popleft()
        self.latest = moment

    def at(self, t: float) -> Moment | None:
        """Return what stood at `t`; None before the first moment that is kept."""
        moments = list(self._moments)
        i = bisect_right([moment.t for moment in moments], t)
        return moments[i - 1] if i else None

    def bands(self, now: float) -> list[Band]:
        """Return the findings of the last ten minutes, oldest first."""
        kept = [band for band in list(self._ended) if (band.end or 0.0) > now - KEPT_SECONDS]
        return sorted([*kept, *list(self._bands.values())], key=lambda band: band.begin)

    def _note_bands(self, findings: Sequence[Finding], now: float) -> None:
        firing = {finding_key(f): f for f in findings if f.state is FindingState.FIRING}
        for key in self._bands.keys() - firing.keys():
            band = self._bands.pop(key)
            self._ended.append(replace(band, end=now))
        for key, finding in firing.items():
            if key not in self._bands:
                self._bands[key] = Band(key, finding, finding.since)

    def _slim(self, moment: Moment) -> Moment:
        """Share what is long and seldom changes with the moment before."""
        before = self._moments[-1].verdict if self._moments else None
        if before is not None and before.cannot_tell == moment.verdict.cannot_tell:
            return replace(moment, verdict=replace(moment.verdict, cannot_tell=before.cannot_tell))
        return moment


def layers_of(verdict: Verdict, findings: Sequence[Finding]) -> Layers:
    """Return the state of each layer for one engine, with how many of its rules could be judged, fire, or are about to.

    Rules about traces count only where they fire: most of the time there is no trace, and they are clear for nothing.
    """
    mine = [f for f in findings if of_engine(f, verdict.engine)]
    counts = ("rules", "judged", "firing", "pending")
    out: Layers = {layer.value: {"state": state, **dict.fromkeys(counts, 0)} for layer, state in layer_states(verdict, mine).items()}
    for f in mine:
        row = out[f.rule.layer.value]
        counted = not f.rule.about_trace or f.state is FindingState.FIRING
        row["rules"] += counted
        row["judged"] += counted and f.state is not FindingState.CANNOT_TELL
        row["firing"] += f.state is FindingState.FIRING
        row["pending"] += f.state is FindingState.PENDING
    return {layer.value: out[layer.value] for layer in Layer}


def _signature(moment: Moment) -> object:
    return tuple(
        (v.engine, v.state, v.limiter.rule if v.limiter else "", *((c.rule, c.entity) for c in (*v.faults, *v.consequences, *v.symptoms)))
        for v in each_engine(moment.verdict)
    ) + tuple(row["state"] for layers in moment.layers.values() for row in layers.values())
