"""Variables in a query, put in as Grafana's Prometheus data source puts them in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from heptascope.errors import UserError

_REFERENCE: Final = re.compile(r"\$(\w+)|\[\[(\w+?)(?::(\w+))?\]\]|\$\{(\w+)(?::([^}]+))?\}")
_REGEX_SPECIAL: Final = re.compile(r"[\\^$.*+?()\[\]{}|/]")
_PROMETHEUS_SPECIAL: Final = re.compile(r"[$^*{}\[\]\\'+?.()|]")


class Choice(NamedTuple):
    """What is chosen for a variable. `plain`: it can only have one value, so that nothing in it is escaped for a regular expression.

    `verbatim` is put in as it stands: the value that All stands for.
    """

    values: tuple[str, ...] = ()
    plain: bool = False
    verbatim: str = ""


def put_in(text: str, choices: Mapping[str, Choice]) -> str:
    """Return a query with its variables replaced. Raises UserError for a variable or format that there is not."""

    def replace(found: re.Match[str]) -> str:
        name = found[1] or found[2] or found[4]
        if name[0].isdigit():  # a group of label_replace; no variable is called so
            return found[0]
        if name not in choices:
            raise UserError(f"there is no variable {name}", where=found[0])
        return written(choices[name], found[3] or found[5] or "")

    return _REFERENCE.sub(replace, text)


def written(choice: Choice, form: str = "") -> str:
    """Return a choice in one of Grafana's formats; "" is how the Prometheus data source writes it."""
    if choice.verbatim:
        return choice.verbatim
    if form == "":
        return choice.values[0] if choice.plain and choice.values else _group([_prometheus(value) for value in choice.values])
    if form == "regex":
        return _group([_REGEX_SPECIAL.sub(r"\\\g<0>", value) for value in choice.values])
    if form in ("pipe", "csv"):
        return {"pipe": "|", "csv": ","}[form].join(choice.values)
    if form in ("raw", "text"):
        return choice.values[0] if len(choice.values) == 1 else "{" + ",".join(choice.values) + "}"
    raise UserError(f"format {form} is not known", hint="use regex, pipe, csv or raw")


def _group(values: list[str]) -> str:
    return values[0] if len(values) == 1 else f"({'|'.join(values)})"


def _prometheus(value: str) -> str:
    """Escape for a regular expression inside a string of PromQL, where a backslash is written twice."""
    return _PROMETHEUS_SPECIAL.sub(lambda found: "\\\\\\\\" if found[0] == "\\" else f"\\\\{found[0]}", value)
