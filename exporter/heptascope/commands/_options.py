"""Options that several commands share: the configuration and the flags that override it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from heptascope.config_load import Configuration, load
from heptascope.quantities import parse_duration
from heptascope.yaml_marks import KeyPath

Command = Callable[..., Any]

# option name: the key it sets and how its value is put there
_KEYS: dict[str, tuple[str, KeyPath, Callable[[Any], Any]]] = {
    "listen": ("--listen", ("listen",), str),
    "engine": ("--engine", ("engines",), lambda urls: [{"url": url} for url in urls]),
    "gpu": ("--gpu", ("gpu", "source"), str),
    "gpu_interval": ("--gpu-interval", ("gpu", "interval"), str),
    "compat": ("--compat", ("web", "compat"), str),
    "record": ("--record", ("record", "dir"), str),
    "log_level": ("--log-level", ("log", "level"), str),
    "log_format": ("--log-format", ("log", "format"), str),
}

_OPTIONS = {
    "config": click.option("--config", "config", metavar="FILE", type=click.Path(path_type=Path), help="YAML file with the configuration."),
    "engine": click.option(
        "--engine", metavar="URL", multiple=True, help="Engine to watch; repeatable. Default: look for it on well-known local ports."
    ),
    "gpu": click.option("--gpu", metavar="SOURCE", help="How to read GPUs: auto, dcgm, nvml, dcgm-exporter or none."),
    "gpu-interval": click.option("--gpu-interval", metavar="TIME", help="Time between two GPU reads, 100ms or more. Default: 1s."),
    "listen": click.option("--listen", metavar="HOST:PORT", help="Address to serve on. Default: port 17007 of all addresses."),
    "compat": click.option("--compat", metavar="NAMES", help="Show GPU signals also under other names: dcgm-exporter."),
    "record": click.option("--record", metavar="DIR", help="Also write what the sources read, to replay it later."),
    "log-level": click.option("--log-level", metavar="LEVEL", help="debug, info, warning or error."),
    "log-format": click.option("--log-format", metavar="FORMAT", help="text or json."),
}
ALL = tuple(_OPTIONS)
SOURCES = ("config", "engine", "gpu", "gpu-interval", "log-level", "log-format")


def duration(ctx: click.Context, param: click.Parameter, value: Any) -> float:  # noqa: ARG001  # click's signature
    """Return the seconds of an option's value, such as 30s; for `callback=`."""
    try:
        return parse_duration(value)
    except ValueError as exc:
        raise click.BadParameter(f"{value}: {exc}") from exc


def config_options(*names: str) -> Callable[[Command], Command]:
    """Give a command the options in `names`; it passes what it gets for them to `configuration`."""

    def decorate(command: Command) -> Command:
        for name in reversed(names):
            command = _OPTIONS[name](command)
        return command

    return decorate


def configuration(config: Path | None = None, **options: Any) -> Configuration:
    """Load the configuration from the file, this process's environment and the flags given. Raises UserError."""
    flags = {_KEYS[name][0]: (_KEYS[name][1], _KEYS[name][2](value)) for name, value in options.items() if value}
    return load(config, os.environ, flags)
