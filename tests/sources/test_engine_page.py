"""Reading a metrics page: wanted families only, each bad line refused by itself."""

from __future__ import annotations

import math

import pytest
from prometheus_client.parser import text_string_to_metric_families

from heptascope.model import Reason
from heptascope.sources.base import SourceError
from heptascope.sources.engine.page import COUNTER, GAUGE, HISTOGRAM, TOTALS, Document, Page, PageReader
from heptascope.sources.engine.vllm import TABLE
from support.engine_pages import VLLM_011, VLLM_032, capture

WANTED = {"e_requests": COUNTER, "e_running": GAUGE, "e_wait": HISTOGRAM, "e_step_total": TOTALS}


def values(page: Page, family: str) -> dict[tuple[str, str], float]:
    """Return the samples of a family by suffix and label values."""
    return {(s.suffix, ",".join(s.labels.values())): v for s, v in page.of(family)}


@pytest.mark.parametrize(("engine", "scenario"), [(VLLM_032, "dp2_steady"), (VLLM_032, "spec_ngram_high"), (VLLM_011, "steady_16")])
def test_it_reads_what_the_library_reads(engine: str, scenario: str) -> None:
    """On real pages every wanted sample has the labels and the value that the library alone finds, on the first page and on later ones."""
    reader, wanted = PageReader(TABLE.wanted()), TABLE.wanted()
    for which in ("t0", "t1", "t0"):
        text = capture(engine, scenario, which)
        page = reader.read(text)
        expected = {
            (s.name.replace(":", "_"), tuple(sorted(s.labels.items()))): s.value
            for family in text_string_to_metric_families(text)
            for s in family.samples
            if any(s.name.replace(":", "_") == key + suffix for key, suffixes in wanted.items() for suffix in suffixes)
        }
        actual = {(s.family + s.suffix, tuple(sorted(s.labels.items()))): v for found in page.series.values() for s, v in found}
        assert len(expected) > 200
        assert expected == actual
        assert [] == page.refused


def test_created_samples_and_unwanted_families_are_left_out() -> None:
    """Only what was asked for is there; all declared names are known."""
    text = (
        "# TYPE e:requests_total counter\ne:requests_total 5\n# TYPE e:requests_created gauge\ne:requests_created 1.7e9\n"
        "# TYPE e:other gauge\ne:other 1\n"
    )
    page = PageReader(WANTED).read(text)
    assert {"e_requests": {("_total", ""): 5.0}} == {family: values(page, family) for family in page.series}
    assert {"e_requests_total", "e_requests_created", "e_other"} == page.names


@pytest.mark.parametrize("name", ["e:requests_total", "e:requests", "e_requests_total", "e_requests"])
def test_spellings(name: str) -> None:
    """Colon or underscore after the prefix, counters with or without `_total`."""
    page = PageReader(WANTED).read(f'# TYPE {name} counter\n{name}{{a="1"}} 5\n')
    assert [5.0] == [v for _, v in page.of("e_requests")]
    assert "counter" == page.types["e_requests"]


def test_the_declared_type_counts_not_the_suffix() -> None:
    """A histogram may have a name that ends in `_total`; its buckets are not read where only totals are wanted."""
    declared = "# HELP e:step_total Tokens.\n# TYPE e:step_total histogram\n"
    text = declared + 'e:step_total_bucket{le="+Inf"} 3\ne:step_total_sum 30\ne:step_total_count 3\n'
    page = PageReader(WANTED).read(text)
    assert {("_sum", ""): 30.0, ("_count", ""): 3.0} == values(page, "e_step_total")
    assert ("histogram", "Tokens.") == (page.types["e_step_total"], page.helps["e_step_total"])


@pytest.mark.parametrize(
    "line",
    ["e_running", "e_running{", 'e_running{a="1"', "e_running{a=1} 5", "e_running five", 'e_running{a="1"} 1_0', "e_running }{ 5"],
)
def test_a_line_that_cannot_be_read_costs_itself_only(line: str) -> None:
    """The others stay, and the line is kept for the message."""
    page = PageReader(WANTED).read(f"{line}\ne_requests_total 5\n")
    assert [("e_running", line)] == page.refused
    assert {("_total", ""): 5.0} == values(page, "e_requests")


def test_a_known_series_with_a_broken_value_is_refused() -> None:
    """That a series was read before does not make its next value good."""
    reader = PageReader(WANTED)
    assert {("", "1"): 5.0} == values(reader.read('e_running{a="1"} 5\n'), "e_running")
    page = reader.read('e_running{a="1"} 5x\n')
    assert ([("e_running", 'e_running{a="1"} 5x')], []) == (page.refused, page.of("e_running"))
    assert 1 == len(reader.read('e_running{a="1"} 1_0\n').refused)


def test_memory_of_series_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page whose labels never repeat costs parsing, not memory without end."""
    monkeypatch.setattr("heptascope.sources.engine.page.MAX_KNOWN_SERIES", 3)
    reader = PageReader(WANTED)
    for n in range(10):
        page = reader.read(f'e_running{{a="{n}"}} {n}\nother_{n} 1\n')
        assert {("", str(n)): float(n)} == values(page, "e_running")
    assert len(reader._known) <= 3
    assert len(reader._unwanted) <= 3


SAME = '# HELP e:running Now.\n# TYPE e:running gauge\ne:running{a="1"} 5\ne:running{a="2"} 6\n# TYPE e:other gauge\ne:other 1\n'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("} 5", "} 7"),
        ("other 1", "other 2"),
        ("} 5", "} NaN"),
        ("} 5", "} five"),
        ("} 5", "} 5_0"),
        ("} 5", "} 5 1700000000000"),
        ('a="1"', 'a="3"'),
        ("Now.", "Then."),
        (" gauge\ne:running", " counter\ne:running"),
        ('e:running{a="2"} 6\n', ""),
        ('e:running{a="2"} 6\n', 'e:running{a="2"} 6\ne:running{a="9"} 6\n'),
        ('e:running{a="2"} 6\n', 'e:running{a="2"} 6\ne:requests_total 6\n'),
        ('e:running{a="1"} 5\ne:running{a="2"} 6\n', 'e:running{a="2"} 6\ne:running{a="1"} 5\n'),
        ("e:other 1", "e:other 1\n# EOF"),
        ("\n# TYPE e:other", "\n\n# TYPE e:other"),
        ("", ""),
    ],
)
def test_a_page_like_the_one_before_says_what_it_says_alone(before: str, after: str) -> None:
    """What a reader remembers of the pages before it changes nothing: neither new values, nor lines that changed, came or went."""
    reader, text = PageReader(WANTED), SAME.replace(before, after, 1)
    for _ in range(3):
        reader.read(SAME)
    for _ in range(3):
        alone, page = PageReader(WANTED).read(text), reader.read(text)
        assert str(values(alone, "e_running")) == str(values(page, "e_running"))
        assert values(alone, "e_requests") == values(page, "e_requests")
        assert (alone.names, alone.types, alone.helps, alone.refused) == (page.names, page.types, page.helps, page.refused)
        assert alone.label_values("a") == page.label_values("a")


def test_the_lines_of_a_very_long_page_are_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read all the same, each time."""
    monkeypatch.setattr("heptascope.sources.engine.page._MOST_LINES", 3)
    reader = PageReader(WANTED)
    for value in (5.0, 7.0):
        assert {("", "1"): value, ("", "2"): 6.0} == values(reader.read(SAME.replace("} 5", f"}} {value:g}")), "e_running")
        assert reader._layout is None


def test_values_spaces_timestamps_and_escapes() -> None:
    """All that the text format allows is read, again and again."""
    text = (
        'e_running{a="x"} NaN\ne_running{a="sp ace"} 1.5e+06 1700000000000\n'
        'e_running{a="q\\"\\\\"}\t7\r\n  e_running{a="i"}  -Inf\n\n# comment\n'
    )
    reader = PageReader(WANTED)
    for _ in range(2):
        found = values(reader.read(text), "e_running")
        assert math.isnan(found.pop(("", "x")))
        assert {("", "sp ace"): 1.5e6, ("", 'q"\\'): 7.0, ("", "i"): -math.inf} == found


def test_openmetrics_exemplars_are_dropped() -> None:
    """An exemplar is no value, and a label that looks like one stays a label."""
    text = (
        '# TYPE e_requests counter\ne_requests_total{a="1"} 17 # {trace_id="x y"} 0.5 1.7e9\ne_requests_total{a=" # {b} 1 "} 4\n'
        'e_wait_bucket{le="0.1"} 3 # {t="1"} 0.05\n# EOF\n'
    )
    reader = PageReader(WANTED)
    for _ in range(2):
        page = reader.read(text, openmetrics=True)
        assert {("_total", "1"): 17.0, ("_total", " # {b} 1 "): 4.0} == values(page, "e_requests")
        assert {("_bucket", "0.1"): 3.0} == values(page, "e_wait")
        assert [] == page.refused


@pytest.mark.parametrize(
    ("text", "content_type", "words"),
    [
        ("<!doctype html><p>hello", "text/html", "this is HTML"),
        ('{"detail":"Not Found"}', "application/json", "this is JSON"),
        ('[{"iter":1}]', "text/plain", "this is JSON"),
        ('"# HELP a\\n"', "text/plain", "this is JSON"),
        ("", "text/plain", "the page is empty"),
        ("a 1\nb 2", "text/plain", "incomplete page"),
        ("a 1\nb 2\n", "application/openmetrics-text; version=1.0.0", "incomplete page"),
    ],
)
def test_what_is_no_whole_metrics_page(text: str, content_type: str, words: str) -> None:
    """HTML, JSON, nothing and half a page are each named."""
    with pytest.raises(SourceError, match=words) as caught:
        Document("http://h/metrics", text, content_type).check_metrics()
    assert Reason.INVALID is caught.value.reason


def test_whole_pages_pass() -> None:
    """Both formats end as they should; OpenMetrics ends with its mark."""
    Document("u", capture(VLLM_032, "idle_fresh")).check_metrics()
    Document("u", "a 1\n# EOF", "application/openmetrics-text; version=1.0.0").check_metrics()
