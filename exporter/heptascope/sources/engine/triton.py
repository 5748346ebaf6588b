"""Triton Inference Server with the TensorRT-LLM backend, by presence of families. Microseconds, no `_total`, selectors for names."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from heptascope.model import Quality, Reason
from heptascope.sources.engine.adapter import Absence, Collector, register
from heptascope.sources.engine.page import COUNTER, GAUGE, SUMMARY, Series
from heptascope.sources.engine.table import Facts, Read, Row, Table, Take
from heptascope.sources.engine.tabled import Complete, TableAdapter, approximate, span_by, take

_US, _MS = 1e-6, 1e-3
_REQUESTS = "nv_trt_llm_request_metrics"
_BLOCKS = "nv_trt_llm_kv_cache_block_metrics"
_BATCH = "nv_trt_llm_inflight_batcher_metrics"
_SERVED = "nv_inference_request_success"
_FIRST = "nv_inference_first_response_histogram_ms"
_LATENCIES = {"e2e": "nv_inference_request_duration_us", "queue_time": "nv_inference_queue_duration_us"}
_SUMMARIES = {"e2e": "nv_inference_request_summary_us", "queue_time": "nv_inference_queue_summary_us"}
"""The same with `summary_latencies=true`: quantiles over a sliding window, sums and counts since start."""

_NO_BATCHER = Absence(Reason.ENGINE, "needs the C++ backend's nv_trt_llm_* families; the Python variants do not publish them")
_NO_HISTOGRAM = Absence(Reason.FLAG_OFF, "needs --metrics-config histogram_latencies=true, and a decoupled model")
_NO_LENGTHS = Absence(Reason.ENGINE_TOO_OLD, "needs TensorRT-LLM 0.16 or newer, and a finished request")
_MEAN_ONLY = Absence(Reason.ENGINE, "only the mean is told: latency_seconds_total over latency_observations_total")


def _transfer(signal: str, kind: str, scale: float) -> Row:
    places = (Take(("nv_trt_llm_disaggregated_serving_metrics",), {"disaggregated_serving_type": kind}, scale),)
    return Row(signal, Read.COUNTER, places, absent=Absence(Reason.NOT_CONFIGURED, "prefill and decode are not split between engines"))


ROWS: tuple[Row, ...] = (
    Row("requests_running", Read.GAUGE, (take(_REQUESTS, request_type="active"),), absent=_NO_BATCHER),
    Row("sequence_limit", Read.GAUGE, (take(_REQUESTS, request_type="max"),), absent=_NO_BATCHER),
    Row("prompt_tokens_total", Read.SUM, (take("nv_llm_input_token_len"),), quality=approximate, absent=_NO_LENGTHS),
    Row("generation_tokens_total", Read.SUM, (take("nv_llm_output_token_len"),), quality=approximate, absent=_NO_LENGTHS),
    Row("prompt_length_tokens", Read.HISTOGRAM, (take("nv_llm_input_token_len"),), absent=_NO_LENGTHS),
    Row("generation_length_tokens", Read.HISTOGRAM, (take("nv_llm_output_token_len"),), absent=_NO_LENGTHS),
    Row(
        "preemptions_total",
        Read.RISES,
        (take(_BATCH, inflight_batcher_specific_metric="paused_requests"),),
        quality=approximate,
        absent=_NO_BATCHER,
    ),
    Row(
        "steps_total",
        Read.CUMULATIVE,
        (take("nv_trt_llm_general_metrics", general_type="iteration_counter"),),
        absent=_NO_BATCHER,
    ),
    Row(
        "last_step_tokens",
        Read.GAUGE,
        (take(_BATCH, inflight_batcher_specific_metric=("total_context_tokens", "generation_requests")),),
        quality=approximate,
    ),
    Row("time_to_first_token_seconds", Read.HISTOGRAM, (Take((_FIRST,), scale=_MS),), absent=_NO_HISTOGRAM),
    _transfer("kv_transfers_total", "request_count", 1.0),
    _transfer("kv_transfer_seconds_total", "kv_cache_transfer_ms", _MS),
)

TABLE = Table(
    "Triton",
    ROWS,
    rank_label="",
    model_label="model",
    version=span_by({}),
    further={
        **dict.fromkeys((_BLOCKS, _REQUESTS), GAUGE),
        **dict.fromkeys((_SERVED, "nv_inference_request_failure", *_LATENCIES.values()), COUNTER),
        **dict.fromkeys(_SUMMARIES.values(), SUMMARY),
    },
    ignore=frozenset({"version"}),
)


class _Complete:
    """Adds what lies behind selectors, and the request counters of the one model that has the traffic.

    An ensemble and its members all count the same requests, and the TensorRT-LLM member may stay at 0 when it streams: so the model
    with the most requests is taken, and kept as long as it is there.
    """

    def __init__(self) -> None:
        self._model = ""

    def __call__(self, facts: Facts, out: Collector) -> None:
        self._blocks(facts, out)
        self._waiting(facts, out)
        served: dict[str, float] = {}
        for series, value in facts.page.of(_SERVED):
            served[series.labels.get("model", "")] = served.get(series.labels.get("model", ""), 0.0) + value
        if not served.get(self._model):
            self._model = max(sorted(served), key=lambda model: served[model], default="")
        self._requests(facts, out)

    def _blocks(self, facts: Facts, out: Collector) -> None:
        blocks = _selected(facts, _BLOCKS, "kv_cache_block_type")
        total, pairs = blocks.get("max", 0.0), out.pairs("0")
        if "fraction" in blocks:
            out.sample("kv_cache_usage_ratio", pairs, blocks["fraction"])
        elif total > 0 and "used" in blocks:
            out.sample("kv_cache_usage_ratio", pairs, blocks["used"] / total)
            out.mark("kv_cache_usage_ratio", "0", Quality.DERIVED)
        if total > 0 and blocks.get("tokens_per", 0.0) > 0:
            out.sample("kv_cache_capacity_tokens", pairs, total * blocks["tokens_per"])
            out.mark("kv_cache_capacity_tokens", "0", Quality.DERIVED)
        for signal in ("kv_cache_usage_ratio", "kv_cache_capacity_tokens"):
            out.lack(signal, _NO_BATCHER)

    def _waiting(self, facts: Facts, out: Collector) -> None:
        kinds = _selected(facts, _REQUESTS, "request_type")
        if "waiting" in kinds:
            out.sample("requests_waiting", out.pairs("0"), kinds["waiting"])
        elif "active" in kinds and "scheduled" in kinds:
            out.sample("requests_waiting", out.pairs("0"), max(kinds["active"] - kinds["scheduled"], 0.0))
            out.mark("requests_waiting", "0", Quality.APPROXIMATE)
        out.lack("requests_waiting", _NO_BATCHER)

    def _requests(self, facts: Facts, out: Collector) -> None:
        done = self._mine(facts, _SERVED)
        for series, value in done:
            out.sample("requests_finished_total", out.pairs("0", {"reason": "success"}), value, _part(series))
        for series, value in self._mine(facts, "nv_inference_request_failure"):
            reason = series.labels.get("reason", "failure").lower()
            signal = "requests_rejected_total" if reason == "rejected" else "requests_finished_total"
            out.sample(signal, out.pairs("0", {"reason": reason}), value, _part(series))
        for latency, family in _LATENCIES.items():
            summary = self._mine(facts, _SUMMARIES[latency])
            seconds, observations = self._mine(facts, family), done
            if not seconds:
                seconds, observations = _of(summary, "_sum"), _of(summary, "_count")
            pairs = out.pairs("0", {"latency": latency})
            for signal, found, scale in (("seconds", seconds, _US), ("observations", observations if seconds else (), 1.0)):
                for series, value in found:
                    out.sample(f"latency_{signal}_total", pairs, value * scale, _part(series))
            _quantiles(latency, _of(summary, ""), out)
        out.mark("latency_seconds_total", "0", Quality.APPROXIMATE)

    def _mine(self, facts: Facts, family: str) -> Sequence[tuple[Series, float]]:
        return [(series, value) for series, value in facts.page.of(family) if series.labels.get("model", "") == self._model]


def _selected(facts: Facts, family: str, selector: str) -> dict[str, float]:
    """Return the values behind one name by selector, summed over instances of the model; a fraction is not summed."""
    found: dict[str, float] = {}
    for series, value in facts.page.of(family):
        kind = series.labels.get(selector, "")
        alone = kind in ("fraction", "tokens_per")
        found[kind] = max(found.get(kind, 0.0), value) if alone else found.get(kind, 0.0) + value
    return found


def _of(found: Sequence[tuple[Series, float]], suffix: str) -> list[tuple[Series, float]]:
    return [(series, value) for series, value in found if series.suffix == suffix]


def _quantiles(latency: str, found: Sequence[tuple[Series, float]], out: Collector) -> None:
    """Add quantiles; one is NaN while nothing is in its window. Of several versions of a model the slower one counts."""
    slowest: dict[str, float] = {}
    for series, value in found:
        quantile = series.labels.get("quantile", "")
        if quantile and isfinite(value):
            slowest[quantile] = max(value, slowest.get(quantile, 0.0))
    for quantile, value in slowest.items():
        out.sample("latency_quantile_seconds", out.pairs("0", {"latency": latency, "q": quantile}), value * _US)
    if slowest:
        out.mark("latency_quantile_seconds", "0", Quality.APPROXIMATE)


def _part(series: Series) -> str:
    return f"version={series.labels['version']}" if series.labels.get("version", "1") != "1" else ""


def _complete() -> Complete:
    return _Complete()


TRITON = register(
    TableAdapter(
        "triton",
        TABLE,
        prefixes=("nv_inference_", "nv_trt_llm_"),
        foreign=("vllm_", "sglang_"),
        ports=(8002,),
        complete=_complete,
        lacks={
            "e2e_latency_seconds": _MEAN_ONLY,
            "queue_time_seconds": _MEAN_ONLY,
            "prefix_cache_queried_tokens_total": Absence(Reason.ENGINE, "reused blocks are counted without those that were asked for"),
            "inter_token_latency_seconds": Absence(Reason.ENGINE, "the server times responses, not tokens"),
        },
    )
)
