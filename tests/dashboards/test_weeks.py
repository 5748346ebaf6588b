"""Panels that look back for days and weeks, against a real Prometheus with five weeks of what recordings really had."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import linear_regression

import pytest

from heptascope.sources.prometheus_api import PrometheusApi, Series
from heptascope.surfaces.dashboards.board import Board, Target, load_boards
from heptascope.surfaces.dashboards.empty import has_values
from heptascope.surfaces.dashboards.scope import Scope, answer, choose
from support.dashboard_fleet import END
from support.dashboard_weeks import DEPLOYMENTS, HOUR, LOADS, NIGHT, OLDER, WEEK, Deployment, saturation, weeks

BOARDS = {board.uid: board for board in load_boards()}
CAPACITY = BOARDS["heptascope-capacity"]
OF_MEANS = 0.02
"""How much what follows from means of an hour may differ from the recordings' own: the hour cuts a round."""


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusApi]:
    """Run the weeks' Prometheus."""
    with weeks(tmp_path_factory.mktemp("weeks")) as server:
        yield server


def target(board: Board, panel: str, ref: str) -> Target:
    """Return a query of a panel."""
    return next(one for found in board.panels if found.title == panel for one in found.targets if one.ref == ref)


def ask(api: PrometheusApi, board: Board, panel: str, ref: str, until: int = END, seconds: int = HOUR) -> list[Series]:
    """Return what a panel's query gives at the end of a time range, with All chosen."""
    scope, _ = choose(board, api, Scope(until - seconds, until))
    return answer(target(board, panel, ref), api, scope)


def by_workload(found: list[Series], t: float = END) -> dict[str, float]:
    """Return the value of each deployment at a time."""
    return {one.labels["workload"]: value for one in found for at, value in one.points if at == t}


def slope(deployment: Deployment) -> float:
    """Return by how much the saturation of a deployment grows each day, by the means of its recordings in the last four weeks."""
    means = [saturation(name) for name in deployment.weeks[-4:]]
    return linear_regression([-7.0 * ago for ago in reversed(range(len(means)))], means).slope


def days(name: str) -> float:
    """Return in how many days a deployment will be saturated, by the means of its recordings."""
    deployment = next(one for one in DEPLOYMENTS if one.workload == name)
    return (1 - saturation(deployment.weeks[-1])) / slope(deployment)


def test_the_regimes_are_in_the_order_of_load() -> None:
    """Each of the recordings is saturated more than the one before, and none is full."""
    found = [saturation(name) for name in LOADS]
    assert sorted(found) == found
    assert len(set(found)) == len(found)
    assert found[-1] < 1


def test_days_to_saturation_follow_the_same_hour_of_the_last_weeks(api: PrometheusApi) -> None:
    """What grows is full when the line through its weeks says so; with two weeks, by these; what falls, stays or is new has no day."""
    found = by_workload(ask(api, CAPACITY, "Days to saturation", "A"))
    assert {"growing": pytest.approx(days("growing"), rel=OF_MEANS), "young": pytest.approx(days("young"), rel=OF_MEANS)} == found


def test_the_first_to_fill_up_is_the_soonest(api: PrometheusApi) -> None:
    """The tile shows the least of the days."""
    (found,) = ask(api, CAPACITY, "First to fill up", "A")
    assert found.points[-1] == (END, min(by_workload(ask(api, CAPACITY, "Days to saturation", "A")).values()))


def test_a_daily_wave_is_no_growth(api: PrometheusApi) -> None:
    """By night, when the load is that of every night, nothing fills up, however much the days grew."""
    assert {} == by_workload(ask(api, CAPACITY, "Days to saturation", "A", END - NIGHT), END - NIGHT)


def test_weeks_ago_the_trend_was_that_of_then(api: PrometheusApi) -> None:
    """A week ago the line went through the four weeks of then."""
    found = by_workload(ask(api, CAPACITY, "Days to saturation", "A", END - WEEK), END - WEEK)
    growing = Deployment("growing", LOADS[:-1])
    assert pytest.approx((1 - saturation(LOADS[-2])) / slope(growing), rel=OF_MEANS) == found["growing"]


def test_the_board_shows_a_point_for_each_day_of_the_week(api: PrometheusApi) -> None:
    """Over the board's own range the graph has values in the hour of each day."""
    found = ask(api, CAPACITY, "Days to saturation", "A", seconds=WEEK)
    growing = next(one for one in found if one.labels["workload"] == "growing")
    assert 7 <= len({int(t) // 86400 for t, _ in growing.points})


def test_saturation_of_a_week_before(api: PrometheusApi) -> None:
    """The dashed line is the saturation that the deployment had then; what is new has none."""
    found = by_workload(ask(api, CAPACITY, "Saturation by deployment", "B"))
    expected = {one.workload: pytest.approx(saturation(one.weeks[-2]), rel=OF_MEANS) for one in DEPLOYMENTS if len(one.weeks) > 1}
    assert expected == found


@pytest.mark.parametrize(("uid", "panel", "ref"), sorted(OLDER))
def test_what_looks_further_back_than_an_hour_is_filled(uid: str, panel: str, ref: str, api: PrometheusApi) -> None:
    """Each query that the fleet's hour cannot fill has values after these weeks."""
    assert has_values(ask(api, BOARDS[uid], panel, ref))
