"""Rows of a table: labels, parts, folding, units, and impossible values refused one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from heptascope.model import Histogram, Quality, Reading, Reason, Sample, labels
from heptascope.signals.schema import SCHEMA
from heptascope.sources.engine.adapter import Absence, Collector, Context, adapters, register
from heptascope.sources.engine.extract import TableReader
from heptascope.sources.engine.names import HISTOGRAMS, LABELS, OPTIONAL, PREFIX, SETTINGS, SIGNALS
from heptascope.sources.engine.page import Document, Page
from heptascope.sources.engine.table import Facts, Read, Row, Table, Take
from heptascope.sources.engine.tabled import TableAdapter
from heptascope.sources.engine.version import Span, version
from heptascope.sources.engine.vllm import ROWS


def spans(low: str = "1.0") -> Callable[[Page, str], Span]:
    """Return a version rule that always says the same."""
    return lambda _page, _stated: Span.exactly(version(low))


def reading(text: str, *rows: Row, release: str = "1.0") -> tuple[Reading, int]:
    """Return what rows make of a page, and how many values they refused."""
    table = Table("Engine", rows, rank_label="dp", model_label="model", version=spans(release))
    reader, context, out = TableReader(table), Context("e"), Collector("e")
    reader.fill(reader.read(Document("u", text), context), out)
    return out.reading("e", 5.0), out.refused


def row(read: Read, *families: str, **more: Any) -> Row:
    """Return a row with these families as alternatives."""
    signal = "time_to_first_token_seconds" if read is Read.HISTOGRAM else "requests_running"
    return Row(signal, read, tuple(Take((f,)) for f in families or ("e:x",)), **more)


def found(text: str, *rows: Row, **more: Any) -> dict[tuple[str, str], float]:
    """Return values by rank and part."""
    return {(dict(s.labels).get("rank", ""), s.part): s.value for s in reading(text, *rows, **more)[0].samples}


def why(text: str, *rows: Row, **more: Any) -> tuple[Reason, str]:
    """Return why the first row's signal is missing."""
    out = reading(text, *rows, **more)[0]
    return next((m.reason, m.detail) for m in out.missing if m.signal == PREFIX + rows[0].signal)


def test_a_value_without_labels_has_rank_0() -> None:
    """A page without ranks is that of rank 0; the reading carries name and time."""
    out, _ = reading("# TYPE e:x gauge\ne:x 3\n", row(Read.GAUGE))
    assert ("e", 5.0) == (out.source, out.t)
    assert [Sample("heptascope_engine_requests_running", labels(engine="e", rank="0"), 3.0)] == out.samples


def test_the_rank_label_becomes_rank() -> None:
    """Ranks stay apart, and the model's name is no label of ours."""
    text = 'e_x{dp="0",model="m"} 3\ne_x{dp="1",model="m"} 4\n'
    assert {("0", ""): 3.0, ("1", ""): 4.0} == found(text, row(Read.GAUGE))


def test_a_series_without_rank_belongs_to_the_only_rank() -> None:
    """With several ranks it belongs to none of them, and gets no rank label."""
    lone, wide = row(Read.COUNTER), Row("requests_waiting", Read.GAUGE, (Take(("e:y",)),))
    assert {("7", "")} == set(found('e_x 3\ne_y{dp="7"} 1\n', lone, wide))
    assert {("", ""), ("7", ""), ("8", "")} == set(found('e_x 3\ne_y{dp="7"} 1\ne_y{dp="8"} 1\n', lone, wide))


def test_kept_labels_are_renamed() -> None:
    """A label that the row keeps becomes ours."""
    out, _ = reading('e_x_total{finished_reason="stop"} 3\n', row(Read.COUNTER, keep={"finished_reason": "reason"}))
    assert labels(engine="e", rank="0", reason="stop") == out.samples[0].labels


def test_other_labels_tell_parts_of_a_counter_apart() -> None:
    """Parts are left to the signals room, which sums their growth."""
    text = 'e_x_total{pid="1",handler="/b"} 3\ne_x_total{pid="2",handler="/b"} 4\n'
    assert {("0", "handler=/b,pid=1"): 3.0, ("0", "handler=/b,pid=2"): 4.0} == found(text, row(Read.COUNTER))


def test_several_models_are_parts() -> None:
    """Two models on one page do not overwrite each other."""
    assert {("0", "model=a"): 3.0, ("0", "model=b"): 4.0} == found('e_x{model="a"} 3\ne_x{model="b"} 4\n', row(Read.COUNTER))


@pytest.mark.parametrize(("fold", "expected"), [(max, 0.75), (sum, 1.0)])
def test_parts_of_a_gauge_are_folded_by_the_row(fold: Callable[[list[float]], float], expected: float) -> None:
    """A ratio over processes is their maximum, a count their sum."""
    assert {("0", ""): expected} == found('e_x{pid="1"} 0.25\ne_x{pid="2"} 0.75\n', row(Read.RATIO, fold=fold))


def test_the_newest_name_wins_and_nothing_is_added() -> None:
    """Where both names are on the page, only the new one counts; the old one alone serves too."""
    both = row(Read.COUNTER, "e:new", "e:old")
    assert {("0", ""): 5.0} == found("e_old_total 4\ne_new_total 5\n", both)
    assert {("0", ""): 4.0} == found("e_old_total 4\n", both)


def test_families_of_one_take_are_added_up() -> None:
    """Read and written bytes make one value; half of it makes none."""
    together = Row("estimated_dram_bytes_total", Read.COUNTER, (Take(("e:read", "e:write")),))
    assert {("0", ""): 7.0} == found("e_read_total 3\ne_write_total 4\n", together)
    assert Reason.ENGINE is why("e_read_total 3\n", together)[0]


def test_only_keeps_the_series_asked_for() -> None:
    """A take may want one value of a label; that label makes no part."""
    one = Row("requests_deferred", Read.GAUGE, (Take(("e:x",), only={"reason": "deferred"}),))
    assert {("0", ""): 2.0} == found('e_x{reason="capacity"} 9\ne_x{reason="deferred"} 2\n', one)


def test_scale_multiplies_or_says_why_not() -> None:
    """A unit may depend on the page, and may be unknown."""
    assert {("0", ""): 48.0} == found("e_x_total 3\n", Row("preemptions_total", Read.COUNTER, (Take(("e:x",), scale=16.0),)))
    unknown = Absence(Reason.AMBIGUOUS, "blocks or tokens?")
    assert unknown == why("e_x_total 3\n", Row("preemptions_total", Read.COUNTER, (Take(("e:x",), scale=lambda _facts: unknown),)))


def test_totals_of_a_histogram_are_counters() -> None:
    """Count and sum can be read alone."""
    text = '# TYPE e:x_total histogram\ne:x_total_bucket{le="+Inf"} 3\ne:x_total_sum 30\ne:x_total_count 3\n'
    assert {("0", ""): 3.0} == found(text, row(Read.COUNT, "e:x_total"))
    assert {("0", ""): 30.0} == found(text, row(Read.SUM, "e:x_total"))


def test_a_histogram_keeps_the_bounds_of_the_wire() -> None:
    """Bounds are sorted, counts cumulative, +Inf last; parts stay apart."""
    text = 'e_x_bucket{le="+Inf",pid="1"} 5\ne_x_bucket{le="0.1",pid="1"} 2\ne_x_sum{pid="1"} 7.5\ne_x_count{pid="1"} 5\n'
    out, refused = reading(text, row(Read.HISTOGRAM))
    name, pairs = "heptascope_engine_time_to_first_token_seconds", labels(engine="e", rank="0")
    assert ([Histogram(name, pairs, (0.1, float("inf")), (2.0, 5.0), 7.5, "pid=1")], 0) == (out.histograms, refused)


@pytest.mark.parametrize(
    ("read", "text", "words"),
    [
        (Read.GAUGE, "e_x NaN\n", "e_x is nan"),
        (Read.GAUGE, "e_x -1\n", "e_x is negative (-1)"),
        (Read.GAUGE, "e_x +Inf\n", "e_x is inf"),
        (Read.RATIO, "e_x 1.5\n", "e_x is 1.5, more than the whole"),
        (Read.COUNTER, "e_x_total -3\n", "e_x is negative (-3)"),
        (Read.COUNTER, "e_x_total x\n", "a line cannot be read: e_x_total x"),
        (Read.COUNTER, "# TYPE e_x gauge\ne_x 3\n", "e_x is declared a gauge, not a counter"),
        (Read.HISTOGRAM, 'e_x_bucket{le="1"} 3\ne_x_sum 3\n', "no +Inf bucket"),
        (Read.HISTOGRAM, 'e_x_bucket{le="x"} 3\ne_x_bucket{le="+Inf"} 3\ne_x_sum 3\n', "bounds that are no numbers"),
        (Read.HISTOGRAM, 'e_x_bucket{le="1"} 4\ne_x_bucket{le="+Inf"} 3\ne_x_sum 3\n', "buckets that fall"),
        (Read.HISTOGRAM, 'e_x_bucket{le="1"} -4\ne_x_bucket{le="+Inf"} 3\ne_x_sum 3\n', "a bucket that is no count"),
        (Read.HISTOGRAM, 'e_x_bucket{le="+Inf"} 3\ne_x_sum NaN\n', "the sum nan"),
        (Read.HISTOGRAM, 'e_x_bucket{le="+Inf"} 3\n', "the sum None"),
    ],
)
def test_an_impossible_value_is_refused(read: Read, text: str, words: str) -> None:
    """It gives no sample, a reason, and a count."""
    out, refused = reading(text, row(read))
    missing = next(m for m in out.missing if m.signal == PREFIX + row(read).signal)
    assert ([], [], Reason.INVALID, 1) == (out.samples, out.histograms, missing.reason, refused)
    assert words in missing.detail


def test_one_bad_value_leaves_the_others() -> None:
    """Refusing is per value: the other rank keeps its number, and the reason names the bad one."""
    out, refused = reading('e_x{dp="0"} NaN\ne_x{dp="1"} 2\n', row(Read.GAUGE))
    assert [("1", 2.0)] == [(dict(s.labels)["rank"], s.value) for s in out.samples]
    assert [(Reason.INVALID, labels(engine="e", rank="0"))] == [(m.reason, m.labels) for m in out.missing if m.signal.endswith("_running")]
    assert 1 == refused


def test_of_duplicate_series_the_first_counts() -> None:
    """A series that comes twice is counted, in any order of its labels."""
    out, refused = reading('e_x_total{a="1",b="2"} 3\ne_x_total{b="2",a="1"} 9\ne_x_total{a="1",b="2"} 8\n', row(Read.COUNTER))
    assert ([3.0], 2) == ([s.value for s in out.samples], refused)
    text = 'e_x_bucket{le="1"} 2\ne_x_bucket{le="1"} 9\ne_x_bucket{le="+Inf"} 3\ne_x_sum 3\ne_x_sum 9\n'
    out, refused = reading(text, row(Read.HISTOGRAM))
    assert ([((2.0, 3.0), 3.0)], 2) == ([(h.counts, h.sum) for h in out.histograms], refused)


def test_why_a_signal_is_absent() -> None:
    """Too old a version, a feature that is off, a counter that means nothing at 0, or a row that says off."""
    off = Absence(Reason.NOT_CONFIGURED, "off")
    newer = row(Read.GAUGE, since=version("2.1"), absent=off)
    assert (Reason.ENGINE_TOO_OLD, "needs Engine 2.1 or newer") == why("e_y 1\n", newer)
    assert off == why("e_y 1\n", newer, release="2.1")
    assert (Reason.ENGINE, "the page does not hold it") == why("e_y 1\n", row(Read.GAUGE))
    assert off == why("e_x 0\n", row(Read.GAUGE, zero=off))
    assert {("0", ""): 1.0} == found("e_x 1\n", row(Read.GAUGE, zero=off))
    assert off == why("e_x 1\n", row(Read.GAUGE, off=lambda _facts: off))


def test_quality_is_marked_per_rank() -> None:
    """What is not exact is said."""

    def approximate(facts: Facts) -> Quality:
        return Quality.APPROXIMATE

    out, _ = reading("e_x 1\n", row(Read.GAUGE, quality=approximate))
    assert {("heptascope_engine_requests_running", labels(engine="e", rank="0")): Quality.APPROXIMATE} == out.quality


def test_parts_are_sorted_anew_when_ranks_appear() -> None:
    """Where a series belongs is remembered only as long as ranks and models stay the same."""
    table = Table("Engine", (row(Read.COUNTER),), rank_label="dp", model_label="model", version=spans())
    reader, context = TableReader(table), Context("e")
    ranks = []
    for text in ('e_x_total{dp="1"} 1\n', 'e_x_total 1\ne_x_total{dp="1"} 1\ne_x_total{dp="2"} 1\n', "e_x_total 1\n"):
        out = Collector("e")
        reader.fill(reader.read(Document("u", text), context), out)
        ranks.append([dict(s.labels).get("rank") for s in out.samples])
    assert [["1"], [None, "1", "2"], ["0"]] == ranks


def test_the_names_are_those_of_the_signal_table() -> None:
    """Adapters answer for exactly the signals that the table says engines supply."""
    assert {name for name, signal in SCHEMA.items() if "engine" in signal.suppliers} == {PREFIX + name for name in SIGNALS + OPTIONAL}
    assert set(SETTINGS.values()) <= set(SIGNALS)
    rows = {name: SCHEMA[PREFIX + name] for name in SIGNALS + OPTIONAL}
    assert {name for name, row in rows.items() if row.kind.value == "histogram"} == HISTOGRAMS
    extra = {name: row.labels[2:] for name, row in rows.items() if len(row.labels) > 2 and row.kind.value != "info"}
    assert extra == LABELS


def test_every_reading_speaks_of_every_signal() -> None:
    """A signal that no row names is missing because the engine does not export it."""
    out = Collector("e").reading("e", 1.0)
    assert {PREFIX + name for name in SIGNALS} == {m.signal for m in out.missing}
    assert {Reason.ENGINE} == {m.reason for m in out.missing}


@pytest.mark.parametrize("kind", [kind for kind, adapter in adapters().items() if hasattr(adapter, "table") or kind == "vllm"])
def test_samples_carry_the_labels_of_the_signal_table(kind: str) -> None:
    """Every row of every registered table makes a signal of the right kind and labels."""
    adapter = adapters()[kind]
    kinds = {Read.GAUGE: "gauge", Read.RATIO: "gauge", Read.HISTOGRAM: "histogram"}
    for each in adapter.table.rows if isinstance(adapter, TableAdapter) else ROWS:
        signal = SCHEMA[PREFIX + each.signal]
        assert {(each.signal, signal.kind.value)} == {(each.signal, kinds.get(take.read or each.read, "counter")) for take in each.takes}
        assert {"engine", "rank", *each.keep.values(), *each.always} == set(signal.labels)


def test_settings_fill_what_the_page_does_not_tell() -> None:
    """The page comes first; what neither tells has a reason that says where to give it."""
    out = Collector("e")
    out.sample("prefix_caching_enabled", out.pairs("0"), 1.0)
    out.settings(Context("e", settings={"max_num_seqs": 8, "enable_prefix_caching": 0}, config={"speculative_method": "ngram"}), ("0", "1"))
    result = out.reading("e", 1.0)
    assert {
        ("heptascope_engine_prefix_caching_enabled", "0"): 1.0,
        ("heptascope_engine_sequence_limit", "0"): 8.0,
        ("heptascope_engine_sequence_limit", "1"): 8.0,
        ("heptascope_engine_config_info", "0"): 1.0,
        ("heptascope_engine_config_info", "1"): 1.0,
    } == {(s.name, dict(s.labels)["rank"]): s.value for s in result.samples}
    assert "engines[].settings.enforce_eager" in next(m.detail for m in result.missing if m.signal.endswith("eager_mode"))


def test_a_kind_can_be_registered_once() -> None:
    """Adapters are found by importing the package's modules; two of one name are a mistake."""
    known = adapters()
    assert "vllm" in known
    assert list(known) == sorted(known)
    with pytest.raises(ValueError, match="two adapters are named vllm"):
        register(known["vllm"])
