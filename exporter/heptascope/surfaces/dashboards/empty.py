"""Why a panel is empty in somebody's Prometheus: `heptascope check --dashboards --prometheus URL`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from heptascope.model import Reason
from heptascope.quantities import format_duration
from heptascope.rules.lacking import WHICH_LABELS
from heptascope.rules.promql_model import SelectorInfo
from heptascope.signals.schema import SCHEMA, signal_of
from heptascope.sources.prometheus_api import QueryError, Series
from heptascope.surfaces.dashboards.board import Board, Panel, Target
from heptascope.surfaces.dashboards.needs import needs, reach, recorded_from, recordings
from heptascope.surfaces.dashboards.scope import Ask, Scope, answer, choose
from heptascope.surfaces.dashboards.unfilled import why as why_unfilled
from heptascope.surfaces.words import REASON_WORDS

AT_ONCE: Final = 4
"""Queries that run beside each other."""

_NAMES: Final = '{__name__=~"(.+:)?heptascope_.+"}'
_EVENTS: Final = frozenset(
    (
        "heptascope_gpu_xid_errors_total",
        "heptascope_gpu_xid_error_last_timestamp_seconds",
        *(row.name for row in SCHEMA.values() if "self" in row.suppliers),
    )
)
"""Series that are only there once something has happened; of what heptascope says of itself, those that are not always there."""

_LONG_SECONDS: Final = 6 * 3600.0


class Cause(StrEnum):
    """Why a panel is empty; the first ones pass by themselves. Beside these there are the reasons of the model."""

    QUIET = "quiet"
    NO_TRAFFIC = "no_traffic"
    NO_HISTORY = "no_history"
    NO_RULES = "no_rules"
    NOT_SCRAPED = "not_scraped"
    QUERY = "query"


CAUSE_WORDS: Final[Mapping[str, str]] = {
    Cause.QUIET: "nothing of the kind has happened in this time",
    Cause.NO_TRAFFIC: "no engine had work in this time",
    Cause.NO_HISTORY: "needs more history than this Prometheus has",
    Cause.NO_RULES: "the recording rules are not loaded: load the files of alerts/rules",
    Cause.NOT_SCRAPED: "this Prometheus has no series of heptascope: scrape /metrics of the sidecars",
    Cause.QUERY: "Prometheus refuses the query",
    **{reason.value: words for reason, words in REASON_WORDS.items()},
}
_KINDS: Final[Mapping[str, str]] = {Cause.QUIET: "event"}
"""Which entries of the list of unfilled queries say more about a cause."""

_SOONEST: Final = (Cause.QUIET.value, Reason.IDLE.value, Cause.NO_TRAFFIC.value, Cause.NO_HISTORY.value, Cause.NO_RULES.value)


class Empty(NamedTuple):
    """A panel without data: the cause, what more is known, and the signals that are missing."""

    board: str
    panel: str
    cause: str
    detail: str = ""
    signals: tuple[str, ...] = ()


class Looked(NamedTuple):
    """A board, the number of its panels with queries, and those of them that are empty."""

    uid: str
    title: str
    panels: int
    empty: tuple[Empty, ...]


@dataclass(frozen=True, slots=True)
class Stock:
    """What a Prometheus has of heptascope: names of series, reasons of missing signals, whether an engine had work."""

    names: frozenset[str]
    reasons: Mapping[str, str]
    worked: bool

    @classmethod
    def take(cls, ask: Ask, scope: Scope) -> Stock:
        """Look. Raises UserError if the Prometheus cannot be asked."""
        length = format_duration(scope.end - scope.start)
        gaps = ask.instant(f"max by (signal, reason) (last_over_time(heptascope_signal_unavailable[{length}]))", scope.end)
        work = ask.instant(f"max(max_over_time(heptascope_engine_has_work[{length}])) > 0", scope.end)
        names = frozenset(ask.label_values("__name__", _NAMES, scope.start, scope.end))
        return cls(names, {gap.labels.get("signal", ""): gap.labels.get("reason", "") for gap in gaps}, bool(work))


def look(boards: tuple[Board, ...], ask: Ask, scope: Scope) -> Iterator[Looked]:
    """Yield what is empty on each board. Raises UserError if the Prometheus cannot be asked."""
    stock = Stock.take(ask, scope)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for board in boards:
            chosen, _ = choose(board, ask, scope)
            panels = [panel for panel in board.panels if panel.targets]
            found = pool.map(lambda panel, board=board, chosen=chosen: _empty(board, panel, _Look(ask, chosen, stock)), panels)
            yield Looked(board.uid, board.title, len(panels), tuple(one for one in found if one is not None))


class _Look(NamedTuple):
    ask: Ask
    scope: Scope
    stock: Stock

    def has(self, selector: SelectorInfo) -> bool:
        """Whether there are series that an expression needs; those that are not ours are taken as given.

        Labels that only choose among pods, engines or events do not count: such series may come.
        """
        if "heptascope" not in selector.metric or selector.metric not in self.stock.names:
            return "heptascope" not in selector.metric
        kept = [f"{one.label}{one.op}{json.dumps(one.value)}" for one in selector.matchers if one.label in WHICH_LABELS]
        if not kept:
            return True
        length = format_duration(self.scope.end - self.scope.start)
        return bool(self.ask.instant(f"count(last_over_time({selector.metric}{{{','.join(kept)}}}[{length}]))", self.scope.end))


def _empty(board: Board, panel: Panel, look: _Look) -> Empty | None:
    """Return why a panel is empty: the cause of the query that will soonest have data; None if it is not empty."""
    causes = []
    for target in panel.targets:
        try:
            if has_values(answer(target, look.ask, look.scope)):
                return None
            causes.append(_why(board, panel, target, look))
        except QueryError as error:
            return Empty(board.uid, panel.title, Cause.QUERY, f"query {target.ref}: {error.message}")
    return min(causes, key=_rank)


def _rank(one: Empty) -> int:
    return _SOONEST.index(one.cause) if one.cause in _SOONEST else len(_SOONEST)


def has_values(series: list[Series]) -> bool:
    """Whether an answer shows anything: NaN draws nothing."""
    return any(value == value for one in series for _, value in one.points)


def _why(board: Board, panel: Panel, target: Target, look: _Look) -> Empty:
    cause, detail, signals = _cause(look.scope.put_in(target.expr, target.interval), look)
    known = why_unfilled(board, panel, target, _KINDS.get(cause, ""))
    return Empty(board.uid, panel.title, cause, known or detail, signals)


def _cause(expr: str, look: _Look) -> tuple[str, str, tuple[str, ...]]:
    stock = look.stock
    if not stock.names:
        return Cause.NOT_SCRAPED, "", ()
    lacking = needs(expr).missing(look.has)
    if lacking:
        return _absent([one.metric for one in lacking], look)
    if (seconds := reach(expr)) > _LONG_SECONDS and not look.ask.instant("count(heptascope_build_info)", look.scope.end - seconds):
        return Cause.NO_HISTORY, f"looks {_days(seconds)} back", ()
    return (Cause.QUIET, "", ()) if stock.worked else (Cause.NO_TRAFFIC, "", ())


def _absent(names: list[str], look: _Look) -> tuple[str, str, tuple[str, ...]]:
    """Return why series are absent: the first one that has a reason speaks for all."""
    stock = look.stock
    for name in names:
        if name in recordings():
            inputs = [one.metric for one in recorded_from(name).missing(look.has)]
            return _absent(inputs, look) if inputs else _unrecorded(name, stock)
    signals = tuple(dict.fromkeys(row.name if (row := signal_of(name)) is not None else name for name in names))
    reason = next((stock.reasons[name] for name in signals if name in stock.reasons), None)
    if reason is not None:
        return reason, "", signals
    if all(name in _EVENTS for name in signals):
        return Cause.QUIET, "", signals
    return (Reason.NO_SOURCE, "", signals) if stock.worked else (Cause.NO_TRAFFIC, "", signals)


def _unrecorded(name: str, stock: Stock) -> tuple[str, str, tuple[str, ...]]:
    """Return why a series is not recorded although what it is made from is there."""
    back = reach(name)
    if back > _LONG_SECONDS and not stock.names.isdisjoint(recordings()):
        return Cause.NO_HISTORY, f"looks {_days(back)} back", ()
    return Cause.NO_RULES, "", (name,)


def _days(seconds: float) -> str:
    days = seconds / 86400
    return f"{days:.0f} days" if days >= 1 else format_duration(seconds)
