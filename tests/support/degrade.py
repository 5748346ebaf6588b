"""Recordings with something taken away: what a card without GPM, a hidden host or an old engine would have shown of the same load.

A degradation takes one row of a recording and returns it changed, or None to leave it out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from heptascope.sources.recording import Event, Recording

Row = dict[str, Any]
Degradation = Callable[[Row], Row | None]

# Families of vLLM 0.8.0 (V1) that these recordings have too, by their name of today; everything else came later.
_OLD_NAMES = {
    "vllm:num_requests_running": "vllm:num_requests_running",
    "vllm:num_requests_waiting": "vllm:num_requests_waiting",
    "vllm:kv_cache_usage_perc": "vllm:gpu_cache_usage_perc",
    "vllm:prefix_cache_queries": "vllm:gpu_prefix_cache_queries",
    "vllm:prefix_cache_hits": "vllm:gpu_prefix_cache_hits",
    "vllm:num_preemptions": "vllm:num_preemptions",
    "vllm:prompt_tokens": "vllm:prompt_tokens",
    "vllm:generation_tokens": "vllm:generation_tokens",
    "vllm:iteration_tokens_total": "vllm:iteration_tokens_total",
    "vllm:time_to_first_token_seconds": "vllm:time_to_first_token_seconds",
    "vllm:inter_token_latency_seconds": "vllm:time_per_output_token_seconds",
    "vllm:e2e_request_latency_seconds": "vllm:e2e_request_latency_seconds",
    "vllm:request_queue_time_seconds": "vllm:request_queue_time_seconds",
    "vllm:request_prefill_time_seconds": "vllm:request_prefill_time_seconds",
    "vllm:request_decode_time_seconds": "vllm:request_decode_time_seconds",
    "vllm:request_prompt_tokens": "vllm:request_prompt_tokens",
    "vllm:request_generation_tokens": "vllm:request_generation_tokens",
    "vllm:request_success": "vllm:request_success",
    "vllm:cache_config_info": "vllm:cache_config_info",
}
_BLOCKS = ("vllm:prefix_cache_queries", "vllm:prefix_cache_hits")
_LATER_LABELS = ("engine", "kv_cache_size_tokens", "kv_cache_max_concurrency")
_LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)",?')


def without_gpm(row: Row) -> Row | None:
    """Take away what only GPM gives, as on cards before Hopper: ratios of activity, PCIe and NVLink traffic."""
    return {key: value for key, value in row.items() if key != "gpm"}


def without_engine(row: Row) -> Row | None:
    """Let every fetch of an engine's page fail."""
    return {"t": row["t"], "dt": row["dt"], "error": "ConnectError: connection refused"} if "text" in row else row


def without_host(row: Row) -> Row | None:
    """Take away the host's lines, as in a pod that does not share process ids."""
    return None if row.get("kind") == "host" else row


def without_slow(row: Row) -> Row | None:
    """Take away the slow lines: links, processes on the GPU, the driver's own counters of slowdowns."""
    return None if row.get("kind") == "slow" else row


def without_gpu(row: Row) -> Row | None:
    """Take away everything of the GPUs: only engine and host are left."""
    return None if row.get("kind") in ("gpu", "slow", "header") else row


def old_engine(row: Row) -> Row | None:
    """Rewrite a page as vLLM 0.8.0 would have shown it: old names, no rank label, blocks for tokens, later families gone."""
    return {**row, "text": old_page(row["text"])} if "text" in row else row


def old_page(text: str) -> str:
    """Return the page of vLLM 0.25 as that of vLLM 0.8.0."""
    block = re.search(r'vllm:cache_config_info\{.*?block_size="(\d+)"', text)
    size = float(block[1]) if block else 16.0
    return "".join(f"{line}\n" for line in (_old_line(line, size) for line in text.splitlines()) if line is not None)


def _old_line(line: str, block_size: float) -> str | None:
    if ":" not in line:
        return line
    if line.startswith("#"):
        comment, kind, rest = line.split(" ", 2)
        old = _old_name(rest.partition(" ")[0])
        text = rest.partition(" ")[2]
        return None if old is None else f"{comment} {kind} {old[0]} {text.replace('tokens', 'blocks') if old[1] else text}"
    series, _, value = line.rpartition(" ")
    found = _old_series(series)
    if found is None:
        return None
    return f"{found[0]} {float(value) / block_size if found[1] else value}"


@cache
def _old_series(series: str) -> tuple[str, bool] | None:
    """Return a series with its old name and labels, and whether its value counted blocks; None if it came later."""
    name, _, labels = series.partition("{")
    old = _old_name(name)
    kept = ",".join(f'{k}="{v}"' for k, v in _LABEL.findall(labels) if k not in _LATER_LABELS)
    return None if old is None else (f"{old[0]}{{{kept}}}", old[1])


@cache
def _old_name(name: str) -> tuple[str, bool] | None:
    for suffix in ("", "_total", "_bucket", "_sum", "_count"):
        family = name.removesuffix(suffix)
        if family in _OLD_NAMES and family + suffix == name:
            return _OLD_NAMES[family] + suffix, family in _BLOCKS
    return None


DEGRADATIONS: Mapping[str, Degradation] = {
    "without GPM": without_gpm,
    "without engine": without_engine,
    "without host": without_host,
    "without slow rows": without_slow,
    "without GPU": without_gpu,
    "old engine": old_engine,
}


class Degraded(Recording):
    """A recording whose rows go through changes, one after the other, before anything sees them."""

    changes: tuple[Degradation, ...] = ()

    def events(self) -> Iterator[Event]:
        """Yield the events that are left."""
        for event in super().events():
            rows = [row for row in map(self._changed, event.rows) if row is not None]
            if rows:
                yield event._replace(rows=rows)

    def _changed(self, row: Row) -> Row | None:
        changed: Row | None = row
        for change in self.changes:
            changed = None if changed is None else change(changed)
        return changed


def degraded(source: Path, *changes: Degradation) -> Degraded:
    """Open a recording with all `changes`; label and times stay."""
    recording = Degraded.open(source)
    recording.changes = changes
    recording.header = recording._changed(recording.header) or {}
    return recording
