"""llama.cpp's cache: how large, by `/props` and the command line, and how full, by `/slots`, since no build of today exports it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heptascope.model import Quality, Reason
from heptascope.sources.engine.adapter import Absence, Collector, Told
from heptascope.sources.engine.table import Facts
from heptascope.sources.engine.tabled import number, texts

SLOTS = "/slots"
UNIFIED = "kv_unified"
"""The setting that says that all slots share one pool, in which each may grow to the whole of it."""

NO_SLOTS = Absence(Reason.ENGINE, "builds since May 2025 do not export it, and /slots does not answer (--no-slots)")
_IN_CACHE, _OLDER = "n_prompt_tokens", ("n_past", "n_prompt_tokens_processed")


def slot_tokens(answer: Any) -> dict[str, float]:
    """Return of an answer of `/slots`: the tokens that requests hold (`used`) and the contexts of all slots together (`context`).

    A slot without a request keeps its last one's tokens for the next, as a prefix cache does: those are free. Texts are not kept.
    """
    busy = [slot for slot in answer if slot.get("is_processing") or slot.get("state", 0)]
    return {"used": sum(map(_held, busy)), "context": sum(float(slot["n_ctx"]) for slot in answer), "slots": float(len(answer))}


def _held(slot: Mapping[str, Any]) -> float:
    """Return the tokens in a slot's cache; builds before late 2025 tell the prompt's part and the generated one apart, or the sum."""
    if _IN_CACHE in slot:
        return float(slot[_IN_CACHE])
    following = slot.get("next_token") or {}
    if isinstance(following, list):
        following = following[0] if following else {}
    past, prompt = (slot.get(name) for name in _OLDER)
    return float(past if past is not None else (prompt or 0) + following.get("n_decoded", 0))


def told_by_props(answer: Mapping[str, Any]) -> Told:
    """Return what `/props` says: slots, the context of each, model and build."""
    settings = answer.get("default_generation_settings")
    context = number(settings.get("n_ctx")) if isinstance(settings, Mapping) else None
    known = {"max_num_seqs": number(answer.get("total_slots")), "max_model_len": context}
    model = answer.get("model_alias") or answer.get("model_path") or ""
    return Told(
        str(answer.get("build_info") or ""),
        str(model).rpartition("/")[2],
        {key: value for key, value in known.items() if value is not None},
        texts(answer, {"model_path": "model_root"}),
    )


def cache(facts: Facts, out: Collector) -> None:
    """Add the cache's size, and how much of it is in use unless the page tells."""
    told, pairs = facts.context.told.settings, out.pairs("0")
    slots, context = told.get("max_num_seqs"), told.get("max_model_len")
    unified = facts.context.config.get(UNIFIED) == "1"
    if slots and context:
        out.sample("kv_cache_capacity_tokens", pairs, context if unified else slots * context)
        out.mark("kv_cache_capacity_tokens", "0", Quality.DERIVED if UNIFIED in facts.context.config else Quality.APPROXIMATE)
    seen = facts.context.beside.get(SLOTS)
    if "kv_cache_usage_ratio" in out.given or not seen or seen["context"] <= 0:
        return
    whole = seen["context"] / seen["slots"] if unified else seen["context"]
    out.sample("kv_cache_usage_ratio", pairs, min(seen["used"] / whole, 1.0))
    out.mark("kv_cache_usage_ratio", "0", Quality.APPROXIMATE)
