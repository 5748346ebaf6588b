"""What the builder makes of a parsed expression: runs, with a key by which equal parts share their results."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeVar

from heptascope.errors import UserError
from heptascope.rules.promql_model import Pass, ScalarRun, SelectorInfo, VectorRun
from heptascope.rules.promql_needs import NOTHING, Need
from heptascope.rules.promql_selectors import RangeRun

_keys: dict[Hashable, int] = {}

Result = TypeVar("Result")


def key_of(*structure: Hashable) -> int:
    """Return the number of this structure: equal structures, of whatever expression, have the same one."""
    return _keys.setdefault(structure, len(_keys))


def shared(key: int, run: Callable[[Pass], Result]) -> Callable[[Pass], Result]:
    """Return `run` with its result kept in the pass's cache under `key`."""

    def cached(this: Pass) -> Result:
        cache = this.cache
        if key in cache:
            known: Result = cache[key]
            return known
        result = cache[key] = run(this)
        return result

    return cached


@dataclass(frozen=True, slots=True)
class ScalarTree:
    """An expression that gives one number."""

    key: int
    run: ScalarRun
    need: Need


@dataclass(frozen=True, slots=True)
class VectorTree:
    """An expression that gives an instant vector; `mixed`: its elements may have different names.

    `selector` is set where the whole expression is one selector.
    """

    key: int
    run: VectorRun
    need: Need
    mixed: bool = False
    selector: SelectorInfo | None = None


@dataclass(frozen=True, slots=True)
class RangeTree:
    """A range selector."""

    key: int
    run: RangeRun
    need: Need
    selector: SelectorInfo


Tree = ScalarTree | VectorTree | RangeTree
_trees: dict[int, VectorTree] = {}
Build = Callable[[object], Tree]


def vector(tree: Tree | None) -> VectorTree:
    """Return `tree`, which must be an instant vector; UserError otherwise."""
    if not isinstance(tree, VectorTree):
        raise UserError(f"an instant vector is needed, not {_kind(tree)}")
    return tree


def scalar(tree: Tree | None) -> ScalarTree:
    """Return `tree`, which must be one number; UserError otherwise."""
    if not isinstance(tree, ScalarTree):
        raise UserError(f"a number is needed, not {_kind(tree)}")
    return tree


def _kind(tree: Tree | None) -> str:
    return {VectorTree: "an instant vector", RangeTree: "a range vector", ScalarTree: "a number"}.get(type(tree), "nothing")


def vector_tree(structure: tuple[Hashable, ...], run: VectorRun, need: Need, *, mixed: bool = False) -> VectorTree:
    """Return the tree of a vector whose result is shared within a pass: one and the same tree for equal parts of all expressions."""
    key = key_of(*structure)
    tree = _trees.get(key)
    if tree is None:
        tree = _trees[key] = VectorTree(key, shared(key, run), need, mixed)
    return tree


def number_tree(value: float) -> ScalarTree:
    """Return the tree of a literal."""
    return ScalarTree(key_of("number", repr(value)), lambda _: value, NOTHING)
