"""Real pages and the numbers in a reading."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from heptascope.model import Histogram, Missing, Quality, Reading, Reason
from heptascope.sources.engine.names import PREFIX
from heptascope.sources.engine.reader import EngineReader

CAPTURES = Path(__file__).parents[1] / "captures"
VLLM_032 = "vllm-0.32.0"
VLLM_011 = "vllm-0.11.0"


def capture(engine: str, scenario: str, which: str = "t1") -> str:
    """Return the page of a capture."""
    return (CAPTURES / engine / scenario / f"{which}.prom").read_text(encoding="utf-8")


def truth(engine: str, scenario: str) -> dict[str, Any]:
    """Return what the client of a capture saw."""
    found: dict[str, Any] = json.loads((CAPTURES / engine / scenario / "truth.json").read_text(encoding="utf-8"))
    return found


def read(text: str, version: str = "", kind: str = "vllm", content_type: str = "", **more: Any) -> Reading:
    """Return the reading of one page."""
    return EngineReader(None, kind, **more).read_page(text, content_type, 1.0, version)


def value(reading: Reading, signal: str, rank: str | None = None, **labels: str) -> float | None:
    """Return the value of a signal, summed over ranks (unless one is named) and parts; None if there is none."""
    wanted = {**labels, **({"rank": rank} if rank is not None else {})}
    found = [s.value for s in reading.samples if s.name == PREFIX + signal and wanted.items() <= dict(s.labels).items()]
    return sum(found) if found else None


def histogram(reading: Reading, signal: str, rank: str = "0") -> Histogram:
    """Return the histogram of a signal on one rank."""
    return next(h for h in reading.histograms if h.name == PREFIX + signal and dict(h.labels).get("rank", "0") == rank)


def missing(reading: Reading, signal: str) -> Missing | None:
    """Return why a signal is missing, None if nothing says so."""
    return next((m for m in reading.missing if m.signal == PREFIX + signal), None)


def reason(reading: Reading, signal: str) -> Reason | None:
    """Return the reason for which a signal is missing."""
    found = missing(reading, signal)
    return found.reason if found else None


def quality(reading: Reading, signal: str) -> Quality:
    """Return how a signal was obtained."""
    return next((q for (name, _), q in reading.quality.items() if name == PREFIX + signal), Quality.EXACT)


def growth(engine: str, scenario: str, signal: str, kind: str = "vllm", **labels: str) -> float:
    """Return the growth of a counter between the two pages of a capture."""
    version = engine.rpartition("-")[2]
    first, last = (read(capture(engine, scenario, which), version, kind) for which in ("t0", "t1"))
    after, before = value(last, signal, **labels), value(first, signal, **labels)
    assert after is not None
    return after - (before or 0.0)
