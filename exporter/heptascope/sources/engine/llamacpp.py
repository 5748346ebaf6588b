"""llama.cpp's server as a table: counters only, since a scrape resets the two average gauges for everyone else.

Values are printed with six significant digits, so counters above a million move in steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

from heptascope.model import Quality, Reason
from heptascope.sources.base import SourceError
from heptascope.sources.engine.adapter import Absence, Beside, Collector, Context, Question, register
from heptascope.sources.engine.answer import parsed
from heptascope.sources.engine.cmdline import CommandLine, CommandTable, Flags
from heptascope.sources.engine.llamacpp_slots import NO_SLOTS, SLOTS, UNIFIED, cache, slot_tokens, told_by_props
from heptascope.sources.engine.page import Document
from heptascope.sources.engine.table import Facts, Read, Row, Table
from heptascope.sources.engine.tabled import TableAdapter, TableSession, approximate, derived, span_by, take

_PRINTED_EXACTLY = 1e6
_NO_SPECULATION = Absence(Reason.NOT_CONFIGURED, "0 so far: speculative decoding is not configured, or made no draft yet")
_NO_CACHED = Absence(Reason.ENGINE_TOO_OLD, "needs a build of 2026 or newer, which counts cached prompt tokens")
_DRAFTS = "llamacpp_spec_decode_num_drafts"
_NONE_HAPPEN = Absence(Reason.ENGINE, "none can happen: a slot keeps its place to the end")


def _printed(facts: Facts) -> Quality:
    """Return the quality of token counters: exact as long as all digits are printed."""
    values = [
        value for name in ("prompt_tokens", "prompt_tokens_cached", "tokens_predicted") for _, value in facts.page.of(f"llamacpp_{name}")
    ]
    return Quality.APPROXIMATE if max(values, default=0.0) >= _PRINTED_EXACTLY else Quality.EXACT


def _step_quality(facts: Facts) -> Quality:
    """Return the quality of the step count, which leaves calls with speculation out."""
    return Quality.APPROXIMATE if any(value > 0 for _, value in facts.page.of(_DRAFTS)) else Quality.EXACT


def _no_cached(facts: Facts) -> Absence | None:
    return None if facts.page.of("llamacpp_prompt_tokens_cached") else _NO_CACHED


def _spec(signal: str, name: str, keep: Mapping[str, str] | None = None) -> Row:
    return Row(signal, Read.COUNTER, (take(f"llamacpp:spec_decode_num_{name}"),), keep or {}, zero=_NO_SPECULATION, absent=_NO_SPECULATION)


ROWS: tuple[Row, ...] = (
    Row("requests_running", Read.GAUGE, (take("llamacpp:requests_processing"),)),
    Row("requests_waiting", Read.GAUGE, (take("llamacpp:requests_deferred"),)),
    # the newest builds leave cached tokens out of the first counter
    Row(
        "prompt_tokens_total",
        Read.COUNTER,
        (take("llamacpp:prompt_tokens", "llamacpp:prompt_tokens_cached"), take("llamacpp:prompt_tokens")),
        quality=_printed,
    ),
    Row("prompt_cached_tokens_total", Read.COUNTER, (take("llamacpp:prompt_tokens_cached"),), quality=_printed, absent=_NO_CACHED),
    Row("generation_tokens_total", Read.COUNTER, (take("llamacpp:tokens_predicted"),), quality=_printed),
    Row(
        "prefix_cache_queried_tokens_total",
        Read.COUNTER,
        (take("llamacpp:prompt_tokens", "llamacpp:prompt_tokens_cached"),),
        quality=_printed,
        off=_no_cached,
    ),
    Row("prefix_cache_hit_tokens_total", Read.COUNTER, (take("llamacpp:prompt_tokens_cached"),), quality=_printed, off=_no_cached),
    Row("kv_cache_usage_ratio", Read.RATIO, (take("llamacpp:kv_cache_usage_ratio"),), absent=NO_SLOTS),
    Row("steps_total", Read.COUNTER, (take("llamacpp:n_decode_total"),), quality=_step_quality),
    Row("step_tokens_total", Read.COUNTER, (take("llamacpp:prompt_tokens", "llamacpp:tokens_predicted"),), quality=derived),
    *(
        Row(f"latency_{unit}_total", Read.COUNTER, (take(f"llamacpp:{name}"),), always={"latency": what}, quality=approximate)
        for what, unit, name in (
            ("time_per_output_token", "seconds", "tokens_predicted_seconds"),
            ("time_per_output_token", "observations", "tokens_predicted"),
            ("prompt_token", "seconds", "prompt_seconds"),
            ("prompt_token", "observations", "prompt_tokens"),
        )
    ),
    _spec("spec_drafts_total", "drafts"),
    _spec("spec_draft_tokens_total", "draft_tokens"),
    _spec("spec_accepted_tokens_total", "accepted_tokens"),
    _spec("spec_accepted_tokens_per_position_total", "accepted_tokens_per_pos", {"position": "position"}),
)

TABLE = Table("llama.cpp", ROWS, rank_label="", model_label="", version=span_by({}))


def complete(facts: Facts, out: Collector) -> None:
    """Add the cache, and say that speculation is on once there was a draft; without one it cannot be told."""
    cache(facts, out)
    if any(value > 0 for _, value in facts.page.of(_DRAFTS)):
        out.sample("speculation_enabled", out.pairs("0"), 1.0)


def _plain(document: Document) -> Document:
    """Undo what builds of November 2025 did: the page as one JSON text. Raises SourceError if it is another JSON."""
    if document.text[:1] != '"':
        return document
    try:
        return replace(document, text=str(parsed(document.text)), content_type="text/plain")
    except ValueError as error:
        raise SourceError(Reason.INVALID, f"{document.url}: a quoted page that is no JSON text ({error})") from None


class _Session(TableSession):
    """Reads pages, quoted or not."""

    def parse(self, document: Document, context: Context, out: Collector) -> None:
        """Put the page into `out`. Raises SourceError if it is not llama.cpp's."""
        super().parse(_plain(document), context, out)


class _Adapter(TableAdapter):
    """Knows the quoted page too."""

    def fingerprint(self, document: Document) -> bool:
        """Whether the page is llama.cpp's."""
        return super().fingerprint(document) or document.text.startswith('"# HELP llamacpp:')

    def open(self) -> _Session:
        """Return a reader for one engine."""
        return _Session(self)


def _is_server(argv: Sequence[str]) -> bool:
    return any(PurePath(word).name == "llama-server" for word in argv[:1])


def _command(flags: Flags, found: CommandLine) -> None:
    """Tell that a draft model, or a way to draft, is speculation; and whether slots share one pool, as they do unless told how many."""
    shared = "kv-unified" in flags or "parallel" not in flags
    found.config[UNIFIED] = str(int(shared and "kv-unified-per-slot" not in flags))
    if flags.get("model-draft") or flags.get("spec-type", ["none"]) != ["none"]:
        found.settings["speculative"] = 1.0


COMMAND = CommandTable(
    _is_server,
    short={
        "-np": "parallel",
        "-kvu": "kv-unified",
        "-b": "batch-size",
        "-ub": "ubatch-size",
        "-fa": "flash-attn",
        "-ctk": "cache-type-k",
        "-ctv": "cache-type-v",
        "-ngl": "gpu-layers",
        "--n-gpu-layers": "gpu-layers",
        "-md": "model-draft",
        "--draft": "draft-max",
        "--draft-n": "draft-max",
        "--spec-draft-n-max": "draft-max",
    },
    numbers={"parallel": "max_num_seqs", "batch-size": "max_num_batched_tokens"},
    texts={
        "cache-type-k": "kv_cache_dtype",
        "draft-max": "speculative_tokens",
        "flash-attn": "flash_attention",
        "gpu-layers": "gpu_layers",
        "spec-type": "speculative_method",
        "ubatch-size": "ubatch_size",
    },
    complete=_command,
)

LLAMACPP = register(
    _Adapter(
        "llamacpp",
        TABLE,
        prefixes=("llamacpp_",),
        ports=(8080,),
        beside=(Beside(SLOTS, slot_tokens),),
        command=COMMAND,
        questions=(Question(("/props",), told_by_props),),
        complete=lambda: complete,
        lacks={
            "preemptions_total": _NONE_HAPPEN,
            "kv_cache_capacity_tokens": Absence(Reason.SOURCE_DOWN, "/props tells it, but does not answer"),
            "time_per_output_token_seconds": Absence(Reason.ENGINE, "only the mean is told: latency_seconds_total"),
            "requests_finished_total": Absence(Reason.ENGINE, "it counts no requests, neither aborted nor failed ones"),
        },
    )
)
