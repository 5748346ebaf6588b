"""Steady signal values from a file instead of a live system, to ask what the verdict would be.

```yaml
signals:
  - {name: heptascope_engine_requests_running, value: 8}
  - {name: heptascope_engine_preemptions_total, rate: 0.5}
  - {name: heptascope_engine_inter_token_latency_seconds, distribution: {p50: 0.006, p99: 0.2, mean: 0.015, rate: 900}}
  - {name: heptascope_gpu_sm_active_ratio, labels: {gpu: "1"}, value: 0.4}
```

Gauges and infos take `value`, counters `rate` (per second), histograms `distribution`. Labels that are left out are filled in for one
engine and one GPU; values of labels may be spelled as NVML, DCGM or the engines do. What a file does not speak of is taken to be as usual:
there is one engine, which works (unless the file says how much it runs, waits or generates; latencies beside an empty queue are work), with
CUDA graphs and without speculation; all GPUs of the file serve it and work; a process with CPU time waits for no CPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from math import exp, log
from pathlib import Path
from typing import Any, TypeGuard

from heptascope.errors import UserError
from heptascope.model import Histogram, Labels, Reading, Sample, labels
from heptascope.signals.label_values import spelled, values
from heptascope.signals.schema import SCHEMA
from heptascope.signals.schema_gpu import ACTIVITY
from heptascope.signals.schema_row import Kind, Signal
from heptascope.yaml_marks import MarkedYaml, read_yaml

SECONDS = 30
"""Length of the steady time that is played: two windows and a hold."""

LARGEST = 1e24
"""More than any signal can be; beyond, a counter would soon be no number."""
START = 1_000_000_000.0
SOURCE = "given"
DEFAULT_OBSERVATIONS_PER_SECOND = 10.0
_FIELD = {Kind.GAUGE: "value", Kind.INFO: "value", Kind.COUNTER: "rate", Kind.HISTOGRAM: "distribution"}
_DISTRIBUTION = ("p50", "p99", "mean", "rate")
_LOAD = ("requests_running", "requests_waiting", "generation_tokens_total", "prompt_tokens_total", "requests_finished_total")
_ACTIVE = {f"heptascope_gpu_{name}" for name in ("utilization_ratio", "power_watts")}
_ACTIVE |= {f"heptascope_gpu_{what}_{unit}" for what in ACTIVITY for unit in ("ratio", "seconds_total")}
_BUCKET_STEP = 1.02  # bounds so close that interpolation inside a bucket errs by less than two per cent


@dataclass(frozen=True, slots=True)
class Given:
    """One steady signal: a value, a rate per second, or a distribution."""

    signal: Signal
    pairs: Labels
    value: float = 0.0
    distribution: Mapping[str, float] | None = None


WHICH_LABELS = ("latency", "resource", "role")
"""Labels without which a value says nothing."""


def read_given(path: Path) -> list[Given]:
    """Read a file of steady signals. Raises UserError naming file, line and what is allowed."""
    marked = read_yaml(path)
    if set(marked.value) != {"signals"} or not isinstance(marked.value["signals"], list) or not marked.value["signals"]:
        raise UserError("the file must hold one key, `signals`, with a list", where=f"{path}:1", hint="see heptascope diagnose --help")
    lines: dict[tuple[str, Labels], int] = {}
    found = []
    for i, item in enumerate(marked.value["signals"]):
        given, line = _entry(marked, i, item), marked.lines.get(("signals", i), 1)
        first = lines.setdefault((given.signal.name, given.pairs), line)
        if first != line:
            raise UserError(f"{given.signal.name} with these labels is here twice, first on line {first}", where=f"{path}:{line}")
        found.append(given)
    return found


def _entry(marked: MarkedYaml, index: int, item: Any) -> Given:
    where = f"{marked.path}:{marked.lines.get(('signals', index), 1)}"
    if not isinstance(item, dict) or not isinstance(item.get("name"), str):
        raise UserError("a signal must be a mapping with `name`", where=where)
    name = item["name"]
    row = SCHEMA.get(name)
    if row is None or "self" in row.suppliers:
        near = get_close_matches(name, [n for n, r in SCHEMA.items() if "self" not in r.suppliers], 1)
        raise UserError(f"unknown signal {name!r}", where=where, hint=f"did you mean {near[0]!r}?" if near else "see docs/metrics.md")
    wanted = _FIELD[row.kind]
    unknown = set(item) - {"name", "labels", wanted}
    if unknown:
        raise UserError(f"{name} is a {row.kind.value}, which has no {min(unknown)!r}", where=where, hint=f"give name, labels, {wanted}")
    pairs = _pairs(row, item.get("labels", {}), where)
    if row.kind is Kind.HISTOGRAM:
        return Given(row, pairs, distribution=_distribution(name, item.get("distribution"), where))
    value = item.get(wanted, 1.0 if row.kind is Kind.INFO else None)
    if not _is_number(value):
        raise UserError(f"{name} is a {row.kind.value} and needs a number as `{wanted}`", where=where)
    if row.kind is Kind.COUNTER and value < 0:
        raise UserError(f"{name} is a counter; its rate cannot be negative", where=where)
    return Given(row, pairs, float(value))


def _pairs(row: Signal, given: Any, where: str) -> Labels:
    if not isinstance(given, dict):
        raise UserError("labels must be a mapping", where=where)
    unknown = set(given) - set(row.labels)
    if unknown:
        raise UserError(f"{row.name} has no label {min(unknown)!r}", where=where, hint=f"its labels are: {', '.join(row.labels) or 'none'}")
    lacking = [name for name in WHICH_LABELS if name in row.labels and name not in given]
    if lacking:
        raise UserError(
            f"{row.name} needs the label {lacking[0]!r}", where=where, hint="without it nobody can tell what the value is about"
        )
    defaults = {"engine": "engine", "rank": "0", "gpu": "0"}
    filled = {name: defaults[name] for name in row.labels if name in defaults}
    return labels(**{**filled, **{name: _label_value(row.name, name, str(value), where) for name, value in given.items()}})


def _label_value(signal: str, label: str, value: str, where: str) -> str:
    found, listed = spelled(signal, label, value), values(signal, label)
    if listed and found not in listed:
        raise UserError(f"{signal} has no {label} {value!r}", where=where, hint=f"it is one of: {', '.join(listed)}")
    return found


def _distribution(name: str, given: Any, where: str) -> dict[str, float]:
    if not isinstance(given, dict) or not given or set(given) - set(_DISTRIBUTION):
        raise UserError(f"{name} is a histogram and needs a `distribution`", where=where, hint=f"with some of: {', '.join(_DISTRIBUTION)}")
    if not all(_is_number(v) and v >= 0 for v in given.values()):
        raise UserError(f"{name}: a distribution's numbers must be finite and not negative", where=where)
    if not set(given) & {"p50", "p99", "mean"}:
        raise UserError(f"{name}: a distribution needs p50, p99 or mean", where=where)
    if given.get("p50", 0) > given.get("p99", float("inf")):
        raise UserError(f"{name}: p50 is above p99", where=where)
    return {k: float(v) for k, v in given.items()}


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and -LARGEST <= value <= LARGEST


def shape(distribution: Mapping[str, float]) -> tuple[tuple[float, ...], tuple[float, ...], float, float]:
    """Return (bounds, cumulative shares, mean, observations per second) of a distribution with these quantiles.

    Half of the observations lie just below p50, nearly all others between it and p99 (evenly on a log scale), a hundredth above.
    """
    rate = distribution.get("rate", DEFAULT_OBSERVATIONS_PER_SECOND)
    known = [distribution[k] for k in ("p50", "mean", "p99") if k in distribution]
    p50 = max(distribution.get("p50", known[0]), 1e-9)
    p99 = max(distribution.get("p99", p50), p50)
    if p99 <= p50 * _BUCKET_STEP:
        narrow = (p50 / _BUCKET_STEP, p50 * _BUCKET_STEP, float("inf"))
        return narrow, (0.0, 1.0, 1.0), distribution.get("mean", p50), rate
    steps = max(int(log(p99 / p50) / log(_BUCKET_STEP)), 1)
    inner = [p50 * exp(log(p99 / p50) * i / steps) for i in range(1, steps)]
    bounds = (p50 / _BUCKET_STEP, p50, *inner, p99, p99 * _BUCKET_STEP, float("inf"))
    shares = (0.0, 0.5, *(0.5 + 0.49 * i / steps for i in range(1, steps)), 0.99, 1.0, 1.0)
    middle = sum((b - a) * (x + y) / 2 for a, b, x, y in zip(shares, shares[1:-1], bounds, bounds[1:-1], strict=False))
    return bounds, shares, distribution.get("mean", middle), rate


def readings(given: list[Given]) -> Iterator[Reading]:
    """Yield `SECONDS` readings, one a second, in which everything is as steady as the file says."""
    rows = [*_completed(given)]
    for second in range(SECONDS + 1):
        samples, histograms = [], []
        for g in rows:
            if g.distribution is not None:
                bounds, shares, mean, rate = shape(g.distribution)
                count = rate * second
                histograms.append(Histogram(g.signal.name, g.pairs, bounds, tuple(s * count for s in shares), mean * count))
            elif g.signal.kind is Kind.COUNTER:
                samples.append(Sample(g.signal.name, g.pairs, g.value * second))
            else:
                samples.append(Sample(g.signal.name, g.pairs, g.value, 1.0 if g.signal.integral else 0.0))
        yield Reading(SOURCE, START + second, samples, histograms)


def _completed(given: list[Given]) -> Iterator[Given]:
    """Add what a live source would have said beside these values: identities, and activity as both ratio and integral."""
    names = {g.signal.name for g in given}
    for g in given:
        what = g.signal.name.removeprefix("heptascope_gpu_").removesuffix("_seconds_total")
        if g.signal.kind is Kind.COUNTER and what in ACTIVITY:
            if f"heptascope_gpu_{what}_ratio" not in names:
                yield Given(SCHEMA[f"heptascope_gpu_{what}_ratio"], g.pairs, g.value)
        elif not g.signal.name.endswith("_sampled_seconds_total"):
            yield g
    gpus = sorted({labels(**{k: v for k, v in g.pairs if k in ("gpu", "uuid")}) for g in given if "gpu" in g.signal.labels})
    yield from _engines(given, names, len(gpus))
    yield from _gpus(given, names, gpus)
    waited = "heptascope_host_process_run_queue_seconds_total"
    if waited not in names:
        yield from (Given(SCHEMA[waited], g.pairs, 0.0) for g in given if g.signal.name == "heptascope_host_process_cpu_seconds_total")


def _gpus(given: list[Given], names: set[str], gpus: list[Labels]) -> Iterator[Given]:
    """Yield that each GPU is there, and that it works where neither its activity nor the engine's load is told."""
    load = {f"heptascope_engine_{name}" for name in (*_LOAD, "has_work")}
    rests = bool(names & load) and not any(g.value for g in given if g.signal.name in load)
    says = {"info": 1.0} if rests or names & _ACTIVE else {"info": 1.0, "has_work": 1.0}
    for name, value in says.items():
        if f"heptascope_gpu_{name}" not in names:
            yield from (Given(SCHEMA[f"heptascope_gpu_{name}"], pairs, value) for pairs in gpus)


def _works(given: list[Given], names: set[str]) -> bool:
    """Return whether an engine that does not say how much it runs or generates must have work: it says nothing, or observes latencies."""
    told = names & {f"heptascope_engine_{name}" for name in _LOAD}
    observes = any(g.distribution is not None and shape(g.distribution)[3] > 0 for g in given)
    return not told or (observes and told == {"heptascope_engine_requests_waiting"})


def _engines(given: list[Given], names: set[str], gpus: int) -> Iterator[Given]:
    """Yield what each engine would have said of itself: that it is there and works, whether it speculates, how many GPUs it needs."""
    engines = {labels(**{k: v for k, v in g.pairs if k in ("engine", "rank")}) for g in given if "engine" in g.signal.labels}
    entities = sorted({labels(**{"rank": "0", **dict(pairs)}) for pairs in engines}) or [labels(engine="engine", rank="0")]
    says = {"info": 1.0, "eager_mode": 0.0, "speculation_enabled": float(any(name.startswith("heptascope_engine_spec_") for name in names))}
    if _works(given, names):
        says["has_work"] = 1.0
    if gpus and len(entities) == 1:
        stages = max((round(g.value) for g in given if g.signal.name == "heptascope_engine_pipeline_parallel_size"), default=1)
        says["tensor_parallel_size"] = float(max(gpus // max(stages, 1), 1))
    for pairs in entities:
        for name, value in says.items():
            if f"heptascope_engine_{name}" not in names:
                yield Given(SCHEMA[f"heptascope_engine_{name}"], pairs, value)
