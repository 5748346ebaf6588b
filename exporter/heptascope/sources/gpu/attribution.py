"""Whose the visible GPUs are: only the pod's own are shown where they can be told, else all of the node with `scope="node"`.

A sidecar that sees GPUs at all often sees every GPU of the node. The ways to tell the pod's own are tried in order, the first that
answers counts: an explicit list, the statement that what is visible is the pod's (a shared claim), the environment of the engine's
processes, process ids that NVML lists, the kubelet. Nothing is guessed, and a value of a whole board is never shown as a part's.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from heptascope.model import Labels, Missing, Reading, Reason, Sample
from heptascope.sources.base import Source
from heptascope.sources.gpu.layout import PREFIX, Row

POD, SHARED, NODE = "pod", "shared", "node"
REFRESH_SECONDS = 10.0
_OLD_MIG = re.compile(r"MIG-(GPU-[0-9a-fA-F-]+)/(\d+)/\d+")
_INFO, _INSTANCE_INFO, _UP = PREFIX + "info", PREFIX + "instance_info", PREFIX + "up"
_VISIBLE, _EXPECTED = "heptascope_gpus_visible", "heptascope_gpus_expected"


class Owned(NamedTuple):
    """What one way tells: device ids (`GPU-…`, `MIG-…`; None: all that is visible), whose they are, and how that was told."""

    ids: frozenset[str] | None
    scope: str
    how: str


Way = Callable[[], Owned | str]
"""Tells what the pod owns, or in words why it cannot."""


class Attribution:
    """Asks the ways in order, now and then: an engine may start after us. Used by the sources of one machine."""

    def __init__(self, ways: Sequence[Way] = (), clock: Callable[[], float] = time.monotonic) -> None:
        """Ask `ways`, best first; they may be set later."""
        self.ways, self._clock = tuple(ways), clock
        self._asked = float("-inf")
        self._owned = Owned(None, NODE, "not asked yet")
        self.parts: dict[str, tuple[str, str]] = {}  # MIG uuid to board uuid and instance
        self.users: dict[str, frozenset[int]] = {}  # board uuid to the process ids that NVML lists on it

    def owned(self) -> Owned:
        """Return the answer of the first way that has one."""
        if self._clock() - self._asked >= REFRESH_SECONDS:
            self._asked = self._clock()
            answer = self._ask()
            if answer.ids is not None or self._owned.ids is None:  # what is a pod's stays its own while its engine restarts
                self._owned = answer
        return self._owned

    def _ask(self) -> Owned:
        reasons = []
        for way in self.ways:
            answer = way()
            if isinstance(answer, Owned):
                return answer
            reasons.append(answer)
        return Owned(None, NODE, "; ".join(reasons) or "nothing tells whose the GPUs are")

    def learn(self, reading: Reading) -> None:
        """Take which board and instance a MIG uuid is, and who is on each board, before anything is left out."""
        for row in (reading.raw or {}).get("rows", ()):
            if row.get("procs") is not None and row.get("uuid"):
                self.users[row["uuid"]] = frozenset(pid for pid, _ in row["procs"])
        for sample in reading.samples:
            if sample.name == _INSTANCE_INFO:
                pairs = dict(sample.labels)
                if pairs.get("mig_uuid"):
                    self.parts[pairs["mig_uuid"]] = (pairs.get("uuid", ""), pairs["instance"])


class Allowed:
    """What of a page belongs to the pod: whole boards, and single MIG instances of boards that others use too."""

    def __init__(self, owned: Owned, parts: dict[str, tuple[str, str]]) -> None:
        """Resolve `owned`; `parts` says where a MIG uuid is."""
        self.owned = owned
        ids = owned.ids or frozenset()
        self.boards = {i.partition("::")[0] for i in ids if i.startswith("GPU-")}
        self._replicas = {i.partition("::")[0] for i in ids if "::" in i}
        self.instances = {place for i in ids if i.startswith("MIG-") and (place := _place(i, parts)) is not None}

    @property
    def everything(self) -> bool:
        """Whether nothing is to be left out: all that is visible is meant, or it cannot be told what is ours."""
        return self.owned.ids is None or not (self.boards or self.instances)

    @property
    def how(self) -> str:
        """How it was told, or why not."""
        lost = self.owned.ids is not None and self.everything
        return f"{self.owned.how} names devices whose board is not known" if lost else self.owned.how

    def scope(self, uuid: str) -> str:
        """Return the scope of a board."""
        if self.everything:
            return NODE if self.owned.ids is not None else self.owned.scope
        whole = uuid in self.boards and uuid not in self._replicas
        return SHARED if not whole or self.owned.scope == SHARED else POD

    def allows(self, pairs: Labels) -> bool:
        """Return whether a series with these labels is ours; one without a uuid is about no single GPU."""
        told = dict(pairs)
        uuid = told.get("uuid")
        if self.everything or uuid is None or uuid in self.boards:
            return True
        here = {instance for board, instance in self.instances if board == uuid}
        return bool(here) and ("instance" not in told or told["instance"] in here)


class Attributed:
    """A GPU source whose readings hold the pod's own GPUs alone, with their scope, and how many of them answer."""

    kind = "gpu"

    def __init__(self, inner: Source, attribution: Attribution, expected: int | None = None) -> None:
        """Read `inner`; `expected` is how many GPUs should answer (None: the most that were seen)."""
        self.inner, self._attribution, self._expected = inner, attribution, expected
        self.name, self.interval, self.timeout = inner.name, inner.interval, inner.timeout
        self._most, self._counted_of = 0, Owned(None, NODE, "")
        self.owned: Owned | None = None  # as of the last read

    @property
    def header(self) -> Row | None:
        """Return the header of a recording, if the source has one."""
        header: Row | None = getattr(self.inner, "header", None)
        return header

    def read(self, now: float) -> Reading:
        """Read once. Raises SourceError as the source does."""
        reading = self.inner.read(now)
        self._attribution.learn(reading)
        self.owned = self._attribution.owned()
        return self.apply(reading, Allowed(self.owned, self._attribution.parts))

    def close(self) -> None:
        """Release the source."""
        self.inner.close()

    def apply(self, reading: Reading, allowed: Allowed) -> Reading:
        """Return what of `reading` is ours, with the scope in the info series."""
        samples = [_scoped(sample, allowed) for sample in reading.samples if allowed.allows(sample.labels)]
        missing = [gap for gap in reading.missing if allowed.allows(gap.labels)]
        ups = [sample.value for sample in samples if sample.name == _UP]
        boards = any(sample.name == _UP for sample in reading.samples)
        if boards:
            samples += self._counted(int(sum(ups)), allowed.owned)
        if boards and not ups:
            missing.append(Missing(_UP, Reason.NO_SOURCE, f"none of the pod's GPUs ({allowed.how}) is among those that are visible"))
        return replace(reading, samples=samples, missing=missing, raw=_raw(reading, allowed))

    def _counted(self, visible: int, owned: Owned) -> list[Sample]:
        """Count anew where it turns out whose the GPUs are: the rest of the node does not belong to what is expected."""
        if (owned.ids, owned.scope) != (self._counted_of.ids, self._counted_of.scope):
            self._most, self._counted_of = 0, owned
        self._most = max(self._most, visible)
        return [Sample(_VISIBLE, (), float(visible)), Sample(_EXPECTED, (), float(self._expected or self._most))]


def _scoped(sample: Sample, allowed: Allowed) -> Sample:
    if sample.name != _INFO:
        return sample
    uuid = next((value for key, value in sample.labels if key == "uuid"), "")
    return sample._replace(labels=tuple(sorted((*sample.labels, ("scope", allowed.scope(uuid))))))


def _raw(reading: Reading, allowed: Allowed) -> Row | None:
    """Return the rows that a recording keeps: those of the boards that are ours."""
    if reading.raw is None or "rows" not in reading.raw or allowed.everything:
        return reading.raw
    rows = [row for row in reading.raw["rows"] if allowed.allows((("uuid", str(row.get("uuid") or "")),))]
    return {**reading.raw, "rows": rows}


def _place(device: str, parts: dict[str, tuple[str, str]]) -> tuple[str, str] | None:
    """Return board and instance of a MIG device id; ids of drivers before 470 hold both."""
    device = device.partition("::")[0]
    old = _OLD_MIG.fullmatch(device)
    return (old[1], old[2]) if old else parts.get(device)
