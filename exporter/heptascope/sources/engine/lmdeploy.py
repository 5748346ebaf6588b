"""LMDeploy 0.9 to 0.18 as a table: names as vLLM's, meanings of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from heptascope.model import Reason
from heptascope.sources.engine.adapter import Absence, Collector, register
from heptascope.sources.engine.cmdline import CommandLine, CommandTable, Flags
from heptascope.sources.engine.page import GAUGE
from heptascope.sources.engine.table import Facts, Read, Row, Table
from heptascope.sources.engine.tabled import TableAdapter, approximate, config_labels, latency, span_by, take
from heptascope.sources.engine.version import version

_CACHED_SINCE = version("0.14")
_NO_SPECULATION = Absence(Reason.NOT_CONFIGURED, "speculative decoding is not configured")
_SPECULATION = {"drafts": "num_drafts", "draft_tokens": "num_draft_tokens", "accepted_tokens": "num_accepted_tokens"}
_CONFIG = "lmdeploy_backend_config_info"
_SHOWN = {
    "max_batch_size": "max_num_seqs",
    "session_len": "max_model_len",
    "tp": "tensor_parallel_size",
    "dp": "data_parallel_size",
    "ep": "expert_parallel_size",
    "dtype": "dtype",
    "quant_policy": "kv_cache_quantization",
    "block_size": "block_size",
    "cache_block_seq_len": "block_size",
    "cache_max_entry_count": "cache_max_entry_count",
    "enable_prefix_caching": "enable_prefix_caching",
    "eager_mode": "enforce_eager",
    "max_prefill_token_num": "max_prefill_tokens",
}
_SIGNALS = {"max_num_seqs": "sequence_limit", "max_model_len": "model_length_limit", "tensor_parallel_size": "tensor_parallel_size"}
_SWITCHES = {"enable_prefix_caching": "prefix_caching_enabled", "eager_mode": "eager_mode"}


def _reason(text: str) -> str:
    """Return the word in `ResponseType.FINISH`."""
    return text.rpartition(".")[2].lower()


def _no_cached_count(facts: Facts) -> Absence | None:
    """Say that hits are not counted before 0.14, though lengths of prompts are."""
    if facts.page.of("lmdeploy_cached_tokens"):
        return None
    known = facts.version.surely_from(_CACHED_SINCE)
    return Absence(Reason.IDLE, "no request has finished yet") if known else Absence(Reason.ENGINE_TOO_OLD, "needs LMDeploy 0.14 or newer")


ROWS: tuple[Row, ...] = (
    Row("requests_running", Read.GAUGE, (take("lmdeploy:num_requests_running"),)),
    Row("requests_waiting", Read.GAUGE, (take("lmdeploy:num_requests_waiting"),)),
    Row("requests_finished_total", Read.COUNTER, (take("lmdeploy:request_success"),), {"finished_reason": "reason"}, spell=_reason),
    Row("prompt_tokens_total", Read.COUNTER, (take("lmdeploy:prompt_tokens"),)),
    Row("prompt_cached_tokens_total", Read.COUNTER, (take("lmdeploy:cached_tokens"),), quality=approximate, off=_no_cached_count),
    Row("generation_tokens_total", Read.COUNTER, (take("lmdeploy:generation_tokens"),)),
    Row("kv_cache_usage_ratio", Read.RATIO, (take("lmdeploy:gpu_cache_usage_perc"),), fold=max),
    Row(
        "prefix_cache_queried_tokens_total", Read.SUM, (take("lmdeploy:request_prompt_tokens"),), quality=approximate, off=_no_cached_count
    ),
    Row("prefix_cache_hit_tokens_total", Read.COUNTER, (take("lmdeploy:cached_tokens"),), quality=approximate, off=_no_cached_count),
    latency("time_to_first_token_seconds", "lmdeploy:time_to_first_token_seconds"),
    latency("inter_token_latency_seconds", "lmdeploy:iter_token_latency", since=version("0.10")),
    latency("time_per_output_token_seconds", "lmdeploy:time_per_output_token_seconds"),
    latency("e2e_latency_seconds", "lmdeploy:e2e_request_latency_seconds"),
    latency("queue_time_seconds", "lmdeploy:request_queue_time_seconds"),
    latency("prefill_time_seconds", "lmdeploy:request_prefill_time_seconds"),
    latency("decode_time_seconds", "lmdeploy:request_decode_time_seconds"),
    latency("prompt_length_tokens", "lmdeploy:request_prompt_tokens"),
    latency("generation_length_tokens", "lmdeploy:request_generation_tokens"),
    *(
        Row(f"spec_{ours}_total", Read.COUNTER, (take(f"lmdeploy:spec_decode_{name}"),), since=_CACHED_SINCE, absent=_NO_SPECULATION)
        for ours, name in _SPECULATION.items()
    ),
    Row(
        "spec_accepted_tokens_per_position_total",
        Read.COUNTER,
        (take("lmdeploy:spec_decode_num_accepted_tokens_per_pos"),),
        {"position": "position"},
        since=_CACHED_SINCE,
        absent=_NO_SPECULATION,
    ),
)

MARKS = {
    "lmdeploy_iter_token_latency": version("0.10"),
    "lmdeploy_num_requests_succeeded": version("0.12.1"),
    "lmdeploy_num_api_requests_routed": version("0.12.3"),
    "lmdeploy_prefix_cache_hit_rate": _CACHED_SINCE,
}
TABLE = Table(
    "LMDeploy",
    ROWS,
    rank_label="engine",
    model_label="model_name",
    version=span_by(MARKS, {"lmdeploy_num_requests_unfinished": version("0.12.1")}),
    further={_CONFIG: GAUGE},
)


def complete(facts: Facts, out: Collector) -> None:
    """Add what the labels of `backend_config_info` say."""
    for setting, value in config_labels(facts, out, _CONFIG, _SHOWN).items():
        if setting in _SIGNALS:
            for rank in facts.ranks:
                out.sample(_SIGNALS[setting], out.pairs(rank), value)
    for series, _ in facts.page.of(_CONFIG)[:1]:
        for name, signal in _SWITCHES.items():
            on = {"True": 1.0, "False": 0.0}.get(series.labels.get(name, ""))
            if on is not None:
                for rank in facts.ranks:
                    out.sample(signal, out.pairs(rank), on)
    if facts.version.surely_from(_CACHED_SINCE):
        for rank in facts.ranks:
            out.sample("speculation_enabled", out.pairs(rank), float(bool(facts.page.of("lmdeploy_spec_decode_num_draft_tokens"))))


def _is_server(argv: Sequence[str]) -> bool:
    return "api_server" in argv and any(PurePath(word).name == "lmdeploy" or word.startswith("lmdeploy.") for word in argv)


def _command(flags: Flags, found: CommandLine) -> None:
    if flags.get("speculative-algorithm"):
        found.settings["speculative"] = 1.0


COMMAND = CommandTable(
    _is_server,
    numbers={"max-batch-size": "max_num_seqs", "session-len": "max_model_len", "tp": "tensor_parallel_size"},
    texts={
        "backend": "backend",
        "cache-block-seq-len": "block_size",
        "cache-max-entry-count": "cache_max_entry_count",
        "dp": "data_parallel_size",
        "dtype": "dtype",
        "ep": "expert_parallel_size",
        "max-prefill-token-num": "max_prefill_tokens",
        "quant-policy": "kv_cache_quantization",
        "speculative-algorithm": "speculative_method",
        "speculative-num-draft-tokens": "speculative_tokens",
    },
    switches={"enable-prefix-caching": ("enable_prefix_caching", 1.0), "eager-mode": ("enforce_eager", 1.0)},
    defaults={"tensor_parallel_size": 1.0},
    complete=_command,
)

LMDEPLOY = register(
    TableAdapter(
        "lmdeploy",
        TABLE,
        prefixes=("lmdeploy_",),
        ports=(23333,),
        command=COMMAND,
        complete=lambda: complete,
        lacks={
            "steps_total": Absence(Reason.ENGINE, "its iteration_tokens_total is per request and output event, not per step"),
            "kv_cache_capacity_tokens": Absence(Reason.ENGINE, "the page tells the memory share only"),
        },
    )
)
