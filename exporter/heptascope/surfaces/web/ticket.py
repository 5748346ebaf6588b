"""The verdict as Markdown, for an incident ticket."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from heptascope import __version__
from heptascope.surfaces.report import entity_text, first_line, value_text

Json = Mapping[str, Any]


def ticket(verdict: Json, about: Json) -> str:
    """Return the Markdown text of a verdict; `about` is the page's object, for the engines, the cards, and the sources that are down."""
    return "\n".join(_lines(verdict, about)) + "\n"


def _lines(verdict: Json, about: Json) -> Iterator[str]:
    yield f"# {escaped(first_line(verdict))}"
    yield ""
    yield f"- Since: {_time(verdict['since'])}; seen: {_time(verdict['time'])}"
    yield from (f"- Engine: {escaped(_facts(name, row, ('kind', 'version', 'model')))}" for name, row in about["engines"].items())
    yield from (f"- GPU {escaped(_facts(name, row, ('model', 'driver')))}" for name, row in about["gpus"].items())
    for name, row in about["sources"].items():
        if not row["up"]:
            yield f"- Source down: {escaped(name)}: {escaped(row['message'] or row['reason'])}"
    lists = (("Root fault", verdict["faults"]), ("Symptom", verdict["symptoms"]), ("Consequence", verdict["consequences"]))
    for title, claims in lists:
        for claim in claims:
            yield from _claim(title, claim)
    if verdict["limiter"] is not None:
        yield from _claim("Limiter", verdict["limiter"])
    unknown = sorted({row["rule"] for row in verdict["cannot_tell"]})
    if unknown:
        yield from ("", f"## Could not be judged: {len(unknown)} rules", "", ", ".join(unknown))
    yield from ("", f"heptascope {__version__}")


def _claim(title: str, claim: Json) -> Iterator[str]:
    yield from ("", f"## {title}: {claim['rule']} on {escaped(entity_text(claim['entity']))} ({claim['layer']}/{claim['topic']})", "")
    yield f"{escaped(claim['summary'])} Confidence: {claim['confidence']}. Since {_time(claim['since'])}."
    if claim["because"]:
        yield f"Explained by {', '.join(claim['because'])}."
    if claim.get("corroborated_by"):
        yield f"A fresh trace shows it too: {', '.join(claim['corroborated_by'])}."
    if claim["evidence"]:
        yield ""
        yield from (f"- `{value_text(e, claim['entity'])}`" for e in claim["evidence"])
    if claim.get("gain"):
        yield from ("", f"Worth: {escaped(claim['gain'])}")
    if claim["actions"]:
        yield from ("", "Next:", "")
        yield from (f"{i}. {escaped(step)}" for i, step in enumerate(claim["actions"], 1))


def escaped(text: object) -> str:
    """Return text that Markdown shows as it is: one line, no markup."""
    flat = " ".join(str(text).split())
    return "".join(f"\\{char}" if char in "\\`*_<>[]#|" else char for char in flat)


def _facts(name: str, row: Json, names: tuple[str, ...]) -> str:
    return " ".join((name, *(str(row[n]) for n in names if n in row and row[n] != name)))


def _time(t: float) -> str:
    return f"{datetime.fromtimestamp(t, UTC):%Y-%m-%d %H:%M:%S} UTC"
