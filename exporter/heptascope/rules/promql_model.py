"""The nouns of the PromQL evaluator: results, selectors, errors, one evaluation pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

from heptascope.model import Labels
from heptascope.rules.promql_regex import compile_regex
from heptascope.signals.window import Window

_PROJECTION_LIMIT = 4096  # label sets that one projection remembers before it starts anew


class Mode(Enum):
    """Which Prometheus to agree with; the docstring of `promql` lists the differences."""

    PROMETHEUS_2 = 2  # as 2.42: ranges and the look-back include their left end
    PROMETHEUS_3 = 3  # as 3.9 and later: they exclude it


class EvaluationError(Exception):
    """The samples do not fit the expression, and Prometheus would refuse it too: ambiguous matches, equal label sets."""

    def __init__(self, message: str, where: str = "") -> None:
        """Keep `message`; `where` (file:line) is added by the expression that was evaluated."""
        super().__init__(message)
        self.message, self.where = message, where

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class Item(NamedTuple):
    """One element of a result; `labels` holds `__name__` only where Prometheus keeps it."""

    labels: Labels
    value: float


Vector = list[tuple[Labels, str, float]]
"""An instant vector on its way through an expression: labels without the name, the name or "", the value."""


class Matcher(NamedTuple):
    """One label matcher; `op` is =, !=, =~ or !~."""

    label: str
    op: str
    value: str


LabelTest = Callable[[Mapping[str, str]], bool]


class SelectorInfo(NamedTuple):
    """One selector of an expression; `range` and `offset` in seconds (None: none).

    `required` is False where the expression can be decided without the selector: on the right of `unless`,
    inside `absent`, or in one branch of `or`.
    """

    metric: str
    matchers: tuple[Matcher, ...]
    range: float | None
    offset: float | None
    required: bool

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether a series of the selector's metric with `labels` (without `__name__`) is selected."""
        test = label_test(self.matchers)
        return test is None or test(labels)


def _value_test(matcher: Matcher) -> Callable[[str], bool]:
    value = matcher.value
    if matcher.op == "=":
        return lambda have: have == value
    if matcher.op == "!=":
        return lambda have: have != value
    match = compile_regex(value).fullmatch
    if matcher.op == "=~":
        return lambda have: match(have) is not None
    return lambda have: match(have) is None


@lru_cache(maxsize=1024)
def label_test(matchers: tuple[Matcher, ...]) -> LabelTest | None:
    """Return the test that `matchers` put to a series' labels (None: every series passes); UserError for a bad pattern."""
    if not matchers:
        return None
    tests = [(matcher.label, _value_test(matcher)) for matcher in matchers]
    if len(tests) == 1:
        label, only = tests[0]
        return lambda labels: only(labels.get(label, ""))
    return lambda labels: all(test(labels.get(label, "")) for label, test in tests)


class Pass:
    """One evaluation of any number of expressions: the window, the time, the mode, and the results they share."""

    __slots__ = ("cache", "left_open", "t", "window")

    def __init__(self, window: Window, t: float, mode: Mode, cache: dict[Any, Any]) -> None:
        """Bind `cache` to this window, time and mode; ValueError if it is bound to others."""
        bound = cache.setdefault("pass", (window, t, mode))
        if bound[0] is not window or bound[1:] != (t, mode):
            raise ValueError("a cache serves one window, one time and one mode")
        self.window: Window = window
        self.t, self.cache = t, cache
        self.left_open = mode is Mode.PROMETHEUS_3


Reduction = Callable[[Sequence[float]], float]
"""At least one value to one value."""


class ByMode(NamedTuple):
    """A reduction that differs between the two modes."""

    prometheus_2: Reduction
    prometheus_3: Reduction


VectorRun = Callable[[Pass], Vector]
ScalarRun = Callable[[Pass], float]


class Projection(dict[Labels, Labels]):
    """Labels to the part of them that counts in a match or a group; remembers what it has computed."""

    def __init__(self, names: frozenset[str], keep: bool) -> None:
        """Keep only the labels in `names`, or (keep=False) all others."""
        super().__init__()
        self.names, self.keep = names, keep

    def __missing__(self, pairs: Labels) -> Labels:
        if len(self) >= _PROJECTION_LIMIT:
            self.clear()
        part = tuple(pair for pair in pairs if (pair[0] in self.names) is self.keep)
        self[pairs] = part
        return part


@lru_cache(maxsize=1024)
def projection(names: frozenset[str], keep: bool) -> Projection:
    """Return the one projection of this shape, so that all expressions share its memory."""
    return Projection(names, keep)


def distinct(vector: Vector) -> Vector:
    """Return `vector`; EvaluationError if two of its elements have the same name and labels."""
    if len(vector) > 1 and len({(pairs, name) for pairs, name, _ in vector}) != len(vector):
        raise EvaluationError("two elements of a vector have the same labels")
    return vector


def full_labels(pairs: Labels, name: str) -> Labels:
    """Return the labels with `__name__` among them, sorted."""
    return tuple(sorted((("__name__", name), *pairs))) if name else pairs
