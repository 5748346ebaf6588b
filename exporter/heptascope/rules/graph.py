"""The causal graph: which firing fault explains which other finding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from heptascope.errors import UserError
from heptascope.rules.rule import Rule


class Node(NamedTuple):
    """A rule that fires for one engine rank or GPU (label values, sorted pairs)."""

    rule: str
    entity: tuple[tuple[str, str], ...]


def check_acyclic(rules: Mapping[str, Rule]) -> None:
    """Raise UserError if the `explains` edges make a cycle: then no finding in it could be a root."""
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            cycle = " -> ".join((*path[path.index(name) :], name))
            raise UserError(f"rules explain each other in a circle: {cycle}", where=rules[name].where, hint="remove one of these edges")
        if name in done:
            return
        for other in rules[name].explains:
            visit(other, (*path, name))
        done.add(name)

    for name in rules:
        visit(name, ())


def roots(firing: Iterable[Node], rules: Mapping[str, Rule], related: Callable[[Node, Node], bool]) -> dict[Node, tuple[Node, ...]]:
    """Return each firing node with the firing nodes that explain it directly; a root has none.

    `related` says whether two nodes concern each other (the same engine, or a GPU that serves it).
    """
    nodes = list(firing)
    causes: dict[Node, list[Node]] = {node: [] for node in nodes}
    for cause in nodes:
        for effect in nodes:
            if effect.rule in rules[cause.rule].explains and related(cause, effect):
                causes[effect].append(cause)
    return {node: tuple(found) for node, found in causes.items()}


def closure(start: str, rules: Mapping[str, Rule]) -> Sequence[str]:
    """Return every rule that `start` explains, directly or through others, in breadth-first order."""
    seen: list[str] = []
    queue = list(rules[start].explains)
    while queue:
        name = queue.pop(0)
        if name not in seen:
            seen.append(name)
            queue += rules[name].explains
    return seen
