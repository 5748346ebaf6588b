"""Derived engine signals: steps, host gap, hit ratios, speculation, and the pressure on each resource."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

from heptascope.model import Labels, Missing, Quality, Reason
from heptascope.signals.ceilings import ACHIEVABLE
from heptascope.signals.derive_gpu import Card
from heptascope.signals.rates import Growth, Share, growth, mean, points, share_positive
from heptascope.signals.window import Window

BUSY_SHARE_MINIMUM = 0.05
"""Below this share of busy time the window says nothing about a step (own choice: half a second in ten)."""

PEER_TRAFFIC_BYTES_PER_SECOND = 50e6
"""NVLink traffic per GPU above which collectives run, whose spinning kernels hide host gaps (own choice; two idle H200s show none, a
two-GPU decode of an 8B model 10 GiB/s)."""

TELLING_GAP = 0.3
"""Spinning kernels can only hide gaps, so a gap this large is a lower bound worth stating (0.19 at most in two-GPU recordings)."""

FLAT_POINTS = 4
"""Fewest polls that can show a number standing still."""

LATENCIES = ("time_to_first_token", "inter_token_latency", "e2e_latency")
"""The latencies that can have an objective."""

_PREFIX = "heptascope_engine_"
_RARELY = (Reason.IDLE, "no requests run, or too rarely for our polls to tell how long")
_WHICH_GPU = "it cannot be told which GPU serves this rank; set engines[].gpus"


class Collector(Protocol):
    """Where derived values and reasons go."""

    def add(self, name: str, pairs: Labels, value: float | None, quality: Quality = ...) -> None:
        """Add one value; None adds nothing."""
        ...

    def lack(self, name: str, pairs: Labels, reason: Reason, detail: str = ...) -> None:
        """Say why a value is missing."""
        ...

    def reason(self, name: str, pairs: Labels) -> tuple[Reason, str] | None:
        """Return why `name` is missing, if that has been said in this pass."""
        ...


@dataclass(frozen=True, slots=True)
class Context:
    """One engine rank at one moment: its window, its GPUs, and why things are missing elsewhere."""

    window: Window
    now: float
    span: float
    pairs: Labels
    cards: Sequence[Card]
    ambiguous: bool
    reasons: Sequence[Missing]
    slo_seconds: Mapping[str, float]
    supplied: AbstractSet[tuple[str, Labels]] = frozenset()

    def given(self, name: str) -> float | None:
        """Return the mean of a derivable gauge that a source supplies, which goes before what would be derived."""
        return self.mean(name) if (_PREFIX + name, self.pairs) in self.supplied else None

    def growth(self, name: str) -> Growth | None:
        """Return the growth of one of the engine's counters over the window."""
        return growth(self.window.get(_PREFIX + name, self.pairs), self.now, self.span)

    def mean(self, name: str) -> float | None:
        """Return the mean of one of the engine's gauges over the window."""
        return mean(self.window.get(_PREFIX + name, self.pairs), self.now, self.span)

    def reason(self, *signals: str) -> tuple[Reason, str]:
        """Return why the first missing one of `signals` is missing."""
        for signal in signals:
            for found in self.reasons:
                if found.signal == signal and set(found.labels) <= {*self.pairs, *(p for c in self.cards for p in c.pairs)}:
                    return found.reason, found.detail
        return Reason.NO_SOURCE, f"nothing supplies {signals[0]}" if signals else ""


def entities(window: Window) -> list[Labels]:
    """Return the label pairs of every engine rank that reports requests or identity."""
    found = {s.pairs for s in window.series(_PREFIX + "requests_running") if s.live}
    for series in window.series(_PREFIX + "info"):
        if series.live:
            found.add(tuple(p for p in series.pairs if p[0] in ("engine", "rank")))
    return sorted(found)


class BusyTime:
    """`heptascope_engine_busy_seconds_total`: our own counter, which never goes backwards."""

    def __init__(self) -> None:
        self._state: dict[Labels, tuple[float, float, float]] = {}

    def advance(self, window: Window, pairs: Labels, now: float, out: Collector) -> None:
        """Add the busy time between the polls that came since the last pass."""
        series = window.get(_PREFIX + "requests_running", pairs)
        if series is None or not series.live:
            return
        last_t, last_v, total = self._state.get(pairs, (series.t[0], series.v[0], 0.0))
        times, values = points(series, now, now - last_t)
        for t, v in zip(times, values, strict=True):
            if t > last_t:
                if v == v and last_v == last_v:
                    total += (t - last_t) * ((v > 0) + (last_v > 0)) / 2
                last_t, last_v = t, v
        self._state[pairs] = (last_t, last_v, total)
        out.add(_PREFIX + "busy_seconds_total", pairs, total)


def derive_engine(c: Context, out: Collector) -> bool | None:
    """Derive every engine signal that the window allows; return whether the engine had work, None if nothing tells."""
    busy = share_positive(c.window.get(_PREFIX + "requests_running", c.pairs), c.now, c.span)
    work = _has_work(c, out)
    _gpu_means(c, out)
    gap = _steps(c, busy, out)
    _pressure(c, gap, work if busy is None else busy.likely > 0, out)
    _cache(c, out)
    _speculation(c, out)
    _limits(c, out)
    for latency in LATENCIES:
        pairs = tuple(sorted((*c.pairs, ("latency", latency))))
        if latency in c.slo_seconds:
            out.add(_PREFIX + "slo_seconds", pairs, c.slo_seconds[latency], Quality.EXACT)
        else:
            out.lack(_PREFIX + "slo_seconds", pairs, Reason.NOT_CONFIGURED, f"no objective is set; set slo.{latency}")
    return work


def _has_work(c: Context, out: Collector) -> bool | None:
    """Derive whether there was work; return it, None if nothing tells."""
    given = c.given("has_work")
    if given is not None:
        return given > 0
    levels = [points(c.window.get(_PREFIX + name, c.pairs), c.now, c.span)[1] for name in ("requests_running", "requests_waiting")]
    grown = [c.growth(name) for name in ("generation_tokens_total", "prompt_tokens_total")]
    finished = [growth(s, c.now, c.span) for s in c.window.series(_PREFIX + "requests_finished_total") if set(c.pairs) <= set(s.pairs)]
    if not any(levels) and not any(grown) and not any(finished):
        out.lack(_PREFIX + "has_work", c.pairs, *c.reason(_PREFIX + "requests_running"))
        return None
    work = any(v > 0 for level in levels for v in level) or any(g is not None and g.amount > 0 for g in (*grown, *finished))
    out.add(_PREFIX + "has_work", c.pairs, float(work), Quality.EXACT)
    return work


_MEANS = {
    "gpu_active_ratio": "graphics_engine_active",
    "gpu_sm_active_ratio": "sm_active",
    "gpu_dram_active_ratio": "dram_active",
    "gpu_tensor_active_ratio": "tensor_active",
}


def _average(c: Context, name: str) -> float | None:
    """Return the mean of one activity over the engine's GPUs; None unless it is known of each."""
    given = c.given(name)
    values = [card.activity[_MEANS[name]] for card in c.cards if _MEANS[name] in card.activity]
    return given if given is not None else sum(values) / len(values) if values and len(values) == len(c.cards) else None


def _gpu_means(c: Context, out: Collector) -> None:
    out.add(_PREFIX + "gpus", c.pairs, float(len(c.cards)) if c.cards else None)
    for name, what in _MEANS.items():
        value = _average(c, name)
        out.add(_PREFIX + name, c.pairs, value)
        if value is None:
            _lack_gpu(c, name, f"heptascope_gpu_{what}_ratio", out)


def _lack_gpu(c: Context, name: str, input_signal: str, out: Collector) -> None:
    if c.ambiguous:
        out.lack(_PREFIX + name, c.pairs, Reason.AMBIGUOUS, _WHICH_GPU)
    else:
        out.lack(_PREFIX + name, c.pairs, *c.reason(input_signal))


def _peer_traffic(c: Context) -> bool:
    rates = [card.rates.get("nvlink_receive", 0.0) + card.rates.get("nvlink_transmit", 0.0) for card in c.cards]
    return len(c.cards) > 1 and (
        max(rates, default=0.0) > PEER_TRAFFIC_BYTES_PER_SECOND or not any("nvlink_receive" in k.rates for k in c.cards)
    )


def _steps(c: Context, busy: Share | None, out: Collector) -> float | None:
    """Derive step time and host gap; return the gap."""
    step = _step_seconds(c, busy, out)
    gap = c.given("step_host_gap_ratio")
    if gap is None:
        gap = _host_gap(c, busy, out)
    out.add(_PREFIX + "step_host_gap_ratio", c.pairs, gap)
    out.add(_PREFIX + "step_host_seconds", c.pairs, gap * step if gap is not None and step is not None else None, Quality.APPROXIMATE)
    return gap


def _step_seconds(c: Context, busy: Share | None, out: Collector) -> float | None:
    name = "step_seconds"
    given = c.given(name)
    if given is not None:
        return given
    if busy is None or busy.likely < BUSY_SHARE_MINIMUM:
        out.lack(_PREFIX + name, c.pairs, *(c.reason(_PREFIX + "requests_running") if busy is None else _RARELY))
        return None
    steps = c.growth("steps_total")
    if steps is None or steps.amount < 1:
        out.lack(_PREFIX + name, c.pairs, *c.reason(_PREFIX + "steps_total"))
        return None
    step = busy.likely * steps.seconds / steps.amount
    out.add(_PREFIX + name, c.pairs, step, Quality.APPROXIMATE)
    return step


def _host_gap(c: Context, busy: Share | None, out: Collector) -> float | None:
    """Return the share of busy time without a kernel; busy is the least that our polls allow, so that the gap is never overstated."""

    def lack(reason: Reason, detail: str) -> None:
        for name in ("step_host_gap_ratio", "step_host_seconds"):
            out.lack(_PREFIX + name, c.pairs, reason, detail)

    active = _average(c, "gpu_active_ratio")
    if busy is None:
        lack(*c.reason(_PREFIX + "requests_running"))
    elif busy.least < BUSY_SHARE_MINIMUM:
        lack(*_RARELY)
    elif active is None and c.ambiguous:
        lack(Reason.AMBIGUOUS, _WHICH_GPU)
    elif active is None:
        lack(*c.reason("heptascope_gpu_graphics_engine_active_ratio"))
    else:
        gap = min(max(1 - active / busy.least, 0.0), 1.0)
        if gap >= TELLING_GAP or not _peer_traffic(c):
            return gap
        lack(Reason.AMBIGUOUS, "GPUs of this rank talk to each other; a spinning collective kernel counts as active")
    return None


_INPUTS = {
    "dram": "heptascope_gpu_dram_active_ratio",
    "tensor": "heptascope_gpu_tensor_active_ratio",
    "pcie": "heptascope_gpu_pcie_receive_bytes_total",
    "link": "heptascope_gpu_nvlink_receive_bytes_total",
    "host": _PREFIX + "step_host_gap_ratio",
}
"""What each resource's pressure is made from."""


def _pressure(c: Context, gap: float | None, work: bool | None, out: Collector) -> None:
    """Put each resource on one scale: 1 is all that can be had from it."""
    name = _PREFIX + "resource_pressure_ratio"
    found = _pressures(c, gap) if work else {}
    for resource, signal in _INPUTS.items():
        pairs = tuple(sorted((*c.pairs, ("resource", resource))))
        if found.get(resource) is not None:
            out.add(name, pairs, found[resource])
        elif work is False:
            out.lack(name, pairs, Reason.IDLE, "no requests are running")
        elif resource == "link" and len(c.cards) == 1:
            out.lack(name, pairs, Reason.NOT_CONFIGURED, "one GPU serves this rank")
        elif c.ambiguous:
            out.lack(name, pairs, Reason.AMBIGUOUS, _WHICH_GPU)
        else:
            out.lack(name, pairs, *out.reason(signal, c.pairs) or c.reason(signal))


def _pressures(c: Context, gap: float | None) -> dict[str, float | None]:
    dram, tensor = _average(c, "gpu_dram_active_ratio"), _average(c, "gpu_tensor_active_ratio")
    pcie = [_share(card, "pcie", card.pcie_usable) for card in c.cards]
    link = [_share(card, "nvlink", card.nvlink_bandwidth and card.nvlink_bandwidth * ACHIEVABLE.nvlink) for card in c.cards]
    return {
        "dram": None if dram is None else dram / ACHIEVABLE.dram,
        "tensor": None if tensor is None else tensor / ACHIEVABLE.tensor,
        "pcie": max((share for share in pcie if share is not None), default=None),
        "link": max((share for share in link if share is not None), default=None),
        "host": gap,
    }


def _share(card: Card, link: str, usable: float | None) -> float | None:
    """Return the busier direction of a link as a share of what it can carry."""
    rates = [card.rates.get(f"{link}_{way}") for way in ("receive", "transmit")]
    return max(rate for rate in rates if rate is not None) / usable if usable and None not in rates else None


def _quotient(over: Growth | None, under: Growth | None) -> float | None:
    return over.amount / under.amount if over is not None and under is not None and under.amount > 0 else None


def _cache(c: Context, out: Collector) -> None:
    queried, hit = c.growth("prefix_cache_queried_tokens_total"), c.growth("prefix_cache_hit_tokens_total")
    ratio = _quotient(hit, queried)
    out.add(_PREFIX + "prefix_cache_hit_ratio", c.pairs, ratio)
    if ratio is None:
        reason = (
            (Reason.IDLE, "no look-ups in the window") if queried is not None else c.reason(_PREFIX + "prefix_cache_queried_tokens_total")
        )
        out.lack(_PREFIX + "prefix_cache_hit_ratio", c.pairs, *reason)
    prompt, cached = c.growth("prompt_tokens_total"), c.growth("prompt_cached_tokens_total") or hit
    if prompt is not None:
        computed = prompt.amount - (cached.amount if cached is not None else 0.0)
        out.add(_PREFIX + "prompt_computed_tokens_per_second", c.pairs, max(computed, 0.0) / prompt.seconds)
    usage, capacity, running = c.mean("kv_cache_usage_ratio"), c.mean("kv_cache_capacity_tokens"), c.mean("requests_running")
    if usage is not None and capacity and running:
        out.add(_PREFIX + "kv_cache_tokens_per_sequence", c.pairs, usage * capacity / running)
    _frontend(c, out)


def _frontend(c: Context, out: Collector) -> None:
    """Derive the part of finished requests' time that lies in none of the engine's own phases."""
    total = growth(c.window.get(_PREFIX + "e2e_latency_seconds_sum", c.pairs), c.now, c.span)
    phases = [growth(c.window.get(f"{_PREFIX}{p}_time_seconds_sum", c.pairs), c.now, c.span) for p in ("queue", "prefill", "decode")]
    if total is not None and total.amount > 0 and all(p is not None for p in phases):
        inside = sum(p.amount for p in phases if p is not None)
        out.add(_PREFIX + "frontend_share_ratio", c.pairs, min(max(1 - inside / total.amount, 0.0), 1.0))


def _speculation(c: Context, out: Collector) -> None:
    drafted, accepted, drafts = c.growth("spec_draft_tokens_total"), c.growth("spec_accepted_tokens_total"), c.growth("spec_drafts_total")
    ratio = _quotient(accepted, drafted)
    out.add(_PREFIX + "spec_acceptance_ratio", c.pairs, ratio)
    per_draft = _quotient(accepted, drafts)
    out.add(_PREFIX + "spec_accepted_length_tokens", c.pairs, 1 + per_draft if per_draft is not None else None)
    if ratio is None:
        reason = (Reason.IDLE, "no drafts in the window") if drafted is not None else c.reason(_PREFIX + "spec_draft_tokens_total")
        for name in ("spec_acceptance_ratio", "spec_accepted_length_tokens"):
            out.lack(_PREFIX + name, c.pairs, *reason)


def _limits(c: Context, out: Collector) -> None:
    """Infer a cap on running requests: their number stands at its maximum through the window while others wait."""
    running = [v for v in points(c.window.get(_PREFIX + "requests_running", c.pairs), c.now, c.span)[1] if v == v]
    waiting = [v for v in points(c.window.get(_PREFIX + "requests_waiting", c.pairs), c.now, c.span)[1] if v == v]
    name = _PREFIX + "running_limit_observed"
    if not running or not waiting:
        out.lack(name, c.pairs, *c.reason(_PREFIX + "requests_running"))
        return
    top = max(running)
    flat = sum(v == top for v in running) * 2 >= len(running) and min(running) >= min(0.9 * top, top - 1)
    if len(running) >= FLAT_POINTS and top >= 1 and flat and min(waiting) > 0:
        out.add(name, c.pairs, top)
    else:
        out.lack(name, c.pairs, Reason.IDLE, "the number of running requests does not stand still while others wait")
