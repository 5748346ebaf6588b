"""Generated series with the awkward properties of real ones: resets, jitter, gaps, late starts, early ends, odd values."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator

from heptascope.model import Labels, labels
from support.prometheus import Samples

START = 1_700_000_000
SECONDS = 1200
ENGINES = [labels(engine="vllm", rank="0"), labels(engine="vllm", rank="1"), labels(engine="sglang", rank="0")]
GPUS = [labels(gpu=str(index), uuid=f"GPU-{index}{index}") for index in range(4)]
BOUNDS = ("0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "+Inf")

Points = list[tuple[float, float]]


def _times(rng: random.Random) -> Iterator[float]:
    """Yield times in whole milliseconds: about one a second, jittered or exact, with gaps, not always over the whole span."""
    first = rng.choice((0, 0, 0, 400))
    last = rng.choice((SECONDS, SECONDS, SECONDS, 700))
    step = rng.choice((1.0, 1.0, 5.0, 15.0))
    jitter = rng.choice((0.0, 0.0, 0.2, 0.6)) * step
    now = float(first)
    while now < last:
        yield round(START + now + rng.random() * jitter, 3)
        now += step
        if rng.random() < 0.01:
            now += rng.choice((7, 20, 45)) * step


def _points(rng: random.Random, value: Callable[[], float]) -> Points:
    return [(t, value()) for t in _times(rng)]


def _counter(rng: random.Random, scale: float, resets: float) -> Callable[[], float]:
    total = rng.choice((0.0, 0.0, scale * 1000))
    pace = rng.uniform(0.1, 1.0) * scale

    def value() -> float:
        nonlocal total
        if rng.random() < resets:
            total = rng.choice((0.0, rng.random() * scale))
        elif rng.random() < 0.8:
            total += rng.random() * pace
        return total

    return value


def _walk(rng: random.Random, low: float, high: float) -> Callable[[], float]:
    at = rng.uniform(low, high)

    def value() -> float:
        nonlocal at
        at = min(high, max(low, at + rng.gauss(0, (high - low) / 40)))
        return at

    return value


def _odd(rng: random.Random) -> Callable[[], float]:
    return lambda: rng.choice((math.inf, -math.inf, 0.0, -0.0, -1.5, 2.0, rng.gauss(0, 10), rng.gauss(0, 1e-12)))


def _histogram(rng: random.Random, pairs: Labels) -> dict[tuple[str, Labels], Points]:
    """Return the buckets, sum and count of one histogram; a restart now and then sets it back to zero."""
    counts, total = [0] * len(BOUNDS), 0.0
    times = list(_times(rng))
    series: dict[tuple[str, Labels], Points] = {}
    for t in times:
        if rng.random() < 0.004:
            counts, total = [0] * len(BOUNDS), 0.0
        for _ in range(rng.randrange(4)):
            seen = rng.expovariate(3.0)
            total += seen
            counts = [count + (seen <= float(bound)) for count, bound in zip(counts, BOUNDS, strict=True)]
        for bound, count in zip(BOUNDS, counts, strict=True):
            series.setdefault(("t_latency_seconds_bucket", tuple(sorted((*pairs, ("le", bound))))), []).append((t, float(count)))
        series.setdefault(("t_latency_seconds_sum", pairs), []).append((t, total))
        series.setdefault(("t_latency_seconds_count", pairs), []).append((t, float(counts[-1])))
    return series


def generated_samples(seed: int) -> Samples:
    """Return the series of about twenty minutes, the same ones for the same seed."""
    rng = random.Random(seed)  # noqa: S311 - test data, the same every time
    samples: dict[tuple[str, Labels], Points] = {}
    for pairs in ENGINES:
        samples["t_requests_total", pairs] = _points(rng, _counter(rng, 1.0, 0.01))
        samples["t_usage_ratio", pairs] = _points(rng, _walk(rng, 0.0, 1.0))
        samples["t_running", pairs] = _points(rng, lambda: float(rng.randrange(9)))
        samples |= _histogram(rng, pairs)
        for kind in ("prompt", "generation"):
            samples["t_tokens_total", labels(kind=kind, **dict(pairs))] = _points(rng, _counter(rng, 1000.0, 0.004))
    for number, pairs in enumerate(GPUS):
        samples["t_busy_seconds_total", pairs] = _points(rng, _counter(rng, 1.0, 0.0))
        samples["t_power_watts", pairs] = _points(rng, _walk(rng, 80.0, 700.0))
        samples["t_odd", pairs] = _points(rng, _odd(rng))
        serves = labels(**dict(ENGINES[min(number, 2)]), **dict(pairs))
        samples["t_engine_gpu_info", serves] = _points(rng, lambda: 1.0)
    samples["t_lone", ()] = _points(rng, _walk(rng, -1.0, 1.0))
    return samples


def instants(samples: Samples, seed: int, count: int) -> list[float]:
    """Return times to ask about: anywhere, on sample times, and where a sample lies exactly on the edge of a range."""
    rng = random.Random(seed)  # noqa: S311 - test data, the same every time
    all_times = sorted({t for points in samples.values() for t, _ in points})
    lasts = [points[-1][0] for points in samples.values()]
    chosen = [round(START + rng.uniform(-5, SECONDS + 320), 3) for _ in range(count // 4)]
    chosen += [rng.choice(all_times) for _ in range(count // 4)]
    chosen += [round(rng.choice(all_times) + rng.choice((10, 30, 60, 90)), 3) for _ in range(count // 4)]
    chosen += [round(rng.choice(lasts) + rng.choice((300, 300.001)), 3) for _ in range(count - 3 * (count // 4))]
    return sorted(chosen)
