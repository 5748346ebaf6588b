"""TensorRT-LLM's `/perf_metrics`: the times of each finished request, which a read takes away like the iteration list.

Needs `return_perf_metrics: true` and `perf_metrics_max_requests` above 0. Made into histograms here, with bounds of our own.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from heptascope.model import Histogram, Quality, Reason
from heptascope.sources.engine.adapter import Absence, Collector

PATH = "/perf_metrics"
_BOUNDS = (*(round(digit * 10.0**power, 6) for power in range(-3, 3) for digit in (1, 2, 5)), inf)
"""1, 2 and 5 of each decade from a millisecond to 500 s."""

_LATENCIES = ("queue_time_seconds", "time_to_first_token_seconds", "e2e_latency_seconds", "time_per_output_token_seconds")
_FLAGS = "needs return_perf_metrics: true and perf_metrics_max_requests above 0"
_OFF, _NONE = Absence(Reason.FLAG_OFF, _FLAGS), Absence(Reason.IDLE, f"no request has finished yet; {_FLAGS}")


def request_times(answer: Any) -> list[dict[str, float]]:
    """Return the latencies of each request in an answer, by our names; those that it does not tell are left out."""
    return [_latencies(record.get("perf_metrics") or {}) for record in answer]


def _latencies(metrics: Mapping[str, Any]) -> dict[str, float]:
    times = metrics.get("timing_metrics") or {}
    arrived, scheduled, last = (times.get(f"{name}_time") for name in ("arrival", "first_scheduled", "last_token"))
    begun, first = (times.get(f"server_{name}_time") or times.get(f"{name}_time") for name in ("arrival", "first_token"))
    steps = (metrics.get("last_iter") or 0) - (metrics.get("first_iter") or 0)
    spans = {
        "queue_time_seconds": (arrived, scheduled, 1),
        "time_to_first_token_seconds": (begun, first, 1),
        "e2e_latency_seconds": (arrived, last, 1),
        "time_per_output_token_seconds": (times.get("first_token_time"), last, steps),
    }
    return {name: (end - start) / over for name, (start, end, over) in spans.items() if start and end and end >= start and over > 0}


class RequestTimes:
    """Sums up the requests of one engine."""

    def __init__(self) -> None:
        """Start at nothing."""
        self._counts = {name: [0] * len(_BOUNDS) for name in _LATENCIES}
        self._sums = dict.fromkeys(_LATENCIES, 0.0)
        self._absence: Absence | None = _OFF

    def add(self, requests: Sequence[Mapping[str, float]] | None) -> None:
        """Add requests; None: the page did not answer."""
        if self._absence is not None and requests is not None:
            self._absence = None if any(requests) else _NONE
        for request in requests or ():
            for name, seconds in request.items():
                self._counts[name][bisect_left(_BOUNDS, seconds)] += 1
                self._sums[name] += seconds

    def show(self, out: Collector, rank: str) -> None:
        """Put the histograms into `out`, or why there are none."""
        for name in _LATENCIES:
            if self._absence is not None:
                out.lack(name, self._absence)
                continue
            counts = self._counts[name]
            cumulative = tuple(float(sum(counts[: bucket + 1])) for bucket in range(len(_BOUNDS)))
            out.histogram(name, Histogram("", out.pairs(rank), _BOUNDS, cumulative, self._sums[name]))
            out.mark(name, rank, Quality.APPROXIMATE if name.startswith("time_per") else Quality.DERIVED)
