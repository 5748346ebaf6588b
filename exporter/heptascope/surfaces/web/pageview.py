"""The page as one object: what was said, about what, and how it is known. The page's script draws it; `/api/v1/page` sends it.

Nothing in it is null and lists hold texts only, so that a merge patch (RFC 7396) can tell every change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from heptascope.model import Labels
from heptascope.rules.findings import claim_key
from heptascope.rules.verdict import verdict_json
from heptascope.signals.snapshot import Snapshot
from heptascope.surfaces.web.chronicle import Band, Moment

Object = dict[str, Any]
_VERDICT_LISTS = ("faults", "consequences", "symptoms")
_ENGINE_FACTS = ("kind", "version", "model")
_GPU_FACTS = ("model", "driver", "uuid")


def page(full: Snapshot, moment: Moment | None, bands: Iterable[Band]) -> Object:
    """Return the page of the newest snapshot, with what was said at `moment`."""
    return {
        "t": full.t,
        "engines": _engines(full),
        "gpus": _gpus(full),
        "sources": {source.name: _source(source.up, source.kind, source.reason, source.message) for source in full.sources},
        **_trace(full),
        "gaps": len({gap.signal for gap in full.missing}),
        **said(moment),
        "bands": {f"{band.key}|{band.begin:.0f}": _band(band) for band in bands},
    }


def said(moment: Moment | None) -> Object:
    """Return the verdicts and layers of one moment; each claim stands once, under its key."""
    if moment is None:
        return {"verdicts": {}, "claims": {}, "layers": {}}
    whole = moment.verdict
    claims: Object = {}
    verdicts = {v["engine"]: _verdict(v, claims) for v in map(verdict_json, whole.engines or (whole,))}
    found: Object = {"verdicts": verdicts, "claims": claims, "layers": moment.layers, "said": moment.t}
    if whole.engines:
        found["overall"] = _verdict(verdict_json(whole), claims)
    return found


def _verdict(v: Mapping[str, Any], claims: Object) -> Object:
    out: Object = {name: v[name] for name in ("state", "confidence", "since")}
    if v["limiter"] is not None:
        out["limiter"] = _claim(v["limiter"], claims)
    for name in _VERDICT_LISTS:
        out[name] = [_claim(claim, claims) for claim in v[name]]
    out["unknown"] = sorted({row["rule"] for row in v["cannot_tell"]})
    return out


def _claim(claim: Mapping[str, Any], claims: Object) -> str:
    key = claim_key(claim["rule"], claim["entity"].items())
    claims[key] = {**claim, "evidence": {str(i): _rounded(e) for i, e in enumerate(claim["evidence"])}}
    return key


def _rounded(evidence: Mapping[str, Any]) -> Object:
    """Return evidence with its value as the page shows it, so that what cannot be seen is no change."""
    return {name: float(f"{value:.4g}") if name == "value" else value for name, value in evidence.items() if value is not None}


def _source(up: bool, kind: str, reason: object, message: str) -> Object:
    return {"up": up, "kind": kind, **({} if up else {"reason": str(reason or ""), "message": message})}


def _trace(full: Snapshot) -> Object:
    """Return the trace that is served and when it was written; nothing without one."""
    info, age = full.values.get("heptascope_trace_info"), full.values.get("heptascope_trace_age_seconds")
    if not info or not age:
        return {}
    return {"trace": {"file": dict(info[0][0]).get("file", ""), "written": round(full.t - age[0][1])}}


def _band(band: Band) -> Object:
    f = band.finding
    row = {"key": band.key, "rule": f.rule.name, "layer": f.rule.layer.value, "kind": f.rule.kind.value, "entity": dict(f.instance.pairs)}
    return {**row, "begin": round(band.begin, 1), **({} if band.end is None else {"end": round(band.end, 1)})}


def _engines(full: Snapshot) -> Object:
    out: Object = {}
    for pairs in _rows(full, "heptascope_engine_requests_running", "heptascope_engine_info"):
        labels = dict(pairs)
        row = out.setdefault(labels.get("engine", ""), {"ranks": []})
        if labels.get("rank", "0") not in row["ranks"]:
            row["ranks"].append(labels.get("rank", "0"))
        row |= {name: labels[name] for name in _ENGINE_FACTS if name in labels}
    return out


def _gpus(full: Snapshot) -> Object:
    out: Object = {}
    for pairs in _rows(full, "heptascope_gpu_info", "heptascope_gpu_up"):
        labels = dict(pairs)
        out.setdefault(labels.get("gpu", "?"), {"engines": []}).update({name: labels[name] for name in _GPU_FACTS if name in labels})
    for pairs in _rows(full, "heptascope_engine_gpu_info"):
        labels = dict(pairs)
        row = out.get(labels.get("gpu", ""))
        if row is not None and labels.get("engine", "") not in row["engines"]:
            row["engines"].append(labels.get("engine", ""))
    return out


def _rows(full: Snapshot, *names: str) -> Iterator[Labels]:
    for name in names:
        yield from (pairs for pairs, _ in full.values.get(name, ()))
