"""Derived signals: one pass a second, over the last seconds of the window.

Each derived value is a sample of the reading `derived`, so it is ingested, shown and goes stale like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from heptascope.model import Labels, Missing, Quality, Reading, Reason, Sample, labels
from heptascope.signals import derive_engine, derive_gpu
from heptascope.signals.ceilings import CardPeaks
from heptascope.signals.derive_engine_steps import BusyTime
from heptascope.signals.derive_saturation import derive_saturation
from heptascope.signals.derive_trace import derive_trace
from heptascope.signals.engine_context import Context
from heptascope.signals.mapping import gpu_of, map_gpus
from heptascope.signals.store import Store

SOURCE = "derived"


@dataclass(frozen=True, slots=True)
class DeriveSettings:
    """What derivation needs to know from the configuration.

    `window` is the span in seconds over which rates are taken. `engine_gpus` maps an engine's name to the indexes of its GPUs.
    `slo_seconds` maps a latency (time_to_first_token, inter_token_latency, e2e_latency) to its objective. `trace_engine` names the engine
    that served traces are of; empty: the only one.
    """

    window: float = 10.0
    engine_gpus: Mapping[str, Sequence[str]] = field(default_factory=dict)
    peaks: Mapping[str, CardPeaks] = field(default_factory=dict)
    slo_seconds: Mapping[str, float] = field(default_factory=dict)
    trace_engine: str = ""


class Out:
    """Collects the samples, reasons and qualities of one pass."""

    def __init__(self, given: set[tuple[str, Labels]]) -> None:
        """`given` holds series that another source supplies: those are not derived again."""
        self.samples: list[Sample] = []
        self.missing: list[Missing] = []
        self.quality: dict[tuple[str, Labels], Quality] = {}
        self._given = given

    def add(self, name: str, pairs: Labels, value: float | None, quality: Quality = Quality.DERIVED) -> None:
        """Add one value; None adds nothing."""
        if value is not None and (name, pairs) not in self._given:
            self.samples.append(Sample(name, pairs, value))
            self.quality[name, pairs] = quality

    def lack(self, name: str, pairs: Labels, reason: Reason, detail: str = "") -> None:
        """Say why a value is missing, unless another source supplies it."""
        if (name, pairs) not in self._given:
            self.missing.append(Missing(name, reason, detail, pairs))

    def reason(self, name: str, pairs: Labels) -> tuple[Reason, str] | None:
        """Return why `name` is missing, if that has been said in this pass."""
        return next(((m.reason, m.detail) for m in self.missing if m.signal == name and m.labels == pairs), None)


class Deriver:
    """Holds the counters that derivation owns, and makes one reading a pass."""

    def __init__(self, store: Store, settings: DeriveSettings | None = None) -> None:
        """Derive from `store`."""
        self._store = store
        self._settings = settings or DeriveSettings()
        self._busy = BusyTime()

    def step(self, now: float) -> Reading:
        """Return the reading of everything that can be derived at `now`."""
        settings, window = self._settings, self._store.window
        given = self._store.given_derived(SOURCE)
        out = Out(given)
        reasons = self._store.missing()
        gpus = derive_gpu.derive_gpus(window, now, settings.window, settings.peaks, out)
        resting = {gpu_of(pairs) for pairs, card in gpus.items() if card.works is False}
        mapping, ambiguous = map_gpus(window, {**settings.engine_gpus, **_told(given)}, resting)
        work: dict[Labels, set[bool | None]] = {}
        contexts, had = [], []
        for (engine, rank), mine in mapping.items():
            for gpu, uuid in mine:
                out.add("heptascope_engine_gpu_info", labels(engine=engine, rank=rank, gpu=gpu, uuid=uuid), 1.0)
        for pairs in derive_engine.entities(window):
            self._busy.advance(window, pairs, now, out)
            key = dict(pairs)
            entity = (key.get("engine", ""), key.get("rank", ""))
            cards = [gpus[p] for p in (labels(gpu=g, uuid=u) for g, u in mapping.get(entity, ())) if p in gpus]
            context = Context(window, now, settings.window, pairs, cards, entity in ambiguous, reasons, settings.slo_seconds, given)
            had_work = derive_engine.derive_engine(context, out)
            contexts.append(context)
            had.append(had_work)
            for card in cards:
                work.setdefault(card.pairs, set()).add(had_work)
        derive_saturation(contexts, had, out)
        derive_trace(window, [context.pairs for context in contexts], settings.trace_engine, reasons, out)
        for pairs, card in gpus.items():
            if card.works is not None:
                out.add("heptascope_gpu_has_work", pairs, float(card.works and work.get(pairs) != {False}))
        return Reading(SOURCE, now, out.samples, [], out.missing, out.quality)


def _told(given: set[tuple[str, Labels]]) -> dict[str, list[str]]:
    """Return the GPUs of each engine where a source itself says which serve it."""
    rows = [dict(pairs) for name, pairs in given if name == "heptascope_engine_gpu_info"]
    return {row.get("engine", ""): [r.get("gpu", "") for r in rows if r.get("engine") == row.get("engine")] for row in rows}
