"""The lines that the page draws: one value a second for ten minutes, read from the in-memory history.

Each chart names a signal and how a second's value comes from it: the mean of a gauge, the rate of a counter, a quantile of a
histogram. Rates and quantiles are those of the ten seconds before, as in the rules.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from heptascope.model import Labels, Layer
from heptascope.signals.rates import quantile
from heptascope.signals.schema import SCHEMA
from heptascope.signals.window import Series, Window
from heptascope.surfaces import history, units

HISTORY_SECONDS = 600
SPAN_SECONDS = 10
LOOKBACK_SECONDS = 7.0
"""A value counts as current for so long: slow sources are read every five seconds."""
_MARGIN = 16  # points before the span that a copy takes along
_PER_SECOND = 12  # points a second at most, with 100 ms sampling

Values = list[float | None]


@dataclass(frozen=True, slots=True)
class Chart:
    """One small chart. `how` is mean, rate, or a quantile such as 0.95; `only` keeps series with this label value."""

    name: str
    signal: str
    unit: str
    how: str
    layer: Layer
    only: tuple[str, str] | None = None

    @property
    def entity(self) -> tuple[str, ...]:
        """The labels that tell its lines apart; a signal of neither GPUs nor engines is the pod's, with its own."""
        if self.signal.startswith("heptascope_gpu_"):
            return ("gpu",)
        return ("engine", "rank") if self.signal.startswith("heptascope_engine_") else SCHEMA[self.signal].labels


_TTFT, _ITL = "heptascope_engine_time_to_first_token_seconds", "heptascope_engine_inter_token_latency_seconds"
_PRESSURE = "heptascope_engine_resource_pressure_ratio"
_HW, _OP, _MEM, _SCHED = Layer.HARDWARE, Layer.OPERATOR, Layer.MEMORY, Layer.SCHEDULING
_PAR, _SPEC, _APP = Layer.PARALLEL, Layer.SPECULATIVE, Layer.APPLICATION
_RESOURCES = ("dram", "tensor", "pcie", "link", "host")
CHARTS: dict[str, Chart] = {
    chart.name: chart
    for chart in (
        Chart("ttft", _TTFT, "seconds", "0.95", _APP),
        Chart("ttft_median", _TTFT, "seconds", "0.5", _APP),
        Chart("itl", _ITL, "seconds", "0.95", _APP),
        Chart("itl_median", _ITL, "seconds", "0.5", _APP),
        Chart("generated", "heptascope_engine_generation_tokens_total", "tokens", "rate", _APP),
        Chart("prompted", "heptascope_engine_prompt_tokens_total", "tokens", "rate", _APP),
        Chart("saturation", "heptascope_saturation_ratio", "ratio", "mean", _APP),
        Chart("limits", "heptascope_saturation_limit_ratio", "ratio", "mean", _APP),
        Chart("acceptance", "heptascope_engine_spec_acceptance_ratio", "ratio", "mean", _SPEC),
        Chart("running", "heptascope_engine_requests_running", "", "mean", _SCHED),
        Chart("waiting", "heptascope_engine_requests_waiting", "", "mean", _SCHED),
        Chart("step", "heptascope_engine_step_seconds", "seconds", "mean", _SCHED),
        Chart("kv", "heptascope_engine_kv_cache_usage_ratio", "ratio", "mean", _MEM),
        Chart("preemptions", "heptascope_engine_preemptions_total", "", "rate", _MEM),
        Chart("gap", "heptascope_engine_step_host_gap_ratio", "ratio", "mean", _OP),
        *(Chart(f"pressure_{what}", _PRESSURE, "ratio", "mean", _HW, ("resource", what)) for what in _RESOURCES),
        Chart("objective_ttft", "heptascope_engine_slo_seconds", "seconds", "mean", _APP, ("latency", "time_to_first_token")),
        Chart("objective_itl", "heptascope_engine_slo_seconds", "seconds", "mean", _APP, ("latency", "inter_token_latency")),
        Chart("active", "heptascope_gpu_graphics_engine_active_ratio", "ratio", "mean", _OP),
        Chart("sm", "heptascope_gpu_sm_active_ratio", "ratio", "mean", _HW),
        Chart("dram", "heptascope_gpu_dram_active_ratio", "ratio", "mean", _HW),
        Chart("tensor", "heptascope_gpu_tensor_active_ratio", "ratio", "mean", _HW),
        Chart("utilization", "heptascope_gpu_utilization_ratio", "ratio", "mean", _HW),
        Chart("power", "heptascope_gpu_power_watts", "watts", "mean", _HW),
        Chart("clock", "heptascope_gpu_sm_clock_hertz", "hertz", "mean", _HW),
        Chart("temperature", "heptascope_gpu_temperature_celsius", "celsius", "mean", _HW),
        Chart("pcie", "heptascope_gpu_pcie_receive_bytes_total", "bytes", "rate", _HW),
        Chart("nvlink", "heptascope_gpu_nvlink_receive_bytes_total", "bytes", "rate", _PAR),
    )
}  # fmt: skip
"""Every chart by name."""

LEADING: dict[Layer, tuple[str, ...]] = {
    Layer.HARDWARE: ("dram", "utilization", "power"),
    Layer.OPERATOR: ("gap", "active"),
    Layer.MEMORY: ("kv",),
    Layer.SCHEDULING: ("waiting", "running"),
    Layer.PARALLEL: ("nvlink",),
    Layer.SPECULATIVE: ("acceptance",),
    Layer.APPLICATION: ("ttft", "itl"),
}
"""What a layer is drawn by: the first of these charts that has values."""


def lines(window: Window, last: int, seconds: int = HISTORY_SECONDS) -> dict[str, Any]:
    """Return every chart with its lines over the `seconds` whole seconds up to `last` (Unix time), oldest first; null: no value then."""
    found = {}
    for chart in CHARTS.values():
        drawn = {key(pairs): values for pairs, values in chart_lines(window, chart, last, seconds)}
        if drawn:
            about = {"signal": chart.signal, "unit": units.unit_of(chart.signal, chart.unit), "layer": chart.layer.value}
            found[chart.name] = {**about, "rate": chart.how == "rate", "lines": drawn}
    leading = {layer.value: list(names) for layer, names in LEADING.items()}
    return {"t": last, "seconds": seconds, "charts": found, "leading": leading}


def points(window: Window, at: int) -> dict[str, dict[str, float | None]]:
    """Return the value of every line at one second: what `lines` would end with."""
    found: dict[str, dict[str, float | None]] = {}
    for chart in CHARTS.values():
        for pairs, values in chart_lines(window, chart, at, 1):
            if values[0] is not None:
                found.setdefault(chart.name, {})[key(pairs)] = values[0]
    return found


def key(pairs: Labels) -> str:
    """Return the name of a line: the engine and rank, or the GPU, that it is about."""
    return "|".join(value for _, value in pairs)


def chart_lines(window: Window, chart: Chart, last: int, seconds: int) -> Iterator[tuple[Labels, Values]]:
    """Yield the lines of a chart that have a value in the range, by the labels that tell them apart."""
    quantile = chart.how not in ("mean", "rate")
    name = chart.signal + "_bucket" if quantile else chart.signal
    grouped: dict[Labels, list[Series]] = {}
    for series in history.series_of(window, name):
        if chart.only is None or chart.only in series.pairs:
            grouped.setdefault(tuple((k, series.labels[k]) for k in chart.entity if k in series.labels), []).append(series)
    for pairs, rows in grouped.items():
        values = _quantiles(rows, float(chart.how), last, seconds) if quantile else _sum([_one(s, chart.how, last, seconds) for s in rows])
        if any(value is not None for value in values):
            yield pairs, [None if value is None else float(f"{value:.5g}") for value in values]


def signal_lines(window: Window, name: str, how: str, last: int, seconds: int) -> Iterator[tuple[Labels, Values]]:
    """Yield the lines of one signal's series, all labels kept; `how` is mean or rate."""
    for series in history.series_of(window, name):
        values = _one(series, how, last, seconds)
        if any(value is not None for value in values):
            yield series.pairs, values


def mean_lines(window: Window, name: str, last: int, seconds: int) -> Iterator[tuple[Labels, Values]]:
    """Yield the mean of a histogram over each span."""
    counts = dict(signal_lines(window, f"{name}_count", "rate", last, seconds))
    for pairs, sums in signal_lines(window, f"{name}_sum", "rate", last, seconds):
        both = zip(sums, counts.get(pairs, ()), strict=False)
        yield pairs, [None if a is None or not b else a / b for a, b in both]


def _one(series: Series, how: str, last: int, seconds: int) -> Values:
    times, values = _copy(series, seconds)
    if how == "mean":
        return _means(times, values, last, seconds)
    grown = _at(times, values, last, seconds + SPAN_SECONDS)
    return [_rate(a, b) for a, b in zip(grown, grown[SPAN_SECONDS:], strict=False)]


def _rate(before: float | None, after: float | None) -> float | None:
    if before is None or after is None:
        return None
    return (after - before if after >= before else after) / SPAN_SECONDS


def _quantiles(rows: Sequence[Series], q: float, last: int, seconds: int) -> Values:
    """Return a histogram's quantile over each span, from the growth of its buckets."""
    by_bound = sorted((float(s.labels["le"]), _one(s, "rate", last, seconds)) for s in rows)
    bounds = [bound for bound, _ in by_bound]
    out: Values = []
    for column in zip(*(values for _, values in by_bound), strict=True):
        counts = [n for n in column if n is not None]
        out.append(quantile(q, bounds, counts) if len(counts) == len(column) else None)
    return out


def _copy(series: Series, seconds: int) -> tuple[Sequence[float], Sequence[float]]:
    most = (seconds + SPAN_SECONDS + _MARGIN) * _PER_SECOND if seconds < HISTORY_SECONDS else None
    return history.points(series, most)


def _at(times: Sequence[float], values: Sequence[float], last: int, seconds: int) -> Values:
    """Return the value that stood at each second."""
    out: Values = []
    for second in range(last - seconds + 1, last + 1):
        i = bisect_right(times, second) - 1
        old = i < 0 or times[i] <= second - LOOKBACK_SECONDS
        out.append(None if old or values[i] != values[i] else values[i])
    return out


def _means(times: Sequence[float], values: Sequence[float], last: int, seconds: int) -> Values:
    """Return the mean of the values of each second, or the one that still stands."""
    out: Values = []
    low = bisect_right(times, last - seconds)
    for second in range(last - seconds + 1, last + 1):
        high = bisect_right(times, second, low)
        inside = [v for v in values[low:high] if v == v]
        if inside and values[high - 1] == values[high - 1]:
            out.append(sum(inside) / len(inside))
        else:
            old = high == 0 or times[high - 1] <= second - LOOKBACK_SECONDS or values[high - 1] != values[high - 1]
            out.append(None if old else values[high - 1])
        low = high
    return out


def _sum(rows: Sequence[Values]) -> Values:
    """Add lines up where there are several; where none has a value there is none."""
    if len(rows) == 1:
        return rows[0]
    return [sum(known) if (known := [v for v in column if v is not None]) else None for column in zip(*rows, strict=True)]
