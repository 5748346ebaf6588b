"""The verdict as text, for a terminal at night or a ticket: the answer first, then evidence, next steps, and what is not known."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from heptascope.model import SourceStatus
from heptascope.rules.judge import BASELINE
from heptascope.signals.schema import signal_of
from heptascope.signals.schema_row import Kind
from heptascope.surfaces import units
from heptascope.surfaces.words import REASON_WORDS

Json = Mapping[str, Any]

_HEAD = {"idle": "IDLE", "healthy": "HEALTHY", "degraded": "DEGRADED", "cannot-tell": "CANNOT TELL"}
_SURE = {"direct": "seen directly", "inferred": "inferred", "weak": "weak evidence"}
_PASSED = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "==": operator.eq}
MOST_UNKNOWN = 8
"""Reasons named one by one; the rest is counted."""
MOST_NAMES = 3
"""Signals and rules named for one reason."""


def entity_text(entity: Mapping[str, str]) -> str:
    """Return an entity as people read it: `vllm`, `vllm rank 1`, `GPU 0`."""
    if "gpu" in entity:
        return f"GPU {entity['gpu']}"
    rank = entity.get("rank", "")
    return entity.get("engine", "engine") + (f" rank {rank}" if rank not in ("", "0") else "")


def value_text(evidence: Json, entity: Json = MappingProxyType({})) -> str:
    """Return one piece of evidence as text: name, value, and the threshold that it passed; what is said of `entity` already is left out."""
    name, value = str(evidence["signal"]), evidence["value"]
    row = signal_of(name)
    unit = units.unit_of(name, row.unit if row is not None else "")
    show = units.rate_text if row is not None and row.kind is Kind.COUNTER else units.text
    note = _note(str(evidence.get("text", "")), entity)
    which, how = ("", " (mean)") if note == "mean" else (f" [{note}]" if note else "", "")
    line = f"{name.removeprefix('heptascope_')}{which} = {show(value, unit)}{how}"
    passed = _PASSED.get(str(evidence.get("comparison")))
    if passed is None or "threshold" not in evidence:
        return line
    limit = f"{evidence['comparison']} {show(evidence['threshold'], unit)}"
    if not passed(value, evidence["threshold"]):  # another process than the one meant, or a mean whose tail is what the rule looks at
        return f"{line}  (rule: {limit} among the slowest)" if note == "mean" else line
    return f"{line}  (rule: {limit})"


def _note(text: str, entity: Json) -> str:
    """Return what tells a value from others of its signal: labels that the entity does not have, no role that a process is named by."""
    parts = [part for part in text.replace("per second", "").split() if part not in {f"{name}={value}" for name, value in entity.items()}]
    process = next((part.removeprefix("process=") for part in parts if part.startswith("process=")), "")
    return " ".join(part for part in parts if not (part.startswith("role=") and process.startswith(part.removeprefix("role="))))


def verdict_lines(verdict: Json, down: Sequence[SourceStatus] = ()) -> Iterator[str]:
    """Yield the report of one verdict, line by line; `down` are the sources that could not be read."""
    yield first_line(verdict)
    yield from _down_lines(down)
    faults, limiter = verdict["faults"], verdict["limiter"]
    for claim in faults:
        yield from _claim_lines("Fault", claim)
    for claim in verdict["symptoms"]:
        if not claim["because"]:
            yield from _claim_lines("Symptom without a known cause", claim)
    if limiter is not None and any(claim_text(claim) == claim_text(limiter) for claim in faults):
        yield from ("", f"Limiter: {limiter['rule']}, which is the fault itself ({claim_text(limiter)})")
    elif limiter is not None:  # beside a fault it is told, but what would ease it is not what to do now
        yield from _claim_lines("Limiter", {**limiter, "actions": ()} if faults else limiter)
    effects = [*verdict["consequences"], *(s for s in verdict["symptoms"] if s["because"])]
    if effects:
        yield ""
        yield "Consequences (they go when the cause goes):"
        yield from (f"  - {c['rule']} on {entity_text(c['entity'])}, by {', '.join(c['because'])}: {c['summary']}" for c in effects)
    yield from _unknown_lines(verdict["cannot_tell"], {status.message: status.name for status in down})


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
    yield from (f"    {value_text(e, claim['entity'])}" for e in claim["evidence"])
    if claim.get("corroborated_by"):
        yield f"  A fresh trace shows it too: {', '.join(claim['corroborated_by'])}"
    if claim.get("gain"):
        yield f"  Worth: {claim['gain']}"
    yield from (f"  Next: {step}" for step in claim["actions"])


def _unknown_lines(unknown: Sequence[Json], down: Mapping[str, str]) -> Iterator[str]:
    """Yield the reasons, each once, with what lacks for it; the one that most rules suffer from first."""
    if not unknown:
        return
    groups: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for rule in unknown:
        for m in rule["missing"]:
            signals, rules = groups.setdefault(_why(m), ({}, {}))
            signals[m["signal"].removeprefix("heptascope_")] = rules[rule["rule"]] = None
    yield ""
    yield f"Could not be judged: {len({u['rule'] for u in unknown})} rules"
    ranked = sorted(groups.items(), key=lambda item: (item[0] == BASELINE, -len(item[1][1]), item[0]))
    for why, (signals, rules) in ranked[:MOST_UNKNOWN]:
        reason = f"{down[why]} could not be read" if why in down else why
        named = "" if signals.keys() == rules.keys() else f" ({_some(sorted(rules))})"
        yield f"  - {reason}: {_some(signals)}{named}"
    if len(ranked) > MOST_UNKNOWN:
        more = len(ranked) - MOST_UNKNOWN
        yield f"  - and for {'one more reason' if more == 1 else f'{more} more reasons'} (--format json lists all)"


def _why(missing: Json) -> str:
    return missing["detail"] or next(
        (text for reason, text in REASON_WORDS.items() if reason.value == missing["reason"]), missing["reason"]
    )


def _some(names: Collection[str]) -> str:
    first = list(names)[:MOST_NAMES]
    return ", ".join(first) + (f" and {len(names) - len(first)} more" if len(names) > len(first) else "")


def _down_lines(down: Sequence[SourceStatus]) -> Iterator[str]:
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
