"""The service as the command line runs it: a daemon wired to this machine, its web server, and its end by a signal."""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any, Protocol

from heptascope import __version__
from heptascope.config import Settings
from heptascope.daemon import Daemon, Tap, never_read
from heptascope.engines import RETRY_SECONDS, Engines
from heptascope.gpus import Gpus
from heptascope.model import Reading, Reason, SourceStatus
from heptascope.seek import SEEK_SECONDS, EngineSeeker
from heptascope.sources import pod
from heptascope.sources.base import Source
from heptascope.sources.host.interpreter import InterpreterSource
from heptascope.sources.host.source import HostSource
from heptascope.sources.recorder import Recorder, RecorderStatus
from heptascope.sources.segments import Limits
from heptascope.sources.trace.watch import TraceFolderSource
from heptascope.surfaces.web.app import create_app
from heptascope.surfaces.web.server import WebServer
from heptascope.wiring import build_pipeline

log = logging.getLogger(__name__)

GIL_SWITCH_SECONDS = 0.0005
"""How long a page may wait for the pipeline thread to hand over the interpreter; Python's default of 5 ms is /metrics' whole p99 budget."""
_M_ARENA_MAX, _M_MMAP_THRESHOLD = -8, -3  # glibc's malloc.h
_OWN_MAPPING_BYTES = 128 * 1024  # glibc's default, which otherwise grows with each large block that is freed
_COLLECT_AFTER_OBJECTS = 5_000  # net new ones: some ten seconds beside one engine
WEB_STOP_SECONDS = 0.8
RECORDER_STOP_SECONDS = 0.3


class Learner:
    """Gives the engines what the host source sees of their command lines."""

    def __init__(self, engines: Engines) -> None:
        """Tell `engines`."""
        self._engines = engines

    def write(self, reading: Reading) -> None:
        """Take one reading."""
        if reading.raw is not None and reading.raw.get("kind") == "host":
            self._engines.learn(reading.raw)

    def write_failure(self, status: SourceStatus, row: Mapping[str, Any]) -> None:
        """Take one failed read, which tells nothing."""


class Recording:
    """The recorder as a tap: engines are recorded under the names that their series have."""

    def __init__(self, recorder: Recorder, engines: Engines) -> None:
        """Write to `recorder`."""
        self._recorder, self._engines = recorder, engines

    def write(self, reading: Reading) -> None:
        """Take one reading."""
        if reading.raw is not None:
            self._recorder.write(self._engines.name_of(reading.source), reading.raw)

    def write_failure(self, status: SourceStatus, row: Mapping[str, Any]) -> None:
        """Take one failed read; that something was looked for and not found is no news of a source."""
        if status.reason is not Reason.NO_SOURCE:
            self._recorder.write(self._engines.name_of(status.name), row)


class Live:
    """A daemon wired to this machine's GPUs, engines and host."""

    def __init__(self, settings: Settings, limits: Limits | None = None, taps: Sequence[Tap] = ()) -> None:
        """Build everything; nothing runs yet. A recording, if one is configured, has `limits`. Raises UserError for what cannot be."""
        self._settings = settings
        self._engines = Engines(settings.poll)
        self.gpus = Gpus(settings.gpu)
        self._recorder = self._make_recorder(limits)
        recording = (Recording(self._recorder, self._engines),) if self._recorder is not None else ()
        self.daemon = Daemon(build_pipeline(settings, self._engines.gpus), taps=(Learner(self._engines), self.gpus, *recording, *taps))
        self.daemon.header = lambda: self.gpus.header
        self._configured = self._engines.configured(settings.engines)

    def start(self) -> None:
        """Start to read and to step."""
        if self._recorder is not None:
            self._recorder.start()
        self.daemon.say(pod.read(os.environ, self.daemon.now()))
        self._start_gpus()
        if self._configured:
            self.daemon.add(self._configured, RETRY_SECONDS)
        else:
            replace, add = (partial(do, longest_backoff=RETRY_SECONDS) for do in (self.daemon.replace, self.daemon.add))
            self.daemon.add([EngineSeeker(self._engines, replace, add, pod.advice(os.environ))], SEEK_SECONDS)
        if self._settings.host.enabled:
            self.daemon.add(self._host_sources())
        else:
            self._leave_out("host", "host.enabled is false")
        if self._settings.trace.dir is not None:
            self.daemon.add([TraceFolderSource(self._settings.trace.dir)])
        else:
            self._leave_out("trace", "trace.dir is not set", Reason.NOT_CONFIGURED)
        self.daemon.start()

    @property
    def recording(self) -> RecorderStatus | None:
        """How the recording goes, None if nothing is recorded."""
        return None if self._recorder is None else self._recorder.status()

    def stop(self) -> None:
        """End everything."""
        self.daemon.stop()
        if self._recorder is not None:
            self._recorder.close(RECORDER_STOP_SECONDS)

    def _host_sources(self) -> list[Source]:
        host, here = self._settings.host, self._engines.on_this_machine
        sources: list[Source] = [HostSource(here, interval=host.interval, interpreter=host.interpreter)]
        return [*sources, InterpreterSource(here, interval=host.interpreter_interval)] if host.interpreter else sources

    def _start_gpus(self) -> None:
        if not self.gpus.start(self.daemon):
            self._leave_out("gpu", "gpu.source is none")

    def _make_recorder(self, limits: Limits | None) -> Recorder | None:
        record = self._settings.record
        if record.dir is None:
            return None
        return Recorder(record.dir, limits or Limits(record.max_bytes, record.min_free_bytes), header=lambda: self.gpus.header)

    def _leave_out(self, kind: str, why: str, reason: Reason = Reason.NO_SOURCE) -> None:
        status = SourceStatus(kind, kind, False, None, None, reason, why)
        self.daemon.say(never_read(status, self.daemon.now()))


@contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """Give an event that SIGTERM and SIGINT set, for as long as the block runs."""
    event = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  # the signal module's signature
        event.set()

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def be_cheap() -> None:
    """Make the process cheap to have beside an engine; to be called once everything is imported.

    Where the C library is glibc, all threads allocate from one arena, since one runs at a time, and large blocks, such as pages, go
    back to the kernel when they are freed. What is there now is left out of garbage collections, and these become rare: hardly anything
    here is garbage in cycles, and looking for it once a second costs as much as reading the host.
    """
    sys.setswitchinterval(GIL_SWITCH_SECONDS)
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_MMAP_THRESHOLD, _OWN_MAPPING_BYTES)
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER_OBJECTS)


class Runs(Protocol):
    """Something that can be served: a daemon, and how to start and stop what it needs."""

    daemon: Daemon

    def start(self) -> None:
        """Start to read and to step."""
        ...

    def stop(self) -> None:
        """End everything."""
        ...


def serve(what: Runs, settings: Settings, announce: Callable[[str], None] | None = None) -> None:
    """Serve until SIGTERM or SIGINT; `announce` gets the address. Raises UserError if the address cannot be served."""
    app = create_app(what.daemon, settings.web, getattr(what, "stage", None))
    be_cheap()
    server = WebServer(app, *settings.address, settings.web.tls_cert, settings.web.tls_key)
    with stop_signals() as stopped:
        server.start()
        log.info("heptascope %s serves %s", __version__, server.url)
        what.start()
        if announce is not None:
            announce(server.url)
        stopped.wait()
        log.info("stopping")
        server.stop(WEB_STOP_SECONDS)
        what.stop()
