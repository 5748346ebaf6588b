"""Reads and checks the catalogue: one clear line per fault, with file and line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from heptascope.errors import UserError
from heptascope.model import Confidence, Layer, RuleKind
from heptascope.rules.graph import check_acyclic
from heptascope.rules.references import resolved
from heptascope.rules.rule import ENTITY_LABELS, GUARDS, TOPICS, Action, EvidenceItem, Rule
from heptascope.signals.schema import SCHEMA
from heptascope.yaml_marks import KeyPath, read_yaml

FOLDER = Path(__file__).parent / "catalogue"
SEVERITIES = ("critical", "warning", "info")
WHEN = ("any", "vllm", "sglang", "tensorrt-llm", "kubernetes")
_REQUIRED = ("rule", "layer", "topic", "kind", "entity", "expr", "summary", "evidence")
_OPTIONAL = ("thresholds", "source", "for", "severity", "confidence", "actions", "explains", "guard", "baseline", "gain")
_NAME = re.compile(r"[A-Z][A-Za-z0-9]+")
_EVIDENCE = re.compile(
    r'(?P<signal>heptascope_[a-z0-9_]+)(\{(?P<label>[a-z_]+)="(?P<text>[^"]*)"\})?(\s+(?P<op>>=|<=|==|!=|>|<)\s+(?P<threshold>[a-z_0-9]+))?'
)
_REFERENCE = re.compile(r"[A-Z][A-Za-z0-9]+\.[a-z][a-z0-9_]*")
_DURATION = re.compile(r"(\d+)(s|m|h)")
_SECONDS = {"s": 1, "m": 60, "h": 3600}


class _Entry:
    """One entry of a file, and how to complain about it."""

    def __init__(self, path: Path, lines: Mapping[KeyPath, int], at: KeyPath, value: Any) -> None:
        self.path, self.lines, self.at = path, lines, at
        if not isinstance(value, dict):
            raise self.error("", "a rule must be a mapping that starts with `rule: Name`")
        self.value: dict[str, Any] = value

    def error(self, key: str, message: str, hint: str = "") -> UserError:
        line = self.lines.get((*self.at, key)) or self.lines.get(self.at, 1)
        name = self.value.get("rule", "?") if hasattr(self, "value") else "?"
        return UserError(f"rule {name}: {message}", where=f"{self.path}:{line}", hint=hint)

    def text(self, key: str, default: str | None = None) -> str:
        value = self.value.get(key, default)
        if not isinstance(value, str) or not value.strip():
            raise self.error(key, f"{key} must be text")
        return value.strip()

    def choice(self, key: str, allowed: Iterable[str], default: str | None = None) -> str:
        value, options = self.text(key, default), list(allowed)
        if value not in options:
            raise self.error(key, f"{key} {value!r} is not allowed", f"use one of: {', '.join(options)}")
        return value

    def items(self, key: str) -> list[Any]:
        value = self.value.get(key, [])
        if not isinstance(value, list):
            raise self.error(key, f"{key} must be a list")
        return value


def _keys(entry: _Entry) -> None:
    for key in entry.value:
        if key not in _REQUIRED + _OPTIONAL:
            near = get_close_matches(key, _REQUIRED + _OPTIONAL, 1)
            raise entry.error(
                key, f"unknown key {key!r}", f"did you mean {near[0]!r}?" if near else f"allowed: {', '.join(_REQUIRED + _OPTIONAL)}"
            )
    for key in _REQUIRED:
        if key not in entry.value:
            raise entry.error("rule", f"key {key!r} is missing")


def _thresholds(entry: _Entry) -> tuple[dict[str, float], dict[str, str], dict[str, tuple[str, str]]]:
    """Return the thresholds (NaN for one that is another rule's), the sources of the rule's own, and whose the others are."""
    values, sources = entry.value.get("thresholds", {}), entry.value.get("source", {})
    if not isinstance(values, dict) or not all(_is_threshold(v) for v in values.values()):
        raise entry.error("thresholds", "thresholds must be `name: number` or `name: OtherRule.threshold` lines")
    own = [name for name, value in values.items() if not isinstance(value, str)]
    if not isinstance(sources, dict) or set(sources) != set(own):
        raise entry.error("source", f"source must say where each threshold comes from: {', '.join(own) or 'there are none'}")
    shared = {
        name: (rule, theirs) for name, value in values.items() if isinstance(value, str) for rule, _, theirs in [value.partition(".")]
    }
    numbers = {name: math.nan if isinstance(value, str) else float(value) for name, value in values.items()}
    return numbers, {k: str(v) for k, v in sources.items()}, shared


def _is_threshold(value: object) -> bool:
    return bool(_REFERENCE.fullmatch(value)) if isinstance(value, str) else isinstance(value, int | float) and not isinstance(value, bool)


def _evidence(entry: _Entry, thresholds: Mapping[str, float]) -> tuple[EvidenceItem, ...]:
    out = []
    for item in entry.items("evidence"):
        match = _EVIDENCE.fullmatch(str(item).strip())
        if match is None:
            raise entry.error(
                "evidence",
                f"cannot read evidence {item!r}",
                'write `signal`, `signal > threshold_name` or `signal{label="text"} > threshold_name`',
            )
        if match["signal"] not in SCHEMA:
            near = get_close_matches(match["signal"], SCHEMA, 1)
            raise entry.error(
                "evidence", f"unknown signal {match['signal']}", f"did you mean {near[0]}?" if near else "see the signal table"
            )
        if match["threshold"] and match["threshold"] not in thresholds:
            raise entry.error("evidence", f"unknown threshold {match['threshold']!r}", f"this rule has: {', '.join(thresholds)}")
        only = (match["label"], match["text"]) if match["label"] else None
        out.append(EvidenceItem(match["signal"], match["op"] or "", match["threshold"] or "", only))
    return tuple(out)


def _actions(entry: _Entry) -> tuple[Action, ...]:
    out = []
    for item in entry.items("actions"):
        if not isinstance(item, dict) or set(item) != {"when", "do"} or item["when"] not in WHEN:
            raise entry.error("actions", f"cannot read action {item!r}", f"write {{when: {'|'.join(WHEN)}, do: text}}")
        out.append(Action(item["when"], str(item["do"]).strip()))
    return tuple(out)


def _gain(entry: _Entry) -> dict[str, str]:
    gain = entry.value.get("gain", {"expr": "", "text": ""})
    if not isinstance(gain, dict) or set(gain) != {"expr", "text"} or not all(isinstance(v, str) for v in gain.values()):
        raise entry.error("gain", "gain must be {expr: PromQL of a ratio, text: what it is a share of}")
    return gain


def _hold(entry: _Entry) -> float:
    match = _DURATION.fullmatch(str(entry.value.get("for", "1m")))
    if match is None:
        raise entry.error("for", f"cannot read duration {entry.value.get('for')!r}", "write 30s, 5m or 1h")
    return float(match[1]) * _SECONDS[match[2]]


def _rule(entry: _Entry) -> Rule:
    _keys(entry)
    name = entry.text("rule")
    if not _NAME.fullmatch(name):
        raise entry.error("rule", "a rule's name is CamelCase letters and digits")
    layer = Layer(entry.choice("layer", [layer.value for layer in Layer]))
    thresholds, sources, shared = _thresholds(entry)
    entity = entry.choice("entity", ENTITY_LABELS)
    gain = _gain(entry)
    rule = Rule(
        name=name,
        layer=layer,
        topic=entry.choice("topic", TOPICS[layer]),
        kind=RuleKind(entry.choice("kind", [kind.value for kind in RuleKind])),
        entity=entity,
        expr=entry.text("expr"),
        guard=entry.choice("guard", GUARDS, entity),
        thresholds=thresholds,
        source=sources,
        hold=_hold(entry),
        severity=entry.choice("severity", SEVERITIES, "warning"),
        confidence=Confidence(entry.choice("confidence", [c.value for c in Confidence], "inferred")),
        summary=entry.text("summary"),
        evidence=_evidence(entry, thresholds),
        actions=_actions(entry),
        explains=tuple(str(x) for x in entry.items("explains")),
        needs_baseline=bool(entry.value.get("baseline", False)),
        gain=gain["expr"].strip(),
        gain_text=gain["text"].strip(),
        where=f"{entry.path.name}:{entry.lines.get((*entry.at, 'rule'), 1)}",
        shared=shared,
    )
    unknown = rule.placeholders() - set(thresholds)
    if unknown:
        raise entry.error("expr", f"placeholder ${min(unknown)} is no threshold of this rule")
    unused = set(thresholds) - rule.placeholders()
    if unused:
        raise entry.error("thresholds", f"threshold {min(unused)!r} is not used in the expression")
    return rule


def load_folder(folder: Path) -> tuple[Rule, ...]:
    """Read every `*.yaml` of a catalogue folder, in order. Raises UserError at the first fault."""
    rules: dict[str, Rule] = {}
    files = sorted(folder.glob("*.yaml"))
    if not files:
        raise UserError("no rule files (*.yaml) here", where=str(folder))
    for path in files:
        marked = read_yaml(path)
        if set(marked.value) != {"rules"} or not isinstance(marked.value["rules"], list):
            raise UserError("the file must hold one key, `rules`, with a list", where=f"{path}:1")
        for i, value in enumerate(marked.value["rules"]):
            entry = _Entry(path, marked.lines, ("rules", i), value)
            rule = _rule(entry)
            if rule.name in rules:
                raise entry.error("rule", f"there is another rule of this name, at {rules[rule.name].where}")
            if path.stem.split("-", 1)[-1] != rule.layer.value:
                raise entry.error("layer", f"a rule of layer {rule.layer.value} does not belong into {path.name}")
            rules[rule.name] = rule
    for rule in rules.values():
        for other in rule.explains:
            if other not in rules:
                near = get_close_matches(other, rules, 1)
                raise UserError(
                    f"rule {rule.name}: explains an unknown rule {other!r}",
                    where=f"{folder}/{rule.where}",
                    hint=f"did you mean {near[0]}?" if near else "",
                )
    check_acyclic(rules)
    return tuple(resolved(rules, folder).values())


@cache
def load() -> tuple[Rule, ...]:
    """Return the catalogue that ships with the package."""
    return load_folder(FOLDER)
