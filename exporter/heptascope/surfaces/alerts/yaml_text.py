"""YAML as people like to read it: blocks for long text, keys in the order given."""

from __future__ import annotations

from typing import Any

import yaml

WIDTH = 140


class _Dumper(yaml.SafeDumper):
    """Indents lists below their key and writes text of several lines as a block."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002  # the library's signature
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  # the library's signature
        return True


class Flow(list[Any]):
    """A list that is written on one line."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


def _flow(dumper: yaml.SafeDumper, value: Flow) -> yaml.SequenceNode:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=True)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(Flow, _flow)


def to_yaml(value: Any, comment: str = "") -> str:
    """Return `value` as a YAML document below `comment` (its lines without their `# `)."""
    head = "".join(f"# {line}".rstrip() + "\n" for line in comment.splitlines())
    return head + yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=WIDTH, allow_unicode=True)
