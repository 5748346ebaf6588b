"""From rows of a recording, or of the live NVML source, to samples: pure, time comes from the rows.

Live reading and replay both pass their rows through `GpuRows`, so that they cannot differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heptascope.model import Labels, Missing, Quality, Reading, Reason, Sample
from heptascope.sources.gpu import activity, constants, mig, processes, throttle
from heptascope.sources.gpu.counters import GpuCounters
from heptascope.sources.gpu.layout import EITHER, FAST, NO_NVLINK, NOT_RECORDED, NVLINK_ERRORS, SLOW, XIDS, Row
from heptascope.sources.gpu.page import Page, labels_of, possible, reason_of

_NVLINK_SPEED = "nvlink_bandwidth_bytes_per_second"
_NVLINK_ERRORS = "nvlink_errors_total"
_XID = "xid_errors_total"
_XID_TIME = "xid_error_last_timestamp_seconds"
_NO_XID = (Reason.IDLE, "no XID error was seen")
_FAST_SIGNALS = (*(field.signal for field in FAST), *activity.SIGNALS, throttle.SIGNAL)
_SLOW_SIGNALS = (*dict.fromkeys(f.signal for f in (*SLOW, *EITHER)), *constants.SIGNALS, *processes.SIGNALS, _NVLINK_SPEED, _NVLINK_ERRORS)


class _Gpu:
    """One GPU of the header, with the counters that outlive it."""

    def __init__(self, entry: Row, index: int, header: Row, counters: GpuCounters) -> None:
        self.entry = entry
        self.index = index
        self.pairs = labels_of(entry, index)
        self.info = constants.info(entry, header)
        self.counters = counters
        self.nvlink: bool | None = bool(entry["nvlinks"]) if "nvlinks" in entry else None
        self.either_in_fast = bool(header.get("energy_in_fast"))


class GpuRows:
    """Turns rows into readings; keeps what our own counters need, by uuid (by index where a recording has no uuid).

    `fast` takes the `gpu` rows of one instant, one per GPU, `slow` the `slow` rows. One object may serve both.
    """

    def __init__(self, header: Row) -> None:
        """Take a recording's header line."""
        self._gpus: dict[str, _Gpu] = {}
        self._counters: dict[str, GpuCounters] = {}
        self._header: Row = {}
        self.begin(header)

    def begin(self, header: Row) -> None:
        """Take a new header (NVML was initialised again, a GPU came back); counters go on.

        A header without GPUs says nothing new: a recorder writes one when it starts before the GPUs are known, and its time may be
        later than that of the first GPU rows.
        """
        if self._gpus and not header.get("gpus"):
            return
        self._header = header
        self._source = str(header.get("source") or "nvml")
        self._gpus = {}
        for position, entry in enumerate(header.get("gpus", ())):
            self._add(entry, entry.get("gpu", position))

    def fast(self, rows: Sequence[Row], t: float | None = None) -> Reading:
        """Return the reading of the `gpu` rows of one instant; its time is `t`, or that of the last row."""
        return self._reading(self._source, rows, t, _fast)

    def slow(self, rows: Sequence[Row], t: float | None = None) -> Reading:
        """Return the reading of the `slow` rows of one instant, constants and info included; its time is `t`, or that of the last row."""
        return self._reading(f"{self._source}_slow", rows, t, _slow)

    def _reading(self, source: str, rows: Sequence[Row], t: float | None, read: Callable[[Row, _Gpu, Page], None]) -> Reading:
        samples: list[Sample] = []
        missing: list[Missing] = []
        quality: dict[tuple[str, Labels], Quality] = {}
        for row in rows:
            gpu = self._gpu(row)
            page = Page(gpu.pairs)
            read(row, gpu, page)
            samples += page.samples
            missing += page.missing
            quality.update(page.quality)
        when = t if t is not None else max((row["t"] for row in rows), default=0.0)
        return Reading(source, when, samples, missing=missing, quality=quality, raw={"rows": list(rows)})

    def _add(self, entry: Row, index: int) -> _Gpu:
        key = entry.get("uuid") or str(index)
        counters = self._counters.setdefault(key, GpuCounters())
        counters.decide(entry.get("throttle_ns") or ())
        gpu = self._gpus[key] = _Gpu(entry, index, self._header, counters)
        return gpu

    def _gpu(self, row: Row) -> _Gpu:
        index = row["gpu"]
        gpu = self._gpus.get(row.get("uuid") or str(index))
        if gpu is None and "uuid" not in row:
            gpu = next((known for known in self._gpus.values() if known.index == index), None)
        return gpu or self._add({"uuid": row.get("uuid")}, index)


def _fast(row: Row, gpu: _Gpu, page: Page) -> None:
    lost = row.get("lost")
    page.put("up", 0.0 if lost else 1.0)
    _xids(row, gpu.counters, page)
    if lost:
        gpu.counters.mask.pause()
        page.miss_all(_FAST_SIGNALS, (Reason.SOURCE_DOWN, lost))
        return
    gpm = row.get("gpm") or {}
    if gpu.nvlink is None and (gpm.get("nvlink_rx_mib_s") or gpm.get("nvlink_tx_mib_s")):
        gpu.nvlink = True
    page.fields(FAST, row)
    gpu.either_in_fast = any(field.key in row for field in EITHER)
    if gpu.either_in_fast:
        page.fields(EITHER, row)
    activity.put(row, gpu.nvlink, gpu.counters, page)
    if "profiling_stuck" in row:
        page.put("profiling_stuck", float(row["profiling_stuck"]))
    mig.fast(row, page)
    throttle.fast(row, gpu.counters, page)


def _slow(row: Row, gpu: _Gpu, page: Page) -> None:
    page.put("info", 1.0, extra=gpu.info)
    lost = row.get("lost")
    if lost:
        page.miss_all(_SLOW_SIGNALS, (Reason.SOURCE_DOWN, lost))
        return
    constants.put(gpu.entry, row, page)
    page.fields(SLOW, row)
    if not gpu.either_in_fast:
        page.fields(EITHER, row)
    if gpu.nvlink is None and "nvlink_tx_kib" in row:
        gpu.nvlink = row["nvlink_tx_kib"] is not None
    _nvlink_speed(row, gpu, page)
    if gpu.nvlink is False:
        page.miss(_NVLINK_ERRORS, NO_NVLINK)
    else:
        page.fields(NVLINK_ERRORS, row)
    throttle.slow(row, gpu.counters, page)
    processes.put(row, page)
    mig.slow(row, page)


def _nvlink_speed(row: Row, gpu: _Gpu, page: Page) -> None:
    speed = row.get("nvlink_bytes_s")
    if gpu.nvlink is False:
        page.miss(_NVLINK_SPEED, NO_NVLINK)
    elif possible(speed, 1e14):
        page.put(_NVLINK_SPEED, float(row["nvlink_bytes_s"]))
    else:
        page.miss(_NVLINK_SPEED, reason_of(row, "nvlink_bytes_s"))


def _xids(row: Row, counters: GpuCounters, page: Page) -> None:
    """Show each known code from 0 on, and any other code first as 0, so that `increase()` sees its first error."""
    counted = row.get("xid")
    lost = (Reason.SOURCE_DOWN, row["lost"]) if row.get("lost") else None
    if counted is None:
        page.miss_all((_XID, _XID_TIME), lost or reason_of(row, "xid"))
        return
    for code in dict.fromkeys((*map(str, XIDS), *counted)):
        known = code in counters.xids
        counters.xids.add(code)
        first = not known and int(code) not in XIDS
        page.put(_XID, 0.0 if first else float(counted.get(code, 0)), extra=(("xid", code),))
    times = row.get("xid_t") or {}
    for code, when in times.items():
        page.put(_XID_TIME, when, extra=(("xid", str(code)),))
    if not times:
        page.miss(_XID_TIME, lost or (_NO_XID if "xid_t" in row else NOT_RECORDED))
