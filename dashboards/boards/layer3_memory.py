"""Board of layer 3: the KV cache and the memory that it lies in."""

from __future__ import annotations

from typing import Final

from boards import facts
from boards.common import state_row, uid
from boards.limits import Limit, Sign, number
from boards.panel import Board, Panel, Query, Row
from boards.promql import ENGINE_NAME, GPU_NAME, RANK, by, mean, of_model, rate, sel
from boards.variables import PLACES
from heptascope.model import Layer

_E: Final = "heptascope_engine_"
_CAPACITY: Final = sel(_E + "kv_cache_capacity_tokens")
_HELD: Final = f"{sel(_E + 'kv_cache_usage_ratio')} * {_CAPACITY}"
_LONGEST: Final = number("KVCacheSmallerThanRequest", "requests")
_PROMPT: Final = f"({mean(_E + 'prompt_length_tokens')})"
_AGAIN: Final = f"({rate(_E + 'recomputed_tokens_total')} or {rate(_E + 'preemptions_total')} * {sel(_E + 'kv_cache_tokens_per_sequence')})"
_QUERIED: Final = f"sum by ({by(RANK)}) ({rate(_E + 'prefix_cache_queried_tokens_total')})"
_HIT: Final = f"sum by ({by(RANK)}) ({rate(_E + 'prefix_cache_hit_tokens_total')})"


def _room() -> Row:
    usage = Panel(
        "timeseries",
        facts.title(_E + "kv_cache_usage_ratio"),
        (Query(of_model(sel(_E + "kv_cache_usage_ratio")), ENGINE_NAME),),
        facts.unit(_E + "kv_cache_usage_ratio"),
        shows="Share of the KV cache held by live requests.",
        normal="anything below the lines; a full cache is good use of memory as long as nobody waits and nobody is preempted.",
        act="at the line while requests wait: more memory for the cache, an FP8 cache, shorter contexts, or one more replica.",
        width=8,
        limits=(Limit("KVCacheExhausted", "full"), Limit("DraftModelCrowdsCache", "full")),
        top=1.0,
    )
    demand = f"{_HELD} + ({sel(_E + 'requests_waiting')} * {_PROMPT} >= 0 or 0 * {_HELD})"
    tokens = Panel(
        "timeseries",
        "Tokens held and wanted against capacity",
        (
            Query(of_model(_HELD), f"held · {ENGINE_NAME}"),
            Query(of_model(demand), f"wanted · {ENGINE_NAME}"),
            Query(of_model(_CAPACITY), f"capacity · {ENGINE_NAME}", dashed=True),
            Query(of_model(f"{_LONGEST} * {sel(_E + 'model_length_limit')}"), f"longest request · {ENGINE_NAME}", dashed=True),
        ),
        "short",
        shows=(
            "KV tokens of running requests; those plus a mean prompt for each waiting one; all that fit; "
            "and what the longest request that is allowed would take."
        ),
        normal="wanted equals held: nobody waits. The longest request lies far below the capacity.",
        act="wanted above the capacity: they wait for the cache. Wanted above held but below it: see Scheduling.",
        width=8,
        signs=(
            Sign("KVCapacityLimit", "wanted above the capacity"),
            Sign("KVCacheSmallerThanRequest", "the capacity below the longest request"),
        ),
    )
    cap = f"{sel(_E + 'sequence_limit')} * {sel(_E + 'kv_cache_tokens_per_sequence')} / {_CAPACITY}"
    sizing = Panel(
        "timeseries",
        "Sequence cap against the cache",
        (Query(of_model(cap), ENGINE_NAME),),
        "percentunit",
        shows="Cache that as many requests as may run would need at their present length, as a share of what there is.",
        normal="below 100 %.",
        act="above the line with preemptions: lower the sequence cap, or give the cache more memory.",
        width=8,
        limits=(Limit("SequenceCapExceedsCache", "oversize"),),
        empty="The engine does not tell its sequence cap, or nothing runs.",
    )
    return Row("Is there room?", ((usage, tokens, sizing),))


def _collapsed() -> str:
    """Return the hit ratio below which it has collapsed, by what it was a day before."""
    before = f"{sel(_E + 'prefix_cache_hit_ratio')} offset 1d"
    return f"{number('PrefixCacheCollapsed', 'fall')} * ({before} > {number('PrefixCacheCollapsed', 'worth')})"


def _reuse() -> Row:
    hits = Panel(
        "timeseries",
        "Hit ratio, and the recompute trap",
        (
            Query(of_model(f"{_HIT} / ({_QUERIED} > 0)"), f"as reported · {ENGINE_NAME}"),
            Query(
                of_model(f"clamp_min({_HIT} - on ({by(RANK)}) ({_AGAIN}), 0) / ({_QUERIED} > 0)"), f"without recomputation · {ENGINE_NAME}"
            ),
            Query(of_model(_collapsed()), f"collapsed below this, by the day before · {ENGINE_NAME}", dashed=True),
        ),
        "percentunit",
        shows="Prompt tokens found in the prefix cache, and the same without what preempted requests may find of their own blocks.",
        normal="both lines equal. The height is your prompts': 0 for unrelated ones, 50 to 95 % with shared system prompts.",
        act="the lines apart: preemption flatters the reported ratio, a fault and not reuse. A fall of both: other prompts, or evictions.",
        width=8,
        signs=(Sign("PrefixCacheCollapsed", "as reported below the dashed line of its engine"),),
        limits=(Limit("RecomputeHits", "ratio"),),
        top=1.0,
        empty="No prompts were looked up, or prefix caching is off.",
    )
    prompts = Panel(
        "timeseries",
        "Prompt tokens: computed and cached",
        (
            Query(f"sum ({of_model(sel(_E + 'prompt_computed_tokens_per_second'))})", "computed"),
            Query(f"sum ({of_model(rate(_E + 'prompt_cached_tokens_total'))})", "cached"),
        ),
        "count:tokens/s",
        shows="Where prompt tokens of all chosen engines come from.",
        normal="with shared prefixes most are cached.",
        act="all computed with long, similar prompts: switch prefix caching on, and let variable parts come last.",
        width=8,
        stacked=True,
    )
    turnover = Panel(
        "timeseries",
        "Turnover of the cache",
        (
            Query(
                of_model(f"({rate(_E + 'prompt_tokens_total')} - {rate(_E + 'prefix_cache_hit_tokens_total')}) / {_CAPACITY}"), ENGINE_NAME
            ),
        ),
        "percentunit",
        shows="New prompt tokens each second, as a share of the cache: at 10 % it is renewed in ten seconds.",
        normal="a few per cent.",
        act="above the line cached prefixes are gone before a user comes back: more cache, or an offload tier.",
        width=8,
        limits=(Limit("EvictionChurn", "turnover_per_second"),),
    )
    return Row("Is it reused?", ((hits, prompts, turnover),))


def _losses() -> Row:
    preemptions = Panel(
        "timeseries",
        facts.title(_E + "preemptions_total"),
        (Query(of_model(rate(_E + "preemptions_total")), ENGINE_NAME),),
        facts.rate_unit(_E + "preemptions_total"),
        shows="Running requests thrown out of the cache, each second.",
        normal="0.",
        act="fewer sequences at once (--max-num-seqs), or more cache.",
        width=8,
        limits=(
            Limit("KVCachePreemption", "preemptions_per_second", unit="/s"),
            Limit("KVCapacityLimit", "preemptions_per_second", unit="/s"),
        ),
    )
    again = Panel(
        "timeseries",
        "Tokens computed again",
        (Query(of_model(f"clamp_max(({_AGAIN}) / ({rate(_E + 'step_tokens_total')} > 0), 1)"), ENGINE_NAME),),
        "percentunit",
        shows="As a share of all tokens computed: what the engine counts, or else preempted requests times their mean length.",
        normal="0.",
        act="that share of the GPU is lost; mend the preemptions beside it.",
        width=8,
        limits=(Limit("RecomputeTax", "token_share"),),
        empty="The engine does not count the tokens of its steps.",
    )
    used = Panel(
        "timeseries",
        "Device memory",
        (
            Query(sel("heptascope_gpu_memory_used_bytes"), f"used · {GPU_NAME}"),
            Query(f"max ({sel('heptascope_gpu_memory_total_bytes')})", "of the card", dashed=True),
        ),
        facts.unit("heptascope_gpu_memory_used_bytes"),
        shows="Memory in use by anyone on the card, and all of it.",
        normal="flat: engines reserve their cache at the start.",
        width=8,
        act="growth towards the dashed line: a leak, an adapter cache, or a neighbour; see the runbook DeviceMemoryGrowing.",
    )
    return Row("What is lost, and what the card holds", ((preemptions, again, used),))


def _device() -> Row:
    failures = Panel(
        "timeseries",
        facts.title(_E + "kv_allocation_failures_total"),
        (Query(of_model(rate(_E + "kv_allocation_failures_total")), ENGINE_NAME),),
        facts.rate_unit(_E + "kv_allocation_failures_total"),
        shows="Allocations for the cache or its offload tier that failed, each second.",
        normal="0.",
        act="see the runbook AllocationFailures: host memory, pinned memory, or the disk of the tier.",
        width=12,
        limits=(Limit("AllocationFailures", "failures_per_second", unit=""),),
        empty="Only engines that count failed allocations show this.",
    )
    speed = f"{rate(_E + 'kv_offload_load_bytes_total')} / ({rate(_E + 'kv_offload_load_seconds_total')} > 0)"
    offload = Panel(
        "timeseries",
        "Loading from the offload tier",
        (Query(of_model(speed), ENGINE_NAME),),
        "Bps",
        shows="Bytes of KV cache loaded back, per second of loading.",
        normal="several GB/s from host memory.",
        act="below the line computing the prefix again is faster: shrink or remove the tier.",
        limits=(Limit("OffloadSlowerThanRecompute", "bytes_per_second", below=True, unit="bytes"),),
        empty="No offload tier is in use.",
    )
    return Row("Offload tier and allocations", ((offload, failures),), collapsed=True)


def board() -> Board:
    """Return the board."""
    return Board(
        uid(Layer.MEMORY),
        "heptascope / 3 Memory",
        "Is the KV cache large enough, is it reused, and what does its lack cost?",
        (*PLACES, "engine", "gpu"),
        (state_row(Layer.MEMORY), _room(), _reuse(), _losses(), _device()),
        layer=Layer.MEMORY,
    )
