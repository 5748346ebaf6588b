"""List, show and check the rules of the catalogue."""

from __future__ import annotations

import importlib
from difflib import get_close_matches
from pathlib import Path

import click

from heptascope.errors import UserError
from heptascope.rules import promql
from heptascope.rules.graph import closure
from heptascope.rules.load import FOLDER, load, load_folder
from heptascope.rules.rule import Rule

WINDOW = "10s"


class _Group(click.Group):
    """Imports `render` only when it is used: it needs more libraries than the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), "render"])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == "render":
            return importlib.import_module("heptascope.commands._render").command  # type: ignore[no-any-return]  # it is a command
        return super().get_command(ctx, cmd_name)


@click.group(cls=_Group)
def command() -> None:
    """List, show and check the rules of the catalogue, and render them as alerts."""


@command.command("list")
def list_rules() -> None:
    """Print each rule in a line: layer, kind, topic, name, what it says."""
    for rule in load():
        click.echo(f"{rule.layer.value:<12} {rule.kind.value:<8} {rule.topic:<18} {rule.name:<31} {rule.summary}")


@command.command()
@click.argument("name", metavar="RULE")
def show(name: str) -> None:
    """Print one rule: its PromQL as it is evaluated in-process, thresholds with their sources, evidence, next steps, what it explains."""
    rules = {rule.name: rule for rule in load()}
    rule = rules.get(name)
    if rule is None:
        near = get_close_matches(name, rules, 1)
        raise UserError(f"no rule {name!r}", hint=f"did you mean {near[0]!r}?" if near else "heptascope rules list prints all")
    for line in _lines(rule, rules):
        click.echo(line)


def _lines(rule: Rule, rules: dict[str, Rule]) -> list[str]:
    explained_by = [other.name for other in rules.values() if rule.name in other.explains]
    where = "Prometheus only (needs a baseline of earlier days)" if rule.needs_baseline else "in-process and Prometheus"
    lines = [
        f"{rule.name}: {rule.layer.value}/{rule.topic}, {rule.kind.value} of one {rule.entity}, {rule.severity}, {rule.confidence.value}",
        rule.summary,
        f"Defined at {rule.where}; evaluated {where}; alert after {rule.hold:g} s.",
        "",
        *rule.text(WINDOW).splitlines(),
        "",
        *(f"threshold {name} = {rule.threshold(name):g}: {rule.source[name]}" for name in rule.thresholds),
        *(f"evidence {item.signal} {item.comparison} {item.threshold}".rstrip() for item in rule.evidence),
        *(f"next ({action.when}): {action.do}" for action in rule.actions),
    ]
    if rule.explains:
        lines.append(f"explains: {', '.join(closure(rule.name, rules))}")
    if explained_by:
        lines.append(f"explained by: {', '.join(explained_by)}")
    return lines


@command.command()
@click.argument("folder", required=False, type=click.Path(path_type=Path))
def check(folder: Path | None) -> None:
    """Check the catalogue, or the rule files in FOLDER: syntax, names, thresholds with sources, PromQL, the causal graph."""
    rules = load_folder(folder or FOLDER)
    for rule in rules:
        if not rule.needs_baseline:
            promql.compile(rule.text(WINDOW), where=rule.where)
        if rule.gain:
            promql.compile(rule.fill(rule.gain, WINDOW), where=rule.where)
    click.echo(f"{len(rules)} rules, {sum(len(rule.explains) for rule in rules)} edges: all right")
