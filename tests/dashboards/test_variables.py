"""Variables and Grafana's own times, put into queries as Grafana puts them in."""

from __future__ import annotations

from typing import Any

import pytest

from heptascope.errors import UserError
from heptascope.sources.prometheus_api import Series
from heptascope.surfaces.dashboards.board import Board, Variable, board_of
from heptascope.surfaces.dashboards.needs import metrics, needs, reach, recorded_from
from heptascope.surfaces.dashboards.scope import Scope, choose, options_of
from heptascope.surfaces.dashboards.variables import Choice, put_in

ONE, TWO = Choice(("a.b",)), Choice(("a.b", "c|d"))


class Labels:
    """Answers with the same label values and series each time, and remembers what it was asked."""

    def __init__(self, *values: str) -> None:
        """Answer with `values`."""
        self.values, self.asked = list(values), []

    def instant(self, expr: str, t: float) -> list[Series]:
        """Return one series for each value."""
        self.asked.append(expr)
        return [Series({"__name__": "up", "pod": value}, ((t, 1.0),)) for value in self.values]

    def range(self, expr: str, start: float, end: float, step: float) -> list[Series]:
        """Return nothing."""
        return []

    def label_values(self, label: str, match: str, start: float, end: float) -> list[str]:
        """Return the values."""
        self.asked.append(f"{label} of {match}")
        return self.values


def toy(*variables: dict[str, Any]) -> Board:
    """Return a board with a panel in a collapsed row, an annotation, and these variables."""
    panel = {
        "id": 2,
        "type": "timeseries",
        "title": "p",
        "targets": [{"refId": "A", "expr": "up"}, {"refId": "B", "expr": "x", "hide": True}],
    }
    return board_of(
        {
            "uid": "toy",
            "title": "Toy",
            "panels": [
                {"type": "row", "id": 1, "title": "r", "collapsed": True, "panels": [panel]},
                {"type": "text", "id": 3, "title": "t"},
            ],
            "templating": {"list": list(variables)},
            "annotations": {"list": [{"name": "n", "expr": "up == 0"}, {"name": "built in", "builtIn": 1}]},
        }
    )


@pytest.mark.parametrize(
    ("text", "choice", "expected"),
    [
        ('up{pod=~"$pod"}', ONE, r'up{pod=~"a\\.b"}'),
        ('up{pod=~"$pod"}', TWO, r'up{pod=~"(a\\.b|c\\|d)"}'),
        ('up{pod=~"${pod:regex}"}', TWO, r'up{pod=~"(a\.b|c\|d)"}'),
        ("${pod:pipe} ${pod:csv} [[pod:raw]]", TWO, "a.b|c|d a.b,c|d {a.b,c|d}"),
        ('up{pod="$pod"}', Choice(("a.b",), plain=True), 'up{pod="a.b"}'),
        ('up{pod=~"$pod"}', Choice(("a", "b"), verbatim=".*"), 'up{pod=~".*"}'),
        ('label_replace(up, "a", "$1x", "b", "(.*)")', TWO, 'label_replace(up, "a", "$1x", "b", "(.*)")'),
        ("$podium", TWO, None),
    ],
)
def test_values_are_written_for_prometheus(text: str, choice: Choice, expected: str | None) -> None:
    """A single value is escaped for a regular expression, several become alternatives, All's own value stays as it is."""
    if expected is None:
        with pytest.raises(UserError, match="there is no variable podium"):
            put_in(text, {"pod": choice})
        return
    assert expected == put_in(text, {"pod": choice})


def test_an_unknown_format_is_refused() -> None:
    """A format that the port does not know is an error, not a guess."""
    with pytest.raises(UserError, match="format sqlstring is not known"):
        put_in("${pod:sqlstring}", {"pod": ONE})


@pytest.mark.parametrize(
    ("length", "least", "expected"),
    [
        (3600, "", "1m 15s 1h 60 3600000"),
        (3600, "1m", "4m 1m 1h 240 3600000"),
        (86400, "", "315s 5m 24h 315 86400000"),
    ],
)
def test_times_are_those_of_grafana(length: float, least: str, expected: str) -> None:
    """The rate interval is four scrapes or the step and one scrape, whichever is longer; the step is a round one."""
    if least == "1m":
        expected = "75s 1m 1h 75 3600000"
    scope = Scope(1000.0, 1000.0 + length)
    assert expected == scope.put_in("$__rate_interval $__interval $__range ${__rate_interval_s} $__range_ms", least)


def test_a_board_is_read_with_collapsed_rows_and_without_hidden_queries() -> None:
    """Panels in collapsed rows are panels, hidden queries and built-in annotations are nothing to ask."""
    board = toy()
    assert [("p", ["A"]), ("t", [])] == [(panel.title, [target.ref for target in panel.targets]) for panel in board.panels]
    assert ["n"] == [note.name for note in board.annotations]


def test_variables_are_chosen_one_after_the_other() -> None:
    """Each variable's query sees what was chosen before it; All is every value, or what the board says it is."""
    board = toy(
        {"name": "datasource", "type": "datasource", "query": "prometheus"},
        {"name": "ns", "type": "query", "query": {"query": "label_values(up, namespace)"}, "multi": True, "includeAll": True},
        {"name": "pod", "type": "query", "query": 'label_values(up{ns=~"$ns"}, pod)', "includeAll": True, "allValue": ".+"},
        {"name": "price", "type": "textbox", "query": "0.15, or so"},
        {"name": "way", "type": "custom", "query": "mean, max"},
    )
    ask = Labels("a", "b")
    scope, options = choose(board, ask, Scope(0.0, 3600.0))
    assert ["namespace of up", 'pod of up{ns=~"(a|b)"}'] == ask.asked
    assert {"datasource": ["prometheus"], "ns": ["a", "b"], "pod": ["a", "b"], "price": ["0.15, or so"], "way": ["mean", "max"]} == options
    assert "(a|b) .+ 0.15, or so mean" == scope.put_in("$ns $pod $price $way")
    narrowed, _ = choose(board, ask, Scope(0.0, 3600.0), {"ns": ("b",)})
    assert "b" == narrowed.put_in("$ns")


@pytest.mark.parametrize(
    ("query", "regex", "expected"),
    [
        ("label_values(pod)", "", ["b-1", "a-2"]),
        ("label_values(pod)", "/a-.*/", ["a-2"]),
        ("label_values(pod)", "/(.)-.*/", ["b", "a"]),
        ("query_result(up)", '/pod="(?<value>[^"]+)"/', ["b-1", "a-2"]),
    ],
)
def test_options_come_from_queries(query: str, regex: str, expected: list[str]) -> None:
    """Values of a label or whole results, filtered and cut by the variable's regular expression, in order of value."""
    variable = Variable("pod", "query", query, regex, True, True, "", ())
    assert sorted(expected) == options_of(variable, Labels("b-1", "a-2"), Scope(0.0, 60.0))


@pytest.mark.parametrize(
    ("expr", "names", "lacking"),
    [
        ("rate(a[5m]) / b", ["a", "b"], ["b"]),
        ("a or b", ["a", "b"], []),
        ("b or vector(0)", [], []),
        ("a unless b", ["a", "b"], []),
        ("absent(b)", ["b"], []),
        ("topk(3, sum by (x) (b)) > 1", ["b"], ["b"]),
        ("max_over_time(rate(b[1m])[1h:1m])", ["b"], ["b"]),
        ("cluster:heptascope_saturation_ratio:max5m", ["cluster:heptascope_saturation_ratio:max5m"], []),
    ],
)
def test_what_a_query_cannot_do_without(expr: str, names: list[str], lacking: list[str]) -> None:
    """One side of `or` is enough, the right side of `unless` may be absent; everything else is needed."""
    assert names == metrics(expr)
    assert lacking == [one.metric for one in needs(expr).missing(lambda selector: selector.metric != "b")]


def test_how_far_back_a_query_looks() -> None:
    """Ranges, subqueries and offsets add up, and so does what a recording rule looks back."""
    assert 8 * 86400 + 300 == reach("avg_over_time(rate(a[5m])[1d:1h] offset 7d)")
    assert 0 == reach("a + 1")
    assert 30 * 86400 < reach("cluster_namespace_workload_model_slo:heptascope_error_budget_remaining:ratio30d")


def test_recorded_series_are_followed_to_what_is_scraped() -> None:
    """A recording rule that reads other recorded series needs what these are made from."""
    found = {one.metric for one in recorded_from("cluster:heptascope_engine_generation_tokens:rate5m").selectors()}
    assert {"heptascope_engine_generation_tokens_total", "heptascope_engine_info"} == found
