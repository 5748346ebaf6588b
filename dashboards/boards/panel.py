"""What a board module writes down: panels and their queries, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from boards import facts
from boards.limits import Line

Kind = Literal["timeseries", "stat", "timeline", "table", "bars"]
State = tuple[str, str]
"""Text and colour of one state of a timeline."""

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
    is added from the signal table and the catalogue. `states` are the codes from 1 on. `empty` stands where nothing can be drawn.
    `top` fixes the upper end of the axis, `log` makes it logarithmic. `links` are pairs of title and URL on each series.
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
        lines = list(dict.fromkeys(limit.words() for limit in (*self.limits, *(x for c in self.columns for x in c.limits))))
        parts += ["**Lines:**\n" + "\n".join(f"- {line}" for line in lines)] if lines else []
        meanings = list(facts.meanings(query.expr for query in self.queries))
        parts += ["**Signals:**\n" + "\n".join(f"- {line}" for line in meanings)] if meanings else []
        return "\n\n".join(parts)


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
