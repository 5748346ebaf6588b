"""Start settings of engines, from the command lines that the host source sees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from heptascope.sources.engine.cmdline import CommandLine, vllm_settings


def settings_by_engine(processes: Iterable[Mapping[str, Any]]) -> dict[str, CommandLine]:
    """Return what the command lines in a host row's `procs` tell, by engine; engines whose processes tell nothing are left out."""
    found: dict[str, CommandLine] = {}
    for process in processes:
        engine, words = process.get("engine"), process.get("cmdline")
        if isinstance(engine, str) and engine and isinstance(words, list) and engine not in found:
            told = vllm_settings([str(word) for word in words])
            if told.settings or told.config:
                found[engine] = told
    return found
