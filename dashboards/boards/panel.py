"""What a board module writes down: panels and their queries, as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from boards import facts
from boards.limits import Line, Sign

Kind = Literal["timeseries", "stat", "timeline", "table", "bars"]
State = tuple[str, str]
"""Text and colour of one state of a timeline."""

_DRAWN_AS: Final = {"bars": "bar", "stat": "number", "table": "number"}
"""What a threshold colours where it is no line."""

NO_DATA: Final = "No data. The board heptascope / Exporter says which signal is missing, and why."


@dataclass(frozen=True, slots=True)
class Query:
    """One query. `legend` is Grafana's template; `dashed` marks a promise or a capacity beside the measured lines."""

    expr: str
    legend: str
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table: the label or `Value #X` that fills it, its heading, and how to show it.

    `states` give numbers a text and a colour; `link` is a URL with Grafana's placeholders.
    """

    source: str
    heading: str
    unit: str = ""
    link: tuple[str, str] | None = None
    states: tuple[State, ...] = ()
    limits: tuple[Line, ...] = ()
    width: int = 0


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel.

    `shows` says what it shows, `normal` what is normal, `act` what to do otherwise; the meaning of each signal and of each line
    is added from the signal table and the catalogue. `signs` are rules that show otherwise than by a line. `states` are the codes
    from 1 on. `empty` stands where nothing can be drawn. `top` fixes the upper end of the axis, `log` makes it logarithmic.
    `links` are pairs of title and URL on each series.
    """

    kind: Kind
    title: str
    queries: tuple[Query, ...]
    unit: str
    shows: str
    normal: str
    act: str
    width: int = 12
    limits: tuple[Line, ...] = ()
    signs: tuple[Sign, ...] = ()
    empty: str = NO_DATA
    states: tuple[State, ...] = ()
    columns: tuple[Column, ...] = ()
    top: float | None = None
    stacked: bool = False
    log: bool = False
    base: str = ""
    decimals: int | None = None
    links: tuple[tuple[str, str], ...] = ()
    colors: Mapping[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a query that reads what nobody makes. Raises KeyError."""
        for query in self.queries:
            facts.check_names(query.expr)

    def description(self) -> str:
        """Return the text behind the panel's "i"."""
        parts = [self.shows, f"**Normal:** {self.normal}", f"**Otherwise:** {self.act}"]
        what = _DRAWN_AS.get(self.kind, "line")
        limits = (*self.limits, *(limit for column in self.columns for limit in column.limits))
        parts += _listed("Lines", [limit.words(what) for limit in limits])
        parts += _listed("Rules", [sign.words() for sign in self.signs])
        parts += _listed("Signals", facts.meanings(query.expr for query in self.queries))
        return "\n\n".join(parts)


def _listed(title: str, lines: Iterable[str]) -> list[str]:
    """Return one part of a description: a list under a title, or nothing."""
    items = "\n".join(f"- {line}" for line in dict.fromkeys(lines))
    return [f"**{title}:**\n{items}"] if items else []


@dataclass(frozen=True, slots=True)
class Row:
    """One titled row: lines of panels whose widths fill 24 columns each. A line has one height."""

    title: str
    lines: tuple[tuple[Panel, ...], ...]
    collapsed: bool = False


@dataclass(frozen=True, slots=True)
class Board:
    """One board. `variables` are names that `boards.variables` knows, in order.

    `layer` picks the annotations, `marks` says whether they are on at first.
    """

    uid: str
    title: str
    about: str
    variables: tuple[str, ...]
    rows: tuple[Row, ...]
    layer: str = ""
    marks: bool = True
    start: str = "now-1h"
    refresh: str = "30s"
