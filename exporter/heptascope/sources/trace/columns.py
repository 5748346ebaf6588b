"""Collects columns piece by piece and joins them once, dropping rows that no clock can have produced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heptascope.sources.trace.events import Code, Codes, GpuEvents, HostEvents, Int, Mask

FARTHEST = 4e18
"""Nanoseconds: a little over a hundred years, and still far from the end of 64 bits."""
_NEGATIVE, _IMPOSSIBLE, _UNREADABLE = "a negative duration", "an impossible time", "a missing or unreadable field"


class Columns:
    """Rows of one kind of event, as lists of arrays by column name."""

    def __init__(self, **kinds: type[np.generic]) -> None:
        """Name the columns and their number types."""
        self._kinds = kinds
        self._pieces: dict[str, list[NDArray[Any]]] = {name: [] for name in kinds}

    def add(self, **columns: NDArray[Any] | Sequence[Any] | int | float) -> None:
        """Append rows; a single number fills its column. `start` is always an array."""
        size = len(columns["start"])  # type: ignore[arg-type]  # start is never a single number
        for name, kind in self._kinds.items():
            value = columns[name]
            column = np.full(size, value, kind) if isinstance(value, int | float) else np.asarray(value, kind)
            self._pieces[name].append(column)

    def take(self) -> dict[str, NDArray[Any]]:
        """Join the pieces, column by column, so that only one column is held twice at a time."""
        joined = {}
        for name, kind in self._kinds.items():
            pieces = self._pieces.pop(name)
            joined[name] = np.concatenate(pieces) if pieces else np.empty(0, kind)
            pieces.clear()
        return joined


class Tables:
    """The GPU and host tables under construction, with their code books and the count of rows left out."""

    def __init__(self) -> None:
        """Begin empty."""
        code, wide = np.int32, np.int64
        shared: dict[str, type[np.generic]] = {"start": wide, "end": wide, "name": code, "kind": np.int8, "correlation": wide}
        self.gpu = Columns(**shared, device=code, stream=code, shape=code, group=code, node=wide, bytes=wide, occupancy=np.float32)
        self.host = Columns(**shared, thread=code)
        self.names, self.threads, self.streams, self.shapes, self.groups = Codes(), Codes(), Codes(), Codes(), Codes()
        self.left_out: Counter[str] = Counter()

    def finish(self) -> tuple[GpuEvents, HostEvents]:
        """Return the tables, GPU rows in the order of their start."""
        gpu = GpuEvents(**self.gpu.take())
        order = np.argsort(gpu.start, kind="stable")
        in_order = bool((order[1:] > order[:-1]).all())
        return gpu if in_order else gpu.pick(order), HostEvents(**self.host.take())

    def notes(self) -> list[str]:
        """Say what was left out and why."""
        return [f"{count} events with {why} were left out" for why, count in self.left_out.most_common() if count]

    def unreadable(self, count: int) -> None:
        """Count events that could not be read."""
        self.left_out[_UNREADABLE] += count

    def plausible(self, start: NDArray[np.float64] | Int, duration: NDArray[np.float64] | Int) -> Mask | None:
        """Return which rows have a usable time; None: all. Times are nanoseconds."""
        with np.errstate(invalid="ignore"):
            possible = np.isfinite(start) & (np.abs(start) < FARTHEST) & (duration < FARTHEST) & ~np.isnan(duration)
            forward = ~(duration < 0)
        if bool(possible.all()) and bool(forward.all()):
            return None
        self.left_out[_NEGATIVE] += int((possible & ~forward).sum())
        self.left_out[_IMPOSSIBLE] += int((~possible).sum())
        kept: Mask = possible & forward
        return kept


def encode(values: Sequence[object], codes: Codes) -> Code:
    """Return the number of each value."""
    return np.array([codes[value] for value in values], np.int32)


def pick(columns: Mapping[str, NDArray[Any]], kept: Mask | None) -> dict[str, NDArray[Any]]:
    """Return the kept rows of each column."""
    return dict(columns) if kept is None else {name: column[kept] for name, column in columns.items()}
