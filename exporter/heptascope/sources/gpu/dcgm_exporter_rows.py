"""Rows of one board of a dcgm-exporter page, and how long its values have stood still."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from heptascope.model import Reason
from heptascope.sources.gpu.dcgm_exporter_page import Board, Part
from heptascope.sources.gpu.dcgm_exporter_table import PROFILED, USUAL_NAMES
from heptascope.sources.gpu.dcgm_health import MOST_XID, StuckProfiling, XidCount
from heptascope.sources.gpu.layout import CONSTANTS, FAST, NVLINK_ERRORS, SAME_VALUE_SECONDS, SLOW, THROTTLE, Row

FROZEN_SECONDS = 120.0
"""Energy grows always, and the page is renewed every 30 s by default: four missed turns."""
STILL_SECONDS = 600.0
"""Without energy on the page, values of an idle card may stand still for a while: temperature and power in whole steps."""
LONGEST_WINDOW_SECONDS = 90.0
_CHANGING = ("energy_mj", "power_w", "temp_c", "mem_temp_c", "sm_mhz", "mem_used", "util_gpu", *PROFILED)
_FAST_KEYS = (*(field.key for field in FAST), "throttle", "energy_mj", "power_cap_ns", "sw_thermal_ns")
_SLOW_KEYS = (*(field.key for field in (*SLOW, *NVLINK_ERRORS)), "hw_thermal_ns", "power_brake_ns")
_CONSTANT_KEYS = tuple(field.key for field in CONSTANTS)
_BLANK = [str(Reason.SOURCE_DOWN), "dcgm-exporter shows a blank"]
_TORN = [str(Reason.AMBIGUOUS), "the page has several values of it for this GPU"]
_NOT_THERE = [str(Reason.NOT_SUPPORTED), "dcgm-exporter does not tell it"]
_BOTH_WAYS = [
    str(Reason.FLAG_OFF),
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL is a rate of both directions together; export DCGM_FI_PROF_NVLINK_RX_BYTES and TX_BYTES",
]


class BoardRows:
    """Makes the rows of one board, reading after reading."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Have seen nothing; `clock` gives seconds that never jump."""
        self._clock = clock
        self._seen: tuple[float | None, ...] | None = None
        self._changed_at = clock()
        self._window = SAME_VALUE_SECONDS
        self._energy = False
        self._xids, self._stuck, self._is_stuck = XidCount(), StuckProfiling(), False
        self._counters: list[str] | None = None

    @property
    def age(self) -> float:
        """Seconds since the page last showed something new of this board."""
        return self._clock() - self._changed_at

    @property
    def frozen(self) -> bool:
        """Whether the values can no longer be taken for current ones."""
        return self.age > (FROZEN_SECONDS if self._energy else STILL_SECONDS)

    def take(self, board: Board) -> None:
        """Look whether the page holds a new sample of the board, and for how long that one stands."""
        seen = tuple(board.values.get(key) for key in _CHANGING)
        now = self._clock()
        first = self._seen is None
        if seen == self._seen:
            self._window = SAME_VALUE_SECONDS
            return
        self._window = SAME_VALUE_SECONDS if first else min(now - self._changed_at, LONGEST_WINDOW_SECONDS)
        self._seen, self._changed_at, self._energy = seen, now, "energy_mj" in board.values

    def entry(self, board: Board) -> Row:
        """Return the header's entry."""
        values = board.take()
        if self._counters is None:  # a counter keeps its supplier
            self._counters = [c.reason for c in THROTTLE if c.counter and c.counter in _with_power_cap(values)]
        row: Row = {"gpu": board.index, "uuid": board.uuid, "name": board.labels.get("model"), "throttle_ns": self._counters}
        if "pci_bus_id" in board.labels:
            domain, _, rest = board.labels["pci_bus_id"].lower().partition(":")
            row["pci_bus_id"] = f"{domain[-4:]}:{rest}"
        if any(key.startswith("nvlink_") and key not in PROFILED for key in values):
            row["nvlinks"] = True
        if board.instances:
            row["mig_mode"] = 1
        return row

    def fast(self, board: Board, t: float) -> Row:
        """Return the `gpu` row; a board whose values stand still is lost, and says for how long."""
        head: Row = {"kind": "gpu", "t": t, "gpu": board.index, "uuid": board.uuid}
        if self.frozen:
            return {**head, "lost": f"dcgm-exporter has shown nothing new of this GPU for {self.age:.0f} s"}
        values, missing = _with_power_cap(board.take()), _reasons(board, _FAST_KEYS)
        row = {**head, **{key: values.get(key) for key in _FAST_KEYS}, "gpm": self._gpm(board, missing)}
        self._errors(board, values, row, missing, t)
        if board.instances:
            row["mig"] = [{"instance": int(i), "gpm": self._gpm(part, {})} for i, part in sorted(board.instances.items())]
        return {**row, "missing": missing}

    def slow(self, board: Board, t: float) -> Row:
        """Return the `slow` row."""
        head: Row = {"kind": "slow", "t": t, "gpu": board.index, "uuid": board.uuid}
        if self.frozen:
            return {**head, "lost": f"dcgm-exporter has shown nothing new of this GPU for {self.age:.0f} s"}
        values = board.take()
        missing = _reasons(board, (*_SLOW_KEYS, *_CONSTANT_KEYS))
        for key in ("procs", "proc_util", "nvlink_bytes_s"):
            missing[key] = _NOT_THERE
        _total_memory(values, missing)
        keys = (*_SLOW_KEYS, *_CONSTANT_KEYS, "procs", "proc_util", "nvlink_bytes_s")
        row = {**head, **{key: values.get(key) for key in keys}, "missing": missing}
        if board.instances:
            row["mig"] = [_instance(i, part, board) for i, part in sorted(board.instances.items())]
        return row

    def _gpm(self, part: Part, missing: dict[str, list[str]]) -> Row:
        values = part.take()
        found = {key: round(values[key], 4) for key in PROFILED if key in values}
        gone = _reasons(part, PROFILED)
        if "nvlink_rate" in values:
            gone.update({key: _BOTH_WAYS for key in ("nvlink_rx_mib_s", "nvlink_tx_mib_s") if key in gone})
        missing.update(gone)
        return {"win": round(self._window, 9), **found, "approx": list(found)} if found else {}

    def _errors(self, board: Board, values: dict[str, float], row: Row, missing: dict[str, list[str]], t: float) -> None:
        told = values.get("xid_last", 0.0)
        if not 0 <= told <= MOST_XID:
            row["xid"], missing["xid"] = None, [str(Reason.INVALID), f"{told!r} is no possible value of xid_last"]
        elif "xid_last" in values or "xid_last" in board.blank:
            code = int(told)
            before = dict(self._xids.counts)
            self._xids.take(code, float(code))  # a page has no time: the same code again is not seen
            row["xid"] = dict(self._xids.counts)
            self._xids.last_seen.update((key, t) for key in self._xids.counts if before.get(key) != self._xids.counts[key])
            row["xid_t"] = dict(self._xids.last_seen)
        else:
            row["xid"], missing["xid"] = None, [str(Reason.FLAG_OFF), "the page has no DCGM_FI_DEV_XID_ERRORS"]
        if not row["gpm"]:
            return
        if self._window != SAME_VALUE_SECONDS:  # a new sample
            self._is_stuck = self._stuck.take(bool(self._xids.counts), values.get("util_gpu"), row["gpm"].get("gr_util"))
        row["profiling_stuck"] = self._is_stuck
        if self._is_stuck:
            row["gpm"] = {}
            missing["gpm"] = [str(Reason.INVALID), "profiling reads 0 on a busy GPU since an XID error; restart the host engine"]


def _reasons(part: Part, keys: Iterable[str]) -> dict[str, list[str]]:
    """Return why keys have no value: several values, a blank, or not on the page."""
    out = {}
    for key in keys:
        if key in part.torn:
            out[key] = _TORN
        elif key not in part.values:
            name = USUAL_NAMES.get(key)
            off = [str(Reason.FLAG_OFF), f"the page has no {name}; add it to the exporter's counters"] if name else _NOT_THERE
            out[key] = _BLANK if key in part.blank else off
    return out


def _with_power_cap(values: dict[str, float]) -> dict[str, float]:
    """Return the values with the power violation as time at the power cap: on an H200 both counters grow alike (nanoseconds)."""
    if "power_cap_ns" in values or "power_violation_ns" not in values:
        return values
    return {**values, "power_cap_ns": values["power_violation_ns"]}


def _total_memory(values: dict[str, float], missing: dict[str, list[str]]) -> None:
    """Add used, free and reserved up where the page has no total; without the reserved part the sum would be too small."""
    parts = [values.get(key) for key in ("mem_used", "mem_free", "mem_reserved")]
    if "mem_total" not in values and all(value is not None for value in parts):
        values["mem_total"] = sum(value for value in parts if value is not None)
        missing.pop("mem_total", None)


def _instance(number: str, part: Part, board: Board) -> Row:
    values = part.take()
    held: Row = {key: values[key] for key in ("mem_used", "mem_total") if key in values}
    return {"instance": int(number), "compute": None, "profile": board.profiles.get(number, ""), **held}
