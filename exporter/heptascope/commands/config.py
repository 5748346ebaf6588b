"""Show the effective configuration and where each value came from, or its JSON schema.

Values come from the YAML file (--config or HEPTASCOPE_CONFIG), then the environment, then flags. An environment variable is
HEPTASCOPE_ and the key in capitals: gpu.interval is HEPTASCOPE_GPU_INTERVAL. HEPTASCOPE_ENGINE is a list of URLs, with commas.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import click
import yaml

from heptascope.commands._options import ALL, config_options, configuration
from heptascope.config import Settings
from heptascope.config_load import Configuration
from heptascope.yaml_marks import KeyPath

ORIGIN_COLUMN = 44


@click.group(help=__doc__)
def command() -> None:
    """Group of `show` and `schema`."""


@command.command()
@config_options(*ALL)
def show(**options: Any) -> None:
    """Print the effective configuration as YAML, each value with where it came from; secrets are masked."""
    for line in show_lines(configuration(**options)):
        click.echo(line)


@command.command()
def schema() -> None:
    """Print the JSON schema of the YAML file, for editors and the chart."""
    click.echo(json.dumps(Settings.model_json_schema(), indent=2))


def show_lines(loaded: Configuration) -> Iterator[str]:
    """Yield the lines of `config show`: YAML, with the origin of each value as a comment."""
    yield from _lines(loaded, loaded.settings.model_dump(mode="json"), (), "")


def _lines(loaded: Configuration, section: dict[str, Any], at: KeyPath, indent: str) -> Iterator[str]:
    for key, value in section.items():
        path = (*at, key)
        if isinstance(value, dict) and value:
            yield f"{indent}{_text(key)}:"
            yield from _lines(loaded, value, path, indent + "  ")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            yield f"{indent}{_text(key)}:"
            for index, item in enumerate(value):
                yield from _item(_lines(loaded, item, (*path, index), ""), indent)
        else:
            yield f"{indent}{_text(key)}: {_text(_masked(value))}".ljust(ORIGIN_COLUMN) + f"  # {loaded.origin(path)}"


def _item(lines: Iterator[str], indent: str) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f"{indent}  {'- ' if number == 0 else '  '}{line}"


def _masked(value: Any) -> Any:
    """Hide the password in a URL; the model hides its own secrets."""
    if isinstance(value, str) and "@" in value and "://" in value:
        parts = urlsplit(value)
        return urlunsplit(parts._replace(netloc=f"***@{parts.netloc.rpartition('@')[2]}"))
    return value


def _text(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True, width=10_000, allow_unicode=True).removesuffix("\n").removesuffix("\n...")
