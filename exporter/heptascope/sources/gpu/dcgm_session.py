"""One session with a host engine, shared by the fast and the slow source: connected, set up, rebuilt when it breaks, released."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from heptascope.model import Missing, Reason, labels
from heptascope.sources.base import SourceError
from heptascope.sources.gpu import dcgm_bindings, dcgm_rows
from heptascope.sources.gpu.backoff import Backoff
from heptascope.sources.gpu.dcgm_bindings import Bindings
from heptascope.sources.gpu.dcgm_card import Card, Kept
from heptascope.sources.gpu.dcgm_codes import CONNECTION_NOT_VALID, NVML_NOT_LOADED, DcgmCallError, Reaction
from heptascope.sources.gpu.dcgm_connect import DcgmOptions, choose
from heptascope.sources.gpu.dcgm_engine import Engine, Entity, Instance, Watch
from heptascope.sources.gpu.dcgm_fields import FAST_IDS, GPU, IDENTITY, INSTANCE_PLAIN, SLOW_IDS
from heptascope.sources.gpu.layout import PREFIX, Row

LOCK_SECONDS = 3.0
"""How long one source waits for the other's call; a call into DCGM may hang for 45 s and more on a failing GPU."""
CLOSE_SECONDS = 0.3
UNWATCHED_READS = 3
"""A field that is not watched is normal in the first interval, and a dropped watch after so many reads."""
SILENT_SECONDS = 10.0
"""Values that the engine has not renewed for so long are not shown any more."""
_REASONS = {"uuid": 54, "driver": 1, "nvml": 2}
_NO_PROFILING = (Reason.NOT_CONFIGURED, "gpu.dcgm.profiling is false")


class DcgmSession:
    """Knows the GPUs of one host engine. One thread at a time is inside DCGM."""

    def __init__(
        self,
        options: DcgmOptions,
        intervals: tuple[float, float],
        devices: Sequence[str] = (),
        load: Callable[..., Bindings] = dcgm_bindings.load,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`intervals` are those of the fast and the slow watch in seconds, `devices` indexes or UUIDs (empty: all)."""
        self._options, self._wanted, self._load = options, tuple(devices), load
        self._fast_interval, self._slow_interval = intervals
        self._clock, self._now = clock, now
        self._lock = threading.Lock()
        self._users = 0
        self._engine: Engine | None = None
        self._backoff, self._revive = Backoff(clock), Backoff(clock)
        self._problem = (Reason.SOURCE_DOWN, "DCGM was not read yet")
        self._kept: dict[str, Kept] = {}
        self._ever: dict[str, Card] = {}  # every GPU that was read, by uuid: one that goes is lost, not forgotten
        self._plain: list[tuple[Watch, float]] = []
        self._instance_watch: Watch | None = None
        self._layout: tuple[list[int], list[Instance]] = ([], [])
        self.cards: list[Card] = []
        self.fast_ids: tuple[int, ...] = ()
        self.slow_ids: tuple[int, ...] = ()
        self.header: Row = {}
        self.version = 0
        self.missing: list[Missing] = []

    def attach(self) -> None:
        """Count one more source that uses the session."""
        self._users += 1

    def detach(self) -> None:
        """Count one source less; the last one gives everything back, unless a call hangs."""
        self._users -= 1
        if self._users > 0 or not self._lock.acquire(timeout=CLOSE_SECONDS):
            return
        try:
            self._drop(broken=False)
        finally:
            self._lock.release()

    @contextmanager
    def use(self) -> Iterator[Engine]:
        """Give the engine for one read, connecting and setting up first if need be. Raises SourceError."""
        if not self._lock.acquire(timeout=LOCK_SECONDS):
            raise SourceError(Reason.SOURCE_DOWN, "a call to the DCGM host engine has not come back")
        try:
            yield self._ready()
        except DcgmCallError as exc:
            raise self._failed(exc) from exc
        finally:
            self._lock.release()

    def look_again(self, engine: Engine) -> None:
        """Set up anew if GPUs or MIG instances came or went; now and then try GPUs that could not be watched."""
        if (engine.gpus(), _instances(engine)) != self._layout:
            self._set_up(engine)
            return
        lost = [card for card in self.cards if card.lost and not card.gone]
        if lost and self._revive.due:
            self._revive.failed()
            for card in lost:
                self._try(engine, card)
        elif not lost:
            self._revive.worked()

    def instance_memory(self, engine: Engine) -> dict[Entity, Row]:
        """Return the memory of each MIG instance, and the MIG uuid of each compute instance."""
        watch, parts = self._instance_watch, self._layout[1]
        if watch is None:
            return {}
        found = engine.read([part.entity for part in parts], watch.ids)
        out = {}
        for entity, values in found.items():
            row = dcgm_rows.instance_memory(values)
            text = dcgm_rows.first_text(values, _REASONS["uuid"])
            out[entity] = {**row, "uuid": text} if text else row
        return out

    def keep_profiling(self, engine: Engine) -> None:
        """Watch profiling fields anew where that is due, and the plain fields after a failure or where the engine dropped them."""
        if any(card.unwatched >= UNWATCHED_READS for card in self.cards):
            self._again(engine)
        due = [card for card in self.cards if not card.lost and card.wants_profiling_again()]
        failed = [card for card in due if card.profile(engine)]
        if failed:
            self._again(engine)

    def check_fresh(self, cards: Sequence[Card]) -> None:
        """Raise DcgmCallError if the engine renews no GPU's values any more: it froze, and a new connection may help."""
        if cards and all(card.silent_for > self.silent_limit for card in cards):
            raise DcgmCallError(
                CONNECTION_NOT_VALID, f"the host engine has renewed no value for {min(card.silent_for for card in cards):.0f} s"
            )

    @property
    def silent_limit(self) -> float:
        """Seconds after which values that are not renewed are old."""
        return max(SILENT_SECONDS, 3 * self._fast_interval)

    def _ready(self) -> Engine:
        if self._engine is not None:
            return self._engine
        if not self._backoff.due:
            raise SourceError(*self._problem)
        try:
            engine = Engine(self._load(self._options.bindings), choose(self._options))
        except SourceError as exc:
            self._problem = (exc.reason, str(exc))
            self._backoff.failed()
            raise
        self._engine = engine
        self._set_up(engine)
        self._backoff.worked()
        return engine

    def _failed(self, exc: DcgmCallError) -> SourceError:
        """React to what concerns the whole engine; return what to say."""
        means = exc.means
        broken = means.reaction in (Reaction.REBUILD, Reaction.GIVE_UP)
        if broken or means.reaction in (Reaction.RELEASE, Reaction.LOOK_AGAIN) or not self.cards:
            self._drop(broken)
            self._backoff.failed()
        self._problem = (means.reason, f"DCGM: {exc}")
        return SourceError(*self._problem)

    def _drop(self, broken: bool) -> None:
        engine, self._engine, self.cards = self._engine, None, []
        if engine is not None:
            engine.release(broken)

    def _set_up(self, engine: Engine) -> None:
        """List the entities and watch them. Raises DcgmCallError, or SourceError if there is no GPU to read."""
        engine.give_back()
        gpus = engine.gpus()
        self._layout = (gpus, _instances(engine))
        if not gpus:
            raise DcgmCallError(NVML_NOT_LOADED, f"the host engine at {engine.target} shows no GPU")
        self.fast_ids, self.slow_ids = engine.usable(FAST_IDS), engine.usable(SLOW_IDS)
        cards = {gpu: Card(gpu, self._fast_interval, self._clock) for gpu in gpus}
        self._plain = []
        self._watch_plain(engine, cards, gpus)
        self._watch_instance_memory(engine)
        engine.update()
        self._identify(engine, list(cards.values()))
        self._profile(engine, [card for card in self.cards if not card.lost])

    def _watch_plain(self, engine: Engine, cards: dict[int, Card], gpus: list[int]) -> None:
        """Watch the plain fields of all GPUs together; a GPU that the engine refuses is left out as lost, the others go on."""
        try:
            for ids, interval in ((self.fast_ids, self._fast_interval), (self.slow_ids, self._slow_interval)):
                self._plain.append((engine.watch([(GPU, gpu) for gpu in gpus], ids, interval), interval))
        except DcgmCallError as exc:
            if exc.means.reaction is not Reaction.LOSE_GPU:
                raise
            if len(gpus) == 1:
                cards[gpus[0]].lost = str(exc)
                return
            half = len(gpus) // 2
            self._watch_plain(engine, cards, gpus[:half])
            self._watch_plain(engine, cards, gpus[half:])

    def _try(self, engine: Engine, card: Card) -> None:
        """Watch one GPU that was lost when the others were set up."""
        card.lost = ""
        self._watch_plain(engine, {card.gpu: card}, [card.gpu])
        if card.lost:
            return
        engine.update()
        self._name(engine, card)
        self._profile(engine, [card])
        self._publish(engine)

    def _watch_instance_memory(self, engine: Engine) -> None:
        parts = self._layout[1]
        ids = engine.usable((*(field.id for field in INSTANCE_PLAIN), _REASONS["uuid"])) if parts else ()
        self._instance_watch = engine.watch([part.entity for part in parts], ids, self._slow_interval) if ids else None

    def _identify(self, engine: Engine, cards: list[Card]) -> None:
        for card in cards:
            self._name(engine, card)
        here = [card for card in cards if self._chosen(card)]
        gone = [card for uuid, card in self._ever.items() if uuid not in {other.uuid for other in cards}]
        for card in gone:
            card.lost, card.gone = "this GPU is not there any more", True
        self._ever.update((card.uuid, card) for card in here if card.uuid)
        self._check_wanted(here, cards)
        self.cards = [*here, *gone]
        self._publish(engine)

    def _name(self, engine: Engine, card: Card) -> None:
        """Learn who a GPU is: from its values, or if it is lost from what was known of it."""
        known = next((other for other in self._ever.values() if other.gpu == card.gpu and not other.gone), None)
        if not card.lost:
            card.identify(engine, self.fast_ids, self.slow_ids)
        elif known is not None:
            card.index, card.uuid, card.entry = known.index, known.uuid, known.entry
        card.instances = [part for part in self._layout[1] if part.gpu == card.gpu]
        card.kept = self._kept.setdefault(card.uuid or str(card.gpu), Kept())

    def _profile(self, engine: Engine, cards: list[Card]) -> None:
        if not self._options.profiling:
            for card in cards:
                card.no_profiling(_NO_PROFILING)
            return
        failed = [card for card in cards if card.profile(engine)]
        if failed:
            self._again(engine)

    def _again(self, engine: Engine) -> None:
        """Watch the plain fields again: after a failed watch the engine drops every watch of that GPU."""
        for watch, interval in self._plain:
            engine.again(watch, interval)

    def _chosen(self, card: Card) -> bool:
        return not self._wanted or str(card.index) in self._wanted or (bool(card.uuid) and card.uuid in self._wanted)

    def _check_wanted(self, here: list[Card], cards: list[Card]) -> None:
        names = {str(card.index) for card in here} | {card.uuid for card in here}
        there = ", ".join(f"{card.index} ({card.uuid})" for card in cards)
        unknown = [device for device in self._wanted if device not in names]
        if not here:
            raise DcgmCallError(
                NVML_NOT_LOADED, f"none of the GPUs asked for ({', '.join(unknown)}) is there; the host engine shows: {there}"
            )
        text = "GPU {} was asked for and is not there; the host engine shows: {}"
        self.missing = [
            Missing(PREFIX + "up", Reason.NO_SOURCE, text.format(d, there), labels(gpu=d) if d.isdigit() else labels(uuid=d))
            for d in unknown
        ]

    def _publish(self, engine: Engine) -> None:
        first = next((card for card in self.cards if not card.lost), None)
        facts = engine.read([(GPU, first.gpu)], [f.id for f in IDENTITY if f.id in self.slow_ids]) if first is not None else {}
        values = next(iter(facts.values()), {})
        self.header = {
            "kind": "header",
            "t": self._now(),
            "source": "dcgm",
            "energy_in_fast": True,
            "driver": dcgm_rows.first_text(values, _REASONS["driver"]),
            "nvml": dcgm_rows.first_text(values, _REASONS["nvml"]),
            "gpus": [card.entry for card in self.cards],
            "host_cpus": os.cpu_count(),
        }
        self.version += 1


def _instances(engine: Engine) -> list[Instance]:
    """Return the MIG instances; none where the engine cannot tell."""
    try:
        return engine.instances()
    except DcgmCallError as exc:
        if exc.means.reaction in (Reaction.REBUILD, Reaction.RELEASE, Reaction.GIVE_UP):
            raise
        return []
