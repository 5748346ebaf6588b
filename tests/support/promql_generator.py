"""Random expressions of the supported language over the series of `promql_samples`."""

from __future__ import annotations

import random

ENGINE_COUNTERS = ("t_requests_total", "t_tokens_total", "t_latency_seconds_sum", "t_latency_seconds_count")
GPU_COUNTERS = ("t_busy_seconds_total",)
ENGINE_GAUGES = ("t_usage_ratio", "t_running")
GPU_GAUGES = ("t_power_watts", "t_odd")
OTHERS = ("t_engine_gpu_info", "t_lone", "t_latency_seconds_bucket", "t_absent")
DISTINCT = ("t_usage_ratio", "t_power_watts")  # values that never tie, for topk
MATCHERS = (
    'engine="vllm"',
    'engine!="vllm"',
    'engine=~"vllm|other"',
    'engine=~"s.*"',
    'rank!~"1"',
    'gpu=~"[0-2]"',
    'gpu!="3"',
    'kind="prompt"',
    'kind=""',
    'nothing=""',
    'uuid=~"GPU-.+"',
    'uuid!~"GPU-(11|22)"',
)
RANGES = ("10s", "30s", "1m", "1m30s", "5m", "500ms", "15s")
OFFSETS = ("", "", "", "", " offset 10s", " offset 1m", " offset 5m", " offset -30s")
OVER_TIME = ("avg", "max", "min", "sum", "count", "last", "present", "stddev")
RATES = ("rate", "increase", "delta", "irate", "idelta", "deriv", "resets", "changes")
VALUE_FUNCTIONS = ("abs", "ceil", "exp", "floor", "ln", "log10", "log2", "sgn", "sqrt")
AGGREGATIONS = ("sum", "avg", "min", "max", "count", "stddev", "group")
GROUPS = ("engine", "rank", "gpu", "uuid", "kind", "engine, rank", "gpu, uuid", "", "engine, le")
ARITHMETIC = ("+", "-", "*", "/", "%", "^")
COMPARISONS = ("==", "!=", ">", "<", ">=", "<=")
MATCHINGS = ("", "", "on (engine, rank)", "on (engine)", "on (gpu)", "on (gpu, uuid)", "on ()", "ignoring (kind)", "ignoring (rank, kind)")
INCLUDED = ("", "uuid", "kind, gpu", "rank", "uuid, nothing")
NUMBERS = ("0", "1", "2", "0.5", "-1", "1e3", "0.05", "10", "Inf", "-Inf", "NaN", "100", "0x10")


class Generator:
    """Makes expressions; the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        """Start at `seed`."""
        self._rng = random.Random(seed)  # noqa: S311 - test data, the same every time

    def expressions(self, count: int) -> list[str]:
        """Return `count` different expressions, some of them scalars."""
        found: dict[str, None] = {}
        while len(found) < count:
            found[self._scalar(3) if self._rng.random() < 0.08 else self._vector(3)] = None
        return list(found)

    def _pick(self, options: tuple[str, ...]) -> str:
        return self._rng.choice(options)

    def _selector(self, names: tuple[str, ...], seconds: str = "") -> str:
        count = self._rng.choice((0, 0, 1, 1, 2))
        matchers = ",".join(self._rng.sample(MATCHERS, count))
        return f"{self._pick(names)}{f'{{{matchers}}}' if matchers else ''}{seconds}{self._pick(OFFSETS)}"

    def _range(self, names: tuple[str, ...]) -> str:
        return self._selector(names, f"[{self._pick(RANGES)}]")

    def _vector(self, depth: int) -> str:
        makers = [self._instant, self._rate, self._over_time]
        if depth > 0:
            makers += [self._rate, self._aggregation, self._with_scalar, self._with_scalar, self._with_vector, self._with_vector]
            makers += [self._set, self._set, self._function, self._label, self._histogram, self._extremes, self._presence]
        return self._rng.choice(makers)(depth - 1)

    def _instant(self, _depth: int) -> str:
        return self._selector(ENGINE_COUNTERS + GPU_COUNTERS + ENGINE_GAUGES + GPU_GAUGES + OTHERS)

    def _rate(self, _depth: int) -> str:
        return f"{self._pick(RATES)}({self._range(ENGINE_COUNTERS + GPU_COUNTERS + ENGINE_COUNTERS + ENGINE_GAUGES)})"

    def _over_time(self, _depth: int) -> str:
        operand = self._range(ENGINE_GAUGES + GPU_GAUGES + ENGINE_GAUGES + ("t_lone",))
        if self._rng.random() < 0.15:
            return f"quantile_over_time({self._pick(('0.5', '0.99', '-1', '2', 'NaN', '0', '1'))}, {operand})"
        return f"{self._pick(OVER_TIME)}_over_time({operand})"

    def _aggregation(self, depth: int) -> str:
        clause = self._rng.choice(("", f"{self._pick(('by', 'without'))} ({self._pick(GROUPS)}) "))
        if self._rng.random() < 0.1:
            return f"quantile {clause}({self._pick(('0.5', '0.9', '1', '-1'))}, {self._vector(depth)})"
        return f"{self._pick(AGGREGATIONS)} {clause}({self._vector(depth)})"

    def _with_scalar(self, depth: int) -> str:
        operator = self._pick(ARITHMETIC + COMPARISONS + COMPARISONS)
        modifier = " bool" if operator in COMPARISONS and self._rng.random() < 0.3 else ""
        sides = [f"({self._vector(depth)})", self._scalar(depth)]
        self._rng.shuffle(sides)
        return f"{sides[0]} {operator}{modifier} {sides[1]}"

    def _with_vector(self, depth: int) -> str:
        operator = self._pick(ARITHMETIC[:4] + COMPARISONS)
        modifier = " bool" if operator in COMPARISONS and self._rng.random() < 0.3 else ""
        matching = self._pick(MATCHINGS)
        if matching and self._rng.random() < 0.4:
            included = self._pick(INCLUDED)
            allowed = not any(label in matching for label in included.split(", "))
            matching += f" {self._pick(('group_left', 'group_right'))} ({included if allowed else ''})"
        return f"({self._vector(depth)}) {operator}{modifier} {matching} ({self._vector(depth)})"

    def _set(self, depth: int) -> str:
        return f"({self._vector(depth)}) {self._pick(('and', 'or', 'unless'))} {self._pick(MATCHINGS)} ({self._vector(depth)})"

    def _function(self, depth: int) -> str:
        operand, number = self._vector(depth), self._scalar(0)
        return self._rng.choice(
            (
                f"{self._pick(VALUE_FUNCTIONS)}({operand})",
                f"-({operand})",
                f"-{self._selector(ENGINE_GAUGES)} ^ 2",
                f"clamp({operand}, {number}, {self._scalar(0)})",
                f"clamp_min({operand}, {number})",
                f"clamp_max({operand}, {number})",
                f"round({operand})",
                f"round({self._selector(ENGINE_GAUGES)}, {self._pick(('0.01', '0.25', '5'))})",
                f"sort({operand})",
                f"timestamp({self._selector(ENGINE_GAUGES + GPU_GAUGES)})",
                f"timestamp({operand})",
                f"vector({number})",
            )
        )

    def _label(self, depth: int) -> str:
        operand = self._vector(depth)
        return self._rng.choice(
            (
                f'label_replace({operand}, "copy", "$1-${{2}}x", "uuid", "(GPU)-(.*)")',
                f'label_replace({operand}, "rank", "r$1", "rank", "(.*)")',
                f'label_replace({operand}, "engine", "", "engine", ".*")',
                f'label_replace({operand}, "first", "$first", "engine", "(?P<first>.).*")',
                f'label_join({operand}, "both", "/", "engine", "rank", "nothing")',
                f'label_join({operand}, "rank", "", "nothing")',
            )
        )

    def _histogram(self, depth: int) -> str:
        level = self._pick(("0.5", "0.9", "0.99", "0", "1", "-1", "1.5", "NaN", "scalar(t_lone)"))
        buckets = self._selector(("t_latency_seconds_bucket",), f"[{self._pick(RANGES)}]")
        rates = f"{self._pick(('rate', 'increase', 'delta'))}({buckets})"
        return self._rng.choice(
            (
                f"histogram_quantile({level}, {rates})",
                f"histogram_quantile({level}, sum by (le, engine) ({rates}))",
                f"histogram_quantile({level}, sum by (le) ({rates}))",
                f"histogram_quantile({level}, sum without (rank) ({rates}))",
                f"histogram_quantile({level}, {self._selector(('t_latency_seconds_bucket',))})",
                f"histogram_quantile({level}, {self._vector(depth)})",
            )
        )

    def _extremes(self, _depth: int) -> str:
        clause = self._rng.choice(("", f"{self._pick(('by', 'without'))} ({self._pick(GROUPS)}) "))
        count = self._pick(("1", "2", "3", "0", "-1", "1.9", "10"))
        return f"{self._pick(('topk', 'bottomk'))} {clause}({count}, {self._selector(DISTINCT)})"

    def _presence(self, depth: int) -> str:
        return self._rng.choice(
            (
                f"absent({self._selector(('t_absent', 't_running'))})",
                f"absent({self._vector(depth)})",
                f"absent_over_time({self._range(('t_absent', 't_running'))})",
                f"({self._vector(depth)}) unless on () absent({self._selector(('t_absent',))})",
            )
        )

    def _scalar(self, depth: int) -> str:
        if depth <= 0 or self._rng.random() < 0.7:
            return self._pick((*NUMBERS, "time()", "scalar(t_lone)", f"({self._pick(NUMBERS)})"))
        operator = self._pick(ARITHMETIC + COMPARISONS)
        modifier = " bool" if operator in COMPARISONS else ""
        return self._rng.choice(
            (
                f"({self._scalar(depth - 1)} {operator}{modifier} {self._scalar(depth - 1)})",
                f"scalar({self._vector(depth - 1)})",
                f"-({self._scalar(depth - 1)})",
            )
        )
