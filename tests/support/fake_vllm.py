"""Functions that stand in for those of vLLM which the in-engine probe wraps."""

from __future__ import annotations

import types
from typing import Any


class Scheduled:
    """What a scheduler returns."""

    total_num_scheduled_tokens = 32
    num_scheduled_tokens = {"a": 31, "b": 1}  # noqa: RUF012  # never changed
    scheduled_new_reqs = (types.SimpleNamespace(req_id="a"),)


class Scheduler:
    """Stands in for vLLM's."""

    max_num_running_reqs, max_num_scheduled_tokens = 2, 32

    def __init__(self) -> None:
        self.running: list[str] = ["a", "b"]
        self.waiting: list[str] = ["c"]
        self.requests: dict[str, Any] = {name: types.SimpleNamespace(num_computed_tokens=31, num_tokens=31) for name in "ab"}

    def schedule(self) -> Scheduled:
        return Scheduled()

    def update_from_output(self, scheduled: Scheduled, output: str) -> str:
        return output

    def _preempt_request(self, request: Any, timestamp: float) -> None:
        request.num_computed_tokens = 0


class KVCacheManager:
    """Stands in for vLLM's."""

    def free(self, request: Any) -> None:
        pass


class AsyncLLM:
    """Stands in for vLLM's."""

    def _run_output_handler(self) -> str:
        return "runs"


class PreTrainedTokenizerBase:
    """Stands in for that of transformers."""

    def __call__(self, text: str) -> list[int]:
        return [len(text)]


class EngineCore:
    """Stands in for vLLM's."""

    def __init__(self) -> None:
        self.scheduler = Scheduler()
        parallel = types.SimpleNamespace(data_parallel_rank=1)
        self.vllm_config = types.SimpleNamespace(parallel_config=parallel)

    def step(self) -> str:
        return self.scheduler.update_from_output(self.scheduler.schedule(), "tokens")

    def step_with_batch_queue(self) -> str:
        return self.step()


class EngineCoreProc(EngineCore):
    """Stands in for vLLM's."""

    def _process_engine_step(self) -> str:
        return self.step()
