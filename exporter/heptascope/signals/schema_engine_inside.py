"""Engine rows of the signal table, second part: what lies inside steps and front end, and stand-ins for what an engine counts nowhere."""

from __future__ import annotations

from heptascope.model import Layer
from heptascope.signals.schema_row import ENGINE, Fold, Kind, Signal

_OP, _MEM, _SCHED, _APP = Layer.OPERATOR, Layer.MEMORY, Layer.SCHEDULING, Layer.APPLICATION


def _row(name: str, kind: Kind, unit: str, layer: Layer, help: str, extra: tuple[str, ...] = (), fold: Fold = Fold.SUM) -> Signal:
    return Signal(f"heptascope_engine_{name}", kind, unit, layer, ENGINE + extra, ("engine",), help, fold)


_G, _C, _H = Kind.GAUGE, Kind.COUNTER, Kind.HISTOGRAM
ROWS: list[Signal] = [
    _row(
        "batch_tokens_total",
        _C,
        "tokens",
        _SCHED,
        "Tokens scheduled into steps, by kind (prefill, decode; drafts to verify are decode).",
        ("kind",),
    ),
    _row(
        "recomputed_tokens_total",
        _C,
        "tokens",
        _MEM,
        "Tokens whose KV cache a preemption gave up and that had to be computed again.",
    ),
    _row(
        "frontend_event_loop_lag_seconds",
        _H,
        "seconds",
        _APP,
        "How late a timer of 0.1 s runs in the front end's event loop, from the in-engine probe or the front end itself.",
    ),
    _row(
        "frontend_tokenize_seconds",
        _H,
        "seconds",
        _APP,
        "Time of one call of the tokeniser in the front end, from the in-engine probe or the front end itself.",
    ),
    # where there is neither counter nor histogram
    _row(
        "recent_latency_seconds",
        _G,
        "seconds",
        _APP,
        "Mean of a latency in the engine's latest report, where it gives neither histogram nor sum.",
        ("latency",),
        Fold.MAX,
    ),
    _row(
        "latency_quantile_seconds",
        _G,
        "seconds",
        _APP,
        "Quantile `q` of a latency over a sliding window of the engine's own, where it gives no histogram.",
        ("latency", "q"),
        Fold.MAX,
    ),
    _row(
        "reported_generation_tokens_per_second",
        _G,
        "",
        _APP,
        "Tokens generated per second in the engine's latest report, where its counter moves only when requests finish.",
    ),
    _row(
        "last_step_used_graph",
        _G,
        "",
        _OP,
        "1 if the latest reported step ran as a CUDA graph, 0 if not, where the engine does not count them.",
        (),
        Fold.MAX,
    ),
]
