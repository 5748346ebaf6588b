"""NVML cards that follow a scenario file: what they are, what happens to them when, and what both sources then say.

A file holds `cards` (`uuid`, `links`, `set`: a function's answer, `rates` and `nan` by GPM metric id, `mig`: GPU and compute instances),
`events` (`at` seconds; on one `gpu`: `lost`, `errors`, `xid`, and what a card has; on all: `block` and `open` a function) and `expect`:
what a signal is at a time, its `value`, the `reason` why it has none, or `absent`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from heptascope.model import Reading
from support.fake_nvml import NOT_SUPPORTED, FakeGpu, Gate, h200
from support.gpu_bench import Bench

SCENARIOS = Path(__file__).with_name("nvml_scenarios")
NAMES = tuple(sorted(path.stem for path in SCENARIOS.glob("*.json")))
SLOW_SECONDS = 5
_XID_EVENT = 0x8


class Scenario:
    """Plays one file on a bench, second by second."""

    def __init__(self, name: str) -> None:
        """Nothing has happened yet."""
        told = json.loads((SCENARIOS / f"{name}.json").read_text(encoding="utf-8"))
        self.bench = Bench(*(_card(entry, number) for number, entry in enumerate(told["cards"])))
        self.expect: list[dict[str, Any]] = told["expect"]
        self._events = sorted(told.get("events", ()), key=lambda event: float(event["at"]))
        self._began = self.bench.clock()
        self._hung: list[threading.Thread] = []

    def play(self) -> Iterator[tuple[int, Reading, Reading | None]]:
        """Yield the second, the fast reading, and the last slow reading (every fifth second; one that hangs is left to itself)."""
        slow: Reading | None = self.bench.read_slow()
        for second in range(1, 1 + max(entry["at"] for entry in self.expect)):
            self._happen(second)
            fast = self.bench.read(self._began + second - self.bench.clock())
            if second % SLOW_SECONDS == 0:
                slow = self._slow() or slow
            yield second, fast, slow

    def close(self) -> None:
        """Let go of what hangs and close the sources."""
        for gate in self.bench.nvml.block.values():
            gate.open()
        for thread in self._hung:
            thread.join(5.0)
        self.bench.close()

    def _slow(self) -> Reading | None:
        if not self.bench.nvml.block:
            return self.bench.read_slow()
        gates = list(self.bench.nvml.block.values())
        thread = threading.Thread(target=self.bench.slow.read, args=(self.bench.clock(),), daemon=True)
        thread.start()
        assert gates[0].reached.wait(5.0)
        self._hung.append(thread)
        return None

    def _happen(self, second: float) -> None:
        while self._events and self._events[0]["at"] <= second:
            event = self._events.pop(0)
            nvml = self.bench.nvml
            if "block" in event:
                nvml.block[event["block"]] = Gate()
            if "open" in event:
                nvml.block.pop(event["open"]).open()
            if "gpu" in event:
                _change(nvml.gpus[event["gpu"]], event, self._began + event["at"])


def _card(entry: dict[str, Any], number: int) -> FakeGpu:
    card = h200(entry.get("uuid", f"GPU-{number}"), entry.get("links", 0))
    _change(card, entry, None)
    return card


def _change(card: FakeGpu, entry: dict[str, Any], now: float | None) -> None:
    if now is not None:
        card.settle(now)
    card.lost = entry.get("lost", card.lost)
    card.errors = dict(entry.get("errors", card.errors))
    card.rates.update({int(metric): rate for metric, rate in entry.get("rates", {}).items()})
    card.nan.update(entry.get("nan", ()))
    card.values.update({name: _answer(value) for name, value in entry.get("set", {}).items()})
    if "xid" in entry:
        card.events.append((_XID_EVENT, entry["xid"]))
    if "mig" in entry:
        card.values |= {"nvmlDeviceGetMigMode": [1, 1], "nvmlDeviceGetMaxMigDeviceCount": 7}
        card.errors["nvmlDeviceGetUtilizationRates"] = NOT_SUPPORTED
        card.mig = {2 * position: (gi, ci) for position, (gi, ci) in enumerate(entry["mig"])}


def _answer(value: Any) -> Any:
    """Return a structure for an object, a list of them for a list, and anything else as it is."""
    if isinstance(value, dict):
        return SimpleNamespace(**value)
    return [_answer(one) for one in value] if isinstance(value, list) else value
