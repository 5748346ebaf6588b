"""Evaluation by hand: staleness, gaps, names, matches, errors, and the sharing of results."""

from __future__ import annotations

import math

import pytest

from heptascope.model import labels
from heptascope.rules import promql
from heptascope.signals.window import Window
from support.promql_cases import STALE, answer, every, window_of


def test_a_staleness_marker_ends_a_series_at_once() -> None:
    """An instant selector does not look back past a marker."""
    window = window_of({"x": [(0, 1.0), (10, 2.0), (20, STALE)]})
    assert {"x{}": 2.0} == answer("x", window, 19.999)
    assert {} == answer("x", window, 20)
    assert {} == answer("timestamp(x)", window, 20)


def test_a_series_that_comes_back_is_seen_again() -> None:
    """After the marker the next value counts."""
    window = window_of({"x": [(0, 1.0), (10, STALE), (20, 3.0)]})
    assert {"x{}": 3.0} == answer("x", window, 20)


def test_ranges_leave_markers_out() -> None:
    """A range holds the values before and after a marker; a range with nothing but markers has no series."""
    window = window_of({"x": [(0, 1.0), (10, 2.0), (20, STALE), (30, 5.0), (90, STALE)]})
    assert {"{}": 3.0} == answer("count_over_time(x[1m])", window, 50)
    assert {"{}": 8.0} == answer("sum_over_time(x[1m])", window, 50)
    assert {} == answer("count_over_time(x[20s])", window, 95)
    assert {"{}": 1.0} == answer("absent_over_time(x[20s])", window, 95)


def test_rates_go_on_across_a_marker() -> None:
    """A counter that vanished and came back is one series: its growth in between counts."""
    window = window_of({"x_total": [(0, 0.0), (10, 10.0), (20, STALE), (30, 30.0), (40, 40.0), (50, 50.0), (60, 60.0)]})
    assert {"{}": pytest.approx(1.0)} == answer("rate(x_total[1m])", window, 60)


def test_infinities_are_no_markers() -> None:
    """Opposite infinities in one range are values like others."""
    window = window_of({"x": [(1, math.inf), (2, -math.inf), (3, 4.0)]})
    assert {"{}": 3.0} == answer("count_over_time(x[1m])", window, 3)
    assert {"{}": math.inf} == answer("max_over_time(x[1m])", window, 3)


def test_counter_resets_add_what_was_lost() -> None:
    """A value below the one before means that the counter began anew at zero."""
    window = window_of({"x_total": [(10, 90.0), (20, 100.0), (30, 5.0), (40, 15.0), (50, 2.0), (60, 12.0)]})
    assert {"{}": 2.0} == answer("resets(x_total[1m])", window, 60)
    assert {"{}": pytest.approx((12 - 90 + 100 + 15) * 60 / 50)} == answer("increase(x_total[1m])", window, 60)
    assert {"{}": pytest.approx(1.0)} == answer("irate(x_total[1m])", window, 60)
    assert {"{}": pytest.approx(0.2)} == answer("irate(x_total[1m])", window, 50)


def test_one_sample_has_no_rate() -> None:
    """Functions that need two samples drop a series with one; others keep it."""
    window = window_of({"x": [(10, 1.0)]})
    for name in ("rate", "increase", "delta", "irate", "idelta", "deriv"):
        assert {} == answer(f"{name}(x[1m])", window, 10), name
    for name in ("resets", "changes"):
        assert {"{}": 0.0} == answer(f"{name}(x[1m])", window, 10), name


def test_milliseconds_of_real_times_are_exact() -> None:
    """At Unix times of today a rate is as exact as with integer milliseconds."""
    start = 1_700_000_000.123
    window = window_of({"x_total": [(start + i, float(i)) for i in range(11)]})
    assert {"{}": 1.0} == answer("rate(x_total[10s])", window, start + 10)
    assert {"{}": 1.0} == answer("irate(x_total[10s])", window, start + 10)
    assert {"{}": 1.0} == answer("deriv(x_total[10s])", window, start + 10)


def test_points_closer_than_a_microsecond_do_not_raise() -> None:
    """A marker one float step after a value, and a value one step later, leave no usable interval."""
    second = math.nextafter(1_700_000_000.0, math.inf)
    window = window_of({"x": [(1_700_000_000.0, 1.0), (second, 2.0)]})
    assert {"{}": 0.1} == answer("rate(x[10s])", window, 1_700_000_001)
    assert {} == answer("irate(x[10s])", window, 1_700_000_001)
    assert math.isnan(answer("scalar(deriv(x[10s]))", window, 1_700_000_001))


PAIR = window_of(
    {"a{e=v,r=0}": [(0, 1.0)], "a{e=v,r=1}": [(0, 2.0)], "b{e=v,r=0}": [(0, 3.0)], "b{e=w,r=0}": [(0, 4.0)], "i{e=v,u=7}": [(0, 1.0)]}
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", {"a{e=v,r=0}": 1.0, "a{e=v,r=1}": 2.0}),
        ("a > 1", {"a{e=v,r=1}": 2.0}),
        ("a > bool 1", {"{e=v,r=0}": 0.0, "{e=v,r=1}": 1.0}),
        ("1 < a", {"a{e=v,r=1}": 2.0}),
        ("a < b", {"a{e=v,r=0}": 1.0}),
        ("a < on (e, r) b", {"{e=v,r=0}": 1.0}),
        ("b > ignoring (q) a", {"b{e=v,r=0}": 3.0}),
        ("a < bool b", {"{e=v,r=0}": 1.0}),
        ("-a", {"{e=v,r=0}": -1.0, "{e=v,r=1}": -2.0}),
        ("+a", {"a{e=v,r=0}": 1.0, "a{e=v,r=1}": 2.0}),
        ("a * on (e) group_left (u) i", {"{e=v,r=0,u=7}": 1.0, "{e=v,r=1,u=7}": 2.0}),
        ("a >= on (e) group_left (u) i", {"a{e=v,r=0,u=7}": 1.0, "a{e=v,r=1,u=7}": 2.0}),
        ("i * on (e) group_right (u) a", {"{e=v,r=0,u=7}": 1.0, "{e=v,r=1,u=7}": 2.0}),
        ("i <= on (e) group_right () a", {"a{e=v,r=0}": 1.0, "a{e=v,r=1}": 1.0}),
        ("a and on (e) i", {"a{e=v,r=0}": 1.0, "a{e=v,r=1}": 2.0}),
        ("b unless on (e) i", {"b{e=w,r=0}": 4.0}),
        ("b or a", {"b{e=v,r=0}": 3.0, "b{e=w,r=0}": 4.0, "a{e=v,r=1}": 2.0}),
        ("a or on () b", {"a{e=v,r=0}": 1.0, "a{e=v,r=1}": 2.0}),
        ("topk(1, b)", {"b{e=w,r=0}": 4.0}),
        ("bottomk by (e) (1, a)", {"a{e=v,r=0}": 1.0}),
        ("sum by (e) (a)", {"{e=v}": 3.0}),
        ("sum without (e) (b)", {"{r=0}": 7.0}),
        ("count(missing)", {}),
        ("last_over_time(a[1m])", {"a{e=v,r=0}": 1.0, "a{e=v,r=1}": 2.0}),
        ("abs(a)", {"{e=v,r=0}": 1.0, "{e=v,r=1}": 2.0}),
        ('label_replace(i, "u", "", "u", ".*")', {"i{e=v}": 1.0}),
        ("vector(2)", {"{}": 2.0}),
        ("2 ^ 3", 8.0),
    ],
)
def test_labels_and_names_of_results(text: str, expected: object) -> None:
    """Results keep the labels and the name that Prometheus keeps."""
    assert expected == answer(text, PAIR, 0)


NAMES_ONLY = 'label_replace(a{r="1"} or b, "r", "", "r", ".*")'  # two elements that differ in nothing but the name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a + on (e) b", "several elements on the left of an operator match the labels {'e': 'v'}; use group_left"),
        ("i + on (e) a", "several elements on the right of an operator match the labels {'e': 'v'}"),
        ("a + on (e) group_right () b", "several elements on the left of an operator match the labels {'e': 'v'}"),
        (f"-{NAMES_ONLY}", "two elements of a vector have the same labels"),
        (f"{NAMES_ONLY} * 2", "two elements of a vector have the same labels"),
        (f"2 > bool {NAMES_ONLY}", "two elements of a vector have the same labels"),
        (f"abs({NAMES_ONLY})", "two elements of a vector have the same labels"),
        (f"clamp_min({NAMES_ONLY}, 0)", "two elements of a vector have the same labels"),
        (f"round({NAMES_ONLY})", "two elements of a vector have the same labels"),
        (f"timestamp({NAMES_ONLY})", "two elements of a vector have the same labels"),
        ('label_replace(a, "r", "0", "r", ".*")', "two elements of a vector have the same labels"),
        ("topk(NaN, a)", "the number of elements to select is nan"),
        ("topk(1e30, a)", "the number of elements to select is 1e+30"),
        ("a * on (e) group_left (r) b", "several results of a grouped match have the labels"),
    ],
)
def test_what_prometheus_refuses_is_an_error(text: str, message: str) -> None:
    """Ambiguous matches and equal label sets are errors that say where the expression stands."""
    window = window_of({"a{e=v,r=0}": [(0, 1.0)], "a{e=v,r=1}": [(0, 2.0)], "b{e=v,r=0}": [(0, 3.0)], "i{e=v,u=7}": [(0, 1.0)]})
    with pytest.raises(promql.EvaluationError) as caught:
        promql.compile(text, where="rules.yaml:7").evaluate(window, 0)
    assert str(caught.value).startswith(f"rules.yaml:7: {message}")


def test_nothing_on_one_side_is_no_error() -> None:
    """As in Prometheus, an empty side ends a match before anything can be ambiguous."""
    window = window_of({"a{e=v,r=0}": [(0, 1.0)], "a{e=v,r=1}": [(0, 2.0)]})
    assert {} == answer("missing + on (e) a", window, 0)
    assert {} == answer("a + on (e) missing", window, 0)


def test_series_that_come_and_go_are_followed() -> None:
    """A compiled expression sees series that were not there when it was compiled or last evaluated."""
    window, expression = Window(), promql.compile("sum by (e) (a)")
    assert [] == expression.evaluate(window, 0.0)
    window.append("a", labels(e="v"), 1.0, 2.0)
    assert [promql.Item(labels(e="v"), 2.0)] == expression.evaluate(window, 1.0)
    window.mark_stale("a", labels(e="v"), 2.0)
    assert [] == expression.evaluate(window, 2.5)


def test_equal_parts_are_computed_once_per_cache() -> None:
    """Expressions evaluated with one cache share the results of their equal parts."""

    class CountingWindow(Window):
        reads = 0

        def series(self, name: str):
            self.reads += 1
            return super().series(name)

    window = CountingWindow()
    for t, value in every(1, range(20)):
        window.append("x_total", (), t, value)
    cache: dict[object, object] = {}
    for text in ("rate(x_total[10s]) > 0", "sum(rate(x_total[10s]))", "rate( x_total[10s] ) and on () increase(x_total[10s])"):
        promql.compile(text).evaluate(window, 19.0, cache=cache)
    assert 1 == window.reads


def test_a_cache_cannot_be_used_twice() -> None:
    """A cache of another time would give yesterday's answers, so it is refused."""
    window, cache, expression = Window(), {}, promql.compile("x")
    expression.evaluate(window, 1.0, cache=cache)
    with pytest.raises(ValueError, match="one window, one time"):
        expression.evaluate(window, 2.0, cache=cache)
    with pytest.raises(ValueError, match="one window, one time"):
        expression.evaluate(Window(), 1.0, cache=cache)


def test_results_do_not_depend_on_shared_lists() -> None:
    """Sorting and selecting leave the shared result of their operand as it was."""
    window = window_of({"a{r=0}": [(0, 2.0)], "a{r=1}": [(0, 1.0)]})
    cache: dict[object, object] = {}
    for text in ("sort(a)", "topk(2, a)", "bottomk(2, a)", "a or a", "a"):
        result = promql.compile(text).evaluate(window, 0, cache=cache)
    assert ["0", "1"] == [dict(item.labels)["r"] for item in result] if isinstance(result, list) else False
