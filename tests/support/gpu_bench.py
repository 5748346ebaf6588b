"""Both NVML sources on cards that follow a scenario."""

from __future__ import annotations

from heptascope.model import Reading
from heptascope.sources.gpu.nvml import NvmlSlowSource, NvmlSource
from heptascope.sources.gpu.session import Session
from support.fake_nvml import FakeClock, FakeGpu, FakeNvml, h200


class Bench:
    """Both sources on fake cards."""

    def __init__(self, *cards: FakeGpu, devices: tuple[str, ...] = ()) -> None:
        """Nothing is read yet."""
        self.clock = FakeClock()
        self.cards = list(cards) or [h200()]
        self.nvml = FakeNvml(self.cards, self.clock)
        self.session = Session(self.nvml, devices, self.clock, self.clock)
        self.fast = NvmlSource(self.session, 1.0, clock=self.clock, wait=self.clock.wait)
        self.slow = NvmlSlowSource(self.session)

    def read(self, seconds: float = 1.0) -> Reading:
        """Let time pass and read the fast source."""
        self.clock.t += seconds
        return self.fast.read(self.clock())

    def read_slow(self, seconds: float = 0.0) -> Reading:
        """Let time pass and read the slow source."""
        self.clock.t += seconds
        return self.slow.read(self.clock())

    def close(self) -> None:
        """Close both sources."""
        self.fast.close()
        self.slow.close()
