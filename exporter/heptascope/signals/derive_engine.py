"""Derived engine signals: work, hit ratios, speculation and caps; steps and pressure are in modules of their own."""

from __future__ import annotations

from heptascope.model import Labels, Quality, Reason
from heptascope.signals.derive_engine_pressure import derive_pressure
from heptascope.signals.derive_engine_steps import derive_steps
from heptascope.signals.engine_context import PREFIX, Collector, Context, gpu_means
from heptascope.signals.rates import Growth, growth, points, share_positive
from heptascope.signals.window import Window

FLAT_POINTS = 4
"""Fewest polls that can show a number standing still."""

LATENCIES = ("time_to_first_token", "inter_token_latency", "e2e_latency")
"""The latencies that can have an objective."""


def entities(window: Window) -> list[Labels]:
    """Return the label pairs of every engine rank that reports requests or identity."""
    found = {s.pairs for s in window.series(PREFIX + "requests_running") if s.live}
    for series in window.series(PREFIX + "info"):
        if series.live:
            found.add(tuple(p for p in series.pairs if p[0] in ("engine", "rank")))
    return sorted(found)


def derive_engine(c: Context, out: Collector) -> bool | None:
    """Derive every engine signal that the window allows; return whether the engine had work, None if nothing tells."""
    busy = share_positive(c.window.get(PREFIX + "requests_running", c.pairs), c.now, c.span)
    work = _has_work(c, out)
    gpu_means(c, out)
    gap = derive_steps(c, busy, out)
    derive_pressure(c, gap, work if busy is None else busy.likely > 0, out)
    _cache(c, out)
    _speculation(c, out)
    _limits(c, out)
    for latency in LATENCIES:
        pairs = tuple(sorted((*c.pairs, ("latency", latency))))
        if latency in c.slo_seconds:
            out.add(PREFIX + "slo_seconds", pairs, c.slo_seconds[latency], Quality.EXACT)
        else:
            out.lack(PREFIX + "slo_seconds", pairs, Reason.NOT_CONFIGURED, f"no objective is set; set slo.{latency}")
    return work


def _has_work(c: Context, out: Collector) -> bool | None:
    """Derive whether there was work; return it, None if nothing tells."""
    given = c.given("has_work")
    if given is not None:
        return given > 0
    levels = [points(c.window.get(PREFIX + name, c.pairs), c.now, c.span)[1] for name in ("requests_running", "requests_waiting")]
    grown = [c.growth(name) for name in ("generation_tokens_total", "prompt_tokens_total")]
    finished = [growth(s, c.now, c.span) for s in c.window.series(PREFIX + "requests_finished_total") if set(c.pairs) <= set(s.pairs)]
    if not any(levels) and not any(grown) and not any(finished):
        out.lack(PREFIX + "has_work", c.pairs, *c.reason(PREFIX + "requests_running"))
        return None
    work = any(v > 0 for level in levels for v in level) or any(g is not None and g.amount > 0 for g in (*grown, *finished))
    out.add(PREFIX + "has_work", c.pairs, float(work), Quality.EXACT)
    return work


def _quotient(over: Growth | None, under: Growth | None) -> float | None:
    return over.amount / under.amount if over is not None and under is not None and under.amount > 0 else None


def _cache(c: Context, out: Collector) -> None:
    queried, hit = c.growth("prefix_cache_queried_tokens_total"), c.growth("prefix_cache_hit_tokens_total")
    ratio = _quotient(hit, queried)
    out.add(PREFIX + "prefix_cache_hit_ratio", c.pairs, ratio)
    if ratio is None:
        reason = (
            (Reason.IDLE, "no look-ups in the window") if queried is not None else c.reason(PREFIX + "prefix_cache_queried_tokens_total")
        )
        out.lack(PREFIX + "prefix_cache_hit_ratio", c.pairs, *reason)
    prompt, cached = c.growth("prompt_tokens_total"), c.growth("prompt_cached_tokens_total") or hit
    if prompt is not None:
        computed = prompt.amount - (cached.amount if cached is not None else 0.0)
        out.add(PREFIX + "prompt_computed_tokens_per_second", c.pairs, max(computed, 0.0) / prompt.seconds)
    usage, capacity, running = c.mean("kv_cache_usage_ratio"), c.mean("kv_cache_capacity_tokens"), c.mean("requests_running")
    if usage is not None and capacity and running:
        out.add(PREFIX + "kv_cache_tokens_per_sequence", c.pairs, usage * capacity / running)
    _frontend(c, out)


def _frontend(c: Context, out: Collector) -> None:
    """Derive the part of finished requests' time that lies in none of the engine's own phases."""
    total = growth(c.window.get(PREFIX + "e2e_latency_seconds_sum", c.pairs), c.now, c.span)
    phases = [growth(c.window.get(f"{PREFIX}{p}_time_seconds_sum", c.pairs), c.now, c.span) for p in ("queue", "prefill", "decode")]
    if total is not None and total.amount > 0 and all(p is not None for p in phases):
        inside = sum(p.amount for p in phases if p is not None)
        out.add(PREFIX + "frontend_share_ratio", c.pairs, min(max(1 - inside / total.amount, 0.0), 1.0))


def _speculation(c: Context, out: Collector) -> None:
    drafted, accepted, drafts = c.growth("spec_draft_tokens_total"), c.growth("spec_accepted_tokens_total"), c.growth("spec_drafts_total")
    ratio = _quotient(accepted, drafted)
    out.add(PREFIX + "spec_acceptance_ratio", c.pairs, ratio)
    per_draft = _quotient(accepted, drafts)
    out.add(PREFIX + "spec_accepted_length_tokens", c.pairs, 1 + per_draft if per_draft is not None else None)
    if ratio is None:
        reason = (Reason.IDLE, "no drafts in the window") if drafted is not None else c.reason(PREFIX + "spec_draft_tokens_total")
        for name in ("spec_acceptance_ratio", "spec_accepted_length_tokens"):
            out.lack(PREFIX + name, c.pairs, *reason)


def _limits(c: Context, out: Collector) -> None:
    """Infer a cap on running requests: their number stands at its maximum through the window while others wait."""
    running = [v for v in points(c.window.get(PREFIX + "requests_running", c.pairs), c.now, c.span)[1] if v == v]
    waiting = [v for v in points(c.window.get(PREFIX + "requests_waiting", c.pairs), c.now, c.span)[1] if v == v]
    name = PREFIX + "running_limit_observed"
    if not running or not waiting:
        out.lack(name, c.pairs, *c.reason(PREFIX + "requests_running"))
        return
    top = max(running)
    flat = sum(v == top for v in running) * 2 >= len(running) and min(running) >= min(0.9 * top, top - 1)
    if len(running) >= FLAT_POINTS and top >= 1 and flat and min(waiting) > 0:
        out.add(name, c.pairs, top)
    else:
        out.lack(name, c.pairs, Reason.IDLE, "the number of running requests does not stand still while others wait")
