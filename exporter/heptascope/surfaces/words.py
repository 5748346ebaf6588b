"""Plain words for the closed lists of the model: what a layer is, what a reason means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heptascope.model import Layer, Reason, VerdictState

LAYER_WORDS: dict[Layer, str] = {
    Layer.HARDWARE: "The card and its links: memory bandwidth, compute, power, heat, PCIe.",
    Layer.OPERATOR: "The kernels and how fast they are launched.",
    Layer.MEMORY: "The KV cache: room, reuse, preemption.",
    Layer.SCHEDULING: "The engine's loop: batch, queue, and the host that drives it.",
    Layer.PARALLEL: "Several GPUs at one model: links and balance.",
    Layer.SPECULATIVE: "Drafted tokens: how many are accepted, and whether they pay.",
    Layer.APPLICATION: "What the user feels: latency, throughput, errors.",
}

REASON_WORDS: dict[Reason, str] = {
    Reason.NOT_SUPPORTED: "this card, driver or kernel does not have it",
    Reason.NO_PERMISSION: "it exists, but heptascope may not read it",
    Reason.PROFILER_LOCKED: "another profiler holds the counters",
    Reason.ENGINE: "the engine does not export it",
    Reason.ENGINE_TOO_OLD: "a newer version of this engine exports it",
    Reason.FLAG_OFF: "the engine needs a start flag to export it",
    Reason.NOT_CONFIGURED: "the feature behind it is off",
    Reason.SOURCE_DOWN: "its source cannot be read at present",
    Reason.NO_SOURCE: "no source of this kind is configured or was found",
    Reason.STALE: "its last value is too old to use",
    Reason.INVALID: "the value that came was impossible",
    Reason.AMBIGUOUS: "it cannot be told which engine or GPU it belongs to",
    Reason.IDLE: "it is defined only while there is work",
}

_STATE_WORDS: dict[str, str] = {
    VerdictState.IDLE: "No requests are running.",
    VerdictState.HEALTHY: "Nothing is wrong.",
    VerdictState.DEGRADED: "Something is wrong.",
    VerdictState.CANNOT_TELL: "Too little can be read to judge.",
}


def headline(verdict: Mapping[str, Any]) -> tuple[str, str, list[str]]:
    """Return a verdict's state, its one sentence, and lines that add to it.

    The first fault speaks for the verdict, else the first symptom, else the limiter; its next step follows, then the other
    faults, the limiter, and how much could not be judged.
    """
    state = str(verdict.get("state", VerdictState.CANNOT_TELL))
    limiter, unknown = verdict.get("limiter"), verdict.get("cannot_tell") or []
    claims = [*(verdict.get("faults") or verdict.get("symptoms") or [])]
    lead = claims[0] if claims else limiter
    lines = [f"Next: {step}" for step in (lead or {}).get("actions", ())[:1]]
    lines += [f"Also: {_sentence(claim)}" for claim in claims[1:]]
    lines += [f"Limiter: {_sentence(limiter)}"] if limiter and claims else []
    lines += [f"{len(unknown)} rules could not be judged, because signals are missing."] if unknown else []
    return state, _sentence(lead) if lead else _STATE_WORDS.get(state, ""), lines


def _sentence(claim: Mapping[str, Any]) -> str:
    return str(claim.get("summary") or f"{claim.get('rule', '?')} ({claim.get('layer', '?')}/{claim.get('topic', '?')})")
