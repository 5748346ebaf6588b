"""The verdict as text, for a terminal at night or a ticket: the answer first, then evidence, next steps, and what is not known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from heptascope.model import SourceStatus
from heptascope.signals.schema import SCHEMA, signal_of
from heptascope.signals.schema_row import Kind
from heptascope.surfaces import units
from heptascope.surfaces.words import REASON_WORDS

Json = Mapping[str, Any]

_HEAD = {"idle": "IDLE", "healthy": "HEALTHY", "degraded": "DEGRADED", "cannot-tell": "CANNOT TELL"}
_SURE = {"direct": "seen directly", "inferred": "inferred", "weak": "weak evidence"}
MOST_UNKNOWN = 8
"""Missing signals named one by one; the rest is counted."""


def entity_text(entity: Mapping[str, str]) -> str:
    """Return an entity as people read it: `vllm`, `vllm rank 1`, `GPU 0`."""
    if "gpu" in entity:
        return f"GPU {entity['gpu']}"
    rank = entity.get("rank", "")
    return entity.get("engine", "engine") + (f" rank {rank}" if rank not in ("", "0") else "")


def value_text(evidence: Json) -> str:
    """Return one piece of evidence as text: name, value, and the threshold that it was held against."""
    name, value = str(evidence["signal"]), evidence["value"]
    row = signal_of(name)
    unit = units.unit_of(name, row.unit if row is not None else "")
    counter = row is not None and row.kind is Kind.COUNTER
    shown = units.rate_text(value, unit) if counter else units.text(value, unit)
    note = str(evidence.get("text", "")).replace("per second", "").strip()
    which, how = ("", " (mean)") if note == "mean" else (f" [{note}]" if note else "", "")
    line = f"{name.removeprefix('heptascope_')}{which} = {shown}{how}"
    if "threshold" in evidence and evidence.get("comparison"):
        limit = units.rate_text(evidence["threshold"], unit) if counter else units.text(evidence["threshold"], unit)
        line += f"  (rule: {evidence['comparison']} {limit})"
    return line


def verdict_lines(verdict: Json) -> Iterator[str]:
    """Yield the report of one verdict, line by line."""
    yield first_line(verdict)
    for claim in verdict["faults"]:
        yield from _claim_lines("Fault", claim)
    for claim in verdict["symptoms"]:
        if not claim["because"]:
            yield from _claim_lines("Symptom without a known cause", claim)
    if verdict["limiter"] is not None:
        yield from _claim_lines("Limiter", verdict["limiter"])
    effects = [*verdict["consequences"], *(s for s in verdict["symptoms"] if s["because"])]
    if effects:
        yield ""
        yield "Consequences (they go when the cause goes):"
        yield from (f"  - {c['rule']} on {entity_text(c['entity'])}, explained by {', '.join(c['because'])}" for c in effects)
    yield from _unknown_lines(verdict["cannot_tell"])


def first_line(verdict: Json) -> str:
    """Return a verdict in one line: state, what is wrong or limits, how sure."""
    state, sure = _HEAD[verdict["state"]], _SURE[verdict["confidence"]]
    limiter, faults = verdict["limiter"], verdict["faults"]
    if verdict["state"] == "degraded" and faults:
        first = faults[0]
        return f"{state}: {first['summary']} [{first['layer']}/{first['topic']}, {sure}]"
    if verdict["state"] == "degraded":
        return f"{state}: users feel it, but no cause was found [{sure}]"
    if verdict["state"] == "healthy":
        bound = f"throughput is bound by {claim_text(limiter)}" if limiter is not None else "the load is light and nothing limits it"
        return f"{state}: nothing to fix; {bound} [{sure}]"
    if verdict["state"] == "idle":
        return f"{state}: no requests"
    if limiter is not None:
        return f"{state} everything; what can be read points at {claim_text(limiter)} [{_SURE[limiter['confidence']]}]"
    return f"{state}: too little can be read to judge"


def _claim_lines(title: str, claim: Json) -> Iterator[str]:
    yield ""
    yield f"{title}: {claim['rule']} on {entity_text(claim['entity'])} ({claim['layer']}/{claim['topic']}, {_SURE[claim['confidence']]})"
    yield f"  {claim['summary']}"
    yield from (f"    {value_text(e)}" for e in claim["evidence"])
    if claim.get("corroborated_by"):
        yield f"  A fresh trace shows it too: {', '.join(claim['corroborated_by'])}"
    if claim.get("gain"):
        yield f"  Worth: {claim['gain']}"
    yield from (f"  Next: {step}" for step in claim["actions"])


def _unknown_lines(unknown: Sequence[Json]) -> Iterator[str]:
    if not unknown:
        return
    lacking: dict[tuple[str, str, str], set[str]] = {}
    for rule in unknown:
        for m in rule["missing"]:
            lacking.setdefault((m["signal"], m["reason"], m["detail"]), set()).add(rule["rule"])
    yield ""
    yield f"Could not be judged: {len({u['rule'] for u in unknown})} rules"
    ranked = sorted(lacking.items(), key=lambda item: (-len(item[1]), item[0]))
    for (signal, reason, detail), rules in ranked[:MOST_UNKNOWN]:
        name = signal.removeprefix("heptascope_") if signal in SCHEMA or signal_of(signal) else signal
        words = detail or next((text for r, text in REASON_WORDS.items() if r.value == reason), reason)
        yield f"  - {name}: {words} ({', '.join(sorted(rules)[:3])}{', ...' if len(rules) > 3 else ''})"
    if len(ranked) > MOST_UNKNOWN:
        yield f"  - and {len(ranked) - MOST_UNKNOWN} more signals (--format json lists all)"


def down_lines(down: Sequence[SourceStatus]) -> Iterator[str]:
    """Yield what could not be read, for the end of a live report."""
    if down:
        yield ""
        yield "Could not be read:"
        yield from (f"  - {status.name}: {status.message}" for status in down)


def claim_text(claim: Json | None) -> str:
    """Return a claim as `layer/topic`, or a dash."""
    return f"{claim['layer']}/{claim['topic']}" if claim else "-"


def summary_text(verdict: Json) -> str:
    """Return a verdict in one short line: state, limiter, root faults."""
    faults = ", ".join(claim_text(c) for c in verdict["faults"]) or "-"
    return f"{verdict['state']}, limiter {claim_text(verdict['limiter'])}, faults {faults}"
