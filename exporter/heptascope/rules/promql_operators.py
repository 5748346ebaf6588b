"""Binary operators: arithmetic, comparisons and sets, with the matching of labels between two vectors."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass

from heptascope.model import Labels
from heptascope.rules.promql_floats import divide, modulo, power
from heptascope.rules.promql_model import EvaluationError, Pass, Projection, ScalarRun, Vector, VectorRun, distinct

Operation = Callable[[float, float], float]
Comparison = Callable[[float, float], bool]

ARITHMETIC: dict[str, Operation] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": divide,
    "%": modulo,
    "^": power,
}
COMPARISONS: dict[str, Comparison] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}


def truth(compare: Comparison) -> Operation:
    """Return `compare` as the operation that `bool` makes of it: 1 or 0."""
    return lambda left, right: 1.0 if compare(left, right) else 0.0


def scalars(operation: Operation, left: ScalarRun, right: ScalarRun) -> ScalarRun:
    """Return the run of an operator between two scalars."""
    return lambda this: operation(left(this), right(this))


def map_with_scalar(operation: Operation, vector: VectorRun, scalar: ScalarRun, swapped: bool, mixed: bool) -> VectorRun:
    """Return the run of arithmetic, or of a comparison with `bool`, between a vector and a scalar (swapped: scalar first)."""

    def run(this: Pass) -> Vector:
        other = scalar(this)
        if swapped:
            result: Vector = [(pairs, "", operation(other, value)) for pairs, _, value in vector(this)]
        else:
            result = [(pairs, "", operation(value, other)) for pairs, _, value in vector(this)]
        return distinct(result) if mixed else result

    return run


def filter_by_scalar(compare: Comparison, vector: VectorRun, scalar: ScalarRun, swapped: bool) -> VectorRun:
    """Return the run of a comparison that keeps the elements for which it holds."""

    def run(this: Pass) -> Vector:
        other = scalar(this)
        if swapped:
            return [element for element in vector(this) if compare(other, element[2])]
        return [element for element in vector(this) if compare(element[2], other)]

    return run


@dataclass(frozen=True, slots=True)
class Matching:
    """How elements of two vectors find each other.

    `signature` is the part of the labels that must be equal. `many` is the side that may have several elements per
    match ("": neither); its elements keep their labels and take those named in `include` from the other side.
    `keep_signature`: a one-to-one result has the signature as its labels, without a name (`on`).
    """

    signature: Projection
    keep_signature: bool = False
    many: str = ""
    include: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[object, ...]:
        """Return what distinguishes this matching from others, hashable."""
        return self.signature.names, self.signature.keep, self.many, self.include


def _by_signature(vector: Vector, signature: Projection, side: str) -> dict[Labels, tuple[Labels, float]]:
    """Return the elements of the side that must be unique, by signature."""
    found: dict[Labels, tuple[Labels, float]] = {}
    for pairs, _, value in vector:
        key = signature[pairs]
        if key in found:
            raise EvaluationError(f"several elements on the {side} of an operator match the labels {dict(key)}")
        found[key] = pairs, value
    return found


def one_to_one(operation: Operation, keep: Comparison | None, left: VectorRun, right: VectorRun, matching: Matching) -> VectorRun:
    """Return the run of an operator between two vectors whose elements match in pairs.

    `keep` makes it a filter: only pairs for which it holds appear, and the left name stays unless `on` was used.
    """
    signature = matching.signature
    keep_name = keep is not None and not matching.keep_signature

    def run(this: Pass) -> Vector:
        lefts, rights = left(this), right(this)
        if not lefts or not rights:
            return []
        partners = _by_signature(rights, signature, "right")
        result: Vector = []
        seen: set[Labels] = set()
        for pairs, name, value in lefts:
            key = signature[pairs]
            partner = partners.get(key)
            if partner is None:
                continue
            kept = keep is None or keep(value, partner[1])
            if not kept and not this.left_open:
                continue  # before 3.9 only kept pairs counted as matches
            if key in seen:
                raise EvaluationError(f"several elements on the left of an operator match the labels {dict(key)}; use group_left")
            seen.add(key)
            if kept:
                result.append((key, name if keep_name else "", operation(value, partner[1])))
        return result

    return run


def many_to_one(operation: Operation, keep: Comparison | None, left: VectorRun, right: VectorRun, matching: Matching) -> VectorRun:
    """Return the run of an operator with `group_left` or `group_right`; `keep` as in `one_to_one`."""
    signature, include = matching.signature, matching.include
    left_is_many = matching.many == "left"

    def run(this: Pass) -> Vector:
        lefts, rights = left(this), right(this)
        if not lefts or not rights:
            return []
        many, one = (lefts, rights) if left_is_many else (rights, lefts)
        partners = _by_signature(one, signature, "right" if left_is_many else "left")
        result: Vector = []
        seen: set[tuple[Labels, Labels, str]] = set()
        for pairs, name, value in many:
            key = signature[pairs]
            partner = partners.get(key)
            if partner is None:
                continue
            first, second = (value, partner[1]) if left_is_many else (partner[1], value)
            kept = keep is None or keep(first, second)
            if not kept and not this.left_open:
                continue  # as above
            labels = _included(pairs, partner[0], include) if include else pairs
            shown = "" if keep is None else name
            if (key, labels, shown) in seen:
                raise EvaluationError(f"several results of a grouped match have the labels {dict(labels)}")
            seen.add((key, labels, shown))
            if kept:
                result.append((labels, shown, operation(first, second)))
        return distinct(result) if include else result

    return run


def _included(pairs: Labels, other: Labels, include: tuple[str, ...]) -> Labels:
    """Return `pairs` with the labels `include` as they are in `other` (absent there: removed)."""
    taken = [pair for pair in other if pair[0] in include]
    return tuple(sorted([pair for pair in pairs if pair[0] not in include] + taken))


def intersection(left: VectorRun, right: VectorRun, signature: Projection) -> VectorRun:
    """Return the run of `and`."""

    def run(this: Pass) -> Vector:
        lefts, rights = left(this), right(this)
        if not lefts or not rights:
            return []
        keys = {signature[pairs] for pairs, _, _ in rights}
        return [element for element in lefts if signature[element[0]] in keys]

    return run


def complement(left: VectorRun, right: VectorRun, signature: Projection) -> VectorRun:
    """Return the run of `unless`."""

    def run(this: Pass) -> Vector:
        lefts, rights = left(this), right(this)
        if not lefts or not rights:
            return lefts
        keys = {signature[pairs] for pairs, _, _ in rights}
        return [element for element in lefts if signature[element[0]] not in keys]

    return run


def union(left: VectorRun, right: VectorRun, signature: Projection) -> VectorRun:
    """Return the run of `or`."""

    def run(this: Pass) -> Vector:
        lefts, rights = left(this), right(this)
        if not lefts or not rights:
            return lefts or rights
        keys = {signature[pairs] for pairs, _, _ in lefts}
        return lefts + [element for element in rights if signature[element[0]] not in keys]

    return run


SETS = {"and": intersection, "unless": complement, "or": union}
