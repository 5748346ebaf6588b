"""Thresholds that one rule takes from another, so that a limiter and the fault of the same topic cannot drift apart.

In the catalogue such a threshold is written `name: OtherRule.name`; it has no source of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from heptascope.errors import UserError
from heptascope.rules.rule import Rule


def resolved(rules: Mapping[str, Rule], folder: Path) -> dict[str, Rule]:
    """Return the rules with the numbers and sources of what they take from others. Raises UserError for what is not there."""
    return {name: _resolve(rule, rules, folder) for name, rule in rules.items()}


def _resolve(rule: Rule, rules: Mapping[str, Rule], folder: Path) -> Rule:
    thresholds, sources = dict(rule.thresholds), dict(rule.source)
    for name, (other, theirs) in rule.shared.items():
        owner = rules.get(other)
        if owner is None or theirs not in owner.thresholds or theirs in owner.shared:
            near = get_close_matches(other, rules, 1) if owner is None else get_close_matches(theirs, owner.thresholds, 1)
            wrong = "there is no such rule" if owner is None else "that rule takes it from another itself"
            if owner is not None and theirs not in owner.thresholds:
                wrong = "that rule has no such threshold"
            raise UserError(
                f"rule {rule.name}: threshold {name!r} is that of {other}.{theirs}, and {wrong}",
                where=f"{folder}/{rule.where}",
                hint=f"did you mean {near[0]!r}?" if near and near[0] != theirs else "",
            )
        thresholds[name], sources[name] = owner.thresholds[theirs], f"as {other}: {owner.source[theirs]}"
    return replace(rule, thresholds=thresholds, source=sources)


def changed(rules: Iterable[Rule], changes: Mapping[str, Mapping[str, float]]) -> tuple[Rule, ...]:
    """Return the rules with changed thresholds (by rule and name); a change reaches the rules that take the threshold from there."""
    return tuple(replace(rule, overridden={**rule.overridden, **_changes(rule, changes)}) for rule in rules)


def _changes(rule: Rule, changes: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    taken = {name: changes.get(other, {}).get(theirs) for name, (other, theirs) in rule.shared.items()}
    return {**{name: value for name, value in taken.items() if value is not None}, **changes.get(rule.name, {})}
