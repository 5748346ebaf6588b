"""Where Prometheus 3 and 2 differ: worked by hand, since only 2.42 can be run beside the tests."""

from __future__ import annotations

import math

import pytest

from heptascope.rules import promql
from support.promql_cases import V2, V3, answer, every, window_of

MINUTES = window_of({"x": every(60, range(20))})


def test_a_range_holds_its_left_end_only_in_2() -> None:
    """Five minutes at one sample a minute are five samples in Prometheus 3, six in 2 when the times are aligned."""
    assert {"{}": 5.0} == answer("count_over_time(x[5m])", MINUTES, 600, V3)
    assert {"{}": 6.0} == answer("count_over_time(x[5m])", MINUTES, 600, V2)


def test_unaligned_ranges_are_equal_in_both() -> None:
    """A range that starts between two samples holds the same ones in both modes."""
    assert {"{}": 5.0} == answer("count_over_time(x[5m])", MINUTES, 601, V3)
    assert {"{}": 5.0} == answer("count_over_time(x[5m])", MINUTES, 601, V2)


def test_the_right_end_belongs_to_the_range_in_both() -> None:
    """A sample at the evaluation time counts."""
    assert {"{}": 10.0} == answer("last_over_time(x[1m]) + 0", MINUTES, 600, V3)
    assert {"{}": 10.0} == answer("last_over_time(x[1m]) + 0", MINUTES, 600, V2)


@pytest.mark.parametrize(("t", "in_2", "in_3"), [(299.999, 1, 1), (300.0, 1, 0), (300.001, 0, 0)])
def test_look_back_of_five_minutes(t: float, in_2: int, in_3: int) -> None:
    """An instant selector finds a sample that is just under five minutes old; exactly five only in 2."""
    window = window_of({"x": [(0.0, 7.0)]})
    assert in_2 == len(promql.compile("x").evaluate(window, t, mode=V2))
    assert in_3 == len(promql.compile("x").evaluate(window, t, mode=V3))


def test_ranges_in_milliseconds_are_exact() -> None:
    """A sample on the edge of a range of 3 ms at a real Unix time is in or out as with integer milliseconds."""
    times = [round(1_700_000_000 + i / 1000, 3) for i in range(200)]
    window = window_of({"x": [(t, 1.0) for t in times]})
    assert {3.0} == {answer("scalar(count_over_time(x[3ms]))", window, t, V3) for t in times[10:]}
    assert {4.0} == {answer("scalar(count_over_time(x[3ms]))", window, t, V2) for t in times[10:]}


def test_linear_series_have_the_same_rate_in_both() -> None:
    """The rate of a counter that grows by one a second is one, whichever end the range includes."""
    window = window_of({"x_total": every(10, range(0, 1000, 10))})
    assert {"{}": 1.0} == answer("rate(x_total[1m])", window, 600, V3)
    assert {"{}": 1.0} == answer("rate(x_total[1m])", window, 600, V2)


def test_a_new_counter_is_extrapolated_to_its_zero_point() -> None:
    """No counter was negative: three below zero point means three seconds of extrapolation, not half an interval."""
    window = window_of({"x_total": [(25, 3.0), (35, 13.0), (45, 23.0), (55, 33.0)]})
    assert {"{}": pytest.approx(30 * (30 + 3 + 5) / 30)} == answer("increase(x_total[1m])", window, 60, V3)
    assert {"{}": pytest.approx(30 * (30 + 3 + 5) / 30)} == answer("increase(x_total[1m])", window, 60, V2)


def test_a_far_zero_point_is_ignored_from_2_53_on() -> None:
    """Eight seconds to the zero point are more than half an interval: 3 takes five, 2.42 took eight."""
    window = window_of({"x_total": [(25, 8.0), (35, 18.0), (45, 28.0), (55, 38.0)]})
    assert {"{}": pytest.approx(40.0)} == answer("increase(x_total[1m])", window, 60, V3)
    assert {"{}": pytest.approx(43.0)} == answer("increase(x_total[1m])", window, 60, V2)


def test_delta_knows_no_zero_point() -> None:
    """A gauge may be negative, so delta extrapolates half an interval on a side that the series does not reach."""
    window = window_of({"x": [(25, 3.0), (35, 13.0), (45, 23.0), (55, 33.0)]})
    assert {"{}": pytest.approx(30 * (30 + 5 + 5) / 30)} == answer("delta(x[1m])", window, 60, V3)


def test_filters_count_all_pairs_from_3_9_on() -> None:
    """Two left elements for one right element are an error in 3, even if the comparison keeps only one of them."""
    window = window_of({"a{x=1,y=1}": [(0, 1.0)], "a{x=1,y=2}": [(0, 5.0)], "b{x=1}": [(0, 3.0)]})
    assert {"{x=1}": 5.0} == answer("a > on (x) b", window, 0, V2)
    with pytest.raises(promql.EvaluationError, match="group_left"):
        answer("a > on (x) b", window, 0, V3)


def test_grouped_filters_count_all_pairs_from_3_9_on() -> None:
    """The same for results of group_left that would have the same labels."""
    window = window_of({"a{x=1,y=1}": [(0, 1.0)], "a{x=1,y=2}": [(0, 5.0)], "b{x=1,y=3}": [(0, 3.0)]})
    assert {"a{x=1,y=3}": 5.0} == answer("a > on (x) group_left (y) b", window, 0, V2)
    with pytest.raises(promql.EvaluationError, match="grouped match"):
        answer("a > on (x) group_left (y) b", window, 0, V3)


def test_sums_compensate_in_3() -> None:
    """Large terms that cancel leave the small one behind in 3, and nothing in 2."""
    window = window_of({"x{i=1}": [(0, 1e16)], "x{i=2}": [(0, 1.0)], "x{i=3}": [(0, -1e16)]})
    assert ({"{}": 1.0}, {"{}": 0.0}) == (answer("sum(x)", window, 0, V3), answer("sum(x)", window, 0, V2))
    assert {"{}": pytest.approx(1 / 3)} == answer("avg(x)", window, 0, V3)


def test_means_survive_overflow() -> None:
    """A sum beyond the largest float does not make the mean infinite; infinities do."""
    window = window_of(
        {"x{i=1}": [(0, 1.7e308)], "x{i=2}": [(0, 1.7e308)], "y": [(0, math.inf), (1, 1.0)], "z": [(0, math.inf), (1, -math.inf)]}
    )
    assert {"{}": pytest.approx(1.7e308)} == answer("avg(x)", window, 0, V3)
    assert {"{}": math.inf} == answer("avg_over_time(y[1m])", window, 1, V3)
    assert math.isnan(answer("scalar(avg_over_time(z[1m]))", window, 1, V3))
    assert {"{}": math.inf} == answer("sum_over_time(y[1m])", window, 1, V3)


def test_deviation_of_an_infinity() -> None:
    """A group of one infinite value deviates by nothing in 2, by NaN in 3."""
    window = window_of({"x": [(0, math.inf)]})
    assert {"{}": 0.0} == answer("stddev(x)", window, 0, V2)
    assert math.isnan(answer("scalar(stddev(x))", window, 0, V3))


def test_rounding_between_buckets_is_ignored_in_3() -> None:
    """A bucket that is larger by less than rounding does not become the one that holds the quantile."""
    window = window_of({"b{le=1}": [(0, 5.0)], "b{le=2}": [(0, 5.0 + 1e-12)], "b{le=+Inf}": [(0, 10.0 + 1e-12)]})
    assert {"{}": 2.0} == answer("histogram_quantile(0.5, b)", window, 0, V3)
    assert {"{}": pytest.approx(1.5, abs=0.1)} == answer("histogram_quantile(0.5, b)", window, 0, V2)
