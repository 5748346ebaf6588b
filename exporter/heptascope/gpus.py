"""The GPU sources of one daemon: which were chosen and why, whose GPUs are shown, and when to choose again."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from heptascope.config import GpuSettings
from heptascope.model import Reading, SourceStatus
from heptascope.seek import GpuSeeker
from heptascope.sources.base import Source
from heptascope.sources.gpu.attribution import Attributed, Attribution, Way
from heptascope.sources.gpu.attribution_kubelet import kubelet
from heptascope.sources.gpu.attribution_ways import explicit, listed_processes, process_environment, stated
from heptascope.sources.gpu.dcgm_exporter import DcgmExporterSource
from heptascope.sources.kubelet import KubeletSource
from heptascope.sources.pod import IN_KUBERNETES
from heptascope.wiring import GPU_CHOICES

log = logging.getLogger(__name__)

RETRY_SECONDS = 5.0
"""A source that fails is read again within this time: its session knows itself when another try is worth it, and fails at once before."""
FALL_BACK_SECONDS = 60.0
"""Under `auto`, a host engine that is away for so long is given up for the next way; it may have been replaced by another version."""


class Reads(Protocol):
    """What reads sources: the daemon."""

    def add(self, sources: Sequence[Source], longest_backoff: float = ...) -> None:
        """Start to read."""
        ...

    def replace(self, name: str, sources: Sequence[Source], longest_backoff: float = ...) -> None:
        """Read `sources` in place of the source `name`."""
        ...


class Gpus:
    """Starts the GPU sources, and learns from what all sources read (it is a tap). Used by the sources' threads."""

    def __init__(self, settings: GpuSettings, environ: Mapping[str, str] = os.environ, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing is read yet."""
        self._settings, self._environ, self._clock = settings, environ, clock
        self._reads: Reads | None = None
        self._sources: Sequence[Attributed] = ()
        self._pids: frozenset[int] = frozenset()
        self._lock = threading.Lock()
        self._down_since: float | None = None
        self.explanation = ""  # which way was chosen, and why not those before it

    @property
    def header(self) -> Mapping[str, Any] | None:
        """What the sources know about their GPUs, for a recording."""
        return next((source.header for source in self._sources), None)

    @property
    def whose(self) -> str:
        """Whose GPUs are shown and how that was told; empty before the first read."""
        owned = self._sources[0].owned if self._sources else None
        return "" if owned is None else f"{owned.scope}: {owned.how}"

    def start(self, reads: Reads) -> bool:
        """Start to read; False if `gpu.source` is none."""
        self._reads = reads
        if self._settings.scope == "node" and self._settings.pod_resources is not None:
            reads.add([KubeletSource(self._settings.pod_resources)])
        choices = GPU_CHOICES[self._settings.source]
        if not choices:
            return False
        if self._settings.source == "auto":
            reads.add([GpuSeeker(self._settings, self._found)])
        else:
            reads.add(self._take(choices[0](self._settings), f"{self._settings.source}, as gpu.source says"), RETRY_SECONDS)
        return True

    def write(self, reading: Reading) -> None:
        """Take one reading: the engines' process ids, or that DCGM answers."""
        raw = reading.raw or {}
        if raw.get("kind") == "host":
            listed = raw.get("procs") or ()
            self._pids = frozenset(process["pid"] for process in listed if isinstance(process.get("pid"), int))
        if reading.source == "dcgm":
            self._down_since = None
        self._fall_back()

    def write_failure(self, status: SourceStatus, row: Mapping[str, Any]) -> None:  # noqa: ARG002  # the shape of a tap
        """Take one failed read."""
        if status.name == "dcgm" and self._down_since is None:
            self._down_since = self._clock()
        self._fall_back()

    def _found(self, seeker: str, sources: Sequence[Source], explanation: str) -> None:
        assert self._reads is not None  # noqa: S101  # the seeker was started by `start`
        self._reads.replace(seeker, self._take(sources, explanation), RETRY_SECONDS)

    def _take(self, sources: Sequence[Source], explanation: str) -> Sequence[Source]:
        attribution = Attribution(clock=self._clock)
        attribution.ways = self._ways(sources, attribution)
        self._down_since, self.explanation = None, explanation
        self._sources = [Attributed(source, attribution, self._settings.expected) for source in sources]
        log.info("GPUs are read through %s", explanation)
        return self._sources

    def _ways(self, sources: Sequence[Source], attribution: Attribution) -> tuple[Way, ...]:
        """Return the ways to tell the pod's GPUs, best first; outside Kubernetes there is no pod, and only what is said counts."""
        said = [explicit(self._settings.devices, self._environ), stated(self._settings.scope)]
        if IN_KUBERNETES not in self._environ:
            return (*said, lambda: "this is no pod")
        pages = [source.own_pod(self._environ) for source in sources if isinstance(source, DcgmExporterSource)]
        seen = [process_environment(lambda: self._pids), listed_processes(lambda: self._pids, lambda: attribution.users)]
        return (*said, *pages, *seen, kubelet(self._settings.pod_resources, self._environ))

    def _fall_back(self) -> None:
        """Choose again where DCGM has been away for long and `auto` allows another way."""
        with self._lock:  # readings come in from several threads
            away = self._down_since is not None and self._clock() - self._down_since > FALL_BACK_SECONDS
            if not away or self._settings.source != "auto" or self._reads is None:
                return
            self._down_since = None
        log.warning("the DCGM host engine has been away for %.0f s: looking for another way to read GPUs", FALL_BACK_SECONDS)
        first, *others = [source.name for source in self._sources]
        for name in others:
            self._reads.replace(name, ())
        self._reads.replace(first, [GpuSeeker(self._settings, self._found)])
