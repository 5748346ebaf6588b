"""PromQL for panels: selectors that follow the variables, rates, exact means, quantiles.

Every selector asks for the labels that come from scraping (cluster to instance) with `=~`, and "All" stands for `.*`, which also
matches a series that has no such label: a Prometheus without Kubernetes fills the same panels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from boards import facts

PLACE: Final = ("cluster", "namespace", "workload", "job", "pod", "instance")
"""Labels of one exporter. Everything that joins two series joins by them."""

RANK: Final = (*PLACE, "engine", "rank")
GPU: Final = (*PLACE, "gpu")
DEPLOYMENT: Final = ("cluster", "namespace", "workload")
DEPLOYMENT_MODEL: Final = (*DEPLOYMENT, "model")

POD_NAME: Final = "{{place}}"
ENGINE_NAME: Final = "{{place}} {{engine}}/{{rank}}"
GPU_NAME: Final = "{{place}} GPU {{gpu}}"
DEPLOYMENT_NAME: Final = "{{cluster}} {{namespace}} {{workload}}"
"""Legends; `place` is the pod, or the instance where there is no pod. A label that is not there leaves nothing behind."""

_PATTERNS: Final = ("=~", "!~", "!=", "=")


def by(labels: tuple[str, ...]) -> str:
    """Return labels as PromQL lists them."""
    return ", ".join(labels)


def matchers(*labels: str, **fixed: str) -> str:
    """Return `{…}` that follows the variables named like `labels`; `fixed` values may start with an operator (`=~a|b`)."""
    parts = [f'{label}=~"${label}"' for label in labels]
    for label, value in fixed.items():
        op = next((op for op in _PATTERNS if value.startswith(op)), "")
        parts.append(f'{label}{op or "="}"{value.removeprefix(op)}"')
    return "{" + ", ".join(parts) + "}"


def sel(name: str, **fixed: str) -> str:
    """Return a selector of a series of the exporter, following every variable that it has a label for."""
    labels = [*PLACE]
    labels += [label for label in ("engine", "gpu") if label not in fixed and facts.has(name, label)]
    return name + matchers(*labels, **fixed)


def findings(**fixed: str) -> str:
    """Return a selector of findings. Those about a GPU have no engine, and the other way round, so neither variable narrows them."""
    return "heptascope_finding" + matchers(*PLACE, **fixed)


def rec(name: str, **fixed: str) -> str:
    """Return a selector of a recorded series: its level names the labels that it has."""
    level = name.partition(":")[0]
    labels = [*PLACE] if level.startswith("pod") else []
    labels += [word for word in level.split("_") if word in (*DEPLOYMENT, "model") and word not in fixed]
    return name + matchers(*labels, **fixed)


def rate(name: str, **fixed: str) -> str:
    """Return the rate of a counter."""
    return f"rate({sel(name, **fixed)}[$__rate_interval])"


def exact(ratio: str, **fixed: str) -> str:
    """Return the exact mean of a GPU ratio over each step: what its counter grew by, over the time that it covers."""
    base = ratio.removesuffix("_ratio")
    return f"{rate(base + '_seconds_total', **fixed)} / ({rate(base + '_sampled_seconds_total', **fixed)} > 0)"


def mean(histogram: str, **fixed: str) -> str:
    """Return the mean of a histogram's observations."""
    return f"{rate(histogram + '_sum', **fixed)} / ({rate(histogram + '_count', **fixed)} > 0)"


def mean_of_all(histogram: str) -> str:
    """Return the mean of a histogram's observations over all chosen engines, for parts that are stacked."""
    return f"sum ({of_model(rate(histogram + '_sum'))}) / (sum ({of_model(rate(histogram + '_count'))}) > 0)"


def quantile(q: str, histogram: str, labels: tuple[str, ...] = RANK) -> str:
    """Return a quantile of a histogram, for each set of `labels`; nothing where nothing was observed."""
    return f"(histogram_quantile({q}, sum by ({by((*labels, 'le'))}) ({rate(histogram + '_bucket')})) >= 0)"


def of_model(expr: str, *, rank: bool = True) -> str:
    """Return `expr` for engines that serve the chosen model. `rank`: the expression has the label."""
    labels = (*PLACE, "engine", "rank") if rank else (*PLACE, "engine")
    return f"({expr})\nand on ({by(labels)}) heptascope_engine_info{matchers(*PLACE, 'engine', 'model')}"


def of_places(expr: str) -> str:
    """Return `expr`, which is recorded for whole deployments, for those with a chosen pod: their series have no pod to choose by."""
    return f"(({expr})\nand on ({by(DEPLOYMENT)}) {sel('heptascope_build_info')})"


def of_pods(expr: str) -> str:
    """Return `expr` for whole pods: it follows neither the engine nor the GPU."""
    return expr.replace(', engine=~"$engine"', "").replace(', gpu=~"$gpu"', "")


def named(parts: Sequence[tuple[str, str]]) -> str:
    """Return several numbers as one query: pairs of a name, which becomes the label `what`, and an expression without labels."""
    return "\nor ".join(f'label_replace({expr}, "what", "{name}", "", "")' for name, expr in parts)


def worst(many: int, expr: str, labels: tuple[str, ...]) -> str:
    """Return which `labels` had most of the range vector `expr` over the whole time range: the same ones at every step of a graph."""
    return f"topk({many}, sum by ({by(labels)}) (avg_over_time({expr}[$__range] @ end())))"


def with_place(expr: str) -> str:
    """Return `expr` with the label `place`: the pod, or the instance of a server that is none."""
    inner = f'label_replace(\n{expr}\n, "place", "$1", "instance", "(.*)")'
    return f'label_replace({inner}, "place", "$1", "pod", "(.+)")'


def coded(name: str, label: str, values: tuple[str, ...], labels: tuple[str, ...], **fixed: str) -> str:
    """Return a state as a number from 1 on: which of `values` the label of the series with value 1 has."""
    parts = [f"{code} * {sel(name, **{label: value}, **fixed)}" for code, value in enumerate(values, 1)]
    return f"max by ({by(labels)}) (\n  " + "\n  or ".join(parts) + "\n)"
