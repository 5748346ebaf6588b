"""Hugging Face TGI 0.9 to 3.3 as a table. A family appears with its first event; counters carry no `_total`, and nothing a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from heptascope.model import Reason
from heptascope.sources.engine.adapter import Absence, Question, Told, register
from heptascope.sources.engine.cmdline import CommandLine, CommandTable, Flags, number
from heptascope.sources.engine.table import Read, Row, Table, Take, quotient
from heptascope.sources.engine.tabled import TableAdapter, approximate, latency, numbers, span_by, take, texts
from heptascope.sources.engine.tgi_first_token import FirstToken
from heptascope.sources.engine.version import version

_NO_EVENT = Absence(Reason.IDLE, "its family appears with the first event")
_REFUSED = ("overloaded", "validation", "template")
_BROKEN = ("incomplete", "dropped", "generation")
_BUDGET = ("tgi_batch_current_max_tokens", "tgi_batch_max_total_tokens")


def _latency(signal: str, name: str) -> Row:
    return latency(signal, f"tgi_{name}", absent=_NO_EVENT)


def _mean(what: str, *families: str) -> tuple[Row, Row]:
    """Return the rows of a latency of which only the mean can be had."""
    return (
        Row("latency_seconds_total", Read.SUM, (take(*families),), always={"latency": what}, quality=approximate),
        Row("latency_observations_total", Read.COUNT, (take(*families),), always={"latency": what}, quality=approximate),
    )


def _call(method: str) -> str:
    return f"{method}_call"


def _forward(method: str) -> str:
    return f"{method}_forward"


ROWS: tuple[Row, ...] = (
    Row("requests_running", Read.GAUGE, (take("tgi_batch_current_size"),), absent=_NO_EVENT),
    Row("requests_waiting", Read.GAUGE, (take("tgi_queue_size"),), absent=_NO_EVENT),
    Row("requests_finished_total", Read.COUNTER, (take("tgi_request_success"),), always={"reason": "success"}, absent=_NO_EVENT),
    Row("requests_finished_total", Read.COUNTER, (take("tgi_request_failure", err=_BROKEN),), {"err": "reason"}),
    Row("requests_rejected_total", Read.COUNTER, (take("tgi_request_failure", err=_REFUSED),), {"err": "reason"}, absent=_NO_EVENT),
    Row("prompt_tokens_total", Read.SUM, (take("tgi_request_input_length"),), quality=approximate, absent=_NO_EVENT),
    Row("generation_tokens_total", Read.SUM, (take("tgi_request_generated_tokens"),), quality=approximate, absent=_NO_EVENT),
    # memory: the share of the token budget that the running batch has reserved, worst case per request
    Row(
        "kv_cache_usage_ratio",
        Read.RATIO,
        (Take(_BUDGET, join=quotient, read=Read.GAUGE),),
        quality=approximate,
        since=version("2.4"),
        absent=_NO_EVENT,
    ),
    Row("kv_cache_capacity_tokens", Read.GAUGE, (take("tgi_batch_max_total_tokens"),), since=version("2.4"), absent=_NO_EVENT),
    # steps: each call of the model, for a prefill or a decode
    Row("steps_total", Read.COUNTER, (take("tgi_batch_inference_count"),), absent=_NO_EVENT),
    Row("last_step_tokens", Read.GAUGE, (take("tgi_batch_current_size"),), quality=approximate),
    Row(
        "stage_seconds_total",
        Read.SUM,
        (take("tgi_batch_inference_duration"),),
        {"method": "stage"},
        _call,
        quality=approximate,
        absent=_NO_EVENT,
    ),
    Row("stage_seconds_total", Read.SUM, (take("tgi_batch_forward_duration"),), {"method": "stage"}, _forward, quality=approximate),
    # latency: the first token comes after validation, queue and one prefill call
    *_mean("validation", "tgi_request_validation_duration"),
    *(
        Row(
            f"latency_{unit}_total",
            read,
            (take("tgi_batch_inference_duration", method="prefill"),),
            always={"latency": "prefill"},
            quality=approximate,
        )
        for unit, read in (("seconds", Read.SUM), ("observations", Read.COUNT))
    ),
    _latency("queue_time_seconds", "request_queue_duration"),
    _latency("time_per_output_token_seconds", "request_mean_time_per_token_duration"),
    _latency("e2e_latency_seconds", "request_duration"),
    _latency("prompt_length_tokens", "request_input_length"),
    _latency("generation_length_tokens", "request_generated_tokens"),
    # speculation: tokens accepted beyond one per step; the number of proposals is not told
    Row("spec_drafts_total", Read.COUNT, (take("tgi_request_skipped_tokens"),), quality=approximate, absent=_NO_EVENT),
    Row("spec_accepted_tokens_total", Read.SUM, (take("tgi_request_skipped_tokens"),), quality=approximate, absent=_NO_EVENT),
)

TABLE = Table(
    "TGI",
    ROWS,
    rank_label="",
    model_label="",
    version=span_by({"tgi_request_count": version("0.9"), "tgi_batch_max_total_tokens": version("2.4")}),
)


def told_by_info(answer: Mapping[str, Any]) -> Told:
    """Return what `/info` says."""
    settings = {"max_total_tokens": "max_model_len"}
    shown = {
        "model_dtype": "dtype",
        "max_concurrent_requests": "max_concurrent_requests",
        "max_batch_total_tokens": "max_batch_total_tokens",
        "max_input_tokens": "max_input_tokens",
        "waiting_served_ratio": "waiting_served_ratio",
    }
    return Told(str(answer.get("version") or ""), str(answer.get("model_id") or ""), numbers(answer, settings), texts(answer, shown))


def _is_server(argv: Sequence[str]) -> bool:
    return any(PurePath(word).name in ("text-generation-launcher", "text-generation-router") for word in argv)


def _command(flags: Flags, found: CommandLine) -> None:
    """Tell from their values whether there is speculation, and CUDA graphs: `--cuda-graphs 0` is none."""
    drafts = number(flags.get("speculate", []))
    if drafts is not None:
        found.settings["speculative"] = float(drafts > 0)
    sizes = [number([text]) for value in flags.get("cuda-graphs", []) for text in value.split(",")]
    known = [size for size in sizes if size is not None]
    if known:
        found.settings["enforce_eager"] = float(max(known) == 0)
        found.settings |= {"max_cudagraph_capture_size": max(known)} if max(known) > 0 else {}


COMMAND = CommandTable(
    _is_server,
    numbers={"max-batch-size": "max_num_seqs", "max-total-tokens": "max_model_len", "num-shard": "tensor_parallel_size"},
    texts={
        "dtype": "dtype",
        "kv-cache-dtype": "kv_cache_dtype",
        "max-batch-prefill-tokens": "max_prefill_tokens",
        "max-batch-total-tokens": "max_batch_total_tokens",
        "max-concurrent-requests": "max_concurrent_requests",
        "quantize": "quantization",
        "speculate": "speculative_tokens",
        "waiting-served-ratio": "waiting_served_ratio",
    },
    complete=_command,
)

TGI = register(
    TableAdapter(
        "tgi",
        TABLE,
        prefixes=("tgi_",),
        ports=(3000, 80),
        command=COMMAND,
        questions=(Question(("/info",), told_by_info),),
        complete=FirstToken,
        lacks={
            "time_to_first_token_seconds": Absence(
                Reason.ENGINE, "it is not measured: latency_seconds_total{latency=time_to_first_token} adds the means of its parts"
            ),
            "preemptions_total": Absence(Reason.ENGINE, "none can happen: admission reserves the worst case"),
            "prefix_cache_queried_tokens_total": Absence(Reason.ENGINE, "no release counts prefix look-ups"),
        },
    )
)
