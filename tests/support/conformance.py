"""Holds the evaluator against a real Prometheus on the same samples."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from heptascope.rules import promql
from heptascope.signals.window import Window
from support.prometheus import Prometheus, Samples, backfill, running_prometheus

RELATIVE = 1e-9
ERROR = "error"
Answer = float | dict[tuple[tuple[str, str], ...], float] | str
"""A scalar, the elements of a vector by their labels, or ERROR."""


@dataclass
class Tally:
    """What a comparison has seen, so that a test can demand that it was not about nothing."""

    compared: int = 0
    empty: int = 0
    errors: int = 0
    differences: list[str] = field(default_factory=list)

    @property
    def telling(self) -> int:
        """Return the number of comparisons whose answer had values in it."""
        return self.compared - self.empty - self.errors


def window_of(samples: Samples) -> Window:
    """Return a window that holds all samples, however old, in the order of their labels as Prometheus reads them."""
    window = Window(retention=math.inf)
    for (name, pairs), points in sorted(samples.items()):
        for t, value in points:
            window.append(name, pairs, t, value)
    return window


@contextmanager
def prometheus_with(samples: Samples) -> Iterator[Prometheus]:
    """Run a real Prometheus on these samples."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running_prometheus(folder, storage=backfill(samples, folder)) as server:
            yield server


def compare(server: Prometheus, window: Window, expressions: Iterable[str], instants: Sequence[float]) -> Tally:
    """Evaluate every expression at every instant in both, and tally where label sets or values differ."""
    tally = Tally()
    compiled = [promql.compile(text) for text in expressions]
    for t in instants:
        cache: dict[object, object] = {}
        for expression in compiled:
            theirs, ours = _theirs(server, expression.text, t), _ours(expression, window, t, cache)
            tally.compared += 1
            tally.empty += ours == {}
            tally.errors += ours == ERROR
            if not _same(ours, theirs):
                tally.differences.append(f"{expression.text}\n  at {t:.3f}\n  ours   {_shown(ours)}\n  theirs {_shown(theirs)}")
    return tally


def assert_conforms(expressions: Iterable[str], samples: Samples, instants: Sequence[float]) -> Tally:
    """Demand that the evaluator agrees with a real Prometheus 2 on every expression at every instant; return the tally."""
    with prometheus_with(samples) as server:
        tally = compare(server, window_of(samples), expressions, instants)
    assert_agreement(tally)
    return tally


def assert_agreement(tally: Tally) -> None:
    """Demand that there are no differences; show the first few otherwise."""
    shown = "\n".join(tally.differences[:5])
    assert not tally.differences, f"{len(tally.differences)} of {tally.compared} answers differ:\n{shown}"


def _ours(expression: promql.Expression, window: Window, t: float, cache: dict[object, object]) -> Answer:
    try:
        value = expression.evaluate(window, t, mode=promql.Mode.PROMETHEUS_2, cache=cache)
    except promql.EvaluationError:
        return ERROR
    if isinstance(value, float):
        return value
    answer = dict(value)
    assert len(answer) == len(value), f"{expression.text} has two elements with the same labels"
    return answer


def _theirs(server: Prometheus, text: str, t: float) -> Answer:
    reply = server.query(text, t)
    if reply["status"] != "success":
        assert reply["errorType"] == "execution", f"{text}: {reply}"
        return ERROR
    data = reply["data"]
    if data["resultType"] == "scalar":
        return float(data["result"][1])
    return {tuple(sorted(item["metric"].items())): float(item["value"][1]) for item in data["result"]}


def _same(ours: Answer, theirs: Answer) -> bool:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(_close(value, theirs[labels]) for labels, value in ours.items())
    if isinstance(ours, float) and isinstance(theirs, float):
        return _close(ours, theirs)
    return ours == theirs


def _close(ours: float, theirs: float) -> bool:
    return math.isclose(ours, theirs, rel_tol=RELATIVE) or (math.isnan(ours) and math.isnan(theirs))


def _shown(answer: Answer) -> str:
    return str(answer) if not isinstance(answer, dict) else str({str(dict(k)): v for k, v in sorted(answer.items())})
