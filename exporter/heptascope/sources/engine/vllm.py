"""vLLM 0.6 to 0.33, V0 and V1 engine, Python and Rust front end, as a table; names on the page changed, ours do not."""

from __future__ import annotations

from collections.abc import Mapping

from heptascope.model import Reason
from heptascope.sources.base import SourceError
from heptascope.sources.engine import vllm_facts as facts_of
from heptascope.sources.engine.adapter import Absence, Beside, Collector, Context, Question, register
from heptascope.sources.engine.cmdline import CommandTable
from heptascope.sources.engine.extract import TableReader
from heptascope.sources.engine.names import PROBED, SIGNALS
from heptascope.sources.engine.page import GAUGE, Document
from heptascope.sources.engine.table import Read, Row, Table, Take
from heptascope.sources.engine.version import version
from heptascope.sources.engine.vllm_command import COMMAND
from heptascope.sources.engine.vllm_version import vllm_span

_HTTP_FAMILY = "http_request_duration_highr_seconds"  # of the server's HTTP instrumentation, which no flag switches off
_NO_SPECULATION = Absence(Reason.NOT_CONFIGURED, "speculative decoding is not configured")
_NO_OFFLOAD = Absence(Reason.NOT_CONFIGURED, "no KV offloading is configured")
_NO_TRANSFER = Absence(Reason.NOT_CONFIGURED, "no connector moves KV cache between engines")
_NO_MFU = Absence(Reason.FLAG_OFF, "0 so far: needs the start flag --enable-mfu-metrics, and a model that has an estimator")
_V1_ONLY = Absence(Reason.ENGINE_TOO_OLD, "the V0 engine does not count it; needs the V1 engine")
_LOG_STATS_OFF = Absence(Reason.FLAG_OFF, "vLLM runs with --disable-log-stats, which removes its own families; start it without")
_NO_PROBE = Absence(Reason.NOT_CONFIGURED, "comes from the in-engine probe, which is not installed")


def _take(*names: str, **only: str) -> Take:
    return Take(tuple(names), only=only)


def _latency(signal: str, *names: str, since: str = "0.6") -> Row:
    return Row(signal, Read.HISTOGRAM, tuple(_take(f"vllm:{name}") for name in names), since=version(since))


def _spec(signal: str, name: str, keep: Mapping[str, str] | None = None) -> Row:
    takes = (_take(f"vllm:spec_decode_{name}"),)
    return Row(
        signal,
        Read.COUNTER,
        takes,
        keep or {},
        quality=facts_of.approximate_on_v0,
        since=facts_of.V1_SPECULATION_SINCE,
        absent=_NO_SPECULATION,
    )


ROWS: tuple[Row, ...] = (
    # load
    Row("requests_running", Read.GAUGE, (_take("vllm:num_requests_running"),)),
    Row("requests_waiting", Read.GAUGE, (_take("vllm:num_requests_waiting"),), quality=facts_of.approximate_before("0.18")),
    Row("requests_deferred", Read.GAUGE, (_take("vllm:num_requests_waiting_by_reason", reason="deferred"),), since=version("0.20")),
    Row("requests_finished_total", Read.COUNTER, (_take("vllm:request_success"),), {"finished_reason": "reason"}),
    Row("requests_rejected_total", Read.COUNTER, (_take("vllm:admission_rejections"),), {"reason": "reason"}, since=version("0.32")),
    Row("http_requests_total", Read.COUNTER, (_take("http_requests"),), {"status": "status"}),
    Row("prompt_tokens_total", Read.COUNTER, (_take("vllm:prompt_tokens"),)),
    Row("prompt_cached_tokens_total", Read.COUNTER, (_take("vllm:prompt_tokens_cached"),), since=version("0.16")),
    Row("generation_tokens_total", Read.COUNTER, (_take("vllm:generation_tokens"),)),
    # memory
    Row("kv_cache_usage_ratio", Read.RATIO, (_take("vllm:kv_cache_usage_perc"), _take("vllm:gpu_cache_usage_perc")), fold=max),
    *(
        Row(
            f"prefix_cache_{what}_tokens_total",
            Read.COUNTER,
            (_take(f"vllm:prefix_cache_{name}"), Take((f"vllm:gpu_prefix_cache_{name}",), scale=facts_of.prefix_unit)),
            quality=facts_of.prefix_quality,
            off=facts_of.prefix_caching_off,
            absent=_V1_ONLY,
        )
        for what, name in (("queried", "queries"), ("hit", "hits"))
    ),
    Row("preemptions_total", Read.COUNTER, (_take("vllm:num_preemptions"),)),
    *(
        Row(
            f"kv_offload_load_{unit}_total",
            Read.COUNTER,
            (_take(f"vllm:kv_offload_load_{name}"), _take(f"vllm:kv_offload_total_{name}", transfer_type="CPU_to_GPU")),
            since=version("0.16"),
            absent=_NO_OFFLOAD,
        )
        for unit, name in (("bytes", "bytes"), ("seconds", "time"))
    ),
    Row(
        "kv_allocation_failures_total",
        Read.COUNTER,
        (_take("vllm:kv_offload_allocation_failure"),),
        since=version("0.26"),
        absent=_NO_OFFLOAD,
    ),
    *(
        Row(signal, read, (_take(f"vllm:nixl_{name}"), _take(f"vllm:mooncake_{name}")), since=version("0.11.1"), absent=_NO_TRANSFER)
        for signal, read, name in (
            ("kv_transfers_total", Read.COUNT, "xfer_time_seconds"),
            ("kv_transfer_seconds_total", Read.SUM, "xfer_time_seconds"),
            ("kv_transfer_bytes_total", Read.SUM, "bytes_transferred"),
            ("kv_transfer_failures_total", Read.COUNTER, "num_failed_transfers"),
        )
    ),
    # steps: the histogram of tokens per step counts them
    Row(
        "steps_total",
        Read.COUNT,
        (Take(("vllm:iteration_tokens_total",), scale=facts_of.per_api_server),),
        quality=facts_of.steps_quality,
        since=version("0.6.6"),
    ),
    Row(
        "step_tokens_total",
        Read.SUM,
        (_take("vllm:iteration_tokens_total"),),
        quality=facts_of.step_tokens_quality,
        since=version("0.6.6"),
    ),
    # latency; the family that is named time per output token was the gap between two tokens until 0.14
    _latency("time_to_first_token_seconds", "time_to_first_token_seconds"),
    _latency("inter_token_latency_seconds", "inter_token_latency_seconds", "time_per_output_token_seconds"),
    _latency("time_per_output_token_seconds", "request_time_per_output_token_seconds", since="0.11"),
    _latency("e2e_latency_seconds", "e2e_request_latency_seconds"),
    _latency("queue_time_seconds", "request_queue_time_seconds", "time_in_queue_requests", since="0.6.6"),
    _latency("prefill_time_seconds", "request_prefill_time_seconds", since="0.6.6"),
    _latency("decode_time_seconds", "request_decode_time_seconds", since="0.6.6"),
    _latency("prompt_length_tokens", "request_prompt_tokens"),
    _latency("generation_length_tokens", "request_generation_tokens"),
    Row("http_request_duration_seconds", Read.HISTOGRAM, (_take(_HTTP_FAMILY),)),
    # speculation
    _spec("spec_drafts_total", "num_drafts"),
    _spec("spec_draft_tokens_total", "num_draft_tokens"),
    _spec("spec_accepted_tokens_total", "num_accepted_tokens"),
    _spec("spec_accepted_tokens_per_position_total", "num_accepted_tokens_per_pos", {"position": "position"}),
    # work as vLLM estimates it: always on the page, and 0 without the flag
    Row("estimated_flops_total", Read.COUNTER, (_take("vllm:estimated_flops_per_gpu"),), zero=_NO_MFU, since=version("0.17")),
    Row(
        "estimated_dram_bytes_total",
        Read.COUNTER,
        (_take("vllm:estimated_read_bytes_per_gpu", "vllm:estimated_write_bytes_per_gpu"),),
        zero=_NO_MFU,
        since=version("0.17"),
    ),
)

_HTTP_ROWS = tuple(row for row in ROWS if row.signal.startswith("http_"))

TABLE = Table("vLLM", ROWS, rank_label="engine", model_label="model_name", version=vllm_span, further={"vllm:cache_config_info": GAUGE})


class _Session:
    """Reads the pages of one vLLM."""

    def __init__(self) -> None:
        self._rows = TableReader(TABLE)

    def parse(self, document: Document, context: Context, out: Collector) -> None:
        """Read a page; one without vLLM's own families still has those of its HTTP server."""
        facts = self._rows.read(document, context)
        bare = not any(name.startswith("vllm_") for name in facts.page.names)
        if bare and _HTTP_FAMILY not in facts.page.names:
            text = f"{document.url}: no vLLM metrics on this page; check the port and engines[].kind"
            raise SourceError(Reason.NOT_SUPPORTED, text)
        release = context.stated_version or ("" if bare else str(facts.version))
        for rank in facts.ranks:
            out.sample("info", out.pairs(rank, {"kind": "vllm", "version": release, "model": ",".join(facts.models)}), 1.0)
        if bare:
            self._rows.fill(facts, out, _HTTP_ROWS)
            out.settings(context, facts.ranks)
            for signal in SIGNALS:
                out.lack(signal, _LOG_STATS_OFF)
            return
        self._rows.fill(facts, out)
        facts_of.capacity(facts, out)
        facts_of.switches(facts, out)
        facts_of.configuration(facts, out)
        for signal in PROBED:
            out.lack(signal, _NO_PROBE)
        out.settings(context, facts.ranks)


class Vllm:
    """The adapter."""

    kind: str = "vllm"
    paths: tuple[str, ...] = ("/metrics",)
    ports: tuple[int, ...] = (8000,)
    version_path: str = "/version"
    questions: tuple[Question, ...] = (Question(("/v1/models",), facts_of.told_by_models),)
    beside: tuple[Beside, ...] = ()
    command: CommandTable | None = COMMAND

    def fingerprint(self, document: Document) -> bool:
        """Whether the page has families that only vLLM's server has."""
        return bool({"vllm_num_requests_running", "vllm_cache_config_info"} & document.names)

    def bare(self, document: Document) -> bool:
        """Whether the page is that of its HTTP server alone (--disable-log-stats)."""
        return _HTTP_FAMILY in document.names

    def open(self) -> _Session:
        """Return a reader for one engine."""
        return _Session()


register(Vllm())
