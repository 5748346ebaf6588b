"""PromQL, evaluated in this process over the window of the signals room.

The supported language is what Prometheus 2.42 and 3.x share and what rules need; everything else is a UserError when
an expression is compiled, never a wrong answer later. Not supported: subqueries, `@`, `fill`, strings in backticks,
numbers as durations and durations as numbers, selectors without one plain metric name, `__name__` in groupings and matchings,
quoted (UTF-8) names, native histograms, `count_values`, `stdvar`, `atan2`, calendar and trigonometric functions, and
`histogram_fraction` (2.42 knows it for native histograms only, so a rule with it would silently never fire there).

What differs between the two modes, as far as this language goes:

* Ranges, and the five minutes that an instant selector looks back, are open on the left in 3.x and closed in 2.x.
* `rate` and `increase`: when the first sample is far from the start of the range, 3.x (2.53 on) extrapolates at most by
  half a sample interval; 2.42 goes back to the counter's zero point if that is nearer than the range's start and less than
  1.1 intervals away.
* A filtering comparison between two vectors: 3.9 on counts every pair towards "several elements match", earlier versions
  only the pairs for which it holds.
* `histogram_quantile`: 3.x (2.48 on) ignores differences between neighbouring buckets below 1e-12 of their sum.
* `sum`, `avg`, `avg_over_time`: 3.x adds with compensation. The results differ in the last digits, and by more only where
  large terms cancel.
* `stddev` of a group that starts with an infinity: NaN in 3.x, 0 in 2.42 if it is alone.

`.` in a regular expression matches a newline, as in 3.x, in both modes. Times are those of the window, in seconds; differences
are rounded to microseconds, so that samples stamped in whole milliseconds give what Prometheus computes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heptascope.errors import UserError
from heptascope.rules.promql_build import build
from heptascope.rules.promql_conjuncts import Conjunct, conjuncts
from heptascope.rules.promql_model import EvaluationError, Item, Matcher, Mode, Pass, SelectorInfo, full_labels
from heptascope.rules.promql_parse import parse
from heptascope.rules.promql_trees import RangeTree, ScalarTree, VectorTree
from heptascope.signals.window import Window

__all__ = ["Conjunct", "EvaluationError", "Expression", "Item", "Matcher", "Mode", "Pass", "SelectorInfo", "compile"]


class Expression:
    """A compiled expression: what it reads, and its value at a time."""

    __slots__ = ("_tree", "conjuncts", "selectors", "text", "where")

    def __init__(self, text: str, where: str, tree: ScalarTree | VectorTree, parts: tuple[Conjunct, ...] = ()) -> None:
        """Keep what `compile` made of `text`; `parts` must all hold."""
        self.text, self.where, self.conjuncts = text, where, parts
        self._tree = tree
        self.selectors: tuple[SelectorInfo, ...] = tuple(dict.fromkeys(tree.need.selectors()))

    def missing(self, has: Callable[[SelectorInfo], bool]) -> list[SelectorInfo]:
        """Return the selectors that `has` denies and without which the expression cannot be decided.

        The right side of `unless` and the argument of `absent` may be missing; of the two sides of `or` one is enough.
        """
        return self._tree.need.missing(has)

    def undecided(self, has: Callable[[SelectorInfo], bool]) -> list[SelectorInfo]:
        """Return the selectors without which it is open what the expression would say, given which selectors have data."""
        return self._tree.need.undecided(has)

    def evaluate(
        self, window: Window, t: float, *, mode: Mode = Mode.PROMETHEUS_3, cache: dict[Any, Any] | None = None
    ) -> float | list[Item]:
        """Return the value at `t` (Unix seconds): a number, or the elements of a vector.

        Expressions evaluated with the same `cache` share the results of equal parts; it serves one window, one `t` and
        one `mode` (ValueError otherwise). EvaluationError where Prometheus would refuse the samples.
        """
        return self.evaluate_in(Pass(window, t, mode, {} if cache is None else cache))

    def evaluate_in(self, this: Pass) -> float | list[Item]:
        """Return what `evaluate` does, in a pass that serves many expressions."""
        try:
            if isinstance(self._tree, ScalarTree):
                return self._tree.run(this)
            return [Item(full_labels(pairs, name), value) for pairs, name, value in self._tree.run(this)]
        except EvaluationError as error:
            raise EvaluationError(error.message, self.where) from None

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"


def compile(text: str, *, where: str = "") -> Expression:  # noqa: A001 - the name that `re` and others have for this
    """Return `text` compiled; UserError in one line, with `where` (file:line), for bad syntax or anything unsupported."""
    try:
        parsed = parse(text)
        tree = build(parsed)
        if isinstance(tree, RangeTree):
            raise UserError("a range vector is not a result; apply a function such as rate")
    except UserError as error:
        raise UserError(error.message, where=where, hint=error.hint) from None
    except RecursionError:
        raise UserError("the expression is nested too deeply", where=where) from None
    return Expression(text, where, tree, tuple(sorted(conjuncts(parsed), key=lambda part: part.cost)))
