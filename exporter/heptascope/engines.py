"""The engines of one daemon: their sources and names, their GPUs, and what their command lines tell."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from heptascope.config import EngineSettings, PollSettings
from heptascope.engine_maps import map_adapter
from heptascope.errors import UserError
from heptascope.sources.commandlines import settings_by_engine
from heptascope.sources.engine.cmdline import CommandLine
from heptascope.sources.engine.discover import Found
from heptascope.sources.engine.reader import AUTO
from heptascope.sources.engine.source import EngineSource, engine_name, port_of

RETRY_SECONDS = 5.0
"""The longest that an engine which is down is left alone: what it does as it starts again matters most, and to ask costs little."""


class Engines:
    """Makes the engine sources, and knows them by the name that labels their series."""

    def __init__(self, poll: PollSettings) -> None:
        """Fetch pages as `poll` says."""
        self._poll = poll
        self._sources: list[tuple[EngineSource, EngineSettings]] = []
        self._told: dict[str, CommandLine] = {}

    def configured(self, engines: Sequence[EngineSettings]) -> list[EngineSource]:
        """Return the sources of configured engines. Raises UserError if two would have one name."""
        ports = [port_of(engine.url) for engine in engines if engine.name is None]
        twice = next((port for i, port in enumerate(ports) if port in ports[:i]), None)
        if twice is not None:
            raise UserError(f"two engines listen on port {twice} and have no name", where="engines", hint="give each a name")
        return [self._make(engine, several=len(engines) > 1) for engine in engines]

    def found(self, engines: Sequence[Found]) -> list[EngineSource]:
        """Return the sources of engines that were found by looking for them."""
        several = len(engines) + len(self._sources) > 1
        return [self._make(EngineSettings(url=engine.url), several=several) for engine in engines]

    def name_of(self, source: str) -> str:
        """Return the label of a source's series: its configured name, or the one made from its kind once that is known."""
        return next((mine.reader.name for mine, _ in self.known() if mine.name == source), source)

    def on_this_machine(self) -> list[tuple[str, int]]:
        """Return name and port of each engine whose processes may be here; one without a name counts once it was recognised."""
        return [(mine.reader.name, port_of(settings.url)) for mine, settings in self.known() if is_local(settings.url)]

    @property
    def gpus(self) -> Mapping[str, Sequence[str]]:
        """The configured GPUs of each engine, by name; grows as engines are recognised."""
        return _Gpus(self)

    def learn(self, host_row: Mapping[str, Any]) -> None:
        """Take start settings from the command lines in a host row; what is configured goes before them."""
        told = settings_by_engine(host_row.get("procs") or ())
        if told == self._told:
            return
        self._told = told
        for mine, settings in self._sources:
            line = told.get(mine.reader.name, CommandLine())
            mine.reader.settings = {**line.settings, **facts(settings)}
            mine.reader.config = dict(line.config)

    def known(self) -> Iterator[tuple[EngineSource, EngineSettings]]:
        """Yield the sources whose name is settled, with their settings."""
        return ((mine, settings) for mine, settings in self._sources if settings.name or mine.reader.kind)

    def _make(self, engine: EngineSettings, *, several: bool) -> EngineSource:
        source = EngineSource(
            engine.name,
            engine.url,
            map_adapter(engine.map) if engine.map is not None else engine.kind or AUTO,
            interval=self._poll.interval,
            timeout=self._poll.timeout,
            max_page_bytes=self._poll.max_page_bytes,
            settings=facts(engine),
            probe=engine.probe,
            token_file=engine.token_file,
            naming=lambda kind: engine_name(kind, engine.url, several),
        )
        self._sources = [*self._sources, (source, engine)]
        return source


class _Gpus(Mapping[str, Sequence[str]]):
    """A view, since an engine's name may be known only after its first page."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines

    def _items(self) -> dict[str, Sequence[str]]:
        return {mine.reader.name: settings.gpus for mine, settings in self._engines.known() if settings.gpus}

    def __getitem__(self, name: str) -> Sequence[str]:
        return self._items()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items())

    def __len__(self) -> int:
        return len(self._items())


def facts(engine: EngineSettings) -> dict[str, float]:
    """Return the configured start settings as numbers; a switch is 0 or 1."""
    return {key: float(value) for key, value in engine.settings.model_dump(exclude_none=True).items()}


def is_local(url: str) -> bool:
    """Return whether the host of `url` is this machine, as far as its name tells."""
    host = (urlsplit(url).hostname or "").lower()
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host in ("localhost", socket.gethostname().lower())
    return address.is_loopback or address.is_unspecified
