"""Rows of the bundled recordings, and ways to look into a reading."""

from __future__ import annotations

from functools import cache
from typing import Any

from heptascope.model import Missing, Reading
from heptascope.sources.gpu.rows import GpuRows
from support.recordings import all_recordings, read_lines


@cache
def lines(name: str) -> tuple[dict[str, Any], ...]:
    """Return the lines of a recording's GPU file."""
    return tuple(read_lines(all_recordings()[name] / "gpu.jsonl.gz"))


def header(name: str) -> dict[str, Any]:
    """Return a recording's header line."""
    return lines(name)[0]


def instants(name: str, kind: str) -> list[list[dict[str, Any]]]:
    """Return the rows of one kind, grouped: one list per instant, one row per GPU."""
    rows = [line for line in lines(name) if line["kind"] == kind]
    gpus = len(header(name)["gpus"])
    return [rows[start : start + gpus] for start in range(0, len(rows), gpus)]


def replay(name: str) -> tuple[GpuRows, list[Reading], list[Reading]]:
    """Pass a whole recording through GpuRows; return it with the fast and the slow readings."""
    rows = GpuRows(header(name))
    fast, slow = [], []
    merged = [(group[0]["t"], kind, group) for kind in ("gpu", "slow") for group in instants(name, kind)]
    for _, kind, group in sorted(merged, key=lambda item: item[0]):
        if kind == "gpu":
            fast.append(rows.fast(group))
        else:
            slow.append(rows.slow(group))
    return rows, fast, slow


def values(reading: Reading, signal: str) -> dict[tuple[tuple[str, str], ...], float]:
    """Return one signal's values by labels; `signal` comes without the prefix."""
    return {s.labels: s.value for s in reading.samples if s.name == f"heptascope_gpu_{signal}"}


def value(reading: Reading, signal: str, **pairs: str) -> float:
    """Return the one value of a signal whose labels hold `pairs`."""
    found = [v for labels, v in values(reading, signal).items() if set(pairs.items()) <= set(labels)]
    assert len(found) == 1, f"{signal} {pairs}: {found}"
    return found[0]


def reasons(reading: Reading, signal: str) -> list[Missing]:
    """Return the reasons why one signal is missing."""
    return [m for m in reading.missing if m.signal == f"heptascope_gpu_{signal}"]
