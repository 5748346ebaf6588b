"""Start settings in the command line of `trtllm-serve`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from heptascope.sources.engine.cmdline import CommandTable


def _is_server(argv: Sequence[str]) -> bool:
    return any(PurePath(word).name == "trtllm-serve" or word.startswith("tensorrt_llm.commands.serve") for word in argv)


COMMAND = CommandTable(
    _is_server,
    short={
        "--tensor-parallel-size": "tp-size",
        "--pipeline-parallel-size": "pp-size",
        "--moe-expert-parallel-size": "ep-size",
    },
    numbers={
        "max-batch-size": "max_num_seqs",
        "max-num-tokens": "max_num_batched_tokens",
        "max-seq-len": "max_model_len",
        "tp-size": "tensor_parallel_size",
        "pp-size": "pipeline_parallel_size",
    },
    texts={
        "backend": "backend",
        "ep-size": "expert_parallel_size",
        "kv-cache-dtype": "kv_cache_dtype",
        "kv-cache-free-gpu-memory-fraction": "gpu_memory_utilization",
        "num-postprocess-workers": "num_postprocess_workers",
    },
    defaults={"tensor_parallel_size": 1.0, "pipeline_parallel_size": 1.0},
    files=("extra-llm-api-options", "config"),
)
