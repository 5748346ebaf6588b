"""Which part of a rule fails. While that part goes on failing, the rule's other parts need be neither known nor looked at."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from heptascope.rules.promql_conjuncts import Conjunct
from heptascope.rules.promql_model import EvaluationError, Pass, SelectorInfo
from heptascope.signals.window import Window


class Case:
    """One rule for one engine rank or GPU: the parts that must all hold, and which of them failed last.

    Most rules are clear, and stay so for the same reason, pass after pass; most of these because a signal that they need does not exist.
    """

    __slots__ = ("_barren", "_known", "_last", "_mine", "_own", "_parts")

    def __init__(self, parts: Sequence[Conjunct], mine: Mapping[str, str], own: Collection[str]) -> None:
        """Hold `parts`, the cheapest first, against the entity with the labels `mine`, of which `own` name it."""
        self._parts, self._mine, self._own = parts, mine, own
        self._last: Conjunct | None = None
        self._known: list[Conjunct] | None = None
        self._barren = False

    def forget(self) -> None:
        """Forget what was true of the series there were: some have begun, ended or been forgotten."""
        self._known, self._barren = None, False

    def stands(self, this: Pass) -> bool:
        """Return whether the part that failed last still fails: then the rule has no value, whatever the other parts are."""
        if self._barren or self._last is None:
            return self._barren
        try:
            return self._last.fails(self._mine, self._own, this)
        except EvaluationError:
            return False

    def learn(self, this: Pass) -> None:
        """Remember a part that fails, if one does: rather one that cannot but fail until a series begins, else the cheapest.

        Raises EvaluationError where Prometheus would refuse the samples.
        """
        failing = [part for part in self._parts if part.fails(self._mine, self._own, this)]
        barren = [part for part in failing if _barren(part, this.window)]
        self._barren, self._last = bool(barren), next(iter(barren or failing), None)

    def fails_by_what_is_known(self, has: Callable[[SelectorInfo], bool], this: Pass) -> bool:
        """Return whether a part fails of which `has` admits every selector: then nothing that is missing could make the rule hold."""
        if self._known is None:
            self._known = [part for part in self._parts if part.known(has)]
        try:
            found = next((i for i, part in enumerate(self._known) if part.fails(self._mine, self._own, this)), None)
        except EvaluationError:
            return False
        if found:
            self._known.insert(0, self._known.pop(found))
        return found is not None


def _barren(part: Conjunct, window: Window) -> bool:
    """Return whether the part has no element for as long as no series begins: a signal that it needs has none at all."""
    return bool(part.tree.need.missing(lambda selector: next(window.series(selector.metric), None) is not None))
