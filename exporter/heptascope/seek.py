"""Sources that stand in for what is configured and not there yet: they look for it until it is found, and then make room for it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

from heptascope.config import GpuSettings
from heptascope.engines import Engines
from heptascope.model import Reading, Reason
from heptascope.sources.base import Source, SourceError
from heptascope.sources.engine.discover import PROBE_TIMEOUT_SECONDS, discover_more, listening, well_known_ports
from heptascope.sources.engine.discover import Found as Engine
from heptascope.sources.engine.source import port_of
from heptascope.sources.gpu import library
from heptascope.wiring import GPU_CHOICES

log = logging.getLogger(__name__)

SEEK_SECONDS = 10.0
MORE_SECONDS = 10.0
STRANGER_LOOKS = 30  # five minutes: a server that answers but is no engine by then is left alone

Found = Callable[[str, Sequence[Source]], None]
"""Takes the name of the stand-in and the sources that replace it."""
FoundGpus = Callable[[str, Sequence[Source], str], None]
"""Takes the name of the stand-in, the sources that replace it, and why these were chosen."""


class GpuSeeker:
    """Looks for a way to read GPUs."""

    name, kind = "gpu", "gpu"
    interval = timeout = SEEK_SECONDS

    def __init__(self, settings: GpuSettings, found: FoundGpus) -> None:
        """Try the choices of `settings.source` in turn; call `found` with the sources of the first that can be used."""
        self._settings, self._found = settings, found

    def read(self, now: float) -> Reading:
        """Look once. Raises SourceError with what each choice said."""
        reasons = []
        for choice in GPU_CHOICES[self._settings.source]:
            try:
                sources = choice(self._settings)
            except SourceError as exc:
                reasons.append(str(exc))
            else:
                before = [f"before it: {reason}" for reason in reasons]
                self._found(self.name, sources, "; ".join((sources[0].name, *before, *_beside(sources[0].name))))
                return Reading(self.name, now)
        raise SourceError(Reason.NO_SOURCE, "; ".join(reasons))

    def close(self) -> None:
        """Do nothing: nothing stays open between two looks."""


def _beside(chosen: str) -> Sequence[str]:
    """Return what NVML would add to DCGM, where it answers here too."""
    if chosen != "dcgm":
        return ()
    try:
        module = library.load()
        library.start(module)
    except SourceError:
        return ()
    with suppress(module.NVMLError):
        module.nvmlShutdown()
    return ("NVML answers too and would add processes, NVLink speed and on Hopper and later exact means: gpu.source nvml",)


class EngineSeeker:
    """Looks for engines at their well-known ports on this machine."""

    name, kind = "engine", "engine"
    interval = SEEK_SECONDS
    timeout = 10 * PROBE_TIMEOUT_SECONDS  # an adapter's page may be in several places, one after the other

    def __init__(self, engines: Engines, found: Found, add: Callable[[Sequence[Source]], None], advice: str = "") -> None:
        """Let `engines` make the sources; call `found` with the first, and `add` with those that are found later.

        `advice` is what is known of why none may answer.
        """
        self._engines, self._found, self._add, self._advice = engines, found, add, advice

    def read(self, now: float) -> Reading:
        """Look once. Raises SourceError if no engine answers."""
        here = discover_more()
        if not here:
            ports = ", ".join(str(port) for port in well_known_ports())
            remedy = self._advice or "name one with --engine URL"
            raise SourceError(Reason.NO_SOURCE, f"no engine answers on this machine's ports {ports}; {remedy}")
        say_found(here)
        more = MoreEngines(self._engines, self._add, {port_of(engine.url) for engine in here})
        self._found(self.name, [*self._engines.found(here), more])
        return Reading(self.name, now)

    def close(self) -> None:
        """Do nothing: nothing stays open between two looks."""


class MoreEngines:
    """Looks for engines that start after the first: a second server in the pod, the ranks of one that follow one another."""

    name, kind = "engines", "seek"
    interval = MORE_SECONDS
    timeout = 10 * PROBE_TIMEOUT_SECONDS

    def __init__(self, engines: Engines, add: Callable[[Sequence[Source]], None], known: set[int]) -> None:
        """Let `engines` make the sources of what is not at the ports `known`; call `add` with them."""
        self._engines, self._add, self._known = engines, add, set(known)
        self._strange: Counter[int] = Counter()

    def read(self, now: float) -> Reading:
        """Look once. What answers again and again and is no engine is left alone."""
        strangers = {port for port, looks in self._strange.items() if looks >= STRANGER_LOOKS}
        here = discover_more(self._known, strangers)
        if here:
            say_found(here)
            self._known |= {port_of(engine.url) for engine in here}
            self._add(self._engines.found(here))
        candidates = {*well_known_ports(), *(port + 1 for port in self._known)} - self._known - strangers
        self._strange.update(listening(sorted(candidates)))
        return Reading(self.name, now)

    def close(self) -> None:
        """Do nothing: nothing stays open between two looks."""


def say_found(engines: Sequence[Engine]) -> None:
    """Log what was found."""
    log.info("found %s", ", ".join(f"{engine.kind} at {engine.url}" for engine in engines))
