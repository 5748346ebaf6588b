"""Puts the probe into a running vLLM: which versions, which functions, and how it goes away again."""

from __future__ import annotations

import asyncio
import atexit
import importlib
import inspect
import logging
import os
import re
from collections.abc import Callable
from functools import wraps
from importlib import metadata
from pathlib import Path
from typing import Any

from heptascope.vllm_probe.counting import (
    Counts,
    around_free,
    around_loop,
    around_preempt,
    around_schedule,
    around_step,
    around_update,
)
from heptascope.vllm_probe.frontend import FrontCounts, LoopWatch, around_output_handler, around_tokenizer
from heptascope.vllm_probe.layout import CORE, FRONTEND, Writer
from heptascope.vllm_probe.publishing import Publisher

log = logging.getLogger("vllm.heptascope")

FOLDER_VARIABLE = "HEPTASCOPE_PROBE_DIR"
ANY_VERSION_VARIABLE = "HEPTASCOPE_PROBE_ANY_VERSION"
SUPPORTED = ((0, 11), (0, 32))
"""The minor releases on which the tests run it. Others have not been tried and are refused, unless the variable above is set."""

_CORE, _SCHEDULER = "vllm.v1.engine.core", "vllm.v1.core.sched.scheduler"
_CACHE, _FRONT = "vllm.v1.core.kv_cache_manager", "vllm.v1.engine.async_llm"
_TOKENIZER = "transformers.tokenization_utils_base"

_WITHOUT_ARGUMENTS = ("step", "step_with_batch_queue", "_process_engine_step")
"""Called once a step with nothing but the engine core, in every supported release; passing none on saves a tenth of the probe's cost."""

Plan = list[tuple[type, str, Callable[[Any], Any]]]
"""Class, function of it, and what makes the function that takes its place."""

_state: Probe | None = None


class Probe:
    """The wrapped functions of this process, and the way back."""

    def __init__(self, folder: Path, version: str) -> None:
        """Wrap nothing yet."""
        self._folder, self._version = folder, version
        self.counts, self.front = Counts(), FrontCounts()
        self._originals: list[tuple[type, str, Any]] = []
        self._publisher: Publisher | None = None
        self._watch: LoopWatch | None = None

    def wrap(self) -> None:
        """Wrap the engine's functions. Raises AttributeError, ImportError or TypeError if they are not those that are known."""
        found = [(owner, name, getattr(owner, name), around) for owner, name, around in (*self._core_plan(), *self._front_plan())]
        for owner, name, original, _ in found:
            if name in _WITHOUT_ARGUMENTS and len(inspect.signature(original).parameters) != 1:
                raise TypeError(f"{owner.__name__}.{name} takes arguments")
        for owner, name, original, around in found:
            self._originals.append((owner, name, original))
            setattr(owner, name, wraps(original)(around(original)))

    def _core_plan(self) -> Plan:
        core, scheduler, counts = importlib.import_module(_CORE), importlib.import_module(_SCHEDULER).Scheduler, self.counts
        plan: Plan = [
            (scheduler, "schedule", lambda f: around_schedule(f, counts, self.fail)),
            (scheduler, "update_from_output", lambda f: around_update(f, counts, self.fail)),
            (core.EngineCore, "step", lambda f: around_step(f, counts, self.fail)),
            (core.EngineCore, "step_with_batch_queue", lambda f: around_step(f, counts, self.fail)),
            (core.EngineCoreProc, "_process_engine_step", lambda f: around_loop(f, counts, self.fail, self.begin_core)),
        ]
        if hasattr(scheduler, "_preempt_request"):
            return [*plan, (scheduler, "_preempt_request", lambda f: around_preempt(f, counts, self.fail))]
        manager = importlib.import_module(_CACHE).KVCacheManager
        return [*plan, (manager, "free", lambda f: around_free(f, counts, self.fail))]

    def _front_plan(self) -> Plan:
        client = importlib.import_module(_FRONT).AsyncLLM
        tokenizer = importlib.import_module(_TOKENIZER).PreTrainedTokenizerBase
        return [
            (client, "_run_output_handler", lambda f: around_output_handler(f, self.fail, self.begin_frontend)),
            (tokenizer, "__call__", lambda f: around_tokenizer(f, self.front, self.fail)),
        ]

    def begin_core(self, core: Any) -> None:
        """Start to publish, at the first turn of the loop of an engine core: only its process has one."""
        try:
            rank = int(getattr(core.vllm_config.parallel_config, "data_parallel_rank", 0))
            self._publish(self.counts.picture, Writer(self._folder, rank, self._version, CORE))
        except Exception as error:  # noqa: BLE001  # whatever it is, the engine must run on
            self.fail(error)

    def begin_frontend(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start to watch the event loop of an API server, and to publish. Raises OSError."""
        self._publish(self.front.picture, Writer(self._folder, 0, self._version, FRONTEND))
        self._watch = LoopWatch(loop, self.front, self.fail)

    def _publish(self, picture: Callable[[], tuple[int, ...]], writer: Writer) -> None:
        self._publisher = Publisher(picture, writer, self.fail)
        atexit.register(self.stop)
        log.info("heptascope's probe writes to %s", self._folder)

    def fail(self, error: BaseException) -> None:
        """Put the engine's own functions back and say so once."""
        if self._originals:
            log.warning("heptascope's probe has switched itself off: %s: %s", type(error).__name__, error)
        self.stop()

    def stop(self) -> None:
        """Put the engine's own functions back and remove the file."""
        for owner, name, original in self._originals:
            setattr(owner, name, original)
        self._originals = []
        if self._watch is not None:
            self._watch.ended = True
        publisher, self._publisher = self._publisher, None
        if publisher is not None:
            publisher.stop()


def install() -> None:
    """Put the probe in, if it was asked for and this vLLM is known; called by vLLM in each of its processes. Never raises."""
    global _state  # one probe a process, and vLLM may call twice
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder or _state is not None:
        return
    try:
        version = metadata.version("vllm")
        if not supported(version) and not os.environ.get(ANY_VERSION_VARIABLE):
            known = ", ".join(f"{major}.{minor}" for major, minor in SUPPORTED)
            log.warning(
                "heptascope's probe stays off: it is tested with vLLM %s, not with %s; %s=1 tries", known, version, ANY_VERSION_VARIABLE
            )
            return
        _state = Probe(Path(folder), version)
        _state.wrap()
    except Exception as error:  # noqa: BLE001  # whatever it is, the engine must start
        log.warning("heptascope's probe stays off: %s: %s", type(error).__name__, error)


def supported(version: str) -> bool:
    """Return whether the probe is tested with this version of vLLM."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return found is not None and (int(found[1]), int(found[2])) in SUPPORTED
