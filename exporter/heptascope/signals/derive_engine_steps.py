"""Engine steps: time with requests, the mean step, and the part of it in which the GPUs waited for the host."""

from __future__ import annotations

from heptascope.model import Labels, Quality, Reason
from heptascope.signals.engine_context import PREFIX, WHICH_GPU, Collector, Context, average
from heptascope.signals.rates import Share, points
from heptascope.signals.window import Window

BUSY_SHARE_MINIMUM = 0.05
"""Below this share of busy time the window says nothing about a step (own choice: half a second in ten)."""

PEER_TRAFFIC_BYTES_PER_SECOND = 50e6
"""NVLink traffic per GPU above which collectives run, whose spinning kernels hide host gaps (own choice; two idle H200s show none, a
two-GPU decode of an 8B model 10 GiB/s)."""

TELLING_GAP = 0.3
"""Spinning kernels can only hide gaps, so a gap this large is a lower bound worth stating (0.19 at most in two-GPU recordings)."""

LONGEST_GAP_SECONDS = 10.0
"""The longest gap between two pages that is taken for busy by its two ends: a page that times out once leaves seven seconds."""

SAME_PAGE_SECONDS = 0.1
"""Series of one page have the same time."""

_RARELY = (Reason.IDLE, "no requests run, or too rarely for our polls to tell how long")


class BusyTime:
    """`heptascope_engine_busy_seconds_total`: our own counter, which never goes backwards.

    A short gap, in which the page could not be read, counts by its two ends if the engine made steps in it: these are counted, too.
    """

    def __init__(self) -> None:
        self._state: dict[Labels, tuple[float, float, float]] = {}

    def advance(self, window: Window, pairs: Labels, now: float, out: Collector) -> None:
        """Add the busy time between the polls that came since the last pass."""
        series = window.get(PREFIX + "requests_running", pairs)
        if series is None or not series.live:
            return
        last_t, last_v, total = self._state.get(pairs, (series.t[0], series.v[0], 0.0))
        gap = False
        for t, v in zip(*points(series, now, now - last_t), strict=True):
            if v != v:
                gap = True
            elif t > last_t:
                if not gap or _went_on(window, pairs, last_t, t):
                    total += (t - last_t) * ((v > 0) + (last_v > 0)) / 2
                last_t, last_v, gap = t, v, False
        self._state[pairs] = (last_t, last_v, total)
        out.add(PREFIX + "busy_seconds_total", pairs, total)


def _went_on(window: Window, pairs: Labels, before: float, after: float) -> bool:
    """Return whether an engine worked on over a gap: not for long, and its count of steps rose, as that of a new process would not."""
    steps = window.get(PREFIX + "steps_total", pairs)
    if steps is None or after - before > LONGEST_GAP_SECONDS:
        return False
    counts = [steps.at(t, SAME_PAGE_SECONDS) for t in (before, after)]
    return counts[0] is not None and counts[1] is not None and counts[0] < counts[1]


def _peer_traffic(c: Context) -> bool:
    rates = [card.rates.get("nvlink_receive", 0.0) + card.rates.get("nvlink_transmit", 0.0) for card in c.cards]
    return len(c.cards) > 1 and (
        max(rates, default=0.0) > PEER_TRAFFIC_BYTES_PER_SECOND or not any("nvlink_receive" in k.rates for k in c.cards)
    )


def derive_steps(c: Context, busy: Share | None, out: Collector) -> float | None:
    """Derive step time and host gap; return the gap where it can be compared with what the GPUs' resources do."""
    step = _step_seconds(c, busy, out)
    gap = c.given("step_host_gap_ratio")
    if gap is None:
        gap = _host_gap(c, busy, out)
    out.add(PREFIX + "step_host_gap_ratio", c.pairs, gap)
    out.add(PREFIX + "step_host_seconds", c.pairs, gap * step if gap is not None and step is not None else None, Quality.APPROXIMATE)
    return gap if average(c, "gpu_active_ratio") is not None or c.given("step_host_gap_ratio") is not None else None


def _step_seconds(c: Context, busy: Share | None, out: Collector) -> float | None:
    name = "step_seconds"
    given = c.given(name)
    if given is not None:
        return given
    if busy is None or busy.likely < BUSY_SHARE_MINIMUM:
        out.lack(PREFIX + name, c.pairs, *(c.reason(PREFIX + "requests_running") if busy is None else _RARELY))
        return None
    steps = c.growth("steps_total")
    if steps is None or steps.amount < 1:
        out.lack(PREFIX + name, c.pairs, *c.reason(PREFIX + "steps_total"))
        return None
    step = busy.likely * steps.seconds / steps.amount
    out.add(PREFIX + name, c.pairs, step, Quality.APPROXIMATE)
    return step


def _utilization(c: Context) -> float | None:
    """Return NVML's utilization, mean of the engine's GPUs; None unless it is known of each.

    It stands for kernel time where nothing profiles: under engines it reads within 0.02 of graphics-engine-active (all H200 recordings).
    It counts copies as well, so that a gap worked out from it is rather too small.
    """
    values = [card.utilization for card in c.cards if card.utilization is not None]
    return sum(values) / len(values) if values and len(values) == len(c.cards) else None


def _host_gap(c: Context, busy: Share | None, out: Collector) -> float | None:
    """Return the share of busy time without a kernel; busy is the least that our polls allow, so that the gap is never overstated."""

    def lack(reason: Reason, detail: str) -> None:
        for name in ("step_host_gap_ratio", "step_host_seconds"):
            out.lack(PREFIX + name, c.pairs, reason, detail)

    active = average(c, "gpu_active_ratio")
    active = _utilization(c) if active is None else active
    if busy is None:
        lack(*c.reason(PREFIX + "requests_running"))
    elif busy.least < BUSY_SHARE_MINIMUM:
        lack(*_RARELY)
    elif active is None and c.ambiguous:
        lack(Reason.AMBIGUOUS, WHICH_GPU)
    elif active is None:
        lack(*c.reason("heptascope_gpu_graphics_engine_active_ratio"))
    else:
        gap = min(max(1 - active / busy.least, 0.0), 1.0)
        if gap >= TELLING_GAP or not _peer_traffic(c):
            return gap
        lack(Reason.AMBIGUOUS, "GPUs of this rank talk to each other; a spinning collective kernel counts as active")
    return None
