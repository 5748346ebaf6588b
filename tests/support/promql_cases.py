"""Small windows and short answers for tests of single PromQL rules."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from heptascope.model import labels
from heptascope.rules import promql
from heptascope.signals.window import Window

STALE = math.nan
Points = Iterable[tuple[float, float]]
V2, V3 = promql.Mode.PROMETHEUS_2, promql.Mode.PROMETHEUS_3


def window_of(series: Mapping[str, Points]) -> Window:
    """Return a window of series written like `name{a=1,b=x}`; a NaN is a staleness marker."""
    window = Window(retention=math.inf)
    for text, points in series.items():
        name, _, rest = text.rstrip("}").partition("{")
        pairs = labels(**dict(pair.split("=", 1) for pair in rest.split(",") if pair))
        for t, value in points:
            window.append(name, pairs, t, value)
    return window


def every(step: float, values: Iterable[float], start: float = 0.0) -> list[tuple[float, float]]:
    """Return points that are `step` seconds apart."""
    return [(start + step * index, value) for index, value in enumerate(values)]


def answer(text: str, window: Window, t: float, mode: promql.Mode = V3) -> float | dict[str, float]:
    """Return a number, or values by labels written like `name{a=1,b=x}`."""
    result = promql.compile(text).evaluate(window, t, mode=mode)
    return result if isinstance(result, float) else {written(item): item.value for item in result}


def written(item: promql.Item) -> str:
    """Return an element's labels as `name{a=1,b=x}`."""
    pairs = dict(item.labels)
    name = pairs.pop("__name__", "")
    return f"{name}{{{','.join(f'{label}={value}' for label, value in pairs.items())}}}"
