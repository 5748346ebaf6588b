"""Every query of every board against a real Prometheus that holds an hour of a fleet of recordings: none fails, none is empty unseen."""

from __future__ import annotations

import html
from collections.abc import Iterator

import pytest

from boards.every import boards as made
from boards.limits import Limit
from heptascope.signals.schema import SCHEMA
from heptascope.signals.schema_row import Kind
from heptascope.sources.prometheus_api import PrometheusApi
from heptascope.surfaces.dashboards.board import Board, Panel, Target, load_boards
from heptascope.surfaces.dashboards.empty import Cause, has_values, look
from heptascope.surfaces.dashboards.needs import metrics
from heptascope.surfaces.dashboards.scope import Scope, answer, answers, choose, marks
from heptascope.surfaces.dashboards.unfilled import unfilled
from support.dashboard_fields import name_of
from support.dashboard_fleet import ACTIVE, END, FLEET
from support.dashboard_preview import page
from support.dashboard_weeks import OLDER
from support.dashboard_world import world

pytestmark = pytest.mark.timeout(300)
MADE = {board.uid: board for board in made()}
BOARDS = {board.uid: board for board in load_boards()}
each_board = pytest.mark.parametrize("uid", BOARDS)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusApi]:
    """Run the fleet's Prometheus."""
    with world(tmp_path_factory.mktemp("fleet")) as server:
        yield server


def scope(until: float = END) -> Scope:
    """Return the hour that a board shows at first."""
    return Scope(until - 3600, until)


def moments(board: Board) -> list[float]:
    """Return when to look: in the end, and when a pod had a fault of each layer; the board's own layer comes first."""
    own = [t for layer, (_, t) in ACTIVE.items() if board.uid.endswith(layer)]
    return list(dict.fromkeys([*own, END, *(t for _, t in ACTIVE.values())]))


def filled(board: Board, panel: Panel, target: Target, api: PrometheusApi) -> bool:
    """Whether a query has values at one of the moments, with All chosen for every variable."""
    looks = (choose(board, api, scope(t))[0] for t in moments(board))
    return any(has_values(answer(target, api, one)) for one in looks)


def queries(board: Board) -> Iterator[tuple[Panel, Target]]:
    """Yield each panel's queries."""
    return ((panel, target) for panel in board.panels for target in panel.targets)


@each_board
def test_no_query_fails_and_none_is_empty_but_those_of_the_list(uid: str, api: PrometheusApi) -> None:
    """With All chosen every query has values when its layer has something to show; the list names exactly the others.

    Those that look further back than this hour are asked of a Prometheus with weeks.
    """
    board = BOARDS[uid]
    empty = {(panel.title, target.ref) for panel, target in queries(board) if not filled(board, panel, target, api)}
    empty -= {(panel, ref) for other, panel, ref in OLDER if other == uid}
    known = {(p.title, t.ref) for p, t in queries(board) if any(entry.about(board, p, t) for entry in unfilled())}
    assert (set(), set()) == (empty - known, known - empty)


@each_board
def test_every_variable_offers_something(uid: str, api: PrometheusApi) -> None:
    """Each query variable has values, and each chosen value narrows the next one down to values it had before."""
    board = BOARDS[uid]
    _, everything = choose(board, api, scope())
    names = [variable.name for variable in board.variables if variable.kind == "query"]
    assert [] == [name for name in names if not everything[name]]
    pod = ACTIVE["memory"][0]
    _, narrowed = choose(board, api, scope(), {"namespace": ("chat",), "pod": (pod,)})
    assert all(set(narrowed[name]) <= set(everything[name]) for name in names)


@each_board
def test_marks_are_drawn_where_something_was_found(uid: str, api: PrometheusApi) -> None:
    """No annotation query fails, and each has marks within the hour unless the list says why not."""
    board = BOARDS[uid]
    looks = [choose(board, api, scope(t))[0] for t in moments(board)]
    empty = {note.name for note in board.annotations if not any(marks(note, api, one) for one in looks)}
    assert empty == {note.name for note in board.annotations} & {entry.panel for entry in unfilled() if entry.board == uid}


@each_board
@pytest.mark.parametrize("pods", [("assistant-0",), ("research-0", "copilot-1")], ids="-and-".join)
def test_chosen_pods_are_the_only_ones_shown(uid: str, pods: tuple[str, ...], api: PrometheusApi) -> None:
    """With one pod, or several, chosen no query fails, and none shows another pod."""
    board = BOARDS[uid]
    looked, _ = choose(board, api, scope(), {"pod": pods})
    for panel, target in queries(board):
        shown = {one.labels["pod"] for one in answer(target, api, looked) if "pod" in one.labels}
        assert shown <= set(pods), f"{panel.title} {target.ref}: {sorted(shown - set(pods))}"


@pytest.mark.parametrize("layer", ACTIVE)
def test_a_layers_board_shows_the_fault_of_the_pod_that_has_it(layer: str, api: PrometheusApi) -> None:
    """On the board of a layer, with the pod chosen that has a fault there, what is found and the layer's state are on the panels."""
    pod, t = ACTIVE[layer]
    board = next(board for uid, board in BOARDS.items() if uid.endswith(layer))
    looked, _ = choose(board, api, scope(t), {"pod": (pod,)})
    findings = [
        (panel.title, has_values(answer(target, api, looked)))
        for panel, target in queries(board)
        if {"heptascope_finding", "heptascope_layer_state"} & set(metrics(looked.put_in(target.expr, target.interval)))
    ]
    assert findings
    assert [] == [title for title, shown in findings if not shown]


@pytest.mark.parametrize("uid", [uid for uid, board in BOARDS.items() if any(panel.kind == "bargauge" for panel in board.panels)])
def test_bars_with_thresholds_of_their_own_are_there(uid: str, api: PrometheusApi) -> None:
    """Each bar that a rule colours is one that the panel's query gives for some pod."""
    board = BOARDS[uid]
    looks = [choose(board, api, scope(t))[0] for t in moments(board)]
    for panel in (panel for panel in board.panels if panel.kind == "bargauge"):
        named = {override["matcher"]["options"] for override in panel.raw["fieldConfig"]["overrides"]}
        shown = {name_of(target, one) for look_at in looks for target, series in answers(panel, api, look_at) for one in series}
        assert set() == named - shown, panel.title


def beyond(limit: Limit, value: float) -> bool:
    """Whether a value is on the side of a line on which its rule fires."""
    return value < limit.value if limit.below else value > limit.value


@each_board
def test_lines_are_crossed_where_their_rules_fire(uid: str, api: PrometheusApi) -> None:
    """When a rule has found something at a pod, one of the panels that draw its thresholds shows a value of that pod beyond one.

    Rules that show in another way too may fire for that.
    """
    board, crossed = BOARDS[uid], dict[tuple[str, str], bool]()
    drawn = [panel for row in MADE[uid].rows for line in row.lines for panel in line]
    other = {sign.rule for panel in drawn for sign in panel.signs}
    lines = [(panel.title, limit) for panel in drawn for limit in panel.limits if isinstance(limit, Limit) and limit.rule not in other]
    for t in moments(board):
        for found in api.instant("max by (rule, pod) (heptascope_finding) > 0", t):
            rule, pod = found.labels["rule"], found.labels["pod"]
            looked, _ = choose(board, api, Scope(t - 300, t), {"pod": (pod,)})
            for title, limit in lines:
                if limit.rule == rule:
                    panel = next(panel for panel in board.panels if panel.title == title)
                    series = [one for _, some in answers(panel, api, looked) for one in some]
                    seen = any(beyond(limit, value) for one in series for _, value in one.points)
                    crossed[rule, pod] = crossed.get((rule, pod), False) or seen
    assert [] == [where for where, seen in crossed.items() if not seen]


def test_the_list_speaks_of_what_there_is() -> None:
    """Each entry names a panel, a query of it or an annotation that the board has, and a reason."""
    for entry in unfilled():
        board = BOARDS[entry.board]
        there = any(entry.about(board, panel, target) for panel, target in queries(board))
        assert there or entry.panel in {note.name for note in board.annotations}, entry
        assert entry.why


@each_board
def test_a_board_can_be_drawn(uid: str, api: PrometheusApi) -> None:
    """The preview knows every kind of panel, transformation and matcher of a board, and shows each title."""
    board = BOARDS[uid]
    text = page(board, api, scope())
    assert [] == [panel.title for panel in board.panels if f"<h2>{html.escape(panel.title)}</h2>" not in text]
    assert "preview, not Grafana" in text


def test_whatever_is_empty_is_explained(api: PrometheusApi) -> None:
    """`heptascope check --dashboards` finds no panel of the fleet's Prometheus without a cause that lies in the fleet."""
    found = [gap for one in look(load_boards(), api, scope()) for gap in one.empty]
    assert not {Cause.NOT_SCRAPED, Cause.NO_RULES, Cause.NO_TRAFFIC, Cause.QUERY} & {gap.cause for gap in found}
    history = next(gap for gap in found if gap.cause == Cause.NO_HISTORY)
    assert "looks 7 days back" == history.detail


def test_the_fleet_is_whole(api: PrometheusApi) -> None:
    """All pods are scraped to the end of the hour, and their counters never fall."""
    up = api.instant("up", END)
    assert {pod.name for pod in FLEET} == {one.labels["pod"] for one in up}
    counters = [name for name, row in SCHEMA.items() if row.kind is Kind.COUNTER and row.suppliers != ("self",)]
    falls = [name for name in counters if api.instant(f"sum(resets({name}[65m])) > 0", END)]
    assert [] == falls
