"""Hand-built traces: every number in them is known, because it was put there. Times are microseconds."""

from __future__ import annotations

import gzip
import json
from io import BytesIO
from pathlib import Path
from typing import Any

from heptascope.sources.trace import kineto
from heptascope.sources.trace.events import Trace

TRACES = Path(__file__).parents[1] / "traces"
"""The real ones."""
MAIN = 100
"""The thread that launches, unless a test says otherwise."""


class TraceBuilder:
    """Collects events in the layout of the PyTorch profiler."""

    def __init__(self, rank: int | None = None, world_size: int = 1, base_ns: int = 0) -> None:
        self.events: list[dict[str, Any]] = []
        self.head: dict[str, Any] = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": "Test GPU"}],
            "baseTimeNanoseconds": base_ns,
        }
        if rank is not None:
            self.head["distributedInfo"] = {"rank": rank, "world_size": world_size}
        self._correlation = 0

    def add(self, cat: str, name: str, start: float, duration: float, thread: int = MAIN, **args: Any) -> TraceBuilder:
        """Add any event with a duration."""
        event = {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": thread, "ts": start, "dur": duration, "args": args}
        self.events.append(event)
        return self

    def call(self, name: str, start: float, duration: float, thread: int = MAIN) -> int:
        """Add a CUDA call; return its correlation."""
        self._correlation += 1
        self.add("cuda_runtime", name, start, duration, thread, correlation=self._correlation)
        return self._correlation

    def gpu(self, cat: str, name: str, start: float, duration: float, correlation: int = 0, stream: int = 7, **args: Any) -> TraceBuilder:
        """Add GPU activity."""
        place = {"device": 0, "stream": stream} | args
        event = {"ph": "X", "cat": cat, "name": name, "pid": place["device"], "tid": stream, "ts": start, "dur": duration}
        self.events.append(event | {"args": {**place, "correlation": correlation}})
        return self

    def kernel(self, name: str, start: float, duration: float, launched: float | None = None, **more: Any) -> TraceBuilder:
        """Add a kernel, with a launch call of 5 µs that begins at `launched`."""
        thread = more.pop("thread", MAIN)
        correlation = more.pop("correlation", 0) if launched is None else self.call("cudaLaunchKernel", launched, 5, thread)
        return self.gpu("kernel", name, start, duration, correlation, **more)

    def copy(self, name: str, start: float, duration: float, launched: float | None = None, **more: Any) -> TraceBuilder:
        """Add a copy, with its call of 5 µs that begins at `launched`."""
        correlation = 0 if launched is None else self.call("cudaMemcpyAsync", launched, 5)
        return self.gpu("gpu_memcpy", name, start, duration, correlation, **more)

    def text(self, indent: int | None = None) -> bytes:
        """Return the trace as JSON."""
        return json.dumps({**self.head, "traceEvents": self.events, "traceName": "built"}, indent=indent).encode()

    def trace(self) -> Trace:
        """Return the trace as the reader reads it."""
        return kineto.read(BytesIO(self.text()), "built.json")

    def write(self, path: Path) -> Path:
        """Write the trace to a file, gzipped if its name says so."""
        path.write_bytes(gzip.compress(self.text()) if path.suffix == ".gz" else self.text())
        return path
