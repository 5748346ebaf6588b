"""Cuts a trace into engine steps: by named ranges where the engine or NVTX gives them, by gaps otherwise."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from heptascope.sources.trace.busy import Busy
from heptascope.sources.trace.calls import Launches, spread
from heptascope.sources.trace.events import Code, Codes, GpuKind, HostKind, Int, Small, Trace
from heptascope.sources.trace.measures import Steps

# Names that engines give the range of one step, with the tokens or requests of each phase where the name has them.
_ENGINES = (
    re.compile(r"^execute_context_\d+\((?P<prefill>\d+)\)_generation_\d+\((?P<decode>\d+)\)"),  # vLLM
    re.compile(r"^execute_new_(?P<prefill>\d+)_cached_(?P<decode>\d+)"),  # vLLM 0.10
    re.compile(r"^step\[(?:(?P<prefill>EXTEND)|(?P<decode>DECODE)|\w+)"),  # SGLang
    re.compile(r"_forward_step \d+: (?P<prefill>\d+) ctx reqs, (?:\d+ ctx tokens, )?(?P<decode>\d+) gen reqs"),  # TensorRT-LLM
    re.compile(r"^ProfilerStep#\d+"),  # torch.profiler's own schedule
)
_DIGITS = re.compile(r"\d+")
_FEWEST = 3  # repetitions that make a name the name of a step
_LAUNCHED = 0.5  # of the GPU's work, within the ranges of an unknown name
_FAMILIES = 20  # names tried, those with most time
_JUMP = 2.0  # between the shortest gap that ends a step and the longest that does not
_NOT_STEPS = re.compile(r"^(nccl|c10d|gloo)[:_]|^record_param_comms")


@dataclass(frozen=True, slots=True)
class Segments:
    """Steps by their begins: a step lasts until the next one begins. `phase` is 1 prefill only, 2 decode only, 0 other.

    `on_host`: the begins are host times, and kernels belong to the step in which they were launched.
    """

    how: str
    begin: Int
    phase: Small
    on_host: bool


def find(trace: Trace, work: Busy, launched: Launches) -> Segments | None:
    """Return the steps of a trace; None if nothing in it repeats."""
    return _by_ranges(trace, launched) or _by_gaps(work)


def _by_ranges(trace: Trace, launched: Launches) -> Segments | None:
    host = trace.host
    rows = np.flatnonzero(host.kind == HostKind.ANNOTATION)
    names = np.unique(host.name[rows]).tolist()
    for pattern in _ENGINES:
        chosen = [name for name in names if pattern.search(trace.names[name])]
        if chosen and (found := _segments(trace, rows, chosen, pattern)) is not None:
            return found[0]
    return _repeating(trace, rows, names, launched)


def _repeating(trace: Trace, rows: Int, names: list[int], launched: Launches) -> Segments | None:
    """Take the longest ranges of one name, digits aside, that repeat and launch most of the GPU's work."""
    host, families = trace.host, Codes()
    family_of = np.full(len(trace.names), -1, np.int64)
    for name in names:
        if not _NOT_STEPS.search(trace.names[name]):
            family_of[name] = families[_DIGITS.sub("#", trace.names[name])]
    family = family_of[host.name[rows]]
    counted = rows[family >= 0]
    time = np.bincount(family[family >= 0], weights=host.end[counted] - host.start[counted], minlength=len(families))
    for best in np.argsort(-time, kind="stable")[:_FAMILIES].tolist():
        found = _segments(trace, rows, np.flatnonzero(family_of == best).tolist(), None)
        if found is not None and _launched_share(trace, launched, found[1]) >= _LAUNCHED:
            return found[0]
    return None


def _launched_share(trace: Trace, launched: Launches, ranges: Int) -> float:
    """Return the share of GPU time that was launched within the ranges."""
    host, duration = trace.host, trace.gpu.duration
    begin, end = host.start[ranges], host.end[ranges]
    when = host.start[launched.host]
    at = np.searchsorted(begin, when, side="right") - 1
    inside = launched.known & (at >= 0) & (when < end[at])
    whole = int(duration.sum())
    return float(duration[inside].sum()) / whole if whole else 0.0


def _segments(trace: Trace, rows: Int, chosen: list[int], pattern: re.Pattern[str] | None) -> tuple[Segments, Int] | None:
    """Make steps of the ranges with the chosen names, on the thread that has most of them; nested ones count once.

    Returns the rows of the ranges too.
    """
    host = trace.host
    mine = rows[np.isin(host.name[rows], chosen)]
    threads, count = np.unique(host.thread[mine], return_counts=True)
    mine = mine[host.thread[mine] == threads[np.argmax(count)]]
    mine = mine[np.argsort(host.start[mine], kind="stable")]
    outer = host.start[mine] >= np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(host.end[mine])[:-1]))
    mine = mine[outer]
    if len(mine) < _FEWEST:
        return None
    phases = {name: _phase(trace.names[name], pattern) for name in chosen}
    phase = np.array([phases[name] for name in host.name[mine].tolist()], np.int8)
    return Segments(_DIGITS.sub("#", trace.names[chosen[0]]), host.start[mine], phase, on_host=True), mine


def _phase(name: str, pattern: re.Pattern[str] | None) -> int:
    found = pattern.search(name) if pattern is not None and pattern.groups else None
    if found is None:
        return 0
    prefill, decode = (bool(value) and value != "0" for value in (found["prefill"], found["decode"]))
    return 0 if prefill == decode else (1 if prefill else 2)


def _by_gaps(work: Busy) -> Segments | None:
    """Cut at the longest idle gaps, if some stand out: the clearest jump among gap lengths, at most a quarter of all gaps."""
    begin, end = work.any.holes()
    length = np.sort(end - begin)[::-1]
    most = len(length) // 4
    if most < _FEWEST:
        return None
    ratio = length[_FEWEST - 1 : most] / np.maximum(length[_FEWEST : most + 1], 1)
    at = int(np.argmax(ratio))
    if ratio[at] < _JUMP:
        return None
    cuts = end[(end - begin) >= length[_FEWEST - 1 + at]]
    begins = np.concatenate(([work.start], cuts))
    return Segments("gaps", begins, np.zeros(len(begins), np.int8), on_host=False)


def of_events(trace: Trace, launched: Launches, steps: Segments | None) -> Code:
    """Return for each GPU event the number of its step, -1 for none."""
    if steps is None:
        return np.full(len(trace.gpu), -1, np.int32)
    when = trace.gpu.start
    if steps.on_host and len(trace.host):
        when = np.where(launched.known, trace.host.start[launched.host], np.iinfo(np.int64).min)
    return (np.searchsorted(steps.begin, when, side="right") - 1).astype(np.int32)


def phases(steps: Segments | None, step_of_event: Code) -> Small:
    """Return for each GPU event the phase of its step."""
    if steps is None:
        return np.zeros(len(step_of_event), np.int8)
    return np.where(step_of_event >= 0, steps.phase[step_of_event], 0).astype(np.int8)


def summary(trace: Trace, steps: Segments | None, step_of_event: Code) -> Steps | None:
    """Return number, period and kernel time of the steps.

    A step's period is from its first GPU event to the next step's: the host may run ahead, the GPU cannot.
    """
    if steps is None:
        return None
    gpu = trace.gpu
    begins = _first_events(gpu.start[step_of_event >= 0], step_of_event[step_of_event >= 0])
    period = spread(np.diff(begins))
    counted = (step_of_event >= 0) & (gpu.kind == GpuKind.KERNEL)
    time = np.bincount(step_of_event[counted], weights=gpu.duration[counted], minlength=len(steps.begin))
    work = spread(time.astype(np.int64))
    return None if period is None or work is None else Steps(steps.how, len(steps.begin), period, work)


def _first_events(start: Int, step: Code) -> Int:
    """Return when each step that has GPU events begins on the GPU."""
    order = np.lexsort((start, step))
    first = np.flatnonzero(np.diff(step[order], prepend=-1))
    return start[order][first]
