"""The lines that the page draws, from the history in memory."""

from __future__ import annotations

import math

import pytest

from heptascope.demo.scenarios import FOLDER
from heptascope.model import labels
from heptascope.signals.schema import SCHEMA
from heptascope.signals.schema_row import Kind
from heptascope.signals.window import Window
from heptascope.surfaces.web.charts import CHARTS, LEADING, chart_lines, lines, mean_lines, points
from support.played import played

GPU, ENGINE = labels(gpu="0", uuid="GPU-0"), labels(engine="vllm", rank="0")


def test_every_chart_is_of_a_signal() -> None:
    """Charts name signals of the table, in its unit and of its kind; each layer is led by charts that exist."""
    kinds = {"mean": Kind.GAUGE, "rate": Kind.COUNTER}
    for chart in CHARTS.values():
        row = SCHEMA[chart.signal]
        assert (row.unit, kinds.get(chart.how, Kind.HISTOGRAM)) == (chart.unit, row.kind), chart.name
        assert set(chart.entity) <= set(row.labels)
    assert {name for names in LEADING.values() for name in names} <= set(CHARTS)


def test_a_gauge_is_the_mean_of_each_second() -> None:
    """Ten readings a second become one value; a second without any keeps the last, for a few seconds."""
    window = Window()
    for tenth in range(1, 31):
        window.append("heptascope_gpu_sm_active_ratio", GPU, 100 + tenth / 10, tenth / 100)
    ((pairs, values),) = chart_lines(window, CHARTS["sm"], 112, 12)
    assert (("gpu", "0"),) == pairs
    assert [0.055, 0.155, 0.255] == values[:3]
    assert [0.3] * 6 == values[3:9]
    assert [None] * 3 == values[9:]


def test_a_counter_is_its_rate_over_ten_seconds() -> None:
    """A restart counts from 0, before ten seconds of history there is nothing, and the end of the series ends the line."""
    window = Window()
    for second in range(30):
        count = 50.0 * (second if second < 20 else second - 20)
        window.append("heptascope_engine_generation_tokens_total", ENGINE, 100.0 + second, count)
    window.mark_stale("heptascope_engine_generation_tokens_total", ENGINE, 130)
    ((_, values),) = chart_lines(window, CHARTS["generated"], 131, 32)
    assert [None] * 10 == values[:10]
    assert [50.0] * 10 == values[10:20]
    assert 5.0 == values[21]
    assert [None, None] == values[30:]


def test_a_histogram_is_its_quantile_over_ten_seconds() -> None:
    """Only what was observed within the ten seconds counts, whatever came before."""
    window = Window()
    for second in range(21):
        quick, slow = 10.0 * min(second, 10), 10.0 * max(0, second - 10)
        for bound, count in (("0.1", quick), ("1.0", quick + slow), ("+Inf", quick + slow)):
            pairs = labels(**dict(ENGINE), le=bound)
            window.append("heptascope_engine_time_to_first_token_seconds_bucket", pairs, 100.0 + second, count)
    ((_, values),) = chart_lines(window, CHARTS["ttft"], 120, 11)
    assert values[0] == pytest.approx(0.095)
    assert values[10] == pytest.approx(0.955)


def test_means_of_a_histogram() -> None:
    """The trend of a histogram is the mean of each span; without observations there is none."""
    window = Window()
    for second in range(31):
        n = min(second, 15)
        window.append("heptascope_engine_queue_time_seconds_count", ENGINE, 100.0 + second, float(n))
        window.append("heptascope_engine_queue_time_seconds_sum", ENGINE, 100.0 + second, 2.0 * n)
    ((_, values),) = mean_lines(window, "heptascope_engine_queue_time_seconds", 130, 20)
    assert [2.0] * 14 == values[:14]
    assert None is values[-1]


def test_the_stream_goes_on_where_the_history_ends() -> None:
    """The points of a second are what the history has for it, for every line of a real recording."""
    state = played(FOLDER / "kv-severe")
    last = int(state.time)
    whole = lines(state.window, last)["charts"]
    assert {"ttft", "itl", "generated", "kv", "sm", "dram", "pressure_dram", "objective_ttft"} <= set(whole)
    for back in (0, 5):
        at = points(state.window, last - back)
        drawn = {name: {key: values[-1 - back] for key, values in chart["lines"].items()} for name, chart in whole.items()}
        assert at == {name: kept for name, row in drawn.items() if (kept := {k: v for k, v in row.items() if v is not None})}


def test_the_charts_agree_with_the_verdict() -> None:
    """The TTFT drawn is the quantile that the rule compares with its objective."""
    from heptascope.rules import promql

    state = played(FOLDER / "kv-severe")
    last = int(state.time)
    expression = promql.compile(
        "histogram_quantile(0.95, sum by (engine, rank, le) (rate(heptascope_engine_time_to_first_token_seconds_bucket[10s])))",
        where="test",
    )
    (item,) = expression.evaluate(state.window, float(last))
    drawn = points(state.window, last)["ttft"]["vllm|0"]
    assert drawn is not None
    assert math.isclose(item.value, drawn, rel_tol=0.15)  # Prometheus extrapolates to the range's ends
