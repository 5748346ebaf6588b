"""What a served daemon reads, and how soon it looks again at what is down."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from heptascope.config import EngineSettings, GpuSettings, HostSettings, Settings
from heptascope.engines import RETRY_SECONDS
from heptascope.seek import EngineSeeker
from heptascope.service import Live
from heptascope.sources.base import Source
from heptascope.sources.engine.source import EngineSource

NOTHING_ELSE = {"gpu": GpuSettings(source="none"), "host": HostSettings(enabled=False)}


class Adds:
    """Notes what is added, and within how many seconds it is read again after failures."""

    def __init__(self, live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
        """Start `live`, but none of its sources."""
        self.longest: dict[str, float] = {}
        self.sources: list[Source] = []
        monkeypatch.setattr(live.daemon, "add", self.add)
        monkeypatch.setattr(live.daemon, "replace", lambda _name, sources, **more: self.add(sources, **more))
        monkeypatch.setattr(live.daemon, "start", lambda: None)
        live.start()

    def add(self, sources: Sequence[Source], longest_backoff: float = 30.0) -> None:
        """Note them."""
        self.sources += sources
        self.longest.update((source.name, longest_backoff) for source in sources)


def test_an_engine_that_is_down_is_looked_at_every_few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that starts again with other flags after a minute must be seen within seconds, not after half a minute more."""
    engine = EngineSettings(url="http://127.0.0.1:8000", name="e")
    assert {"e": RETRY_SECONDS} == Adds(Live(Settings(engines=(engine,), **NOTHING_ELSE)), monkeypatch).longest
    assert RETRY_SECONDS <= 5.0


def test_so_is_one_that_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever replaces the stand-in, and whatever is found later, is asked as often."""
    adds = Adds(Live(Settings(**NOTHING_ELSE)), monkeypatch)
    (seeker,) = adds.sources
    assert isinstance(seeker, EngineSeeker)
    seeker._found("engine", [EngineSource("e", "http://127.0.0.1:8000")])
    seeker._add([EngineSource("f", "http://127.0.0.1:8001")])
    assert {"engine": 10.0, "e": RETRY_SECONDS, "f": RETRY_SECONDS} == adds.longest
