"""The evaluator against a real Prometheus 2.42 on the same samples."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from heptascope.rules import promql
from heptascope.rules.promql_aggregations import AGGREGATIONS
from heptascope.rules.promql_calls import SUPPORTED
from heptascope.rules.promql_operators import ARITHMETIC, COMPARISONS, SETS
from heptascope.signals.window import Window
from support.conformance import Tally, assert_agreement, assert_conforms, compare, prometheus_with, window_of
from support.prometheus import Prometheus
from support.promql_generator import Generator
from support.promql_samples import START, generated_samples, instants
from support.untraced import untraced

SEED = 20240607
SAMPLES = generated_samples(SEED)
NAMES_ONLY = 'label_replace(t_running{rank="1"} or t_usage_ratio{engine="vllm", rank="0"}, "rank", "", "rank", ".*")'
HISTOGRAM = "sum by (le, engine, rank) (rate(t_latency_seconds_bucket[30s]))"

# One of each, so that nothing depends on what the generator happens to draw.
WRITTEN = [
    "t_usage_ratio",
    't_usage_ratio{engine="vllm"}',
    't_usage_ratio{engine!="vllm", rank="0"}',
    't_tokens_total{kind=~"prompt|none"}',
    't_tokens_total{kind!~"p.*", engine=~".+m"}',
    "t_usage_ratio{kind=\"\", engine=~'(?i)VLLM'}",
    '{__name__="t_running", rank="1"}',
    "t_usage_ratio offset 90s",
    "t_usage_ratio offset -90s",
    *(f"{name}(t_requests_total[{seconds}])" for name in ("rate", "increase", "irate", "resets") for seconds in ("10s", "45s", "5m")),
    *(f"{name}(t_usage_ratio[{seconds}])" for name in ("delta", "idelta", "deriv", "changes") for seconds in ("10s", "45s", "5m")),
    *(
        f"{name}_over_time({signal}[40s] offset 10s)"
        for name in ("avg", "max", "min", "sum", "count", "last", "present", "stddev", "absent")
        for signal in ("t_usage_ratio", "t_odd", 't_running{rank="1"}')
    ),
    *(f"quantile_over_time({level}, t_usage_ratio[1m])" for level in ("0", "0.5", "0.99", "1", "1.1", "-0.1", "NaN")),
    *(f"histogram_quantile({level}, {HISTOGRAM})" for level in ("0", "0.01", "0.5", "0.9", "0.99", "1", "2", "-1", "NaN")),
    "histogram_quantile(0.9, t_latency_seconds_bucket)",
    'histogram_quantile(0.9, t_latency_seconds_bucket{le!="+Inf"})',
    'histogram_quantile(0.9, t_latency_seconds_bucket{le="+Inf"})',
    'histogram_quantile(0.9, -rate(t_latency_seconds_bucket{le!="0.25"}[1m]))',
    'histogram_quantile(0.9, label_replace(t_latency_seconds_bucket, "le", "-$1", "le", "(0.*)"))',
    'histogram_quantile(0.9, label_replace(t_latency_seconds_bucket, "le", "none", "le", "0.5"))',
    *(f"t_usage_ratio {op} ignoring (nothing) t_running" for op in (*ARITHMETIC, *COMPARISONS)),
    *(f"t_odd {op} 2" for op in (*ARITHMETIC, *COMPARISONS)),
    *(f"-1.5 {op} t_odd" for op in (*ARITHMETIC, *COMPARISONS)),
    *(f"t_odd {op} bool 0" for op in COMPARISONS),
    *(f"1 {op} bool 2" for op in COMPARISONS),
    *(f"t_usage_ratio {op} on (engine) t_running" for op in SETS),
    *(f"t_usage_ratio {op} t_running > 4" for op in SETS),
    *(f"{name} by (engine) (t_tokens_total)" for name in AGGREGATIONS),
    *(f"{name} without (engine, kind) (t_tokens_total)" for name in AGGREGATIONS),
    *(f"{name}(t_odd)" for name in AGGREGATIONS),
    *(f"{name} by (engine) ({count}, t_usage_ratio)" for name in ("topk", "bottomk") for count in ("1", "2", "0")),
    "quantile by (engine) (0.3, t_tokens_total)",
    "quantile(2, t_odd)",
    "t_engine_gpu_info * on (engine, rank) group_left () t_usage_ratio",
    "t_usage_ratio * on (engine, rank) group_right (nothing) t_engine_gpu_info",
    "t_power_watts * on (gpu) group_left (engine, rank) t_engine_gpu_info",
    "t_tokens_total / ignoring (kind) group_left () t_requests_total",
    "t_tokens_total > on (engine, rank) group_left () t_requests_total",
    "t_requests_total < bool on (engine, rank) group_right () t_tokens_total",
    "t_tokens_total / on (engine, rank) t_requests_total",
    "t_requests_total / on (engine) t_running",
    "t_requests_total == on (engine) t_running",
    "sum(t_tokens_total) / on () sum(t_requests_total)",
    *(f"{name}(t_odd)" for name in ("abs", "ceil", "exp", "floor", "ln", "log10", "log2", "sgn", "sqrt", "round", "sort", "absent")),
    "round(t_usage_ratio, 0.05)",
    *(f"1 / {name}(t_odd)" for name in ("ceil", "floor", "round", "sqrt")),
    "clamp(t_odd, -1, 1)",
    "clamp(t_odd, 1, -1)",
    "clamp(t_odd, NaN, 1)",
    "clamp_min(t_odd, 0)",
    "clamp_max(t_odd, scalar(t_lone))",
    'absent(t_absent{engine="vllm", rank=~"1", kind="a", kind="b"})',
    "absent(sum(t_absent))",
    'absent_over_time(t_absent{engine="vllm"}[1m])',
    "scalar(t_lone)",
    "scalar(t_usage_ratio)",
    "vector(scalar(t_lone) + 1)",
    "time() - timestamp(t_usage_ratio)",
    "timestamp(-t_usage_ratio)",
    'label_replace(t_usage_ratio, "short", "$1-$$-${2}-$3", "engine", "(.)(.).*")',
    'label_replace(t_usage_ratio, "engine", "same", "engine", ".*")',
    'label_join(t_usage_ratio, "both", "-", "engine", "rank")',
    "-t_odd ^ 2",
    "2 ^ 3 ^ 2 - -1 ^ 2",
    "-(t_usage_ratio or t_running)",
    "abs(t_usage_ratio or t_odd)",
    "(t_usage_ratio or t_odd) * 2",
    *(
        text.format(NAMES_ONLY)
        for text in ("{}", "-{}", "{} / 2", "{} > 0", "{} > bool 0", "abs({})", "topk(1, {})", "max({})", "timestamp({})")
    ),
    "t_usage_ratio unless t_running or t_lone and on () t_power_watts",
    "1 - 2 - 3 * 4 / 5 % 3",
    "NaN == bool NaN",
    "-0x1F + 1e-3",
    "rate(t_requests_total[30s]) > 0.1 and on (engine, rank) avg_over_time(t_usage_ratio[30s]) > 0.3  # as rules are written",
]


@pytest.fixture(scope="module")
def server() -> Iterator[Prometheus]:
    """Run one real Prometheus with the samples for all tests of this module."""
    with prometheus_with(SAMPLES) as running:
        yield running


@pytest.fixture(scope="module")
def window() -> Window:
    """Return the same samples as a window."""
    return window_of(SAMPLES)


def test_generated_expressions_agree(server: Prometheus, window: Window) -> None:
    """Six hundred random expressions give the label sets and values of Prometheus at sixteen instants."""
    with untraced():
        tally = compare(server, window, Generator(SEED).expressions(600), instants(SAMPLES, SEED, 16))
    assert_agreement(tally)
    assert 9600 == tally.compared
    assert tally.telling > 3000
    assert tally.errors > 100


def test_written_expressions_agree(server: Prometheus, window: Window) -> None:
    """At least one expression for every function, operator and aggregation gives what Prometheus gives."""
    tally = compare(server, window, WRITTEN, instants(SAMPLES, SEED + 1, 24))
    assert_agreement(tally)
    assert tally.telling > 0.6 * tally.compared


@pytest.mark.parametrize("name", sorted(SUPPORTED | set(AGGREGATIONS)))
def test_every_function_is_among_the_written_expressions(name: str) -> None:
    """Nothing that the evaluator supports goes without a comparison."""
    assert [] != [text for text in WRITTEN if f"{name}(" in text or f"{name} by" in text]


def test_a_wrong_window_is_noticed(server: Prometheus) -> None:
    """The comparison finds differences where there are some."""
    other = window_of(generated_samples(SEED + 1))
    assert compare(server, other, ["t_usage_ratio", "sum(t_running)"], [START + 600.0]).differences


def test_prometheus_3_differs_from_the_real_2(server: Prometheus, window: Window) -> None:
    """The two modes are told apart by a sample on the left edge of a range."""
    edge = SAMPLES["t_lone", ()][40][0]
    text = "count_over_time(t_lone[30s])"
    theirs = float(server.query(text, edge + 30)["data"]["result"][0]["value"][1])
    ours = promql.compile(text).evaluate(window, edge + 30, mode=promql.Mode.PROMETHEUS_3)
    assert [theirs - 1] == [item.value for item in ours] if isinstance(ours, list) else False


def test_assert_conforms_runs_its_own_server() -> None:
    """Other tests can compare their expressions on their samples in one call."""
    samples = {("up_total", ()): [(START + i, float(i)) for i in range(60)]}
    tally = assert_conforms(["rate(up_total[20s])", "up_total > 5"], samples, [START + 30.0, START + 59.5])
    assert Tally(compared=4) == tally
