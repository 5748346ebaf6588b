"""DCGM's Python modules and a host engine behind them, driven by scenario files, as a real one was seen to behave."""

# ruff: noqa: N802, N815  # the functions and classes have the bindings' own names
from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from heptascope.sources.gpu.dcgm_bindings import Bindings
from support.fake_nvml import FakeClock, Gate

SCENARIOS = Path(__file__).with_name("dcgm_scenarios")
BLANKS: dict[str, Any] = {"i": 0x7FFFFFFFFFFFFFF0, "d": 2.0**47, "s": b"<<<NULL>>>"}
_DOUBLES = frozenset({155, 157, 160, 161, 162, 163, 164, 254, *range(1001, 1009), *range(1013, 1017)})
_STRINGS = frozenset({1, 2, 50, 53, 54, 57})
_PROFILING = range(1001, 1100)
_INSTANCE_LEVEL = frozenset({50, 54, 250, 252, *range(1001, 1009), *range(1013, 1017)})
GPU, GPU_INSTANCE, COMPUTE_INSTANCE = 1, 4, 5


class DCGMError(Exception):
    """An error with DCGM's return code as `value`."""

    def __init__(self, value: int) -> None:
        """Keep the code."""
        super().__init__(f"DCGM code {value}")
        self.value = value


class HostEngine:
    """A host engine and its GPUs. Time is `clock`; values are renewed at each watch's interval, as its threads do."""

    def __init__(self, name: str, clock: FakeClock, **changes: Any) -> None:
        """Follow the scenario file `name`; `changes` go before what it says."""
        told = json.loads((SCENARIOS / f"{name}.json").read_text()) | changes
        card = json.loads((SCENARIOS / f"{told.get('card', name)}.json").read_text())
        self.clock, self.began = clock, clock()
        self.fields: dict[str, Any] = card["phases"][told.get("phase", "idle")] | told.get("set", {})
        self.phases: dict[str, Any] = card["phases"]
        self.groups = told.get("metric_groups", card["metric_groups"])
        self.unknown = set(told.get("unknown", ()))
        self.errors: dict[str, int] = dict(told.get("errors", {}))
        self.no_module, self.single_pass = told.get("no_module", False), told.get("single_pass", False)
        self.rates: dict[str, float] = told.get("rates", {})
        self.gpus = [_Gpu(number, self.fields) for number in range(told.get("gpus", 1))]
        self.instances: list[dict[str, Any]] = told.get("instances", [])
        self.events = sorted(told.get("events", ()), key=lambda event: float(event["at"]))
        self.refuse = False
        self.frozen: float | None = None
        self.epoch = 0
        self.embedded = 0
        self.block: dict[str, Gate] = {}
        self.calls: list[str] = []
        self.clear()

    def clear(self) -> None:
        """Forget all connections, groups and watches."""
        self.connections: set[int] = set()
        self.entity_groups: dict[int, set[tuple[int, int]]] = {}
        self.field_groups: dict[int, tuple[int, ...]] = {}
        self.names: dict[int, str] = {}
        self.watches: dict[tuple[int, int], tuple[float, float]] = {}  # (group, field group) to interval and when it began
        self.made = 0

    @property
    def t(self) -> float:
        """Seconds since the scenario began."""
        return self.clock() - self.began

    def happen(self) -> None:
        """Let everything happen that is due."""
        while self.events and self.events[0]["at"] <= self.t:
            event = self.events.pop(0)
            if event.get("restart"):
                self.clear()
            self.refuse = event.get("refuse", self.refuse)
            self.errors = dict(event.get("errors", self.errors))
            self.instances = event.get("instances", self.instances)
            if "gpu" in event:
                self.gpus[event["gpu"]].take(event, self.clock())

    def stop(self) -> None:
        """End: every connection breaks and nothing listens."""
        self.clear()
        self.refuse = True

    def number(self, name: str) -> int:
        """Return the id of something new, named `name`."""
        if name in self.names.values():
            raise DCGMError(-26)
        self.made += 1
        self.names[self.made] = name
        return self.made

    def watching(self, entity: tuple[int, int], field: int) -> tuple[float, float] | None:
        """Return interval and begin of the watch that renews a field; None if nobody watches it."""
        for (group, fields), (interval, began) in self.watches.items():
            if entity in self.entity_groups.get(group, ()) and field in self.field_groups.get(fields, ()):
                return interval, began
        return None

    def board_of(self, entity: tuple[int, int]) -> _Gpu:
        """Return the GPU that an entity is, or is on. All instances are on GPU 0."""
        return self.gpus[entity[1] if entity[0] == GPU else 0]

    def value(self, entity: tuple[int, int], field: int) -> SimpleNamespace:
        """Return the newest value of one field of one entity."""
        gpu, watch = self.board_of(entity), self.watching(entity, field)
        if gpu.status:
            return _value(entity, field, status=gpu.status)
        if field in gpu.refused:
            return _value(entity, field, status=gpu.refused[field])
        if watch is None:
            return _value(entity, field, status=-16)
        interval, began = watch
        now = self.clock() if self.frozen is None else self.frozen
        ticks = int((now - began) / interval + 1e-9)
        if field in _PROFILING and ticks < 2:
            return _value(entity, field, None, now)
        t = began + ticks * interval
        return _value(entity, field, self._content(entity, gpu, field, t), gpu.xid_t if field == 230 else t)

    def _content(self, entity: tuple[int, int], gpu: _Gpu, field: int, t: float) -> Any:
        content = gpu.fields.get(str(field))
        if str(field) in self.rates:
            content = int(self.rates[str(field)] * (t - self.began))
        if field in _PROFILING and gpu.stuck:
            content = type(content)(0) if content is not None else None
        if entity[0] == GPU or field not in _INSTANCE_LEVEL:
            return content
        if field == 54:
            return f"MIG-{entity[0]}-{entity[1]}"
        part = next((p for p in self.instances if entity == (GPU_INSTANCE, 100 + p["instance"])), None)
        return content if part is None or content is None else type(content)(content * part["scale"])


class _Gpu:
    """One GPU: its values, the status that every value of it has, and what it refuses."""

    def __init__(self, number: int, fields: dict[str, Any]) -> None:
        self.fields = fields | {"54": f"GPU-{number}", "52": number, "57": f"00000000:{number + 6:02X}:00.0"}
        self.status = 0
        self.refused: dict[int, int] = {}
        self.stuck = False
        self.xid_t = 0.0

    def take(self, event: dict[str, Any], t: float) -> None:
        self.status = event.get("status", self.status)
        self.stuck = event.get("stuck", self.stuck)
        self.fields = self.fields | event.get("set", {})
        if "xid" in event:
            self.fields, self.xid_t = self.fields | {"230": event["xid"]}, t


class Modules:
    """What `dcgm_agent` and `dcgm_structs` offer, on one host engine."""

    DCGMError = DCGMError

    def __init__(self, engine: HostEngine, uri: bool = True) -> None:
        """Have the connect call of 4.5 and later, or with `uri` False only that of older bindings."""
        self.engine = engine
        if uri:
            self.dcgmConnect_v3 = self._connect

    def bindings(self) -> Bindings:
        """Return them as the loader does."""
        return Bindings(self, self, Path("/fake"))

    def c_dcgmConnectV3Params_v1(self) -> SimpleNamespace:
        """Return connection parameters."""
        return SimpleNamespace()

    c_dcgmConnectV2Params_v2 = c_dcgmGroupEntityPair_t = c_dcgmConnectV3Params_v1

    def dcgmConnect_v2(self, address: str, parameters: Any) -> int:
        """Connect by address."""
        self.engine.calls.append(f"{address} {parameters.addressIsUnixSocket}")
        return self._connect(address, parameters)

    def _connect(self, uri: str, parameters: Any) -> int:
        engine = self._enter("dcgmConnect")
        engine.calls.append(uri)
        if engine.refuse:
            raise DCGMError(-21)
        assert parameters.persistAfterDisconnect == 0
        engine.epoch += 1
        engine.connections.add(engine.epoch)
        return engine.epoch

    def dcgmStartEmbedded(self, mode: int) -> int:
        """Start an engine in this process."""
        self.engine.embedded += 1
        return self._connect("embedded", SimpleNamespace(persistAfterDisconnect=0))

    def dcgmStopEmbedded(self, handle: int) -> None:
        """Stop it."""
        self.engine.embedded -= 1
        self.dcgmDisconnect(handle)

    def dcgmDisconnect(self, handle: int) -> None:
        """End the connection; what was made over it goes with it."""
        engine = self._on("dcgmDisconnect", handle)
        engine.connections.discard(handle)
        if not engine.connections:
            engine.entity_groups, engine.field_groups, engine.watches, engine.names = {}, {}, {}, {}

    def dcgmGetEntityGroupEntities(self, handle: int, group: int, flags: int) -> list[int]:
        """List GPUs; a lost one is not supported any more, but the engine goes on to list it."""
        engine = self._on("dcgmGetEntityGroupEntities", handle)
        return [number for number, _ in enumerate(engine.gpus)]

    def dcgmGetGpuInstanceHierarchy(self, handle: int) -> Any:
        """List MIG instances."""
        engine = self._on("dcgmGetGpuInstanceHierarchy", handle)
        entries = []
        for part in engine.instances:
            board, me = (GPU, 0), (GPU_INSTANCE, 100 + part["instance"])
            entries.append(_entry(me, board, part["instance"], 0, part["slices"]))
            entries += [
                _entry((COMPUTE_INSTANCE, 200 + part["instance"] * 10 + c), me, part["instance"], c, part["slices"])
                for c in part["computes"]
            ]
        return SimpleNamespace(count=len(entries), entityList=entries)

    def dcgmGetGpuStatus(self, handle: int, gpu: int) -> int:
        """Return the entity status: 4 is lost."""
        return 4 if self._on("dcgmGetGpuStatus", handle).gpus[gpu].status else 1

    def dcgmProfGetSupportedMetricGroups(self, handle: int, gpu: int) -> Any:
        """List the profiling groups."""
        engine = self._on("dcgmProfGetSupportedMetricGroups", handle)
        found = [SimpleNamespace(majorId=a, minorId=b, numFieldIds=len(ids), fieldIds=ids) for a, b, ids in engine.groups]
        return SimpleNamespace(numMetricGroups=len(found), metricGroups=found)

    def dcgmGroupCreate(self, handle: int, kind: int, name: str) -> int:
        """Make an empty group."""
        engine = self._on("dcgmGroupCreate", handle)
        number = engine.number(name)
        engine.entity_groups[number] = set()
        return number

    def dcgmGroupAddEntity(self, handle: int, group: int, entity_group: int, entity: int) -> None:
        """Add an entity."""
        engine = self._on("dcgmGroupAddEntity", handle)
        if entity_group == GPU and engine.gpus[entity].status:
            raise DCGMError(engine.gpus[entity].status)
        engine.entity_groups[group].add((entity_group, entity))

    def dcgmGroupDestroy(self, handle: int, group: int) -> None:
        """Forget a group."""
        engine = self._on("dcgmGroupDestroy", handle)
        del engine.entity_groups[group], engine.names[group]

    def dcgmFieldGroupCreate(self, handle: int, ids: list[int], name: str) -> int:
        """Make a field group: one unknown field fails it all, with "bad parameter"."""
        engine = self._on("dcgmFieldGroupCreate", handle)
        if engine.unknown & set(ids) or len(ids) > 128:
            raise DCGMError(-1)
        number = engine.number(name)
        engine.field_groups[number] = tuple(ids)
        return number

    def dcgmFieldGroupDestroy(self, handle: int, group: int) -> None:
        """Forget a field group."""
        engine = self._on("dcgmFieldGroupDestroy", handle)
        del engine.field_groups[group], engine.names[group]

    def dcgmWatchFields(self, handle: int, group: int, fields: int, microseconds: int, age: float, samples: int) -> None:
        """Watch; a profiling field that cannot be had fails the call, and the engine then drops all watches of these entities."""
        engine = self._on("dcgmWatchFields", handle)
        assert age > 0
        assert samples > 0
        ids = engine.field_groups[fields]
        if any(i in _PROFILING for i in ids):
            if engine.no_module:
                mine = engine.entity_groups[group]
                engine.watches = {k: v for k, v in engine.watches.items() if not engine.entity_groups[k[0]] & mine}
                raise DCGMError(-33)
            minors: dict[int, set[int]] = {}
            for major, minor, members in engine.groups:
                if set(members) & set(ids):
                    minors.setdefault(major, set()).add(minor)
            if engine.single_pass and any(len(found) > 1 for found in minors.values()):
                raise DCGMError(-38)
            for entity in engine.entity_groups[group]:
                engine.board_of(entity).stuck = False
        engine.watches[group, fields] = (microseconds / 1e6, engine.clock())

    def dcgmUnwatchFields(self, handle: int, group: int, fields: int) -> None:
        """End a watch."""
        self._on("dcgmUnwatchFields", handle).watches.pop((group, fields), None)

    def dcgmUpdateAllFields(self, handle: int, wait: int) -> None:
        """Renew everything."""
        self._on("dcgmUpdateAllFields", handle)

    def dcgmEntitiesGetLatestValues(self, handle: int, pairs: list[Any], ids: list[int], flags: int) -> list[Any]:
        """Return the newest values, for each entity all fields."""
        engine = self._on("dcgmEntitiesGetLatestValues", handle)
        assert flags == 0
        return [engine.value((p.entityGroupId, p.entityId), i) for p in pairs for i in ids]

    def _on(self, function: str, handle: int) -> HostEngine:
        engine = self._enter(function)
        if handle not in engine.connections:
            raise DCGMError(-21)
        return engine

    def _enter(self, function: str) -> HostEngine:
        engine = self.engine
        engine.calls.append(function)
        if function in engine.block:
            engine.block[function].hold()
        engine.happen()
        if function in engine.errors:
            raise DCGMError(engine.errors[function])
        return engine


def _value(entity: tuple[int, int], field: int, content: Any = None, t: float = 0.0, status: int = 0) -> SimpleNamespace:
    kind = "s" if field in _STRINGS else "d" if field in _DOUBLES else "i"
    raw = BLANKS[kind] if content is None else content.encode() if isinstance(content, str) else content
    return SimpleNamespace(
        entityGroupId=entity[0], entityId=entity[1], fieldId=field, fieldType=ord(kind), status=status, ts=int(t * 1e6),
        value=SimpleNamespace(i64=raw, dbl=raw, str=raw),
    )  # fmt: skip


def _entry(me: tuple[int, int], parent: tuple[int, int], instance: int, compute: int, slices: int) -> SimpleNamespace:
    def pair(entity: tuple[int, int]) -> SimpleNamespace:
        return SimpleNamespace(entityGroupId=entity[0], entityId=entity[1])

    info = SimpleNamespace(nvmlInstanceId=instance, nvmlComputeInstanceId=compute, nvmlProfileSlices=slices)
    return SimpleNamespace(entity=pair(me), parent=pair(parent), info=info)
