"""Measure the evaluator: 72 rules in the catalogue's manner over 400 series with ten minutes of history at 1 Hz.

Run with `python tests/benchmarks/bench_promql.py [PASSES]`; prints milliseconds of processor time per pass, in which all
rules share one cache, as the daemon does it once a second. Exits 1 above the limit.
"""

from __future__ import annotations

import random
import statistics
import sys
import time

from heptascope.model import Labels, labels
from heptascope.rules import promql
from heptascope.signals.window import Window

LIMIT_MS = 10.0
GPUS, RANKS, SECONDS = 8, 2, 600
START = 1_700_000_000.0
GPU_GAUGES = [f"gpu_{i}_ratio" for i in range(20)]
GPU_COUNTERS = [f"gpu_{i}_seconds_total" for i in range(8)]
ENGINE_GAUGES = [f"engine_{i}_ratio" for i in range(30)]
ENGINE_COUNTERS = [f"engine_{i}_total" for i in range(20)]
HISTOGRAMS = [f"engine_{i}_seconds_bucket" for i in range(3)]
BOUNDS = ("0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "5.0", "10.0", "30.0", "+Inf")

TEMPLATES = (
    "rate({ec}[10s]) > 0.05 and on (engine, rank) avg_over_time({eg}[10s]) > 0.3",
    "avg_over_time({gg}[10s]) / 0.92 and on (gpu) rate({gc}[10s]) > 0.2 and on (gpu) avg_over_time({gg}[10s]) < 0.9 * {gg2}",
    "max by (engine, rank) (avg_over_time({eg}[10s])) > 0.3",
    "histogram_quantile(0.99, sum by (le, engine, rank) (rate({h}[10s]))) > 5 * histogram_quantile(0.5, "
    "sum by (le, engine, rank) (rate({h}[10s]))) and on (engine, rank) rate({ec}[10s]) > 0",
    "rate({ec}[10s]) / (rate({ec}[10s]) + rate({ec2}[10s])) < 0.5 unless on (engine, rank) {eg} < 0.1",
    "max by (gpu) (max_over_time({gg}[10s])) - on () group_left () min(avg_over_time({gg}[10s])) > 0.2",
    "({eg} > 0.5 or {eg2} > 0.9) and on (engine, rank) min_over_time({eg2}[10s]) == max_over_time({eg2}[10s])",
    "deriv({gg}[1m]) > 0.001 and on (gpu) stddev_over_time({gg}[1m]) < 0.5",
    "changes({gg}[1m]) > 100 or absent({gg}) or increase({gc}[1m]) > 50",
)
GUARD = "({expr}) and on ({by}) {has_work} >= 0"


def window_with_history(rng: random.Random) -> Window:
    """Return a window of 400 series, full to its retention."""
    window = Window()
    gpus = [labels(gpu=str(i), uuid=f"GPU-{i:08x}") for i in range(GPUS)]
    ranks = [labels(engine="vllm", rank=str(i)) for i in range(RANKS)]
    gauges = [(n, p) for n in GPU_GAUGES for p in gpus] + [(n, p) for n in ENGINE_GAUGES for p in ranks]
    counters = [(n, p) for n in GPU_COUNTERS for p in gpus] + [(n, p) for n in ENGINE_COUNTERS for p in ranks]
    counters += [(n, labels(le=le, **dict(p))) for n in HISTOGRAMS for p in ranks for le in BOUNDS]
    totals: dict[tuple[str, Labels], float] = dict.fromkeys(counters, 0.0)
    for second in range(SECONDS):
        t = START + second + rng.uniform(0, 0.01)
        for name, pairs in gauges:
            window.append(name, pairs, t, rng.random())
        for key in counters:
            totals[key] += rng.random() * (float(dict(key[1]).get("le", "1").replace("+Inf", "60")) + 1)
            window.append(*key, t, totals[key])
    return window


def rules(rng: random.Random) -> list[str]:
    """Return 72 expressions; as in a catalogue, popular signals stand in many of them."""
    made = []
    for template in TEMPLATES * 8:
        names = {"gg": GPU_GAUGES, "gg2": GPU_GAUGES, "gc": GPU_COUNTERS, "eg": ENGINE_GAUGES, "eg2": ENGINE_GAUGES}
        names |= {"ec": ENGINE_COUNTERS, "ec2": ENGINE_COUNTERS, "h": HISTOGRAMS}
        expr = template.format(**{key: options[min(int(rng.expovariate(0.15)), len(options) - 1)] for key, options in names.items()})
        gpu = "gpu_" in expr
        made.append(GUARD.format(expr=expr, by="gpu" if gpu else "engine, rank", has_work=GPU_GAUGES[0] if gpu else ENGINE_GAUGES[0]))
    return made


def main() -> None:
    """Measure and print."""
    rng = random.Random(7)  # noqa: S311 - made-up samples, the same ones every time
    window, texts = window_with_history(rng), rules(rng)
    begin = time.process_time()
    expressions = [promql.compile(text) for text in texts]
    compiled = (time.process_time() - begin) * 1000
    t = START + SECONDS - 0.5
    took: list[float] = []
    elements = 0
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 200):
        begin = time.process_time()
        cache: dict[object, object] = {}
        results = [expression.evaluate(window, t, cache=cache) for expression in expressions]
        took.append((time.process_time() - begin) * 1000)
        elements = sum(len(result) for result in results if isinstance(result, list))
    series = sum(1 for name in window.names() for _ in window.series(name))
    median, p99 = statistics.median(took), sorted(took)[int(len(took) * 0.99)]
    print(f"{len(expressions)} rules, {series} series, {window.nbytes() / 2**20:.1f} MiB of points, {elements} elements in the results")
    print(f"compile {compiled:.1f} ms, once")
    print(f"evaluate {median:.2f} ms median, {p99:.2f} ms p99 of {len(took)} passes (limit {LIMIT_MS:g} ms)")
    sys.exit(median > LIMIT_MS)


if __name__ == "__main__":
    main()
