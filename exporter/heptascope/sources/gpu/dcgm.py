"""The DCGM sources: a fast one for cheap values and profiling, a slow one for the rest; they share one session with a host engine.

Their rows are those of recordings, so that recording and replay work as for NVML. DCGM gives means over the engine's own sampling
windows, of which only the newest is read: such values are marked approximate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from heptascope.errors import UserError
from heptascope.model import Reading
from heptascope.sources.gpu.dcgm_card import Card, LostError
from heptascope.sources.gpu.dcgm_codes import DcgmCallError, Reaction
from heptascope.sources.gpu.dcgm_connect import DcgmOptions
from heptascope.sources.gpu.dcgm_engine import Engine, Entity
from heptascope.sources.gpu.dcgm_rows import lost_row
from heptascope.sources.gpu.dcgm_session import DcgmSession
from heptascope.sources.gpu.layout import Row
from heptascope.sources.gpu.rows import GpuRows

SHORTEST_INTERVAL_SECONDS = 0.1
"""DCGM's documented least interval for profiling fields; shorter ones are accepted on Hopper and give invalid values."""
TIMEOUT_SECONDS = 10.0

__all__ = ["DcgmOptions", "DcgmSlowSource", "DcgmSource", "dcgm_sources"]


class _DcgmBase:
    """What both sources share: the session, the rows, the header."""

    name: str
    kind = "gpu"
    timeout = TIMEOUT_SECONDS

    def __init__(self, session: DcgmSession, interval: float) -> None:
        self.interval = interval
        self._session = session
        self._rows = GpuRows({"source": "dcgm"})
        self._version = 0
        session.attach()

    def probe(self) -> None:
        """Connect and set up, as the first read does. Raises SourceError with the reason why this cannot be."""
        with self._session.use():
            pass

    @property
    def header(self) -> Row | None:
        """Return the header of a recording as it stands now; None before the first read."""
        return self._session.header or None

    def close(self) -> None:
        """Leave the session; the last source gives the watches back and disconnects."""
        self._session.detach()

    def _take_header(self) -> None:
        if self._version != self._session.version:
            self._version = self._session.version
            self._rows.begin(self._session.header)

    def _each(self, kind: str, read: Callable[[Card], Row], now: float) -> list[Row]:
        """Return one row per GPU; one that does not answer costs its own row alone."""
        rows = []
        for card in self._session.cards:
            why = card.lost
            if not why:
                try:
                    rows.append(read(card))
                except LostError as exc:
                    why = str(exc)
                except DcgmCallError as exc:
                    if exc.means.reaction is not Reaction.LOSE_GPU:
                        raise
                    why = str(exc)
            if why:
                rows.append(lost_row(kind, card.index, card.uuid, why, now))
        return rows


class DcgmSource(_DcgmBase):
    """Utilisation, power, clocks, memory, energy, profiling and XID errors of every GPU."""

    name = "dcgm"

    def read(self, now: float) -> Reading:
        """Read every GPU once; a lost one is `heptascope_gpu_up` 0. Raises SourceError where the host engine as a whole fails."""
        session = self._session
        with session.use() as engine:
            session.keep_profiling(engine)
            rows = self._each("gpu", lambda card: self._row(card, engine, now), now)
            session.check_fresh([card for card in session.cards if not card.lost])
        self._take_header()
        reading = self._rows.fast(rows, now)
        reading.missing.extend(session.missing)
        return reading

    def _row(self, card: Card, engine: Engine, now: float) -> Row:
        row = card.fast(engine, self._session.fast_ids, now)
        if card.silent_for > self._session.silent_limit:
            raise LostError(f"the host engine has renewed nothing of this GPU for {card.silent_for:.0f} s")
        return row


class DcgmSlowSource(_DcgmBase):
    """Energy, health, links, constants and MIG instances of every GPU."""

    name = "dcgm_slow"

    def read(self, now: float) -> Reading:
        """Read every GPU once. Raises SourceError where the host engine as a whole fails."""
        session = self._session
        with session.use() as engine:
            session.look_again(engine)
            parts = session.instance_memory(engine)
            rows = self._each("slow", lambda card: self._row(card, engine, parts, now), now)
        self._take_header()
        return self._rows.slow(rows, now)

    def _row(self, card: Card, engine: Engine, parts: dict[Entity, Row], now: float) -> Row:
        row = card.slow(engine, self._session.slow_ids, now)
        listed = [
            {"instance": part.instance, "compute": part.compute, "slices": part.slices, **parts.get(part.entity, {})}
            for part in card.instances
        ]
        return {**row, "mig": listed} if listed else row


def dcgm_sources(
    options: DcgmOptions, interval: float = 1.0, slow_interval: float = 5.0, devices: Sequence[str] = (), **replaced: Any
) -> tuple[DcgmSource, DcgmSlowSource]:
    """Return the fast and the slow source on one session; `replaced` goes to DcgmSession (tests). Raises UserError for the interval."""
    if interval < SHORTEST_INTERVAL_SECONDS:
        message = f"{interval} s is too short: DCGM needs {SHORTEST_INTERVAL_SECONDS} s between two profiling samples"
        raise UserError(message, where="gpu.interval", hint="set it to 100ms or more")
    session = DcgmSession(options, (interval, slow_interval), devices, **replaced)
    return DcgmSource(session, interval), DcgmSlowSource(session, slow_interval)
