"""Saturation of the pod: how much is used of what binds first, for autoscalers and capacity planning.

Four limits, each from 0 to 1: the KV cache, the sequence slots, the tensor cores, and the latency objectives. DRAM is none of them: a
decoding batch of one reads it nearly as hard as a full one, so it says nothing about how much more load fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from heptascope.model import Reason, labels
from heptascope.signals.ceilings import ACHIEVABLE
from heptascope.signals.engine_context import PREFIX, Collector, Context, average
from heptascope.signals.rates import change, quantile

NAME = "heptascope_saturation_ratio"
LIMIT = "heptascope_saturation_limit_ratio"

TAIL = 0.95
"""The quantile of a latency that is set against its objective (own choice: a tail that ten seconds of traffic can show)."""

LEAST_OBSERVATIONS = 20
"""Fewest observations in the window for a 95th percentile to be more than the largest value (1 / (1 - TAIL))."""


def derive_saturation(contexts: Sequence[Context], work: Sequence[bool | None], out: Collector) -> None:
    """Add the saturation of each limit, the largest over the pod's engines and ranks, and the largest of all.

    `work` says of each context whether it had work. Where none had and no limit has a value, saturation is 0: nothing is used.
    """
    idle = bool(work) and all(w is False for w in work)
    found = {limit: _largest(share(c) for c in contexts) for limit, share in _SHARES.items()}
    for limit, value in found.items():
        out.add(LIMIT, labels(limit=limit), value)
        if value is None:
            out.lack(LIMIT, labels(limit=limit), *((Reason.IDLE, "no requests are running") if idle else _why(limit, contexts)))
    whole = _largest(found.values())
    out.add(NAME, (), 0.0 if whole is None and idle else whole)
    if whole is None and not idle:
        out.lack(NAME, (), Reason.NO_SOURCE, "no limit of an engine can be told" if contexts else "no engine is read")


def _largest(shares: Iterable[float | None]) -> float | None:
    return max((min(max(share, 0.0), 1.0) for share in shares if share is not None), default=None)


def _kv_cache(c: Context) -> float | None:
    return c.mean("kv_cache_usage_ratio")


def _sequences(c: Context) -> float | None:
    running, limit = c.mean("requests_running"), c.mean("sequence_limit") or c.mean("running_limit_observed")
    return running / limit if running is not None and limit else None


def _compute(c: Context) -> float | None:
    tensor = average(c, "gpu_tensor_active_ratio")
    return None if tensor is None else tensor / ACHIEVABLE.tensor


def _objectives(c: Context) -> float | None:
    return _largest(_used(c, latency, seconds) for latency, seconds in c.slo_seconds.items())


def _used(c: Context, latency: str, seconds: float) -> float | None:
    """Return the tail of a latency as a share of its objective; None without enough observations."""
    counts: dict[float, float] = {}
    for series in c.window.series(f"{PREFIX}{latency}_seconds_bucket"):
        if set(c.pairs) <= set(series.pairs):
            bound = float(series.labels["le"])
            counts[bound] = counts.get(bound, 0.0) + max(change(series, c.now, c.span), 0.0)
    bounds = sorted(counts)
    enough = counts.get(float("inf"), 0.0) >= LEAST_OBSERVATIONS
    tail = quantile(TAIL, bounds, [counts[bound] for bound in bounds]) if enough else None
    return None if tail is None else tail / seconds


_SHARES: dict[str, Callable[[Context], float | None]] = {
    "kv_cache": _kv_cache,
    "sequences": _sequences,
    "compute": _compute,
    "slo": _objectives,
}
"""How much of each limit one engine rank uses."""

_INPUTS = {
    "kv_cache": PREFIX + "kv_cache_usage_ratio",
    "sequences": PREFIX + "sequence_limit",
    "compute": "heptascope_gpu_tensor_active_ratio",
}


def _why(limit: str, contexts: Sequence[Context]) -> tuple[Reason, str]:
    """Return why a limit has no value: the reason of the first engine's input."""
    if not contexts:
        return Reason.NO_SOURCE, "no engine is read"
    if limit == "slo":
        if not any(c.slo_seconds for c in contexts):
            return Reason.NOT_CONFIGURED, "no objective is set; set slo"
        return Reason.IDLE, f"fewer than {LEAST_OBSERVATIONS} observations of a latency in the window"
    return contexts[0].reason(_INPUTS[limit])
