"""Reads the chart's values.yaml with its comments: what the README's table and values.schema.json are made from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

CHART = Path(__file__).parents[2] / "helm" / "heptascope"
_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


class Value(NamedTuple):
    """One value that a user may set."""

    path: tuple[str, ...]
    default: Any
    description: str
    schema: dict[str, Any]  # what narrows it, from its @schema comment

    @property
    def type(self) -> str:
        """The JSON type of the default."""
        return _TYPES[type(self.default)]


def values() -> list[Value]:
    """Return the described values in the order of the file. Raises AssertionError for a leaf that has no description."""
    text = (CHART / "values.yaml").read_text(encoding="utf-8")
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    return list(_values(root, text.splitlines(), ()))


def _values(node: yaml.MappingNode, lines: list[str], at: tuple[str, ...]) -> Iterator[Value]:
    for key, child in node.value:
        path = (*at, key.value)
        description, schema = _comment(lines, key.start_mark.line)
        if description:
            yield Value(path, yaml.safe_load(yaml.serialize(child)), description, schema)
        else:
            assert isinstance(child, yaml.MappingNode), f"{'.'.join(path)} has no description"
            assert child.value, f"{'.'.join(path)} has no description"
            yield from _values(child, lines, path)


def _comment(lines: list[str], line: int) -> tuple[str, dict[str, Any]]:
    """Return the description and the schema in the comment above `line`."""
    first = line
    while first and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    texts = [text.strip().removeprefix("#").strip() for text in lines[first:line]]
    schema = [text.removeprefix("@schema") for text in texts if text.startswith("@schema")]
    words = [text for text in texts if not text.startswith("@schema")]
    start = next((i for i, text in enumerate(words) if text.startswith("-- ")), len(words))
    return " ".join(words[start:]).removeprefix("-- "), json.loads(schema[0]) if schema else {}
