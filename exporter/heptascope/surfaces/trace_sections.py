"""A trace's measures as titled tables of text: what the terminal, Markdown and the page show, each in its own form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from heptascope.sources.trace.compare import Change, Comparison
from heptascope.sources.trace.measures import Measures, Run, Spread
from heptascope.sources.trace.ncu import KernelTable
from heptascope.sources.trace.overall import overall

KERNELS_SHOWN = 15
RANKS_SHOWN = 8
"""Ranks in tables for people; what holds between ranks is shown for all of them."""
_ROWS_SHOWN = 12
_PART_WORDS = {
    "copy": "copies while no kernel ran",
    "launch": "host preparing launches",
    "sync": "host waiting for the GPU",
    "empty": "no work submitted",
    "device": "submitted, not yet started",
    "unknown": "cause not in the trace",
}
_SHARES = {
    "gpu_busy_ratio": "GPU busy",
    "kernel_gap_ratio": "kernel gap ratio",
    "copy_ratio": "copies",
    "collective_ratio": "collectives",
    "collective_exposed_ratio": "collectives without compute beside them",
    "collective_wait_ratio": "waiting for the last rank",
    "pipeline_bubble_ratio": "pipeline bubble",
}
_CLASS = "class_ratio{class="


@dataclass(slots=True)
class Section:
    """One table; the first column is text, the others are numbers unless named in `words`.

    Long words are cut, or `wrapped`; `strong` rows stand out.
    """

    title: str
    columns: list[str]
    rows: list[list[str]]
    note: str = ""
    words: set[str] = field(default_factory=set)
    wrapped: bool = False
    strong: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Make all text plain: names come from files, which anyone may have written."""
        self.title = plain(self.title)
        self.rows = [[plain(cell) for cell in row] for row in self.rows]


def plain(text: str) -> str:
    """Return text without control characters, which could steer a terminal or break a table."""
    return "".join(char if char.isprintable() else " " for char in text)


def headline(run: Run) -> str:
    """Return one sentence: how busy the GPUs were, and what took most of the time."""
    if len(run.ranks) > RANKS_SHOWN:
        busy = [rank.busy_ratio for rank in run.ranks]
        return f"{len(busy)} ranks: GPU busy {percent(min(busy))} to {percent(max(busy))}"
    return "; ".join(_rank_sentence(rank, len(run.ranks) > 1) for rank in run.ranks)


def _rank_sentence(rank: Measures, several: bool) -> str:
    parts = {_PART_WORDS[cause]: ratio for cause, ratio in rank.gap_causes.items() if cause != "copy"}
    for row in rank.classes:
        parts[row.kernel_class] = row.seconds / rank.wall_seconds if rank.wall_seconds else 0.0
    largest = sorted(parts.items(), key=lambda item: -item[1])[:2]
    most = ", ".join(f"{name} {percent(ratio)}" for name, ratio in largest if ratio > 0)
    who = f"rank {rank.rank}: " if several else ""
    return f"{who}GPU busy {percent(rank.busy_ratio)} of {duration(rank.wall_seconds)}, most: {most}"


def sections(run: Run) -> list[Section]:
    """Return all tables of a run, of its first RANKS_SHOWN ranks; empty ones are left out."""
    whole, run = _overall(run), replace(run, ranks=run.ranks[:RANKS_SHOWN])
    made = [
        _summary(run),
        whole,
        _classes(run),
        _gaps(run),
        *(_kernels(rank) for rank in run.ranks),
        _copies(run),
        _syncs(run),
        *_between(run),
    ]
    return [section for section in made if section.rows]


def _summary(run: Run) -> Section:
    rows: list[tuple[str, Callable[[Measures], str]]] = [
        ("wall time", lambda m: duration(m.wall_seconds)),
        ("GPU busy", lambda m: percent(m.busy_ratio)),
        ("kernel gap ratio", lambda m: percent(m.gap_ratio)),
        ("copies", lambda m: percent(m.copy_ratio)),
        ("kernels", lambda m: f"{m.kernels:,}"),
        ("tiny kernels: number, time", lambda m: f"{percent(m.tiny_ratio)}, {percent(m.tiny_time_ratio)}"),
        ("from CUDA graphs: number, time", lambda m: f"{percent(m.graph_kernel_ratio)}, {percent(m.graph_time_ratio)}"),
        ("graph launches", lambda m: f"{m.graph_launches:,}"),
        ("launch delay p50, p99", lambda m: _spread(m.launch_delay)),
        ("host synchronisations: number, time", lambda m: f"{m.sync_count:,}, {percent(m.sync_ratio)}"),
        ("outliers: number, time", lambda m: f"{m.outliers:,}, {duration(m.outlier_seconds)}"),
        (
            "collectives: time, overlap",
            lambda m: f"{percent(m.collectives.ratio)}, {percent(m.collectives.overlap_ratio)}" if m.collectives else "–",
        ),
        ("steps", lambda m: f"{m.steps.count:,}" if m.steps else "–"),
        ("step period p50, p99", lambda m: _spread(m.steps.period if m.steps else None)),
        ("compilations, module loads, graph captures", lambda m: f"{m.late.compilations}, {m.late.module_loads}, {m.late.graph_captures}"),
        ("occupancy (estimate)", lambda m: percent(m.occupancy_estimate_ratio)),
    ]
    return Section("Summary", ["", *_titles(run)], [[name, *(get(rank) for rank in run.ranks)] for name, get in rows])


def _overall(run: Run) -> Section:
    """Return the shares of all ranks together, those that are not shown too; of one rank the summary says it all."""
    words = _SHARES | {f"gap_ratio{{cause={cause}}}": said for cause, said in _PART_WORDS.items()}
    found = [whole for whole in overall(run) if len(run.ranks) > 1]
    rows = [
        [words.get(whole.name, f"class {whole.name[len(_CLASS) : -1]}"), percent(whole.mean), percent(whole.least), percent(whole.most)]
        for whole in found
        if whole.name in words or whole.name.startswith(_CLASS)
    ]
    return Section("All ranks", ["", "mean", "least", "most"], rows, "Means over the ranks that have it; classes are shares of GPU work.")


def _titles(run: Run) -> list[str]:
    return [f"rank {rank.rank}" for rank in run.ranks]


def _classes(run: Run) -> Section:
    names = list(dict.fromkeys(row.kernel_class for rank in run.ranks for row in rank.classes))
    shares = [{row.kernel_class: row for row in rank.classes} for rank in run.ranks]
    rows = [[name, *(f"{percent(s[name].share)} {duration(s[name].seconds)}" if name in s else "–" for s in shares)] for name in names]
    return Section("GPU time by class", ["class", *_titles(run)], rows, "Share of all GPU work; times of different streams add up.")


def _gaps(run: Run) -> Section:
    causes = [cause for cause in _PART_WORDS if any(rank.gap_causes.get(cause, 0.0) > 0 for rank in run.ranks)]
    rows = [[_PART_WORDS[cause], *(percent(rank.gap_causes.get(cause, 0.0)) for rank in run.ranks)] for cause in causes]
    return Section("Why no kernel ran", ["cause", *_titles(run)], rows, "Share of the wall time; adds up to the kernel gap ratio.")


def _kernels(rank: Measures) -> Section:
    rows = [
        [
            k.name,
            k.kernel_class,
            percent(k.share),
            f"{k.count:,}",
            duration(k.mean),
            duration(k.p99),
            f"{k.outliers:,}" if k.outliers else "–",
        ]
        for k in rank.top[:KERNELS_SHOWN]
    ]
    columns = ["kernel", "class", "share", "runs", "mean", "p99", "outliers"]
    return Section(
        f"Top kernels, rank {rank.rank}", columns, rows, "Outliers took 3 times the median of their kernel and shape, or more.", {"class"}
    )


def _copies(run: Run) -> Section:
    rows = [
        [f"{c.direction} {c.memory}", rank.rank, f"{c.count:,}", duration(c.seconds), percent(c.ratio), size(c.bytes)]
        for rank in run.ranks
        for c in rank.copies
    ]
    return Section("Copies and fills", ["kind", "rank", "number", "time", "of wall", "bytes"], rows)


def _syncs(run: Run) -> Section:
    rows = [
        [s.call, rank.rank, s.caller or "–", f"{s.count:,}", duration(s.seconds)] for rank in run.ranks for s in rank.syncs[:_ROWS_SHOWN]
    ]
    return Section("Host waits for the GPU", ["call", "rank", "caller", "number", "time"], rows, words={"caller"})


def _between(run: Run) -> Iterator[Section]:
    for group in run.groups:
        rows = [
            [
                f"rank {a.rank}",
                f"{a.matched:,}",
                f"{a.last:,} ({percent(a.last_ratio)})",
                _spread(a.lateness),
                duration(a.waited_seconds),
                percent(a.waited_ratio),
            ]
            for a in group.arrivals
        ]
        columns = ["rank", "collectives", "came last in", "late by p50, p99", "waited", "of wall"]
        yield Section(f"Collectives of ranks {', '.join(group.ranks)}", columns, rows)
    rows = [[f"rank {rank}", percent(ratio)] for rank, ratio in run.bubbles.items()]
    yield Section("Pipeline bubbles", ["rank", "of the run"], rows, "Time without compute while another rank computed.")


def counter_sections(table: KernelTable) -> list[Section]:
    """Return the tables of hardware counters."""
    rows = []
    for k in sorted(table.kernels, key=lambda kernel: -(kernel.seconds or 0.0)):
        stall = max(k.stalls.items(), key=lambda item: item[1], default=None)
        ratios = [percent(value) for value in (k.occupancy, k.sm, k.memory, k.dram, k.l2, k.tensor)]
        rows.append([k.name, duration(k.seconds), *ratios, k.bound or "–", f"{stall[0]} {percent(stall[1])}" if stall else "–"])
    columns = ["kernel", "time", "occupancy", "SM", "memory", "DRAM", "L2", "tensor", "bound by", "main stall"]
    bounds = [[bound, percent(share)] for bound, share in table.bounds().items()]
    stalls = [[reason, percent(share)] for reason, share in list(table.stalls().items())[:_ROWS_SHOWN]]
    made = [
        Section("Hardware counters", columns, rows, "Share of peak, from Nsight Compute.", {"bound by", "main stall"}),
        Section("What bounds the time", ["side", "of the time"], bounds),
        Section("Why warps stalled", ["reason", "of all stalls"], stalls),
    ]
    return [section for section in made if section.rows]


def comparison_sections(result: Comparison) -> list[Section]:
    """Return the tables of a comparison."""
    per = f"seconds per {result.unit}"
    made = [
        _changes("What changed", f"Averaged over ranks, {per}; sorted by contribution.", [result.total, *result.parts], seconds=True),
        _changes("Kernels that changed", f"Averaged over ranks, {per}.", result.kernels[:KERNELS_SHOWN], seconds=True),
        _changes("Measures that changed", "Sorted by relative change.", result.measures[: 2 * KERNELS_SHOWN], seconds=False),
    ]
    return [section for section in made if section.rows]


def _changes(title: str, note: str, changes: Sequence[Change], seconds: bool) -> Section:
    show = duration if seconds else number
    rows = [
        [c.name, show(c.before), show(c.after), ("+" if c.delta > 0 else "") + show(c.delta), f"{100 * c.contribution:+.1f} %"]
        for c in changes
        if c.delta
    ]
    return Section(title, ["", "before", "after", "difference", "contribution" if seconds else "relative"], rows, note)


def percent(ratio: float | None) -> str:
    """Write a ratio as a percentage."""
    if ratio is None:
        return "–"
    return f"{100 * ratio:.1f} %" if ratio >= 0.001 or ratio == 0 else f"{100 * ratio:.2g} %"


def duration(seconds: float | None) -> str:
    """Write a time with the unit that suits it."""
    if seconds is None:
        return "–"
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if abs(seconds) * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def size(count: float) -> str:
    """Write bytes with the unit that suits them."""
    for factor, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:.0f} B"


def number(value: float | None) -> str:
    """Write a number of no known unit."""
    return "–" if value is None else f"{value:.4g}"


def _spread(values: Spread | None) -> str:
    return f"{duration(values.p50)}, {duration(values.p99)}" if values else "–"
