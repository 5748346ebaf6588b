"""Start settings of engines, from the command lines that the host source sees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from heptascope.sources.engine.adapter import adapters
from heptascope.sources.engine.cmdline import CommandLine


def settings_by_engine(processes: Iterable[Mapping[str, Any]]) -> dict[str, CommandLine]:
    """Return what the command lines in a host row's `procs` tell, by engine; engines whose processes tell nothing are left out.

    Where a launcher and the server that it started both tell, the first one in sight counts.
    """
    found: dict[str, CommandLine] = {}
    for process in processes:
        engine, words = process.get("engine"), process.get("cmdline")
        if isinstance(engine, str) and engine and isinstance(words, list) and engine not in found:
            told = read_command([str(word) for word in words])
            if told.settings or told.config:
                found[engine] = told
    return found


def read_command(argv: Sequence[str]) -> CommandLine:
    """Return what a command line tells, whichever engine's it is; nothing if it is none's."""
    tables = [adapter.command for adapter in adapters().values() if adapter.command is not None]
    return next((table.read(argv) for table in tables if table.is_server(argv)), CommandLine())
