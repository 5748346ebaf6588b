"""Which selectors an expression needs in order to be decided: the tree behind `Expression.missing`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
        """Return the selectors that `has` denies and whose absence makes the expression undecidable."""
        if self.waived:
            return []
        if self.selector is not None:
            return [] if has(self.selector) else [self.selector]
        found = [part.missing(has) for part in self.parts]
        if self.any_part and not all(found):
            return []
        return list(dict.fromkeys(selector for part in found for selector in part))

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
