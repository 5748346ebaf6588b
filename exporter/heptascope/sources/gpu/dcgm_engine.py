"""One connection to a host engine: entities, groups, watches and reads, by the lowest-level calls of the bindings.

A watch costs the engine memory, and field groups are global to it: names are unique, history is bounded, and all is given back.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from heptascope.sources.gpu.dcgm_bindings import Bindings
from heptascope.sources.gpu.dcgm_codes import DUPLICATE_KEY, DcgmCallError, Reaction, Value, decode, meaning
from heptascope.sources.gpu.dcgm_connect import Target, connect, disconnect
from heptascope.sources.gpu.dcgm_fields import COMPUTE_INSTANCE, GPU, GPU_INSTANCE, WIDE
from heptascope.sources.gpu.page import Why

Entity = tuple[int, int]
"""Entity group and entity id."""

KEPT_SAMPLES = 3
"""So many values of each field stay in the engine: the newest is read, the rest bridges a late read."""
_EMPTY_GROUP = 1  # DCGM_GROUP_EMPTY
_ONLY_SUPPORTED = 1  # DCGM_GEGE_FLAG_ONLY_SUPPORTED
_NAME_TRIES = 3


class Instance(NamedTuple):
    """One MIG instance: its entity, the GPU it is on, NVML's numbers for it, and its share of the card in slices."""

    entity: Entity
    gpu: int
    instance: int
    compute: int | None
    slices: int


class Watch(NamedTuple):
    """What is watched: the engine's group and field group, the entities and fields in them."""

    group: Any
    fields: Any
    ids: tuple[int, ...]


class Engine:
    """A connected host engine. Every method may raise DcgmCallError; used by one thread at a time."""

    def __init__(self, bindings: Bindings, target: Target) -> None:
        """Connect to `target`."""
        self.target = target
        self._bindings, self._agent = bindings, bindings.agent
        self._handle = connect(bindings, target)
        self._watches: list[Watch] = []
        self._prefix = f"heptascope-{uuid.uuid4().hex[:12]}"
        self._names = 0
        self.unknown: dict[int, Why] = {}  # fields that this engine does not take

    def gpus(self) -> list[int]:
        """Return the ids of the GPUs that DCGM supports; an id need not be the NVML index."""
        return [int(i) for i in self._call("dcgmGetEntityGroupEntities", GPU, _ONLY_SUPPORTED)]

    def status(self, gpu: int) -> int:
        """Return DCGM's status of a GPU (0: not told; bindings of 3.x cannot ask)."""
        if not hasattr(self._agent, "dcgmGetGpuStatus"):
            return 0
        found = self._call("dcgmGetGpuStatus", gpu)
        return int(getattr(found, "value", found))

    def instances(self) -> list[Instance]:
        """Return the MIG instances, GPU instances and the compute instances in them; none where MIG is off."""
        found = self._call("dcgmGetGpuInstanceHierarchy")
        entries = [found.entityList[position] for position in range(found.count)]
        boards = {_pair(entry.entity): int(entry.parent.entityId) for entry in entries if entry.entity.entityGroupId == GPU_INSTANCE}
        return [_instance(entry, boards) for entry in entries if entry.entity.entityGroupId in (GPU_INSTANCE, COMPUTE_INSTANCE)]

    def metric_groups(self, gpu: int) -> list[tuple[int, int, tuple[int, ...]]]:
        """Return (major, minor, field ids) of the profiling groups of a GPU: one major's minors are measured by turns."""
        found = self._call("dcgmProfGetSupportedMetricGroups", gpu)
        groups = [found.metricGroups[position] for position in range(found.numMetricGroups)]
        return [(int(g.majorId), int(g.minorId), tuple(int(g.fieldIds[i]) for i in range(g.numFieldIds))) for g in groups]

    def usable(self, ids: Iterable[int]) -> tuple[int, ...]:
        """Return those of `ids` that this engine knows; one unknown id fails a whole field group, so the others are found by halving."""
        wanted = tuple(i for i in ids if i not in self.unknown)
        return self._known(wanted)

    def watch(self, entities: Sequence[Entity], ids: Sequence[int], interval: float) -> Watch:
        """Let the engine update `ids` of `entities` every `interval` seconds; give everything back if it refuses."""
        group = self._named("dcgmGroupCreate", _EMPTY_GROUP)
        fields = None
        try:
            for entity_group, entity in entities:
                self._call("dcgmGroupAddEntity", group, entity_group, entity)
            fields = self._named("dcgmFieldGroupCreate", list(ids))
            self._call("dcgmWatchFields", group, fields, int(interval * 1e6), KEPT_SAMPLES * max(interval, 1.0), KEPT_SAMPLES)
        except DcgmCallError:
            self._destroy(group, fields)
            raise
        watch = Watch(group, fields, tuple(ids))
        self._watches.append(watch)
        return watch

    def again(self, watch: Watch, interval: float) -> None:
        """Watch once more what the engine may have dropped after a failed watch of other fields."""
        self._call("dcgmWatchFields", watch.group, watch.fields, int(interval * 1e6), KEPT_SAMPLES * max(interval, 1.0), KEPT_SAMPLES)

    def unwatch(self, watch: Watch) -> None:
        """Give one watch back."""
        self._watches = [other for other in self._watches if other is not watch]
        self._quietly("dcgmUnwatchFields", watch.group, watch.fields)
        self._destroy(watch.group, watch.fields)

    def update(self) -> None:
        """Wait until every watched field was read once: before that, the first read finds nothing."""
        self._call("dcgmUpdateAllFields", 1)

    def read(self, entities: Sequence[Entity], ids: Sequence[int]) -> dict[Entity, dict[int, Value]]:
        """Return the newest value of each field of each entity, from the engine's cache."""
        pairs = [self._pair_of(entity) for entity in entities]
        found = self._call("dcgmEntitiesGetLatestValues", pairs, list(ids), 0)
        out: dict[Entity, dict[int, Value]] = {entity: {} for entity in entities}
        for position, value in enumerate(found):
            field_id = ids[position % len(ids)]
            out[entities[position // len(ids)]][field_id] = decode(value, field_id in WIDE)
        return out

    def give_back(self) -> None:
        """Give all watches and groups back."""
        for watch in list(self._watches):
            self.unwatch(watch)

    def release(self, broken: bool = False) -> None:
        """Give all watches and groups back and disconnect; over a `broken` connection the engine does so itself."""
        if not broken:
            self.give_back()
        disconnect(self._bindings, self.target, self._handle)

    def _known(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        if not ids:
            return ()
        try:
            self._quietly("dcgmFieldGroupDestroy", self._named("dcgmFieldGroupCreate", list(ids)))
        except DcgmCallError as exc:
            if exc.means.reaction not in (Reaction.SPLIT, Reaction.FORGET):
                raise
            if len(ids) > 1:
                half = len(ids) // 2
                return self._known(ids[:half]) + self._known(ids[half:])
            self.unknown[ids[0]] = (exc.means.reason, f"this host engine does not know field {ids[0]}")
            return ()
        return ids

    def _named(self, function: str, first: Any) -> Any:
        """Create a group or field group under a name that nobody has."""
        for _ in range(_NAME_TRIES - 1):
            try:
                return self._call(function, first, self._name())
            except DcgmCallError as exc:
                if exc.code != DUPLICATE_KEY:
                    raise
                self._prefix = f"heptascope-{uuid.uuid4().hex[:12]}"
        return self._call(function, first, self._name())

    def _name(self) -> str:
        self._names += 1
        return f"{self._prefix}-{self._names}"

    def _pair_of(self, entity: Entity) -> Any:
        pair = self._bindings.structs.c_dcgmGroupEntityPair_t()
        pair.entityGroupId, pair.entityId = entity
        return pair

    def _destroy(self, group: Any, fields: Any) -> None:
        if fields is not None:
            self._quietly("dcgmFieldGroupDestroy", fields)
        self._quietly("dcgmGroupDestroy", group)

    def _call(self, function: str, *args: Any) -> Any:
        call: Callable[..., Any] = getattr(self._agent, function)
        try:
            return call(self._handle, *args)
        except self._bindings.structs.DCGMError as exc:
            raise DcgmCallError(exc.value, f"{function}: {meaning(exc.value).text}") from exc

    def _quietly(self, function: str, *args: Any) -> None:
        """Call where an error has no consequence: what is given back may be gone already."""
        try:
            self._call(function, *args)
        except DcgmCallError:
            return


def _pair(pair: Any) -> Entity:
    return int(pair.entityGroupId), int(pair.entityId)


def _instance(entry: Any, boards: dict[Entity, int]) -> Instance:
    info, parent = entry.info, _pair(entry.parent)
    compute = entry.entity.entityGroupId == COMPUTE_INSTANCE
    gpu = boards.get(parent, -1) if compute else parent[1]
    number = int(info.nvmlComputeInstanceId) if compute else None
    return Instance(_pair(entry.entity), gpu, int(info.nvmlInstanceId), number, int(info.nvmlProfileSlices))
