"""Functions over instant vectors and scalars, those that change labels included."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from heptascope.model import Labels, labels
from heptascope.rules.promql_floats import (
    NAN,
    ceil,
    divide,
    exponential,
    floor,
    logarithm,
    maximum,
    minimum,
    sign,
    square_root,
)
from heptascope.rules.promql_model import Matcher, Pass, ScalarRun, Vector, VectorRun, distinct
from heptascope.rules.promql_regex import compile_template, expand
from heptascope.rules.promql_selectors import RangeRun

_KEEP = 4096  # label sets that one relabelling remembers before it starts anew

VALUE_FUNCTIONS: dict[str, Callable[[float], float]] = {
    "abs": abs,
    "ceil": ceil,
    "exp": exponential,
    "floor": floor,
    "ln": logarithm(math.log),
    "log10": logarithm(math.log10),
    "log2": logarithm(math.log2),
    "sgn": sign,
    "sqrt": square_root,
}


def map_values(vector: VectorRun, function: Callable[[float], float], mixed: bool) -> VectorRun:
    """Return the run that applies `function` to each value and drops the name; `mixed`: names may differ."""

    def run(this: Pass) -> Vector:
        result: Vector = [(pairs, "", function(value)) for pairs, _, value in vector(this)]
        return distinct(result) if mixed else result

    return run


def clamp(vector: VectorRun, low: ScalarRun | None, high: ScalarRun | None, mixed: bool) -> VectorRun:
    """Return the run of `clamp`, `clamp_min` (no high) and `clamp_max` (no low); nothing if high is below low."""

    def run(this: Pass) -> Vector:
        floor_value = -math.inf if low is None else low(this)
        ceiling = math.inf if high is None else high(this)
        values = vector(this)
        if ceiling < floor_value:
            return []
        result: Vector = [(pairs, "", maximum(floor_value, minimum(ceiling, value))) for pairs, _, value in values]
        return distinct(result) if mixed else result

    return run


def round_to(vector: VectorRun, nearest: ScalarRun, mixed: bool) -> VectorRun:
    """Return the run of `round`: to multiples of `nearest`, halves upwards."""

    def run(this: Pass) -> Vector:
        inverse = divide(1.0, nearest(this))
        return map_values(vector, lambda value: divide(floor(value * inverse + 0.5), inverse), mixed)(this)

    return run


def timestamp_of(vector: VectorRun, mixed: bool) -> VectorRun:
    """Return the run of `timestamp` over anything but a plain selector: the evaluation time."""

    def run(this: Pass) -> Vector:
        result: Vector = [(pairs, "", this.t) for pairs, _, _ in vector(this)]
        return distinct(result) if mixed else result

    return run


def sort_values(vector: VectorRun) -> VectorRun:
    """Return the run of `sort`: ascending, NaN last."""
    return lambda this: sorted(vector(this), key=lambda element: (element[2] != element[2], element[2]))


def to_scalar(vector: VectorRun) -> ScalarRun:
    """Return the run of `scalar`: the value of the only element, else NaN."""

    def run(this: Pass) -> float:
        values = vector(this)
        return values[0][2] if len(values) == 1 else NAN

    return run


def to_vector(scalar: ScalarRun) -> VectorRun:
    """Return the run of `vector`: one element without labels."""
    return lambda this: [((), "", scalar(this))]


def absent(vector: VectorRun, pairs: Labels) -> VectorRun:
    """Return the run of `absent`: 1 with the labels `pairs` if there is no element."""
    return lambda this: [] if vector(this) else [(pairs, "", 1.0)]


def absent_over_range(select: RangeRun, pairs: Labels) -> VectorRun:
    """Return the run of `absent_over_time`: 1 with the labels `pairs` if no series has a point in the range."""
    return lambda this: [] if select(this)[1] else [(pairs, "", 1.0)]


def absent_labels(matchers: tuple[Matcher, ...]) -> Labels:
    """Return the labels that `absent` gives its element: those whose last matcher is their first one by equality."""
    fixed: dict[str, str] = {}
    seen: set[str] = set()
    for label, op, value in matchers:
        fixed[label] = value if op == "=" and label not in seen else ""
        if op == "=":
            seen.add(label)
    return labels(**fixed)


def relabel(vector: VectorRun, change: Callable[[Labels], Labels]) -> VectorRun:
    """Return the run that replaces each element's labels by `change` of them, names kept."""
    known: dict[Labels, Labels] = {}

    def run(this: Pass) -> Vector:
        result: Vector = []
        for pairs, name, value in vector(this):
            changed = known.get(pairs)
            if changed is None:
                if len(known) >= _KEEP:
                    known.clear()
                known[pairs] = changed = change(pairs)
            result.append((changed, name, value))
        return distinct(result)

    return run


def replace_label(target: str, template: str, source: str, pattern: re.Pattern[str]) -> Callable[[Labels], Labels]:
    """Return the change of `label_replace`: where `pattern` matches all of `source`, `target` becomes the filled `template`."""
    parts = compile_template(template, pattern)

    def change(pairs: Labels) -> Labels:
        match = pattern.fullmatch(dict(pairs).get(source, ""))
        return pairs if match is None else _set(pairs, target, expand(parts, match))

    return change


def join_labels(target: str, separator: str, sources: list[str]) -> Callable[[Labels], Labels]:
    """Return the change of `label_join`: `target` becomes the values of `sources`, joined by `separator`."""

    def change(pairs: Labels) -> Labels:
        values = dict(pairs)
        return _set(pairs, target, separator.join(values.get(source, "") for source in sources))

    return change


def _set(pairs: Labels, label: str, value: str) -> Labels:
    others = tuple(pair for pair in pairs if pair[0] != label)
    return tuple(sorted((*others, (label, value)))) if value else others
