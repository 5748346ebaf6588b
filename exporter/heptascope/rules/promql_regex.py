"""Regular expressions as Prometheus (RE2) reads them, on top of Python's `re`; what differs is refused."""

from __future__ import annotations

import re
import warnings
from functools import lru_cache

from heptascope.errors import UserError

# Each of these means something else in `re`, or exists only there, or is not worth having.
_REFUSED = re.compile(
    r"""
      \(\?(?!:|P<|i\)|i:)                         # look-around, and flags other than i
    | \\(?![dDwWsSbBtnrfv\\]|[^A-Za-z0-9])        # \A \z \p{..} \Q back-references
    | \[\[:                                       # POSIX classes
    | [*+?}]\+                                    # possessive quantifiers
    | \{,                                         # {,n}
    """,
    re.VERBOSE,
)
_REFERENCE = re.compile(r"\$(?:(?P<dollar>\$)|(?P<plain>\w+)|\{(?P<braced>\w+)\})")


@lru_cache(maxsize=1024)
def compile_regex(text: str) -> re.Pattern[str]:
    """Return `text` as a pattern for `fullmatch` (Prometheus anchors both ends); UserError if it cannot be had.

    Classes are ASCII as in RE2. `.` matches a newline as in Prometheus 3; in 2.x it does not.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            pattern = re.compile(text, re.ASCII | re.DOTALL)
        except (re.error, FutureWarning, DeprecationWarning, OverflowError) as error:
            raise UserError(f"regular expression {text!r} is not supported: {error}") from error
    refused = _REFUSED.search(text.replace(r"\\", ""))
    if refused:
        raise UserError(f"regular expression {text!r} is not supported: {refused.group()!r} differs between RE2 and this evaluator")
    return pattern


def compile_template(text: str, pattern: re.Pattern[str]) -> list[str | int]:
    """Return the replacement `text` as literals and group numbers; a reference to no group stands for nothing."""
    parts: list[str | int] = []
    end = 0
    for reference in _REFERENCE.finditer(text):
        parts.append(text[end : reference.start()])
        end = reference.end()
        name = reference["plain"] or reference["braced"]
        if name is None:
            parts.append("$")
        elif (group := _group_number(name, pattern)) is not None:
            parts.append(group)
    parts.append(text[end:])
    return [part for part in parts if part != ""]


def _group_number(name: str, pattern: re.Pattern[str]) -> int | None:
    if name.isascii() and name.isdigit() and (name == "0" or name[0] != "0"):
        return int(name) if int(name) <= pattern.groups else None
    return pattern.groupindex.get(name)


def expand(template: list[str | int], match: re.Match[str]) -> str:
    """Return the text that `template` gives for `match`."""
    return "".join(part if isinstance(part, str) else (match[part] or "") for part in template)
