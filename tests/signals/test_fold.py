"""The counter contract: one-to-one series show their resets, folded ones sum what their pieces add."""

from __future__ import annotations

import pytest

from heptascope.model import Histogram, Labels, labels
from heptascope.signals.fold import CounterFold, Folder
from heptascope.signals.schema import SCHEMA
from support.feeding import RANK, sample

TOKENS, RUNNING = "engine_generation_tokens_total", "engine_requests_running"
KEY = (f"heptascope_{TOKENS}", RANK)
INFINITY = float("inf")


def fold(folder: Folder, **pieces: float) -> float:
    """Return the folded counter after its pieces showed these values."""
    return folder.samples([sample(TOKENS, RANK, value, part=part) for part, value in pieces.items()], SCHEMA)[KEY]


def test_one_piece_passes_through_with_its_resets() -> None:
    """A series without parts is shown as it is, a fall included."""
    folder = Folder()
    assert [100.0, 5.0] == [folder.samples([sample(TOKENS, RANK, value)], SCHEMA)[KEY] for value in (100.0, 5.0)]


def test_pieces_are_summed() -> None:
    """Two API servers make one series."""
    folder = Folder()
    assert [30.0, 35.0] == [fold(folder, a=10.0, b=20.0), fold(folder, a=12.0, b=23.0)]


def test_a_restarted_piece_neither_lowers_nor_loses() -> None:
    """A piece that falls has started again from 0: what it shows is what it added."""
    folder = Folder()
    assert [30.0, 33.0, 38.0] == [fold(folder, a=10.0, b=20.0), fold(folder, a=10.0, b=3.0), fold(folder, a=12.0, b=6.0)]


def test_a_piece_that_vanishes_keeps_what_it_added() -> None:
    """The sum does not fall when an API server is gone."""
    folder = Folder()
    assert [30.0, 31.0] == [fold(folder, a=10.0, b=20.0), fold(folder, a=11.0)]


def test_a_piece_that_returns_is_not_counted_twice() -> None:
    """A piece that was gone for a while adds only what is new."""
    folder = Folder()
    fold(folder, a=10.0, b=20.0)
    fold(folder, a=10.0)
    assert 35.0 == fold(folder, a=10.0, b=25.0)


def test_a_piece_that_returns_restarted_adds_all_of_its_own() -> None:
    """A piece that comes back lower than it was adds what it shows."""
    folder = Folder()
    fold(folder, a=10.0, b=20.0)
    fold(folder, a=10.0)
    assert 34.0 == fold(folder, a=10.0, b=4.0)


@pytest.mark.parametrize(
    ("name", "folded"), [("engine_requests_running", 5.0), ("engine_kv_cache_usage_ratio", 3.0), ("engine_config_info", 2.0)]
)
def test_gauges_fold_as_their_row_says(name: str, folded: float) -> None:
    """Numbers of requests add up, shares take the largest, infos the last."""
    pieces = [sample(name, RANK, value, part=part) for part, value in (("a", 3.0), ("b", 2.0))]
    assert {(f"heptascope_{name}", RANK): folded} == Folder().samples(pieces, SCHEMA)


def test_a_gauge_forgets_a_vanished_piece() -> None:
    """A server that is gone runs nothing."""
    folder = Folder()
    folder.samples([sample(RUNNING, RANK, 3.0, part="a"), sample(RUNNING, RANK, 2.0, part="b")], SCHEMA)
    assert {(f"heptascope_{RUNNING}", RANK): 3.0} == folder.samples([sample(RUNNING, RANK, 3.0, part="a")], SCHEMA)


def test_unknown_signals_are_left_out() -> None:
    """What is not in the table does not exist."""
    assert {} == Folder().samples([sample("nothing_total", RANK, 1.0)], SCHEMA)


def test_series_do_not_meet() -> None:
    """Pieces of one rank add nothing to another's."""
    other: Labels = labels(engine="vllm", rank="1")
    folder = Folder()
    samples = [sample(TOKENS, RANK, 1.0, part="a"), sample(TOKENS, other, 5.0, part="a")]
    assert {KEY: 1.0, (KEY[0], other): 5.0} == folder.samples(samples, SCHEMA)


# histograms

NAME = "heptascope_engine_e2e_latency_seconds"


def histogram(part: str, *counts: float, total: float = 0.0, bounds: tuple[float, ...] = (1.0, INFINITY)) -> Histogram:
    """Return one piece's histogram."""
    return Histogram(NAME, RANK, bounds, counts, total, part)


def test_histograms_are_summed_per_bucket() -> None:
    """Each bucket, and the sum, adds what its pieces add."""
    folder = Folder()
    assert [Histogram(NAME, RANK, (1.0, INFINITY), (3.0, 7.0), 12.0)] == folder.histograms(
        [histogram("a", 1.0, 4.0, total=5.0), histogram("b", 2.0, 3.0, total=7.0)]
    )
    assert [Histogram(NAME, RANK, (1.0, INFINITY), (4.0, 9.0), 15.0)] == folder.histograms(
        [histogram("a", 2.0, 5.0, total=6.0), histogram("b", 0.0, 1.0, total=2.0)]
    )


def test_a_vanished_piece_keeps_its_buckets() -> None:
    """Nor does a histogram fall when a piece is gone."""
    folder = Folder()
    folder.histograms([histogram("a", 1.0, 4.0, total=5.0), histogram("b", 2.0, 3.0, total=7.0)])
    assert [Histogram(NAME, RANK, (1.0, INFINITY), (3.0, 8.0), 13.0)] == folder.histograms([histogram("a", 1.0, 5.0, total=6.0)])


def test_pieces_with_other_bounds_are_left_out() -> None:
    """Buckets with other bounds cannot be added; the first piece's stand."""
    pieces = [histogram("a", 1.0, 4.0, total=5.0), histogram("b", 2.0, 3.0, total=7.0, bounds=(2.0, INFINITY))]
    assert [Histogram(NAME, RANK, (1.0, INFINITY), (1.0, 4.0), 5.0)] == Folder().histograms(pieces)


def test_pieces_with_other_bounds_than_before_start_again() -> None:
    """An engine that started again with other buckets: what was counted in the old ones is in none of the new."""
    folder = Folder()
    folder.histograms([histogram("a", 10.0, 40.0, total=50.0), histogram("b", 20.0, 30.0, total=70.0)])
    bounds = (1.0, 2.0, INFINITY)
    now = [histogram("a", 1.0, 2.0, 3.0, total=4.0, bounds=bounds), histogram("b", 0.0, 0.0, 1.0, total=3.0, bounds=bounds)]
    assert [Histogram(NAME, RANK, bounds, (1.0, 2.0, 4.0), 7.0)] == folder.histograms(now)
    later = [histogram("a", 1.0, 2.0, 5.0, total=9.0, bounds=bounds), now[1]]
    assert [Histogram(NAME, RANK, bounds, (1.0, 2.0, 6.0), 12.0)] == folder.histograms(later)


def test_a_series_without_pieces_forgets_those_it_had() -> None:
    """An engine that started again shows one piece at first, as a whole; the next one adds its own count, not those of the past."""
    folder = Folder()
    assert [1000.0, 50.0, 61.0] == [
        fold(folder, a=800.0, b=200.0),
        folder.samples([sample(TOKENS, RANK, 50.0)], SCHEMA)[KEY],
        fold(folder, a=60.0, b=1.0),
    ]
    folder.histograms([histogram("a", 10.0, 40.0, total=50.0), histogram("b", 20.0, 30.0, total=70.0)])
    folder.histograms([histogram("", 1.0, 2.0, total=3.0)])
    assert [Histogram(NAME, RANK, (1.0, INFINITY), (2.0, 4.0), 6.0)] == folder.histograms(
        [histogram("a", 2.0, 3.0, total=5.0), histogram("b", 0.0, 1.0, total=1.0)]
    )


def test_a_whole_histogram_passes_through() -> None:
    """Without parts it is shown as it is."""
    whole = histogram("", 1.0, 4.0, total=5.0)
    assert [whole] == Folder().histograms([whole])


def test_slots_count_apart() -> None:
    """The sum of a histogram and its buckets do not share a last value."""
    counter = CounterFold()
    assert [5.0, 7.0, 6.0] == [counter.add(KEY, "a", 5.0), counter.add(KEY, "a", 7.0, slot=1), counter.add(KEY, "a", 6.0)]
