"""One NVML session, shared by the fast and the slow source: initialised once, opened again when the driver comes back."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from heptascope.model import Labels, Missing, Reason, labels
from heptascope.sources.base import SourceError
from heptascope.sources.gpu import calls, identity, library
from heptascope.sources.gpu.backoff import Backoff
from heptascope.sources.gpu.calls import Calls, Gpu, GpuLostError, SessionLostError
from heptascope.sources.gpu.layout import GPM_IDS, PREFIX, Row

OPEN_WAIT_SECONDS = 5.0
"""How long one source waits while the other opens NVML (seconds, where the driver must wake the card first)."""


class Session:
    """Opens NVML and knows the GPUs. No lock is held while a GPU is read: a hung call in one source does not stop the other."""

    def __init__(
        self,
        nvml: Any = None,
        devices: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        sysfs: Path = Path("/sys"),
    ) -> None:
        """Use the module `nvml` (default: pynvml, at the first use) and only the GPUs of `devices` (indexes or UUIDs; empty: all)."""
        self._module, self._wanted = nvml, tuple(devices)
        self._clock, self._now, self._sysfs = clock, now, sysfs
        self._lock = threading.Lock()
        self._readers = 0
        self._users = 0
        self._open = self._initialised = False
        self._backoff = Backoff(clock)
        self._problem = (Reason.SOURCE_DOWN, "NVML is not open yet")
        self.gpus: list[Gpu] = []
        self.header: Row = {}
        self.version = 0  # grows with each new header
        self.missing: list[Missing] = []
        self.before_shutdown: Callable[[], None] = _nothing  # gives back what was made with the handles

    @property
    def nvml(self) -> Any:
        """Return the module; valid once the session was used."""
        return self._module

    def attach(self) -> None:
        """Count one more source that uses the session."""
        self._users += 1

    def detach(self) -> None:
        """Count one source less; the last one shuts NVML down."""
        with self._lock:
            self._users -= 1
            if self._users <= 0 and not self._readers:
                self._shut()

    @contextmanager
    def use(self) -> Iterator[list[Gpu]]:
        """Give the GPUs for one read, opening NVML first if need be. Raises SourceError."""
        gpus = self._enter()
        try:
            yield gpus
        except SessionLostError as exc:
            self._problem = (Reason.SOURCE_DOWN, f"NVML went away ({exc}) and will be opened again")
            self._open = False
            raise SourceError(*self._problem) from exc
        finally:
            with self._lock:
                self._readers -= 1

    def lose(self, gpu: Gpu, why: str) -> None:
        """Mark a GPU that does not answer; `revive` brings it back."""
        gpu.lost = why
        gpu.retry = gpu.retry or Backoff(self._clock)
        gpu.retry.failed()

    def answered(self, gpu: Gpu) -> None:
        """Say that a GPU was read in full."""
        if not gpu.lost:
            gpu.retry = None

    def revive(self, gpu: Gpu) -> bool:
        """Try, now and then, to open a lost GPU again by its uuid; return whether it answers. The other GPUs go on meanwhile."""
        if gpu.retry is not None and not gpu.retry.due:
            return False
        nvml = self._module
        try:
            gpu.handle = nvml.nvmlDeviceGetHandleByUUID(gpu.uuid) if gpu.uuid else nvml.nvmlDeviceGetHandleByIndex(gpu.index)
            gpu.uuid = gpu.uuid or library.text(nvml.nvmlDeviceGetUUID(gpu.handle))
            gpu.refused = {}
            gpu.entry = identity.describe(Calls(nvml, gpu), self._sysfs)
        except (nvml.NVMLError, GpuLostError) as exc:
            if getattr(exc, "value", 0) in calls.SESSION_ENDING:
                raise SessionLostError(str(exc)) from exc
            self.lose(gpu, gpu.lost)
            return False
        gpu.lost = ""
        gpu.epoch += 1
        self._publish()
        return True

    def _enter(self) -> list[Gpu]:
        if not self._lock.acquire(timeout=OPEN_WAIT_SECONDS):
            raise SourceError(Reason.SOURCE_DOWN, "NVML takes long to open")
        try:
            if not self._open:
                self._reopen()
            self._readers += 1
            return self.gpus
        finally:
            self._lock.release()

    def _reopen(self) -> None:
        if self._readers:
            raise SourceError(Reason.SOURCE_DOWN, "NVML has to be opened again, but a call still hangs in it")
        if not self._backoff.due:
            raise SourceError(*self._problem)
        self._shut()
        self._module = library.checked(self._module) if self._module is not None else library.load()
        try:
            self._start()
        except SourceError as exc:
            self._problem = (exc.reason, str(exc))
            self._backoff.failed()
            raise
        self._backoff.worked()
        self._open = True

    def _start(self) -> None:
        library.start(self._module)
        self._initialised = True
        try:
            self._enumerate()
        except (self._module.NVMLError, SessionLostError) as exc:
            self._shut()
            raise SourceError(Reason.SOURCE_DOWN, f"NVML cannot list the GPUs: {exc}") from exc

    def _enumerate(self) -> None:
        nvml, known = self._module, {gpu.uuid: gpu for gpu in self.gpus if gpu.uuid}
        self.missing = []
        found = [gpu for index in range(nvml.nvmlDeviceGetCount()) if (gpu := self._find(index)) is not None]
        here = [gpu for gpu in found if self._chosen(gpu)]
        gone = [gpu for uuid, gpu in known.items() if uuid not in {other.uuid for other in found}]
        for gpu in gone:
            self.lose(gpu, "this GPU is not there any more")
        self._check_wanted([*here, *gone], found)
        for gpu in here:
            gpu.epoch = known[gpu.uuid].epoch + 1 if gpu.uuid in known else 0
            self._describe(gpu)
        self.gpus = [*here, *gone]
        self._publish()

    def _find(self, index: int) -> Gpu | None:
        """Return the GPU of an index; None if this container may not see it."""
        nvml = self._module
        gpu = Gpu(index, "", None)
        try:
            gpu.handle = nvml.nvmlDeviceGetHandleByIndex(index)
            gpu.uuid = library.text(nvml.nvmlDeviceGetUUID(gpu.handle))
        except nvml.NVMLError as exc:
            if exc.value in calls.SESSION_ENDING:
                raise
            if exc.value == calls.NO_PERMISSION:
                self._miss(labels(gpu=str(index)), Reason.NO_PERMISSION, f"GPU {index} is not given to this container")
                return None
            self.lose(gpu, f"GPU {index} cannot be opened: {exc}")
        return gpu

    def _describe(self, gpu: Gpu) -> None:
        if gpu.lost:
            gpu.entry = {"gpu": gpu.index, "uuid": gpu.uuid}
            return
        try:
            gpu.entry = identity.describe(Calls(self._module, gpu), self._sysfs)
        except GpuLostError as exc:
            gpu.entry = {"gpu": gpu.index, "uuid": gpu.uuid}
            self.lose(gpu, str(exc))

    def _chosen(self, gpu: Gpu) -> bool:
        return not self._wanted or str(gpu.index) in self._wanted or (bool(gpu.uuid) and gpu.uuid in self._wanted)

    def _check_wanted(self, kept: list[Gpu], found: list[Gpu]) -> None:
        names = {str(gpu.index) for gpu in kept} | {gpu.uuid for gpu in kept}
        unknown = [device for device in self._wanted if device not in names]
        there = ", ".join(f"{gpu.index} ({gpu.uuid})" for gpu in found) or "none"
        if not kept:
            asked = f"none of the GPUs asked for ({', '.join(unknown)}) is there" if unknown else "NVML shows no GPU"
            self._shut()
            hidden = next((m for m in self.missing if m.reason is Reason.NO_PERMISSION), None)
            raise SourceError(hidden.reason if hidden else Reason.NO_SOURCE, f"{asked}; this process sees: {there}")
        for device in unknown:
            pairs = labels(gpu=device) if device.isdigit() else labels(uuid=device)
            self._miss(pairs, Reason.NO_SOURCE, f"GPU {device} was asked for and is not there; this process sees: {there}")

    def _miss(self, pairs: Labels, reason: Reason, detail: str) -> None:
        self.missing.append(Missing(PREFIX + "up", reason, detail, pairs))

    def _publish(self) -> None:
        nvml = self._module
        self.header = {
            "kind": "header",
            "t": self._now(),
            "driver": library.ask(nvml, "nvmlSystemGetDriverVersion"),
            "nvml": library.ask(nvml, "nvmlSystemGetNVMLVersion"),
            "gpm_metric_ids": GPM_IDS,
            "gpus": [gpu.entry for gpu in self.gpus],
            "host_cpus": os.cpu_count(),
        }
        self.version += 1

    def _shut(self) -> None:
        self._open = False
        if self._initialised:
            self._initialised = False
            self.before_shutdown()
            with suppress(self._module.NVMLError):  # the driver is gone
                self._module.nvmlShutdown()


def _nothing() -> None:
    """Do nothing: no source has made anything yet."""
