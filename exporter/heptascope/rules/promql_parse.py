"""From text to the parser's tree; refuses what Prometheus 2.42 and 3 do not both understand, before any meaning is looked at."""

from __future__ import annotations

import re
from collections.abc import Iterable

import promql_parser

from heptascope.errors import UserError

_STRING_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|' r"'(?:\\.|[^'\\])*'|#[^\n]*")
_UNIT = r"(?:ms|[smhdwy])"
_RANGE = re.compile(r"\[([^\]]*)\]")
_OFFSET = re.compile(r"\boffset\s+(-?\s*[\w.]+)", re.IGNORECASE)
_METRIC_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_SHOWN = 60  # characters of an expression that an error quotes
_DURATION = re.compile(rf"(?<![\w:.])\d+{_UNIT}")


def parse(text: str) -> promql_parser.Expr:
    """Return the tree of `text`; UserError with one line for what is wrong."""
    bare = _STRING_OR_COMMENT.sub('""', text)
    if "`" in bare:
        raise UserError("strings in backticks are not supported")
    for duration in _RANGE.findall(bare) + _OFFSET.findall(bare):
        if duration.strip(" -").replace(".", "").isdigit():
            raise UserError(f"duration {duration.strip()!r} has no unit")
    rest = _OFFSET.sub("", _RANGE.sub("", bare))
    if found := _DURATION.search(rest):
        raise UserError(f"{found.group()!r}: a duration cannot stand for a number")
    try:
        return promql_parser.parse(text)
    except ValueError as error:
        shown = " ".join(text.split())
        shown = shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"
        raise UserError(f"{' '.join(str(error).split())} in {shown!r}") from None


def check_metric_name(name: str) -> None:
    """Raise UserError if `name` is not made of letters, digits, underscores and colons."""
    if not _METRIC_NAME.fullmatch(name):
        raise UserError(f"metric name {name!r} is not supported: only letters, digits, underscores and colons are")


def check_label_names(names: Iterable[str]) -> None:
    """Raise UserError for a label name that is not made of letters, digits and underscores, and for `__name__`."""
    for name in names:
        if name == "__name__":
            raise UserError("the label __name__ is not supported here")
        if not _LABEL_NAME.fullmatch(name):
            raise UserError(f"label name {name!r} is not supported: only letters, digits and underscores are")
