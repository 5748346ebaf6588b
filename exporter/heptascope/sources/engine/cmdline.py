"""Start settings from a vLLM command line, where one is visible (the same machine, or a shared process namespace)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import PurePath
from typing import Any

from heptascope.sources.engine.names import API_SERVERS

_SHORT = {
    "-tp": "tensor-parallel-size",
    "-pp": "pipeline-parallel-size",
    "-dp": "data-parallel-size",
    "-asc": "api-server-count",
    "-sc": "speculative-config",
    "-cc": "compilation-config",
    "-ac": "attention-config",
    "-O": "optimization-level",
}
_NUMBERS = {
    "max-num-seqs": "max_num_seqs",
    "max-num-batched-tokens": "max_num_batched_tokens",
    "max-model-len": "max_model_len",
    "max-cudagraph-capture-size": "max_cudagraph_capture_size",
    "tensor-parallel-size": "tensor_parallel_size",
    "pipeline-parallel-size": "pipeline_parallel_size",
    "api-server-count": API_SERVERS,
}
_SWITCHES = {"enforce-eager": "enforce_eager", "enable-prefix-caching": "enable_prefix_caching"}
_TEXTS = ("attention-backend", "data-parallel-size", "distributed-executor-backend", "dtype", "kv-cache-dtype", "quantization")
_SPECULATIVE = ("speculative-config", "speculative-model", "spec-method", "spec-model")
_DEFAULTS = {"tensor_parallel_size": 1.0, "pipeline_parallel_size": 1.0, "enforce_eager": 0.0, "speculative": 0.0}
"""Defaults that are the same in every vLLM release; the others depend on version, hardware or model and stay unknown."""

_SUFFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)([kKmMgG]?)")
_NEGATIVE = re.compile(r"-\d")

Flags = Mapping[str, list[str]]


@dataclass
class CommandLine:
    """What a command line tells: `settings` as numbers by the keys of names.SETTINGS, `config` as text."""

    settings: dict[str, float] = field(default_factory=dict)
    config: dict[str, str] = field(default_factory=dict)


def vllm_settings(argv: Sequence[str]) -> CommandLine:
    """Return the start settings in the command line of a vLLM server; nothing if it is none. What cannot be read is left out.

    With `--config FILE` nothing is known to stand at its default, since the file may hold anything.
    """
    if not _is_server(argv):
        return CommandLine()
    flags = _flags(argv)
    found = CommandLine({} if "config" in flags else dict(_DEFAULTS))
    for flag, key in _NUMBERS.items():
        value = _number(flags.get(flag, []))
        if value is not None:
            found.settings[key] = value
    _graphs(flags, found)
    for flag, key in _SWITCHES.items():
        if flag in flags or f"no-{flag}" in flags:
            found.settings[key] = float(flag in flags)
    _speculation(flags, found)
    _texts(flags, found)
    return found


def _is_server(argv: Sequence[str]) -> bool:
    return any(PurePath(a).name == "vllm" and b == "serve" for a, b in pairwise(argv)) or any(
        a.startswith("vllm.entrypoints.") or a.endswith("/api_server.py") for a in argv
    )


def _flags(argv: Sequence[str]) -> dict[str, list[str]]:
    """Return the values of each flag; the last use of one wins. vLLM takes `_` for `-` in flags, and `--flag.key value` for JSON."""
    flags: dict[str, list[str]] = {}
    values: list[str] = []
    for token in argv:
        if not token.startswith("-") or _NEGATIVE.match(token):
            values.append(token)
            continue
        name, equals, value = token.partition("=")
        values = flags[_flag_name(name)] = [value] if equals else []
        if re.fullmatch(r"-O\d", name):
            values.append(name[2:])
    return flags


def _flag_name(token: str) -> str:
    head, dot, key = token.partition(".")
    if head.startswith("--"):
        return head[2:].replace("_", "-") + dot + key
    return _SHORT.get("-O" if head.startswith("-O") else head, head) + dot + key


def _number(values: Sequence[str]) -> float | None:
    """Return a number as vLLM writes it (32k is 32000, 32K is 32768), or None."""
    found = _NUMBER.fullmatch(values[0].strip()) if values else None
    return float(found[1]) * _SUFFIXES[found[2]] if found else None


def _json(flags: Flags, name: str) -> dict[str, Any]:
    """Return a flag's JSON object together with its dotted parts."""
    try:
        value = json.loads(flags[name][0]) if flags.get(name) else {}
    except ValueError:
        value = {}
    found: dict[str, Any] = dict(value) if isinstance(value, dict) else {}
    for flag, values in flags.items():
        if flag.startswith(name + ".") and values:
            found[flag[len(name) + 1 :].replace("-", "_")] = values[0]
    return found


def _graphs(flags: Flags, found: CommandLine) -> None:
    """Tell whether CUDA graphs are used and up to which batch; level 0 switches them off in some releases only."""
    compilation = _json(flags, "compilation-config")
    sizes = [_number([text]) for text in flags.get("cudagraph-capture-sizes", [])]
    sizes += [_number([str(size)]) for size in compilation.get("cudagraph_capture_sizes") or []]
    sizes.append(_number([str(compilation.get("max_cudagraph_capture_size"))]))
    known = [size for size in sizes if size is not None]
    if known:
        found.settings["max_cudagraph_capture_size"] = max(known)
    if "0" in (*flags.get("optimization-level", []), str(compilation.get("level")), str(compilation.get("mode"))):
        found.settings.pop("enforce_eager", None)
    if str(compilation.get("cudagraph_mode", "")).upper() == "NONE" or compilation.get("use_cudagraph") is False:
        found.settings["enforce_eager"] = 1.0


def _speculation(flags: Flags, found: CommandLine) -> None:
    if not any(flag.partition(".")[0] in _SPECULATIVE for flag in flags):
        return
    off = flags.get("speculative-config") in (["null"], ["None"])
    found.settings["speculative"] = 0.0 if off else 1.0
    told = _json(flags, "speculative-config")
    for key in ("method", "num_speculative_tokens"):
        if key in told:
            found.config[f"speculative_{key.removeprefix('num_speculative_')}"] = str(told[key])


def _texts(flags: Flags, found: CommandLine) -> None:
    for flag in _TEXTS:
        if flags.get(flag):
            found.config[flag.replace("-", "_")] = flags[flag][0]
    backend = _json(flags, "attention-config").get("backend")
    if isinstance(backend, str):
        found.config["attention_backend"] = backend
