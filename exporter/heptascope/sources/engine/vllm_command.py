"""Start settings in the command line of a vLLM server (`vllm serve`, the module, or a Dynamo worker of it)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import Any

from heptascope.sources.engine.answer import parsed
from heptascope.sources.engine.cmdline import CommandLine, CommandTable, Flags, number
from heptascope.sources.engine.names import API_SERVERS

_SPECULATIVE = ("speculative-config", "speculative-model", "spec-method", "spec-model")


def _is_server(argv: Sequence[str]) -> bool:
    return any(PurePath(a).name == "vllm" and b == "serve" for a, b in pairwise(argv)) or any(
        a.startswith(("vllm.entrypoints.", "dynamo.vllm")) or a.endswith("/api_server.py") for a in argv
    )


def _json(flags: Flags, name: str) -> dict[str, Any]:
    """Return a flag's JSON object together with its dotted parts."""
    try:
        value = parsed(flags[name][0]) if flags.get(name) else {}
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
    sizes = [number([text]) for text in flags.get("cudagraph-capture-sizes", [])]
    sizes += [number([size]) for size in re.findall(r"\d+", str(compilation.get("cudagraph_capture_sizes")))]
    sizes.append(number([str(compilation.get("max_cudagraph_capture_size"))]))
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


def _backend(flags: Flags, found: CommandLine) -> None:
    backend = _json(flags, "attention-config").get("backend")
    if isinstance(backend, str):
        found.config["attention_backend"] = backend


def _experts(flags: Flags, found: CommandLine) -> None:
    """Tell over how many ranks experts are spread: with expert parallelism over all of the tensor and data parallel ones."""
    tensor, data = found.settings.get("tensor_parallel_size"), number(flags.get("data-parallel-size", ["1"]))
    if "enable-expert-parallel" in flags and tensor and data:
        found.config["expert_parallel_size"] = f"{tensor * data:g}"


def _complete(flags: Flags, found: CommandLine) -> None:
    _graphs(flags, found)
    for flag, key in (("enforce-eager", "enforce_eager"), ("enable-prefix-caching", "enable_prefix_caching")):
        if flag in flags or f"no-{flag}" in flags:
            found.settings[key] = float(flag in flags)
    _speculation(flags, found)
    _backend(flags, found)
    _experts(flags, found)


COMMAND = CommandTable(
    _is_server,
    short={
        "-tp": "tensor-parallel-size",
        "-pp": "pipeline-parallel-size",
        "-dp": "data-parallel-size",
        "-ep": "enable-expert-parallel",
        "-asc": "api-server-count",
        "-sc": "speculative-config",
        "-cc": "compilation-config",
        "-ac": "attention-config",
        "-O": "optimization-level",
    },
    numbers={
        "max-num-seqs": "max_num_seqs",
        "max-num-batched-tokens": "max_num_batched_tokens",
        "max-model-len": "max_model_len",
        "max-cudagraph-capture-size": "max_cudagraph_capture_size",
        "tensor-parallel-size": "tensor_parallel_size",
        "pipeline-parallel-size": "pipeline_parallel_size",
        "api-server-count": API_SERVERS,
    },
    texts={
        "attention-backend": "attention_backend",
        "data-parallel-size": "data_parallel_size",
        "distributed-executor-backend": "distributed_executor_backend",
        "dtype": "dtype",
        "kv-cache-dtype": "kv_cache_dtype",
        "quantization": "quantization",
    },
    # these defaults are the same in every release; the others depend on version, hardware or model and stay unknown
    defaults={"tensor_parallel_size": 1.0, "pipeline_parallel_size": 1.0, "enforce_eager": 0.0, "speculative": 0.0},
    complete=_complete,
)
