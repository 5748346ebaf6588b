"""Start settings from an engine's command line, where one is visible (the same machine, or a shared process namespace).

What an engine's flags mean is a table in that engine's files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

_SUFFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)([kKmMgG]?)")
_NEGATIVE = re.compile(r"-\d")
_MOST_TEXT = 64

Flags = Mapping[str, list[str]]
"""The values of each flag, by its name without dashes in front and with `-` between words."""


@dataclass
class CommandLine:
    """What a command line tells: `settings` as numbers by the keys of names.SETTINGS, `config` as text."""

    settings: dict[str, float] = field(default_factory=dict)
    config: dict[str, str] = field(default_factory=dict)


def _nothing(_flags: Flags, _found: CommandLine) -> None:
    """Add nothing."""


@dataclass(frozen=True)
class CommandTable:
    """The flags of one engine's server.

    `is_server` tells its command line from others. `short` maps short flags to long ones, `numbers` and `texts` long flags to settings
    and to configuration, `switches` flags without a value to the setting that they make and its value. `defaults` hold unless one of
    `files` is given, which may hold anything. `complete` adds what a table cannot say.
    """

    is_server: Callable[[Sequence[str]], bool]
    short: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    switches: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    defaults: Mapping[str, float] = field(default_factory=dict)
    files: tuple[str, ...] = ("config",)
    complete: Callable[[Flags, CommandLine], None] = _nothing

    def read(self, argv: Sequence[str]) -> CommandLine:
        """Return the settings in a command line; nothing if it is not this engine's server. What cannot be read is left out."""
        if not self.is_server(argv):
            return CommandLine()
        flags = self._flags(argv)
        found = CommandLine({} if any(name in flags for name in self.files) else dict(self.defaults))
        for flag, key in self.numbers.items():
            value = number(flags.get(flag, []))
            if value is not None:
                found.settings[key] = value
        for flag, (key, value) in self.switches.items():
            if flag in flags:
                found.settings[key] = value
        for flag, key in self.texts.items():
            if flags.get(flag):
                found.config[key] = flags[flag][0][:_MOST_TEXT]
        self.complete(flags, found)
        return found

    def _flags(self, argv: Sequence[str]) -> dict[str, list[str]]:
        """Return the values of each flag; the last use of one wins. `_` stands for `-` in flags, and `--flag.key value` is part of JSON."""
        flags: dict[str, list[str]] = {}
        values: list[str] = []
        for token in argv:
            if not token.startswith("-") or _NEGATIVE.match(token):
                values.append(token)
                continue
            name, equals, value = token.partition("=")
            values = flags[self._name(name)] = [value] if equals else []
            if re.fullmatch(r"-O\d", name):
                values.append(name[2:])
        return flags

    def _name(self, token: str) -> str:
        head, dot, key = token.partition(".")
        if head.startswith("--"):
            name = head[2:].replace("_", "-")
            return self.short.get(f"--{name}", name) + dot + key
        return self.short.get("-O" if head.startswith("-O") else head, head) + dot + key


def number(values: Sequence[str]) -> float | None:
    """Return a number as engines write it (32k is 32000, 32K is 32768), or None."""
    found = _NUMBER.fullmatch(values[0].strip()) if values else None
    return float(found[1]) * _SUFFIXES[found[2]] if found else None
