"""Which selectors an expression needs in order to be decided: the tree behind `Expression.missing`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from heptascope.rules.promql_model import SelectorInfo


@dataclass(frozen=True, slots=True)
class Need:
    """A selector, or several needs of which all or (any_part) one must be met; `waived`: none of them has to be."""

    selector: SelectorInfo | None = None
    parts: tuple[Need, ...] = ()
    any_part: bool = False
    waived: bool = False

    def selectors(self) -> Iterator[SelectorInfo]:
        """Yield every selector of the tree, from left to right."""
        if self.selector is not None:
            yield self.selector
        for part in self.parts:
            yield from part.selectors()

    def missing(self, has: Callable[[SelectorInfo], bool]) -> list[SelectorInfo]:
        """Return the selectors that `has` denies and without which the expression has no value; of an `or` one side is enough."""
        return self._lacking(has, stand_in=True)

    def undecided(self, has: Callable[[SelectorInfo], bool]) -> list[SelectorInfo]:
        """Return the selectors that `has` denies and whose absence leaves open what the expression would say if it has no value.

        These are the missing ones and, where one side of an `or` only stands in for the other (`A or (B unless A)`, with A missing), those
        of the other: the stand-in may say yes, but not no.
        """
        return self._lacking(has, stand_in=False)

    def _lacking(self, has: Callable[[SelectorInfo], bool], stand_in: bool) -> list[SelectorInfo]:
        if self.waived:
            return []
        if self.selector is not None:
            return [] if has(self.selector) else [self.selector]
        found = [part._lacking(has, stand_in) for part in self.parts]
        lacking = list(dict.fromkeys(selector for part in found for selector in part))
        metrics = {selector.metric for selector in lacking}
        whole = (part for part, lacks in zip(self.parts, found, strict=True) if not lacks)
        if self.any_part and any(stand_in or not part.yields_to(metrics) for part in whole):
            return []
        return lacking

    def yields_to(self, metrics: Collection[str]) -> bool:
        """Return whether this has no value where one of the metrics is there, for it is on the right side of an `unless`."""
        if self.waived:
            return any(selector.metric in metrics for selector in self.selectors())
        return any(part.yields_to(metrics) for part in self.parts)

    def complete(self, has: Callable[[SelectorInfo], bool]) -> bool:
        """Return whether `has` admits every selector, both sides of an `or` too, but for those that are waived."""
        if self.waived:
            return True
        return all(part.complete(has) for part in self.parts) if self.selector is None else has(self.selector)


def all_of(*parts: Need) -> Need:
    """Return the need for every one of `parts`."""
    parts = tuple(part for part in parts if part != NOTHING)
    return parts[0] if len(parts) == 1 else Need(parts=parts)


def any_of(*parts: Need) -> Need:
    """Return the need for at least one of `parts`: what `or` asks for."""
    return Need(parts=tuple(_optional(part) for part in parts), any_part=True)


def waive(part: Need) -> Need:
    """Return `part` as something that may be absent: the right side of `unless`, the argument of `absent`."""
    return replace(_optional(part), waived=True)


def _optional(need: Need) -> Need:
    selector = need.selector and need.selector._replace(required=False)
    return replace(need, selector=selector, parts=tuple(_optional(part) for part in need.parts))


NOTHING = Need()
