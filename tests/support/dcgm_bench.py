"""Both DCGM sources on a fake host engine that follows a scenario."""

from __future__ import annotations

from typing import Any

import pytest

from heptascope.model import Reading
from heptascope.sources.gpu import dcgm_session
from heptascope.sources.gpu.dcgm import dcgm_sources
from heptascope.sources.gpu.dcgm_connect import DcgmOptions, Target
from support.fake_dcgm import HostEngine, Modules
from support.fake_nvml import FakeClock


class DcgmBench:
    """Both sources, and the engine behind them."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        scenario: str = "h200",
        *,
        options: DcgmOptions | None = None,
        devices: tuple[str, ...] = (),
        interval: float = 1.0,
        **changes: Any,
    ) -> None:
        """Nothing is read yet. The search for a listening engine finds one unless the scenario says that none listens."""
        self.clock = FakeClock()
        self.engine = HostEngine(scenario, self.clock, **changes)
        self.modules = Modules(self.engine)
        monkeypatch.setattr(dcgm_session, "choose", lambda _: Target("127.0.0.1", 5555))
        self.fast, self.slow = dcgm_sources(
            options or DcgmOptions(), interval, 5.0, devices, load=lambda _: self.modules.bindings(), clock=self.clock, now=self.clock
        )

    def read(self, seconds: float = 1.0) -> Reading:
        """Let time pass and read the fast source."""
        self.clock.t += seconds
        return self.fast.read(self.clock())

    def read_slow(self, seconds: float = 0.0) -> Reading:
        """Let time pass and read the slow source."""
        self.clock.t += seconds
        return self.slow.read(self.clock())

    def warm(self) -> Reading:
        """Read until profiling fields have values: the engine compares two samples an interval apart."""
        for _ in range(3):
            self.read()
        return self.read()
