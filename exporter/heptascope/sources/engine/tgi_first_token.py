"""TGI's time to the first token, which it does not measure: the mean of validation, queue and one prefill call, added up.

The three are counted per request, per request and per call, so only their means can be added. From page to page the requests that left
the queue get the means of that interval; the sum of these is a counter like any other.
"""

from __future__ import annotations

from heptascope.model import Quality
from heptascope.sources.engine.adapter import Collector
from heptascope.sources.engine.table import Facts

_QUEUE = "tgi_request_queue_duration"
_VALIDATION = "tgi_request_validation_duration"
_CALLS = "tgi_batch_inference_duration"
_NOTHING = (0.0, 0.0)

Totals = tuple[float, float]
"""Seconds and observations."""


def _totals(facts: Facts, family: str, **labels: str) -> Totals:
    found = {"_sum": 0.0, "_count": 0.0}
    for series, value in facts.page.of(family):
        if series.suffix in found and labels.items() <= series.labels.items():
            found[series.suffix] += value
    return found["_sum"], found["_count"]


def _mean(now: Totals, before: Totals) -> float:
    """Return the mean of what came in between, of all if nothing did, 0 if there is none."""
    seconds, count = (new - old for new, old in zip(now, before, strict=True))
    if count <= 0:
        seconds, count = now
    return seconds / count if count > 0 else 0.0


class FirstToken:
    """Adds up the time to the first token of one engine."""

    def __init__(self) -> None:
        """Start without a page."""
        self._before: tuple[Totals, ...] = (_NOTHING,) * 3
        self._seconds = self._requests = 0.0

    def __call__(self, facts: Facts, out: Collector) -> None:
        """Add what came since the page before; the first page brings all since the engine's start."""
        now = (_totals(facts, _QUEUE), _totals(facts, _VALIDATION), _totals(facts, _CALLS, method="prefill"))
        if now[0][1] == 0 or now[2][1] == 0:
            return
        if now[0][1] < self._before[0][1]:  # the engine has restarted
            self._before, self._seconds, self._requests = (_NOTHING,) * 3, 0.0, 0.0
        means = [_mean(new, old) for new, old in zip(now, self._before, strict=True)]
        self._seconds += sum(means) * (now[0][1] - self._before[0][1])
        self._requests, self._before = now[0][1], now
        for signal, value in (("latency_seconds_total", self._seconds), ("latency_observations_total", self._requests)):
            out.sample(signal, out.pairs(facts.lone_rank, {"latency": "time_to_first_token"}), value)
            out.mark(signal, facts.lone_rank, Quality.APPROXIMATE)
