"""YAML with the line of every key, so that a mistake in a file can be pointed at."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from heptascope.errors import UserError

KeyPath = tuple[str | int, ...]
MAX_DEPTH = 20  # deeper than any file of ours; a file may hold an alias to itself


@dataclass(frozen=True, slots=True)
class MarkedYaml:
    """The value of a YAML file, and the line (from 1) on which each key or list item stands."""

    path: Path
    value: dict[str, Any] = field(default_factory=dict)
    lines: dict[KeyPath, int] = field(default_factory=dict)


class _Reader:
    """Walks the nodes of one file."""

    def __init__(self, path: Path, loader: yaml.SafeLoader) -> None:
        self.path, self.loader = path, loader
        self.lines: dict[KeyPath, int] = {}

    def error(self, node: yaml.Node, message: str) -> UserError:
        return UserError(message, where=f"{self.path}:{node.start_mark.line + 1}")

    def value(self, node: yaml.Node, at: KeyPath) -> Any:
        if len(at) > MAX_DEPTH:
            raise self.error(node, f"nested deeper than {MAX_DEPTH} levels")
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, at)
        if isinstance(node, yaml.SequenceNode):
            return [self.item(child, (*at, index)) for index, child in enumerate(node.value)]
        try:
            return self.loader.construct_object(node)
        except (yaml.YAMLError, ValueError) as exc:
            raise self.error(node, f"cannot read this value: {str(exc).splitlines()[0]}") from exc

    def item(self, node: yaml.Node, at: KeyPath) -> Any:
        self.lines[at] = node.start_mark.line + 1
        return self.value(node, at)

    def mapping(self, node: yaml.MappingNode, at: KeyPath) -> dict[str, Any]:
        seen: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self.error(key, "a key must be plain text")
            if key.value in seen:
                raise self.error(key, f"key {key.value!r} is here twice, first on line {seen[key.value]}")
            seen[key.value] = key.start_mark.line + 1
        self.loader.flatten_mapping(node)
        result: dict[str, Any] = {}
        for key, child in node.value:
            self.lines[(*at, key.value)] = key.start_mark.line + 1
            result[key.value] = self.value(child, (*at, key.value))
        return result


def read_yaml(path: Path) -> MarkedYaml:
    """Read a YAML file whose top is a mapping. Raises UserError with file and line."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise UserError(f"cannot read the file: {getattr(exc, 'strerror', None) or exc}", where=str(path)) from exc
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return MarkedYaml(path)
        reader = _Reader(path, loader)
        if not isinstance(node, yaml.MappingNode):
            raise reader.error(node, "the file must hold `key: value` lines")
        return MarkedYaml(path, reader.mapping(node, ()), reader.lines)
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else 1
        raise UserError(f"not valid YAML: {exc.problem}", where=f"{path}:{line}") from exc
    except yaml.YAMLError as exc:
        raise UserError(f"not valid YAML: {str(exc).splitlines()[0]}", where=str(path)) from exc
    except RecursionError:  # the parser meets the depth before we do
        raise UserError(f"nested deeper than {MAX_DEPTH} levels", where=str(path)) from None
