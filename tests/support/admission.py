"""Evaluates a MutatingAdmissionPolicy on a pod: its CEL by Google's runtime, its JSON patches by hand.

That runtime knows nothing of the types `Object.…` and `JSONPatch`, which the API server makes from the object's schema. Their literals
are read as maps that remember their type, and the type has to be the place in the object where the value comes to lie.
"""

from __future__ import annotations

import copy
import re
from typing import Any

from cel_expr_python import cel

_TOKEN = re.compile(r'(?P<text>"(?:[^"\\]|\\.)*")|(?P<type>Object[\w.]*|JSONPatch)\{(?P<empty>\s*\})?|(?<![\w.])(?P<field>[A-Za-z_]\w*):')
_ESCAPE = re.compile(r"jsonpatch\.escapeKey\((\"[^\"]*\")\)")
_TYPE = "@type"


def admit(policy: dict[str, Any], pod: dict[str, Any]) -> dict[str, Any]:
    """Return the pod as the policy leaves it. Raises AssertionError where a type is not that of its place."""
    if not all(_evaluate(condition["expression"], pod) for condition in policy["spec"]["matchConditions"]):
        return pod
    changed = copy.deepcopy(pod)
    for mutation in policy["spec"]["mutations"]:
        assert "JSONPatch" == mutation["patchType"]
        for patch in _evaluate(mutation["jsonPatch"]["expression"], pod):
            assert "JSONPatch" == patch.pop(_TYPE)
            _add(changed, patch)
    return changed


def _evaluate(expression: str, pod: dict[str, Any]) -> Any:
    compiled = cel.NewEnv(variables={"object": cel.Type.DYN}).compile(_plain(expression))
    value = compiled.eval(data={"object": pod})
    assert "error" not in str(value.type()).lower(), value
    return value.plain_value()


def _plain(expression: str) -> str:
    """Write typed literals as maps, and the one function of the API server as its result."""

    def token(match: re.Match[str]) -> str:
        if match["text"]:
            return match["text"]
        if match["type"]:
            return f'{{"{_TYPE}": "{match["type"]}"' + ("}" if match["empty"] else ", ")
        return f'"{match["field"]}":'

    escaped = _ESCAPE.sub(lambda match: match[1].replace("~", "~0").replace("/", "~1"), expression)
    return _TOKEN.sub(token, escaped)


def _add(pod: dict[str, Any], patch: dict[str, Any]) -> None:
    """Carry out one `add` of RFC 6902."""
    assert {"op": "add"} == {"op": patch["op"]}
    *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in patch["path"].removeprefix("/").split("/")]
    place: Any = pod
    for part in parents:
        place = place[int(part)] if isinstance(place, list) else place[part]
    named = [part for part in (*parents, last) if not (part == "-" or part.isdigit())]
    value = _untyped(patch["value"], ".".join(["Object", *named]))
    if isinstance(place, list):
        place.insert(len(place) if last == "-" else int(last), value)
    else:
        place[last] = value


def _untyped(value: Any, place: str) -> Any:
    """Check the types of literals against where they lie, and drop them."""
    if isinstance(value, list):
        return [_untyped(item, place) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value.pop(_TYPE, None)
    assert kind in (None, place), f"{kind} at {place}"
    return {key: _untyped(item, f"{place}.{key}") for key, item in value.items()}
