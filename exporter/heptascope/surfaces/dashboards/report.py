"""Empty panels, for people and for machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from heptascope.surfaces.dashboards.empty import CAUSE_WORDS, Cause, Empty, Looked

_FEW_SIGNALS: Final = 2


def as_object(found: Iterable[Looked]) -> dict[str, Any]:
    """Return the result as JSON-ready data."""
    boards = [
        {
            "board": one.uid,
            "title": one.title,
            "panels": one.panels,
            "empty": [
                {"panel": gap.panel, "cause": gap.cause, "detail": gap.detail or CAUSE_WORDS[gap.cause], "signals": list(gap.signals)}
                for gap in one.empty
            ],
        }
        for one in found
    ]
    return {"panels": sum(one["panels"] for one in boards), "boards": boards}


def lines(found: Iterable[Looked], empty: str) -> Iterator[str]:
    """Yield the result for people, a board at a time; `empty` is how its empty panels are called, such as "are empty".

    Where heptascope is not scraped, nothing but that is said.
    """
    total = dead = 0
    scraped = True
    for one in found:
        total, dead = total + one.panels, dead + len(one.empty)
        scraped = Cause.NOT_SCRAPED not in {gap.cause for gap in one.empty}
        if not scraped:
            continue
        says = f"{len(one.empty)} of {one.panels} panels {empty}" if one.empty else f"all {one.panels} panels have data"
        yield f"{one.title} ({one.uid}): {says}"
        for (cause, detail), gaps in _by_cause(one.empty).items():
            yield f"  {cause}: {detail or CAUSE_WORDS[cause]}"
            yield from (f"    {gap.panel}{_without(gap)}" for gap in gaps)
    if not scraped:
        yield f"{Cause.NOT_SCRAPED}: {CAUSE_WORDS[Cause.NOT_SCRAPED]}; {dead} of {total} panels {empty}"
    else:
        yield f"\n{dead} of {total} panels {empty}." if dead else f"\nEach of {total} panels has data."


def _by_cause(gaps: Iterable[Empty]) -> dict[tuple[str, str], list[Empty]]:
    grouped: dict[tuple[str, str], list[Empty]] = {}
    for gap in gaps:
        grouped.setdefault((gap.cause, gap.detail), []).append(gap)
    return grouped


def _without(gap: Empty) -> str:
    names = [signal.removeprefix("heptascope_") for signal in gap.signals]
    return f"  (without {', '.join(names)})" if 0 < len(names) <= _FEW_SIGNALS else ""
