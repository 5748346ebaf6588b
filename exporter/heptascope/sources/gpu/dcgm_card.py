"""One GPU behind a host engine: its watches, what it refuses, and its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from heptascope.model import Reason
from heptascope.sources.gpu import dcgm_rows
from heptascope.sources.gpu.backoff import Backoff
from heptascope.sources.gpu.dcgm_codes import (
    GPUS_DETACHED,
    NO_DATA,
    NOT_SUPPORTED,
    NOT_WATCHED,
    UNKNOWN_FIELD,
    DcgmCallError,
    Reaction,
    Value,
)
from heptascope.sources.gpu.dcgm_engine import Engine, Instance, Watch
from heptascope.sources.gpu.dcgm_fields import BIND_EVENT, BIND_STARTED, CYCLE_IDS, FAST, GPU, INSTANCE_KEYS, PROFILED, RATIO_IDS, XID
from heptascope.sources.gpu.dcgm_health import MOST_XID, StuckProfiling, XidCount
from heptascope.sources.gpu.dcgm_windows import Windows, refusal
from heptascope.sources.gpu.layout import Row
from heptascope.sources.gpu.page import Why

LOST_STATES = {3: "is not accessible", 4: "is lost", 7: "is detached from the driver"}
"""Entity statuses of dcgm_structs.h that mean that no value will come."""
_NVLINK = ("nvlink_rx_mib_s", "nvlink_tx_mib_s")
_NO_TRAFFIC = [str(Reason.NOT_SUPPORTED), "no NVLink traffic was seen, and DCGM does not tell whether this GPU has NVLink in use"]
_PLAIN = frozenset(field.id for field in FAST)
_INSTANCE_PROFILED = {key: PROFILED[key] for key in INSTANCE_KEYS}


class LostError(Exception):
    """Tells that this GPU does not answer, and why."""


class Kept:
    """What outlives a connection, by uuid: counts of XID errors."""

    def __init__(self) -> None:
        """Start at 0."""
        self.xids = XidCount()
        self.stuck = StuckProfiling()


class Card:
    """One GPU of the session. Its methods raise DcgmCallError for what concerns the whole engine, LostError for this GPU alone."""

    def __init__(self, gpu: int, interval: float, clock: Callable[[], float]) -> None:
        """`gpu` is DCGM's id; `interval` that of the fast watch, in seconds."""
        self.gpu, self.index, self.uuid = gpu, gpu, ""
        self.entry: Row = {"gpu": gpu, "uuid": ""}
        self.lost = ""
        self.gone = False  # the engine lists it no more
        self.instances: list[Instance] = []
        self.kept = Kept()
        self.interval, self._clock = interval, clock
        self._refused: dict[int, Why] = {}
        self._windows = Windows(interval)
        self._parts: dict[Instance, Windows] = {}
        self._profiling: Watch | None = None
        self._instance_watch: Watch | None = None
        self._why: Why | None = None  # why there is no profiling
        self._retry, self._wants_retry = Backoff(clock), False
        self._nvlink = False
        self.unwatched = 0  # reads in a row in which the engine did not watch plain fields
        self._newest, self._newest_at = 0.0, clock()

    @property
    def silent_for(self) -> float:
        """Seconds since the engine last had a newer value of this GPU."""
        return self._clock() - self._newest_at

    def identify(self, engine: Engine, fast: Iterable[int], slow: Iterable[int]) -> None:
        """Read who this is."""
        values = self._read(engine, slow)
        now = self._read(engine, fast)
        self.entry = dcgm_rows.entry(self.gpu, values, now, engine.unknown)
        self.index, self.uuid = self.entry["gpu"], self.entry["uuid"]

    def profile(self, engine: Engine) -> bool:
        """Watch the profiling fields; return whether that failed, after which the engine may have dropped other watches of this GPU."""
        for old in (self._profiling, self._instance_watch):
            if old is not None:
                engine.unwatch(old)
        self._profiling = self._instance_watch = None
        self._wants_retry = False
        try:
            ids = engine.usable((*RATIO_IDS, *CYCLE_IDS))
            self._profiling = self._watch_passes(engine, ids)
            self._watch_instances(engine, ids)
        except DcgmCallError as exc:
            self._refuse(exc)
            return True
        self._why = None
        return False

    def no_profiling(self, why: Why) -> None:
        """Do without profiling."""
        self._why = why

    def wants_profiling_again(self) -> bool:
        """Return whether it is time to watch the profiling fields anew; the next time after this one is later."""
        if not self._wants_retry or not self._retry.due:
            return False
        self._retry.failed()
        return True

    def fast(self, engine: Engine, ids: Iterable[int], t: float) -> Row:
        """Return the `gpu` row."""
        watched = self._profiling.ids if self._profiling is not None else ()
        values = self._read(engine, (*ids, *watched))
        self._check(engine, values)
        row = dcgm_rows.fast_row(self.index, self.uuid, values, {**engine.unknown, **self._refused}, t)
        row["gpm"] = self._gpm(engine, values, row["missing"])
        parts = self._instances(engine)
        if parts:
            row["mig"] = parts
        self._errors(values, row)
        if not row["missing"]:
            del row["missing"]
        return row

    def slow(self, engine: Engine, ids: Iterable[int], t: float) -> Row:
        """Return the `slow` row."""
        values = self._read(engine, ids)
        return dcgm_rows.slow_row(self.index, self.uuid, values, {**engine.unknown, **self._refused}, t)

    def _read(self, engine: Engine, ids: Iterable[int]) -> dict[int, Value]:
        """Read fields of this GPU; what it will never have is not asked again."""
        wanted = tuple(i for i in ids if i not in self._refused)
        entity = (GPU, self.gpu)
        values = engine.read([entity], wanted)[entity] if wanted else {}
        for field_id, value in values.items():
            if value.code in (NOT_SUPPORTED, UNKNOWN_FIELD) and value.why is not None:
                self._refused[field_id] = value.why
        event = values.get(BIND_EVENT)
        if event is not None and event.value == BIND_STARTED:
            raise DcgmCallError(GPUS_DETACHED, "the driver is being unbound from the GPUs; everything was released")
        return values

    def _check(self, engine: Engine, values: dict[int, Value]) -> None:
        """Raise LostError if the GPU is gone, and note whether the engine still renews its values."""
        for value in values.values():
            if value.code and DcgmCallError(value.code).means.reaction is Reaction.LOSE_GPU and value.why is not None:
                raise LostError(value.why[1])
        plain = {i: value for i, value in values.items() if i in _PLAIN}
        self.unwatched = self.unwatched + 1 if any(value.code == NOT_WATCHED for value in plain.values()) else 0
        if not any(value.why is None for value in plain.values()):
            state = LOST_STATES.get(engine.status(self.gpu), "answers nothing")
            raise LostError(f"the host engine has no value of this GPU, which {state}")
        newest = dcgm_rows.newest(plain)
        if newest != self._newest:
            self._newest, self._newest_at = newest, self._clock()

    def _gpm(self, engine: Engine, values: dict[int, Value], missing: dict[str, list[str]]) -> Row:
        if self._profiling is None:
            missing["gpm"] = refusal(self._why or (Reason.NOT_SUPPORTED, "profiling is not watched"))
            return {}
        gpm, gone = self._windows.row(values, {**engine.unknown, **self._refused})
        missing.update(gone)
        self._nvlink = self._nvlink or bool(self.entry.get("nvlinks")) or any(gpm.get(key) for key in _NVLINK)
        if not self._nvlink:  # without NVLink the fields read 0, which would look like an idle link
            gpm = {key: value for key, value in gpm.items() if key not in _NVLINK}
            missing.update({key: _NO_TRAFFIC for key in _NVLINK if key not in gone})
        return gpm

    def _errors(self, values: dict[int, Value], row: Row) -> None:
        """Add XID counts, and withhold profiling values that stand still at 0 since an XID error."""
        xid = values.get(XID)
        if xid is not None and xid.value is not None and not 0 <= xid.value <= MOST_XID:
            row["xid"], row["missing"]["xid"] = None, [str(Reason.INVALID), f"{xid.value!r} is no possible value of DCGM field {XID}"]
        elif xid is None or xid.code not in (0, NO_DATA) or (xid.why is not None and xid.why[0] is not Reason.SOURCE_DOWN):
            row["xid"] = None
            row["missing"]["xid"] = refusal(xid.why if xid is not None and xid.why else (Reason.NOT_SUPPORTED, "this engine tells no XID"))
        else:  # no data, or blank without a reason of its own: no error yet
            self.kept.xids.take(xid.value, xid.t)
            row["xid"], row["xid_t"] = dict(self.kept.xids.counts), dict(self.kept.xids.last_seen)
        if self._profiling is None:
            return
        row["profiling_stuck"] = stuck = self.kept.stuck.take(bool(self.kept.xids.counts), row.get("util_gpu"), row["gpm"].get("gr_util"))
        self._wants_retry = stuck
        if stuck:
            row["gpm"] = {}
            row["missing"]["gpm"] = [str(Reason.INVALID), "profiling reads 0 on a busy GPU since an XID error; restart the host engine"]
        else:
            self._retry.worked()

    def _watch_passes(self, engine: Engine, ids: tuple[int, ...]) -> Watch:
        """Watch all counters, or where they need several passes that the engine will not take by turns, those of the first pass."""
        groups = engine.metric_groups(self.gpu)
        here = {i for _, _, members in groups for i in members}
        wanted = [i for i in ids if i in here]
        self._refused.update({i: (Reason.NOT_SUPPORTED, "this card has no such counter") for i in ids if i not in here})
        if not wanted:
            raise DcgmCallError(NOT_SUPPORTED, "this card has none of the counters")
        try:
            return engine.watch([(GPU, self.gpu)], wanted, self.interval)
        except DcgmCallError as exc:
            first = first_pass(groups, wanted)
            if exc.means.reaction is not Reaction.SPLIT or len(first) == len(wanted):
                raise
        why = (Reason.NOT_SUPPORTED, "this card cannot measure it together with the other counters")
        self._refused.update({i: why for i in wanted if i not in first})
        return engine.watch([(GPU, self.gpu)], first, self.interval)

    def _watch_instances(self, engine: Engine, ids: tuple[int, ...]) -> None:
        boards = [part for part in self.instances if part.compute is None]
        self._parts = {part: self._parts.get(part) or Windows(self.interval) for part in boards}
        wanted = [field_id for field_id, _ in _INSTANCE_PROFILED.values() if field_id in ids and field_id not in self._refused]
        if boards and wanted:
            self._instance_watch = engine.watch([part.entity for part in boards], wanted, self.interval)

    def _instances(self, engine: Engine) -> list[Row]:
        """Return one entry for each GPU instance; the board's own values are never among them."""
        if self._instance_watch is None:
            return []
        found = engine.read([part.entity for part in self._parts], self._instance_watch.ids)
        out: list[Row] = []
        for part, windows in self._parts.items():
            gpm, missing = windows.row(found[part.entity], self._refused, _INSTANCE_PROFILED)
            out.append({"instance": part.instance, "gpm": gpm, **({"missing": missing} if missing else {})})
        return out

    def _refuse(self, exc: DcgmCallError) -> None:
        """Keep why there is no profiling. Raises what concerns more than profiling; what may end is tried again now and then."""
        means = exc.means
        if means.reaction in (Reaction.REBUILD, Reaction.RELEASE, Reaction.GIVE_UP):
            raise exc
        if means.reaction is Reaction.LOSE_GPU:
            self.lost = str(exc)
        self._why = (means.reason, str(exc))
        if means.reason in (Reason.PROFILER_LOCKED, Reason.SOURCE_DOWN):
            self._wants_retry = True
            if self._retry.due:
                self._retry.failed()


def first_pass(groups: Iterable[tuple[int, int, tuple[int, ...]]], wanted: Iterable[int]) -> list[int]:
    """Return those of `wanted` that one pass measures: of each major group the minor with the most of them, in the order of `wanted`."""
    best: dict[int, set[int]] = {}
    order = list(wanted)
    for major, _, members in groups:
        mine = {i for i in order if i in members}
        if len(mine) > len(best.get(major, set())):
            best[major] = mine
    chosen = set().union(*best.values()) if best else set()
    return [i for i in order if i in chosen]
