"""Sources that stand in for what is configured and not there yet: they look for it until it is found, and then make room for it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from heptascope.config import GpuSettings
from heptascope.engines import Engines
from heptascope.model import Reading, Reason
from heptascope.sources.base import Source, SourceError
from heptascope.sources.engine.discover import PROBE_TIMEOUT_SECONDS, discover, well_known_ports
from heptascope.wiring import GPU_CHOICES

log = logging.getLogger(__name__)

SEEK_SECONDS = 10.0

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
                self._found(self.name, sources, "; ".join((sources[0].name, *(f"before it: {reason}" for reason in reasons))))
                return Reading(self.name, now)
        raise SourceError(Reason.NO_SOURCE, "; ".join(reasons))

    def close(self) -> None:
        """Do nothing: nothing stays open between two looks."""


class EngineSeeker:
    """Looks for engines at their well-known ports on this machine."""

    name, kind = "engine", "engine"
    interval = SEEK_SECONDS
    timeout = 10 * PROBE_TIMEOUT_SECONDS  # an adapter's page may be in several places, one after the other

    def __init__(self, engines: Engines, found: Found) -> None:
        """Let `engines` make the sources; call `found` with them."""
        self._engines, self._found = engines, found

    def read(self, now: float) -> Reading:
        """Look once. Raises SourceError if no engine answers."""
        here = discover()
        if not here:
            ports = ", ".join(str(port) for port in well_known_ports())
            raise SourceError(Reason.NO_SOURCE, f"no engine answers on this machine's ports {ports}; name one with --engine URL")
        log.info("found %s", ", ".join(f"{engine.kind} at {engine.url}" for engine in here))
        self._found(self.name, self._engines.found(here))
        return Reading(self.name, now)

    def close(self) -> None:
        """Do nothing: nothing stays open between two looks."""
