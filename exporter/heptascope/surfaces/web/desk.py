"""What the page needs beyond the newest snapshot: what was said before, what was read before, and the stream to those who look."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from heptascope.model import Layer
from heptascope.rules.diagnose import Diagnoser
from heptascope.rules.findings import findings_json, rule_json
from heptascope.rules.rule import EvidenceItem, Rule
from heptascope.signals.schema import SCHEMA
from heptascope.signals.schema_row import Kind
from heptascope.surfaces import history, units
from heptascope.surfaces.web import charts
from heptascope.surfaces.web.chronicle import Chronicle
from heptascope.surfaces.web.lookback import Lookback
from heptascope.surfaces.web.pageview import page
from heptascope.surfaces.web.site import Site
from heptascope.surfaces.web.state import State
from heptascope.surfaces.web.stream import Broadcaster

TREND_SECONDS = 600
LANGUAGES = ("zh",)
"""Languages of the page other than English; runbooks in them lie in a folder of that name."""
MOST_LINES = 8
"""Lines of one signal that a trend shows."""
_CATCH_UP_SECONDS = 10  # points that a stream adds after a pause; who missed more asks for the charts again


class Desk:
    """Follows the daemon and makes what the page shows. Routes use it from the server's event loop."""

    def __init__(self, site: Site) -> None:
        """Follow the state that `site` shows."""
        self.state: State = site.state
        self._site = site
        self.chronicle, self.lookback = Chronicle(), Lookback()
        self.broadcaster = Broadcaster(lambda: self.state.snapshot().version, self.age, self.page, self._points)
        self._drawn = 0
        self._noted: Diagnoser | None = None
        self.state.tap(self.lookback)
        self.state.follow(self._note)

    @property
    def judge(self) -> Diagnoser | None:
        """The rules room, None without rules."""
        judge = self.state.judge
        return judge if isinstance(judge, Diagnoser) else None

    def age(self) -> float:
        """Return the age of the newest snapshot in seconds; 0 before the first."""
        snapshot = self.state.snapshot()
        return max(0.0, self.state.now() - snapshot.t) if snapshot.version else 0.0

    def page(self, at: float | None = None) -> dict[str, Any]:
        """Return the page now, or as it was at `at` (Unix seconds)."""
        full, now = self._site.full(), self.state.now()
        moment = self.chronicle.latest if at is None else self.chronicle.at(at)
        return page(full, moment, self.chronicle.bands(now))

    def charts(self) -> dict[str, Any]:
        """Return every line of the last ten minutes."""
        return charts.lines(self.state.window, self.second())

    def second(self) -> int:
        """Return the newest whole second of the snapshots' clock."""
        return int(self.state.snapshot().t)

    def rules(self, layers: Collection[Layer]) -> list[dict[str, Any]]:
        """Return what the catalogue and the runbooks say of the rules of `layers` (all by default)."""
        if self.judge is None:
            return []
        known, window = self.judge.judge.rules, f"{self.judge.judge.settings.window:g}s"
        found = [rule for rule in known.values() if not layers or rule.layer in layers]
        return [{**rule_json(rule, known.values(), window), **_runbooks(rule.name)} for rule in found]

    def findings(self, layers: Collection[Layer], at: float | None = None) -> list[dict[str, Any]]:
        """Return the state of every rule of `layers` for every engine and GPU, with values: now, or as it was at `at` (Unix seconds)."""
        if self.judge is None:
            return []
        span, window, now = self.judge.judge.settings.window, self.state.window, self.state.now()
        found = self.judge.findings if at is None else self.chronicle.states.at(at)
        window, now = (window, now) if at is None else (history.Past(window, at), at)
        return findings_json([f for f in found if not layers or f.rule.layer in layers], window, now, span)

    def rule(self, name: str) -> Rule | None:
        """Return a rule of the catalogue by name."""
        return None if self.judge is None else self.judge.judge.rules.get(name)

    def trends(self, rule: Rule) -> dict[str, Any]:
        """Return ten minutes of each signal that a rule looks at, and the thresholds it holds them against."""
        last = self.second()
        rows = [_trend(rule, item, lines) for item in rule.evidence if (lines := list(_lines(self.state, item, last)))]
        return {"rule": rule.name, "t": last, "seconds": TREND_SECONDS, "trends": rows}

    def _note(self) -> None:
        judge = self.judge
        if judge is None:
            return
        if self._noted is not None and judge is not self._noted:  # another recording plays: nothing of the last one belongs to it
            self.chronicle = Chronicle()
            self.lookback.clear()
            self.broadcaster.begin_anew()
        self._noted = judge
        self.chronicle.note(judge)

    def _points(self) -> list[dict[str, Any]]:
        last = self.second()
        begin, self._drawn = max(self._drawn, last - _CATCH_UP_SECONDS), last
        return [{"t": second, "charts": charts.points(self.state.window, second)} for second in range(begin + 1, last + 1)]


def _lines(state: State, item: EvidenceItem, last: int) -> Iterator[tuple[Any, list[float | None]]]:
    kind = SCHEMA[item.signal].kind
    if kind is Kind.HISTOGRAM:
        yield from charts.mean_lines(state.window, item.signal, last, TREND_SECONDS)
        return
    how = "rate" if kind is Kind.COUNTER else "mean"
    for pairs, values in charts.signal_lines(state.window, item.signal, how, last, TREND_SECONDS):
        if item.only is None or item.only in pairs:
            yield pairs, values


def _trend(rule: Rule, item: EvidenceItem, lines: list[tuple[Any, list[float | None]]]) -> dict[str, Any]:
    row = SCHEMA[item.signal]
    out: dict[str, Any] = {
        "signal": item.signal,
        "unit": units.unit_of(row.name, row.unit),
        "rate": row.kind is Kind.COUNTER,
        "lines": [
            {"labels": dict(pairs), "values": [None if v is None else float(f"{v:.5g}") for v in values]}
            for pairs, values in lines[:MOST_LINES]
        ],
    }
    if item.threshold:
        out |= {"threshold": rule.threshold(item.threshold), "comparison": item.comparison}
    return out


def _runbooks(rule: str) -> dict[str, str]:
    return {"runbook": runbook(rule), **{f"runbook_{language}": runbook(rule, language) for language in LANGUAGES}}


@cache
def runbook(rule: str, language: str = "") -> str:
    """Return the text of a rule's runbook page (Markdown), in English or in one of `LANGUAGES`; "" if there is none."""
    for folder in _runbook_folders():
        file = (folder / language if language else folder) / f"{rule}.md"
        if file.is_file():
            return file.read_text(encoding="utf-8")
    return ""


def _runbook_folders() -> tuple[Traversable, ...]:
    """Return where runbooks may be: in the package, or beside it in a checkout."""
    return files("heptascope") / "runbooks", Path(__file__).parents[4] / "alerts" / "runbooks"
