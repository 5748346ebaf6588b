"""The board about heptascope itself: what it can read, what it cannot and why, and what it costs."""

from __future__ import annotations

from typing import Final

from boards import facts
from boards.limits import GREEN, RED, Limit
from boards.panel import Board, Column, Panel, Query, Row
from boards.promql import PLACE, POD_NAME, by, matchers, rate, sel
from heptascope.surfaces.words import REASON_WORDS

_H: Final = "heptascope_"
_SOURCE: Final = f"{{{{source}}}} · {POD_NAME}"
_NONE: Final = "heptascope is not scraped here."
_SKEW: Final = f"abs({sel(_H + 'clock_timestamp_seconds')} - timestamp({sel(_H + 'clock_timestamp_seconds')}))"


def _sources() -> Row:
    each = (*PLACE, "source")
    ups = f"1 + max by ({by(each)}) ({sel(_H + 'source_up')})"
    lost = f"1 - max by ({by(each)}) (avg_over_time({sel(_H + 'source_up')}[$__range] @ end()))"
    up = Panel(
        "timeline",
        "Sources",
        (Query(f"{ups}\nand on ({by(each)}) topk(20, {lost})", _SOURCE),),
        "short",
        shows="Whether the last read of each source succeeded; of more than twenty, those that were down longest.",
        normal="up.",
        act="`heptascope check` in the pod tells what is wrong with the source, in one line.",
        states=(("down", RED), ("up", GREEN)),
        empty=_NONE,
    )
    age = Panel(
        "timeseries",
        facts.title(_H + "source_age_seconds"),
        (Query(sel(_H + "source_age_seconds"), _SOURCE),),
        facts.unit(_H + "source_age_seconds"),
        shows="How old what is known of each source is.",
        normal="1 to 10 s.",
        act="growing: the source hangs or is gone. Its signals are absent, not old.",
        limits=(Limit("HeptascopeSourceStale", "age_seconds", unit="seconds"),),
        empty=_NONE,
    )
    duration = Panel(
        "timeseries",
        facts.title(_H + "source_duration_seconds"),
        (Query(sel(_H + "source_duration_seconds"), _SOURCE),),
        facts.unit(_H + "source_duration_seconds"),
        shows="Time that the last read took.",
        normal="milliseconds to some tens of them.",
        act="near a second: a slow engine page, or a driver call that hangs.",
        width=8,
        empty=_NONE,
    )
    failures = Panel(
        "timeseries",
        facts.title(_H + "source_failures_total"),
        (Query(rate(_H + "source_failures_total"), _SOURCE),),
        facts.rate_unit(_H + "source_failures_total"),
        shows="Reads that failed, each second.",
        normal="0.",
        act="the log of heptascope has the message once, and again when it changes.",
        width=8,
        empty=_NONE,
    )
    dropped = Panel(
        "timeseries",
        facts.title(_H + "series_dropped_total"),
        (Query(rate(_H + "series_dropped_total"), _SOURCE),),
        facts.rate_unit(_H + "series_dropped_total"),
        shows="Values refused because they were impossible, or not in the signal table.",
        normal="0.",
        act="an engine or driver that reports nonsense: please report it, with a recording (heptascope record).",
        width=8,
        empty="Nothing was refused.",
    )
    return Row("What is read?", ((up, age), (duration, failures, dropped)))


def _missing() -> Row:
    reasons = "; ".join(f"`{reason}`: {words}" for reason, words in REASON_WORDS.items())
    signals = Panel(
        "table",
        "Signals without a value",
        (Query(f"sort_desc(count by (signal, reason) ({sel(_H + 'signal_unavailable')}))", ""),),
        "short",
        shows=f"Each signal that some pod cannot have, and why. {reasons}.",
        normal="what your engine and card do not have, and idle without load.",
        act="flag_off, no_permission, profiler_locked, source_down can be mended; engine and not_supported cannot.",
        empty="Every signal has a value.",
        columns=(
            Column("signal", "Signal"),
            Column("reason", "Reason", width=160),
            Column("Value", "Pods", "short", width=90),
        ),
    )
    rules = Panel(
        "table",
        "Rules that cannot be judged",
        (Query(f"sort_desc(count by (rule, layer, kind) (heptascope_finding_unknown{matchers(*PLACE)}))", ""),),
        "short",
        shows="Rules whose signals are missing, and on how many engines or GPUs. Such a rule never counts as clear.",
        normal="rules that need a baseline of a day (they are judged in Prometheus), and what your sources cannot supply.",
        act="`heptascope check --rules` names the missing signal of each.",
        empty="Every rule can be judged.",
        columns=(
            Column("rule", "Rule"),
            Column("layer", "Layer", width=120),
            Column("kind", "Kind", width=100),
            Column("Value", "Where", "short", width=90),
        ),
    )
    return Row("What is missing, and why?", ((signals, rules),))


def _cost() -> Row:
    def panel(title: str, expr: str, legend: str, unit: str, shows: str, normal: str, act: str) -> Panel:
        return Panel("timeseries", title, (Query(expr, legend),), unit, shows, normal, act, width=8, empty=_NONE)

    cpu = panel(
        "CPU",
        rate(_H + "process_cpu_seconds_total"),
        POD_NAME,
        "percentunit",
        "Share of one core that heptascope uses.",
        "1 to 3 %.",
        "raise the intervals of the sources.",
    )
    memory = Panel(
        "timeseries",
        "Memory",
        (
            Query(sel(_H + "process_resident_bytes"), f"resident · {POD_NAME}"),
            Query(sel(_H + "window_bytes"), f"history · {POD_NAME}"),
        ),
        facts.unit(_H + "window_bytes"),
        shows="Memory of the process, and of its history of ten minutes in it.",
        normal="flat after ten minutes.",
        act="steady growth is a bug: please report it.",
        width=8,
        empty=_NONE,
    )
    stages = panel(
        "Time of one pass",
        sel(_H + "pass_duration_seconds"),
        f"{{{{stage}}}} · {POD_NAME}",
        facts.unit(_H + "pass_duration_seconds"),
        "Time that each stage takes, once a second.",
        "milliseconds.",
        "near a second the pod has too little CPU.",
    )
    return Row("What does it cost?", ((cpu, memory, stages),))


def _which() -> Row:
    skew = Panel(
        "timeseries",
        "Clock skew",
        (Query(_SKEW, POD_NAME),),
        "s",
        shows="What the server's clock and Prometheus' differ by.",
        normal="below a second.",
        act="fix time synchronisation on the node; until then ages and traces cannot be trusted.",
        width=8,
        limits=(Limit("HeptascopeClockSkew", "seconds", unit="seconds"),),
        empty=_NONE,
    )
    versions = Panel(
        "table",
        "Versions",
        (Query(f"count by (version, python) ({sel(_H + 'build_info')})", ""),),
        "short",
        shows="Versions of heptascope, and how many pods run each.",
        normal="one version.",
        act="finish the roll-out; metrics.md of the newer version says what changed.",
        width=8,
        empty=_NONE,
        columns=(Column("version", "Version"), Column("python", "Python"), Column("Value", "Pods", "short", width=90)),
    )
    quality = Panel(
        "table",
        "Which sources",
        (Query(f"count by (kind, source, quality) ({sel(_H + 'source_info')})", ""),),
        "short",
        shows="Which sources are in use, and whether their ratios are exact or approximate.",
        normal="exact for gpm; approximate for DCGM and dcgm-exporter.",
        act="nvml alone has no profiling counters: many rules of Hardware and Operator cannot be judged.",
        width=8,
        empty=_NONE,
        columns=(
            Column("kind", "Kind"),
            Column("source", "Source"),
            Column("quality", "Quality"),
            Column("Value", "Pods", "short", width=90),
        ),
    )
    return Row("Versions and clocks", ((skew, versions, quality),))


def board() -> Board:
    """Return the board."""
    return Board(
        "heptascope-exporter",
        "heptascope / Exporter",
        "heptascope itself: what it reads, what it cannot, what it costs.",
        ("datasource", *PLACE),
        (_sources(), _missing(), _cost(), _which()),
        marks=False,
    )
