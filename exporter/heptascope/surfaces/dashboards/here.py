"""Panels that can never be filled by this engine and these sources, whatever happens: `heptascope check --dashboards`."""

from __future__ import annotations

from collections.abc import Iterator

from heptascope.model import Missing
from heptascope.signals.snapshot import Snapshot
from heptascope.surfaces.alerts.dead import Presence, base_of
from heptascope.surfaces.dashboards.board import Board, Panel, Variable
from heptascope.surfaces.dashboards.empty import Empty, Looked
from heptascope.surfaces.dashboards.needs import needs, scraped
from heptascope.surfaces.dashboards.scope import Scope
from heptascope.surfaces.dashboards.variables import Choice

_ANY = ".*"


def look(boards: tuple[Board, ...], snapshot: Snapshot) -> Iterator[Looked]:
    """Yield what stays empty on each board where `snapshot` is all that can be read."""
    presence = Presence(snapshot)
    for board in boards:
        scope = Scope(0.0, 3600.0, choices={variable.name: _anything(variable) for variable in board.variables})
        panels = [panel for panel in board.panels if panel.targets]
        found = (_empty(board, panel, scope, presence) for panel in panels)
        yield Looked(board.uid, board.title, len(panels), tuple(one for one in found if one is not None))


def _anything(variable: Variable) -> Choice:
    """Return what lets everything through, or the value that is written into the board."""
    return Choice(verbatim=_ANY) if variable.kind == "query" else Choice((variable.query,), plain=True)


def _empty(board: Board, panel: Panel, scope: Scope, presence: Presence) -> Empty | None:
    """Return why a panel stays empty: what its first query lacks; None if a query can be filled."""
    lacks = [_lacking(scope.put_in(target.expr, target.interval), presence) for target in panel.targets]
    if not all(lacks):
        return None
    first, *_ = lacks[0]
    return Empty(board.uid, panel.title, first.reason.value, first.detail, tuple(gap.signal for gap in lacks[0]))


def _lacking(expr: str, presence: Presence) -> list[Missing]:
    absent = scraped(needs(expr)).missing(lambda one: "heptascope" not in one.metric or presence.may_come(one))
    return list(dict.fromkeys(presence.why(base_of(one.metric)) for one in absent))
