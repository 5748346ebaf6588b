"""Requests through a simple engine, so that every count of a scene agrees with every other: arrivals, queue, first tokens, ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

from heptascope.model import Labels, labels
from support.scenes import ENGINE, GPU, Scene

STEP_SECONDS = 0.008
PREFILL_TOKENS_PER_SECOND = 39_000.0
KV_TOKENS = 487_232.0


@dataclass
class Request:
    """One request: when it comes, how long its prompt and its answer are in tokens, when its client leaves; then what became of it."""

    arrives: float
    prompt: float = 250.0
    output: float = 512.0
    leaves: float = float("inf")
    starts: float = float("inf")
    first: float = float("inf")
    ends: float = float("inf")

    @property
    def gone(self) -> float:
        """When it left the engine, finished or not."""
        return min(self.ends, self.leaves)


def every(seconds: float, begin: float, end: float, **shape: float) -> list[Request]:
    """Return requests that come at even times."""
    count = int((end - begin) / seconds)
    return [Request(begin + i * seconds, **shape) for i in range(count)]


def serve(requests: Iterable[Request], cap: int = 256) -> list[Request]:
    """Let an engine serve them: `cap` at once, prompts one after the other, a token each 8 ms."""
    done: list[Request] = []
    prefill_free = 0.0
    for request in sorted(requests, key=lambda r: r.arrives):
        ends = sorted(r.gone for r in done if r.gone > request.arrives)
        free = request.arrives if len(ends) < cap else ends[len(ends) - cap]
        request.starts = max(free, prefill_free)
        request.first = prefill_free = request.starts + request.prompt / PREFILL_TOKENS_PER_SECOND
        request.ends = request.first + request.output * STEP_SECONDS
        done.append(request)
    return done


def load(scene: Scene, requests: list[Request], rank: Labels = ENGINE, gpu: Labels = GPU) -> Scene:
    """Let a scene's engine serve these requests, and its GPU work only while it does; return the scene."""
    polls = [float(second) for second in range(scene.seconds + 1)]

    def level(inside: Callable[[Request, float], bool]) -> Callable[[int], float]:
        counts = [float(sum(inside(r, t) for r in requests)) for t in polls]
        return lambda second: counts[second]

    def rate(total: Callable[[float], float]) -> Callable[[int], float]:
        totals = [total(-1.0), *(total(t) for t in polls)]
        grown = [b - a for a, b in pairwise(totals)]
        return lambda second: grown[second]

    def came(moment: Callable[[Request], float]) -> Callable[[int], float]:
        return rate(lambda t: float(sum(moment(r) <= t for r in requests)))

    def ended(r: Request) -> float:
        return r.ends if r.ends <= r.leaves else float("inf")

    def tokens(r: Request, t: float) -> float:
        return min(max((min(t, r.leaves) - r.first) / STEP_SECONDS, 0.0), r.output)

    busy = _busy(requests, len(polls))
    running = level(lambda r, t: r.starts <= t < r.gone)
    scene.set(rank, engine_requests_running=running, engine_requests_waiting=level(lambda r, t: r.arrives <= t < min(r.starts, r.leaves)))
    scene.set(rank, engine_kv_cache_usage_ratio=lambda s: min(running(s) * 500.0 / KV_TOKENS, 1.0))
    prompts = rate(lambda t: sum(r.prompt for r in requests if r.first <= t))
    generated = rate(lambda t: sum(tokens(r, t) for r in requests))
    scene.set(rank, engine_prompt_tokens_total=prompts, engine_prefix_cache_queried_tokens_total=prompts)
    scene.set(rank, engine_prefix_cache_hit_tokens_total=0.0, engine_prompt_cached_tokens_total=0.0)
    scene.set(rank, engine_generation_tokens_total=generated)
    scene.set(rank, engine_steps_total=lambda s: busy[s] / STEP_SECONDS, engine_step_tokens_total=lambda s: prompts(s) + generated(s))
    scene.set(labels(reason="length", **dict(rank)), engine_requests_finished_total=came(ended))
    scene.set(labels(status="2xx", **dict(rank)), engine_http_requests_total=came(lambda r: r.gone))
    scene.seen(rank, came(lambda r: r.first), engine_time_to_first_token_seconds=0.04)
    scene.seen(rank, came(ended), engine_e2e_latency_seconds=4.1, engine_queue_time_seconds=0.01, engine_prefill_time_seconds=0.03)
    scene.seen(rank, came(ended), engine_decode_time_seconds=4.0, engine_prompt_length_tokens=250)
    scene.seen(rank, generated, engine_inter_token_latency_seconds=STEP_SECONDS)
    for what in ("graphics_engine_active", "sm_active", "sm_occupancy", "tensor_active", "dram_active"):
        full = scene.series[f"gpu_{what}_ratio", gpu]
        scene.set(gpu, **{f"gpu_{what}_ratio": _times(full, busy)})
    core = labels(engine=dict(rank)["engine"], role="engine_core", process="engine_core")
    scene.set(core, host_process_cpu_seconds_total=lambda s: 0.85 * busy[s])
    return scene.set(gpu, gpu_power_watts=lambda s: 130.0 + 470.0 * busy[s])


def _times(full: object, busy: list[float]) -> Callable[[int], float]:
    assert isinstance(full, float)
    return lambda second: full * busy[second]


def _busy(requests: list[Request], polls: int) -> list[float]:
    """Return, for the second before each poll, the share in which a request ran."""
    shares = []
    for second in range(polls):
        moments = [second - 1 + (i + 0.5) / 20 for i in range(20)]
        shares.append(sum(any(r.starts <= m < r.gone for r in requests) for m in moments) / len(moments))
    return shares
