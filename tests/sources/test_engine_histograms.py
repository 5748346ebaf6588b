"""From samples to histograms: what the series mean is worked out once, and again as soon as they are others."""

from __future__ import annotations

from math import inf, nan

import pytest

from heptascope.sources.engine.histograms import Found, Place, Plan
from heptascope.sources.engine.page import Series


def series(suffix: str, **labels: str) -> Series:
    """Return one series of the family `wait`."""
    return Series("wait", suffix, labels)


def place(one: Series) -> Place | None:
    """Return the place by the label `rank`; what has none is not wanted."""
    rank = one.labels.get("rank")
    return Place(rank, (), "") if rank else None


WHOLE = [series("_bucket", rank="0", le="1"), series("_bucket", rank="0", le="+Inf"), series("_sum", rank="0"), series("_count", rank="0")]


def only(plan: Plan, values: list[float]) -> Found:
    """Return the one histogram of a page."""
    (found,) = plan.read(values)
    return found


def test_values_go_where_their_series_belong() -> None:
    """Buckets in the order of their bounds, whatever the order on the page; each rank by itself; the count is the last bucket's."""
    other = [series("_sum", rank="1"), series("_bucket", rank="1", le="+Inf"), series("_bucket", rank="1", le="0.5"), series("_sum")]
    plan = Plan([*WHOLE, *other], place)
    first, second = plan.read([3, 4, 2.5, 4, 9.0, 7, 6, 99])
    assert Found(Place("0", (), ""), (1.0, inf), (3, 4), 2.5, "") == first
    assert Found(Place("1", (), ""), (0.5, inf), (6, 7), 9.0, "") == second
    assert 0 == plan.repeats


def test_a_plan_fits_its_own_series_only() -> None:
    """The same series in another order, or one more, need another plan."""
    plan = Plan(WHOLE, place)
    assert plan.fits(list(WHOLE))
    assert not plan.fits(WHOLE[::-1])
    assert not plan.fits([*WHOLE, series("_sum", rank="1")])


def test_of_two_with_the_same_labels_the_first_counts() -> None:
    """The second is counted as refused."""
    plan = Plan([*WHOLE, series("_bucket", rank="0", le="1.0"), series("_sum", rank="0")], place)
    assert 2 == plan.repeats
    assert ((3, 4), 2.5) == (only(plan, [3, 4, 2.5, 4, 1, 8]).counts, only(plan, [3, 4, 2.5, 4, 1, 8]).sum)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([5, 4, 2.5, 4], "has buckets that fall"),
        ([nan, 4, 2.5, 4], "has a bucket that is no count"),
        ([3, nan, 2.5, 4], "has a bucket that is no count"),
        ([3, inf, 2.5, 4], "has a bucket that is no count"),
        ([-1, 4, 2.5, 4], "has a bucket that is no count"),
        ([3, 4, nan, 4], "has the sum nan"),
        ([3, 4, -2.0, 4], "has the sum -2.0"),
        ([3, 4, inf, 4], "has the sum inf"),
    ],
)
def test_impossible_values_are_named(values: list[float], words: str) -> None:
    """One bad value costs the histogram, with the reason."""
    assert words == only(Plan(WHOLE, place), values).wrong


@pytest.mark.parametrize("le", ["", "one", "nan", "2"])
def test_bounds_must_be_numbers_and_end_in_infinity(le: str) -> None:
    """Without a +Inf bucket nobody knows how many there were."""
    plan = Plan([WHOLE[0], series("_bucket", rank="0", le=le), WHOLE[2]], place)
    assert "has no +Inf bucket, or bounds that are no numbers" == only(plan, [3, 4, 2.5]).wrong


def test_a_sum_without_buckets_is_no_histogram() -> None:
    """And neither are buckets without a sum."""
    assert only(Plan(WHOLE[2:3], place), [2.5]).wrong
    assert "has the sum None" == only(Plan(WHOLE[:2], place), [3, 4]).wrong
