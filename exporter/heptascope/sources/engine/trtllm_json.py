"""TensorRT-LLM's JSON iteration statistics: exact steps, but reading them takes them away from every other reader.

They are therefore read only where `engines[].kind: trtllm-json` says so. Each page holds the iterations since the last read; their
sums become counters here. Records that the engine dropped from its bounded buffer are counted as steps by the gap in their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from heptascope.model import Quality, Reason
from heptascope.sources.base import SourceError
from heptascope.sources.engine.adapter import Absence, Beside, Collector, Context, Question, register
from heptascope.sources.engine.answer import parsed
from heptascope.sources.engine.cmdline import CommandTable
from heptascope.sources.engine.page import Document
from heptascope.sources.engine.trtllm import told_by_models, told_by_server
from heptascope.sources.engine.trtllm_requests import PATH, RequestTimes, request_times

Record = Mapping[str, Any]
_MS = 1e-3
_RANK = "0"
_FLAG = Absence(Reason.IDLE, "no iteration yet; on the PyTorch backend it needs enable_iter_perf_stats: true")
_NOT_TOLD = Absence(Reason.ENGINE, "this release's iterations do not tell it")
_NO_TIERS = Absence(Reason.ENGINE_TOO_OLD, "needs TensorRT-LLM 1.3 or newer, with its kvCacheIterationStats")


def _number(record: Record, *path: str) -> float:
    """Return a number in a record, 0 for what is null, absent or below 0: sub-objects come and go with releases."""
    value: Any = record
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else 0.0


def _batch(record: Record, name: str) -> float:
    return _number(record, "inflightBatchingStats", name)


def _step_tokens(record: Record) -> float:
    """Return the tokens of an iteration: prefill tokens, and one per generating request beside its accepted drafts."""
    return _batch(record, "numCtxTokens") + _batch(record, "numGenRequests") + _number(record, "specDecodingStats", "numAcceptedTokens")


def _onboarded(record: Record) -> float:
    """Return the bytes that came back from the host tier, over all window sizes."""
    windows = record.get("kvCacheIterationStats")
    each = windows.values() if isinstance(windows, Mapping) else ()
    return sum(_number(window, "iterOnboardBytes") for window in each if isinstance(window, Mapping))


_SUMS: Mapping[str, Callable[[Record], float]] = {
    "prompt_tokens_total": lambda r: _batch(r, "numCtxTokens"),
    "step_tokens_total": _step_tokens,
    "spec_draft_tokens_total": lambda r: _number(r, "specDecodingStats", "numDraftTokens"),
    "spec_accepted_tokens_total": lambda r: _number(r, "specDecodingStats", "numAcceptedTokens"),
    "spec_drafts_total": lambda r: _number(r, "specDecodingStats", "numRequestsWithDraftTokens"),
}
_OF_BATCHES = ("prompt_tokens_total", "step_tokens_total", "batch_tokens_total", "preemptions_total")
_STAGES = {"host": ("hostStepTimeMS", "iterLatencyMS"), "device": ("prevDeviceStepTimeMS",)}


class JsonSession:
    """Sums up the iterations of one engine."""

    def __init__(self) -> None:
        """Start at nothing."""
        self._totals: dict[str, float] = {}
        self._latest: Record = {}
        self._iteration: float | None = None
        self._paused = 0.0
        self._batches = False  # whether any iteration told what its batch held
        self._requests = RequestTimes()

    def parse(self, document: Document, context: Context, out: Collector) -> None:
        """Add the iterations of this page. Raises SourceError if it is no list of them."""
        records = _records(document)
        if records and self._iteration is not None and _number(records[0], "iter") < self._iteration:
            self._iteration = None  # the engine has restarted and counts anew
        for record in records:
            self._add(record)
        out.sample("info", out.pairs(_RANK, {"kind": "trtllm-json", "version": context.stated_version, "model": context.told.model}), 1.0)
        if self._latest:
            self._levels(self._latest, out)
            self._counters(out)
        else:
            for signal in ("requests_running", "requests_waiting", "kv_cache_usage_ratio", "steps_total"):
                out.lack(signal, _FLAG)
        self._requests.add(context.beside.get(PATH))
        self._requests.show(out, _RANK)
        out.settings(context, (_RANK,))

    def _add(self, record: Record) -> None:
        iteration = _number(record, "iter")
        self._sum("steps_total", max(iteration - self._iteration, 1.0) if self._iteration is not None else 1.0)
        for signal, of in _SUMS.items():
            self._sum(signal, of(record))
        for stage, names in _STAGES.items():
            self._sum(f"stage:{stage}", next((_number(record, name) for name in names if record.get(name)), 0.0) * _MS)
        self._sum("queued", _number(record, "newActiveRequestsQueueLatencyMS") * _MS)
        self._sum("admitted", _number(record, "numNewActiveRequests"))
        self._sum("finished", _number(record, "numCompletedRequests"))
        self._sum("onboarded", _onboarded(record))
        self._batches |= isinstance(record.get("inflightBatchingStats"), Mapping)
        paused = _batch(record, "numPausedRequests")
        self._sum("preemptions_total", max(paused - self._paused, 0.0))
        self._paused, self._iteration, self._latest = paused, iteration, record

    def _sum(self, name: str, amount: float) -> None:
        self._totals[name] = self._totals.get(name, 0.0) + amount

    def _levels(self, record: Record, out: Collector) -> None:
        pairs = out.pairs(_RANK)
        blocks, used, size = (_number(record, "kvCacheStats", name) for name in ("maxNumBlocks", "usedNumBlocks", "tokensPerBlock"))
        for signal, name in (("requests_running", "numActiveRequests"), ("requests_waiting", "numQueuedRequests")):
            if isinstance(record.get(name), int | float):
                out.sample(signal, pairs, _number(record, name))
            else:
                out.lack(signal, _NOT_TOLD)
        if blocks > 0:
            out.sample("kv_cache_usage_ratio", pairs, used / blocks)
            out.sample("kv_cache_capacity_tokens", pairs, blocks * size)
            out.mark("kv_cache_usage_ratio", _RANK, Quality.DERIVED)
            out.mark("kv_cache_capacity_tokens", _RANK, Quality.DERIVED)
            reused, missed = (_number(record, "kvCacheStats", name) for name in ("reusedBlocks", "missedBlocks"))
            for signal, value in (("queried", reused + missed), ("hit", reused)):
                out.sample(f"prefix_cache_{signal}_tokens_total", pairs, value * size)
                out.mark(f"prefix_cache_{signal}_tokens_total", _RANK, Quality.DERIVED)
        for signal, names in (
            ("sequence_limit", ("maxNumActiveRequests", "maxBatchSizeRuntime")),
            ("step_token_limit", ("maxNumTokensRuntime",)),
        ):
            limit = next((_number(record, name) for name in names if record.get(name)), 0.0)
            if limit > 0:
                out.sample(signal, pairs, limit)

    def _counters(self, out: Collector) -> None:
        pairs, totals = out.pairs(_RANK), self._totals
        speculative = self._latest.get("specDecodingStats") is not None
        self._of_batches(out)
        for signal in ("steps_total", *_SUMS):
            if signal not in _OF_BATCHES and (speculative or not signal.startswith("spec_")):
                out.sample(signal, pairs, totals[signal])
        if isinstance(self._latest.get("kvCacheIterationStats"), Mapping):
            out.sample("kv_offload_load_bytes_total", pairs, totals["onboarded"])
        else:
            out.lack("kv_offload_load_bytes_total", _NO_TIERS)
        if not speculative:
            for signal in ("spec_drafts_total", "spec_draft_tokens_total", "spec_accepted_tokens_total"):
                out.lack(signal, Absence(Reason.NOT_CONFIGURED, "speculative decoding is not configured"))
        out.sample("speculation_enabled", pairs, float(speculative))
        for stage in _STAGES:
            if totals[f"stage:{stage}"] > 0:
                out.sample("stage_seconds_total", out.pairs(_RANK, {"stage": stage}), totals[f"stage:{stage}"])
        out.mark("stage_seconds_total", _RANK, Quality.APPROXIMATE)
        out.sample("latency_seconds_total", out.pairs(_RANK, {"latency": "queue_time"}), totals["queued"])
        out.sample("latency_observations_total", out.pairs(_RANK, {"latency": "queue_time"}), totals["admitted"])
        out.sample("requests_finished_total", out.pairs(_RANK, {"reason": "finished"}), totals["finished"])

    def _of_batches(self, out: Collector) -> None:
        """Add what batches held; releases that never told it are said not to."""
        if not self._batches:
            for signal in _OF_BATCHES:
                out.lack(signal, _NOT_TOLD)
            return
        for signal in ("prompt_tokens_total", "step_tokens_total", "preemptions_total"):
            out.sample(signal, out.pairs(_RANK), self._totals[signal])
        prefill, all_tokens = self._totals["prompt_tokens_total"], self._totals["step_tokens_total"]
        for kind, tokens in (("prefill", prefill), ("decode", all_tokens - prefill)):
            out.sample("batch_tokens_total", out.pairs(_RANK, {"kind": kind}), tokens)
        out.mark("preemptions_total", _RANK, Quality.APPROXIMATE)
        out.mark("batch_tokens_total", _RANK, Quality.DERIVED)
        out.mark("step_tokens_total", _RANK, Quality.DERIVED)


def _records(document: Document) -> list[Record]:
    try:
        found = parsed(document.text)
    except ValueError as error:
        raise SourceError(Reason.INVALID, f"{document.url}: no JSON ({error}); check the path") from None
    if not isinstance(found, list) or not all(isinstance(record, dict) for record in found):
        raise SourceError(Reason.INVALID, f"{document.url}: no list of iterations; check the path, and engines[].kind")
    return found


class TrtllmJson:
    """The adapter; never chosen by itself."""

    kind: str = "trtllm-json"
    paths: tuple[str, ...] = ("/metrics",)
    ports: tuple[int, ...] = ()
    version_path: str = "/version"
    questions: tuple[Question, ...] = (Question(("/v1/models",), told_by_models), Question(("/server_info",), told_by_server))

    beside: tuple[Beside, ...] = (Beside(PATH, request_times),)
    command: CommandTable | None = None  # the same server's as that of trtllm

    def fingerprint(self, document: Document) -> bool:  # noqa: ARG002  # the protocol's argument
        """Say no: only the configuration may choose what takes data from others."""
        return False

    def bare(self, document: Document) -> bool:  # noqa: ARG002  # the protocol's argument
        """Say no, for the same reason."""
        return False

    def open(self) -> JsonSession:
        """Return a reader for one engine."""
        return JsonSession()


register(TrtllmJson())
