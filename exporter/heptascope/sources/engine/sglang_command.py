"""Start settings in the command line of an SGLang server. Its `/server_info` tells them too, with defaults filled in."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import PurePath

from heptascope.sources.engine.cmdline import CommandLine, CommandTable, Flags


def _is_server(argv: Sequence[str]) -> bool:
    return any(a.startswith(("sglang.launch_server", "dynamo.sglang")) for a in argv) or any(
        PurePath(a).name == "sglang" and b == "serve" for a, b in pairwise(argv)
    )


def _complete(flags: Flags, found: CommandLine) -> None:
    algorithm = flags.get("speculative-algorithm") or flags.get("speculative-algo")
    if algorithm:
        found.settings["speculative"] = float(algorithm[0].upper() != "NONE")


COMMAND = CommandTable(
    _is_server,
    short={
        "--tp": "tp-size",
        "--tensor-parallel-size": "tp-size",
        "--pp": "pp-size",
        "--pipeline-parallel-size": "pp-size",
        "--dp": "dp-size",
        "--data-parallel-size": "dp-size",
        "--ep": "ep-size",
        "--expert-parallel-size": "ep-size",
    },
    numbers={
        "max-running-requests": "max_num_seqs",
        "context-length": "max_model_len",
        "cuda-graph-max-bs": "max_cudagraph_capture_size",
        "tp-size": "tensor_parallel_size",
        "pp-size": "pipeline_parallel_size",
    },
    texts={
        "attention-backend": "attention_backend",
        "chunked-prefill-size": "chunked_prefill_size",
        "decode-attention-backend": "decode_attention_backend",
        "dp-size": "data_parallel_size",
        "dtype": "dtype",
        "ep-size": "expert_parallel_size",
        "kv-cache-dtype": "kv_cache_dtype",
        "max-prefill-tokens": "max_prefill_tokens",
        "page-size": "block_size",
        "prefill-attention-backend": "prefill_attention_backend",
        "quantization": "quantization",
        "sampling-backend": "sampling_backend",
        "schedule-policy": "schedule_policy",
        "speculative-algorithm": "speculative_method",
        "speculative-num-draft-tokens": "speculative_tokens",
        "speculative-num-steps": "speculative_steps",
    },
    switches={"disable-cuda-graph": ("enforce_eager", 1.0), "disable-radix-cache": ("enable_prefix_caching", 0.0)},
    defaults={"tensor_parallel_size": 1.0, "pipeline_parallel_size": 1.0},
    complete=_complete,
)
