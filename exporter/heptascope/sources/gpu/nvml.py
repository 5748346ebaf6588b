"""The NVML sources: a fast one for cheap values and GPM, a slow one for the dear ones; they share one session."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from heptascope.errors import UserError
from heptascope.model import Missing, Reading
from heptascope.sources.gpu import live, mig_nvml
from heptascope.sources.gpu.calls import Calls, Gpu, GpuLostError
from heptascope.sources.gpu.events import XidWatch
from heptascope.sources.gpu.gpm import GpmChain
from heptascope.sources.gpu.layout import GPM_IDS, Row
from heptascope.sources.gpu.rows import GpuRows
from heptascope.sources.gpu.session import Session

SHORTEST_INTERVAL_SECONDS = 0.1
"""NVML asks for 100 ms between two GPM samples."""


class _Tools:
    """What the fast source keeps open on one GPU; void when the GPU's epoch changes."""

    def __init__(self, call: Calls, clock: Callable[[], float], wait: Callable[[float], None]) -> None:
        metrics = GPM_IDS if call.gpu.entry.get("nvlinks") else {k: v for k, v in GPM_IDS.items() if not k.startswith("nvlink")}
        self.epoch = call.gpu.epoch
        self.instances = call.gpu.instances
        self.chain = GpmChain(call, metrics, clock, wait)
        numbers = dict.fromkeys(number for number, _ in self.instances)
        self.parts = {number: GpmChain(Calls(call.nvml, call.gpu), mig_nvml.METRICS, clock, wait, number) for number in numbers}
        self.watch = XidWatch(call)

    def close(self) -> None:
        for chain in (self.chain, *self.parts.values()):
            chain.close()
        self.watch.close()


class _NvmlBase:
    """What both sources share: the session, the rows, the header."""

    name: str
    kind = "gpu"

    def __init__(self, session: Session, interval: float, timeout: float) -> None:
        self.interval, self.timeout = interval, timeout
        self._session = session
        self._rows = GpuRows({})
        self._version = 0
        session.attach()

    @property
    def header(self) -> Row | None:
        """Return the header of a recording as it stands now; None before the first read."""
        return self._session.header or None

    def _take_header(self) -> None:
        if self._version != self._session.version:
            self._version = self._session.version
            self._rows.begin(self._session.header)

    def _with_session_reasons(self, reading: Reading) -> Reading:
        extra: list[Missing] = self._session.missing
        reading.missing.extend(extra)
        return reading


class NvmlSource(_NvmlBase):
    """Utilisation, power, clocks, memory, GPM and XID errors of every GPU; a read takes 2.9 ms a GPU (H200), 1.2 without `gr_util`."""

    name = "nvml"

    def __init__(
        self,
        session: Session,
        interval: float = 1.0,
        timeout: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        """Read every `interval` seconds (0.1 or more; UserError if less). `clock` and `wait` are for GPM windows."""
        if interval < SHORTEST_INTERVAL_SECONDS:
            message = f"{interval} s is too short: NVML needs {SHORTEST_INTERVAL_SECONDS} s between two GPM samples"
            raise UserError(message, where="gpu.interval", hint="set it to 100ms or more")
        super().__init__(session, interval, timeout)
        self._clock, self._wait = clock, wait
        self._tools: dict[str, _Tools] = {}
        self._xids: dict[str, dict[str, int]] = {}
        self._xid_times: dict[str, dict[str, float]] = {}
        session.before_shutdown = self._release

    def read(self, now: float) -> Reading:
        """Read every GPU once; a lost one is `heptascope_gpu_up` 0. Raises SourceError where NVML as a whole fails."""
        with self._session.use() as gpus:
            for gpu in gpus:
                self._prepare(gpu)
            rows = [self._row(gpu, now) for gpu in gpus]
        self._take_header()
        return self._with_session_reasons(self._rows.fast(rows, now))

    def close(self) -> None:
        """Give samples and event sets back, and leave the session."""
        self._release()
        self._session.detach()

    def _release(self) -> None:
        for tools in self._tools.values():
            tools.close()
        self._tools = {}

    def _prepare(self, gpu: Gpu) -> None:
        """Open what the GPU needs. All GPUs take their first sample before any is read, so that they share the first wait."""
        if gpu.lost and not self._session.revive(gpu):
            return
        tools = self._tools.get(gpu.key)
        if tools is not None and (tools.epoch, tools.instances) == (gpu.epoch, gpu.instances):
            return
        if tools is not None:
            tools.close()
        try:
            self._tools[gpu.key] = _Tools(Calls(self._session.nvml, gpu), self._clock, self._wait)
        except GpuLostError as exc:
            self._tools.pop(gpu.key, None)
            self._session.lose(gpu, str(exc))

    def _row(self, gpu: Gpu, now: float) -> Row:
        tools = self._tools.get(gpu.key)
        counts = self._xids.setdefault(gpu.key, {})
        if tools is not None:
            self._poll(tools.watch, gpu, counts, now)
        row = self._measure(gpu, tools, now) if tools is not None and not gpu.lost else live.lost_row("gpu", gpu, now)
        if tools is not None:
            live.add_xids(row, tools.watch, counts, self._xid_times.get(gpu.key, {}))
        return row

    def _poll(self, watch: XidWatch, gpu: Gpu, counts: dict[str, int], now: float) -> None:
        """Count the events since the last read; their time is that of this read."""
        before = dict(counts)
        watch.poll(counts)
        times = self._xid_times.setdefault(gpu.key, {})
        times.update((code, now) for code in counts if counts[code] != before.get(code))

    def _measure(self, gpu: Gpu, tools: _Tools, now: float) -> Row:
        try:
            row = live.fast_row(Calls(self._session.nvml, gpu), tools.chain, now)
            if tools.parts:
                row["mig"] = [live.instance_row(Calls(self._session.nvml, gpu), chain, part) for part, chain in tools.parts.items()]
        except GpuLostError as exc:
            self._session.lose(gpu, str(exc))
            return live.lost_row("gpu", gpu, now)
        self._session.answered(gpu)
        return row


class NvmlSlowSource(_NvmlBase):
    """Energy, health, links, processes and constants of every GPU; one read takes 8 ms a GPU on an H200 (12 with NVLink)."""

    name = "nvml_slow"

    def __init__(self, session: Session, interval: float = 5.0, timeout: float = 20.0) -> None:
        """Read every `interval` seconds."""
        super().__init__(session, interval, timeout)
        self._last_seen: dict[str, int] = {}

    def read(self, now: float) -> Reading:
        """Read every GPU once; of a lost one only its identity remains. Raises SourceError where NVML as a whole fails."""
        with self._session.use() as gpus:
            rows = [self._row(gpu, now) for gpu in gpus]
        self._take_header()
        return self._rows.slow(rows, now)

    def close(self) -> None:
        """Leave the session."""
        self._session.detach()

    def _row(self, gpu: Gpu, now: float) -> Row:
        if gpu.lost:
            return live.lost_row("slow", gpu, now)
        since = self._last_seen.get(gpu.key, int((now - self.interval) * 1e6))
        try:
            row = live.slow_row(Calls(self._session.nvml, gpu), now, since)
            gpu.instances = mig_nvml.numbers(row.get("mig", []))
        except GpuLostError as exc:
            self._session.lose(gpu, str(exc))
            return live.lost_row("slow", gpu, now)
        stamps = [sample[3] for sample in row["proc_util"] or ()]
        self._last_seen[gpu.key] = max(stamps, default=since)
        return row


def nvml_sources(
    interval: float = 1.0, slow_interval: float = 5.0, devices: Sequence[str] = (), nvml: Any = None
) -> tuple[NvmlSource, NvmlSlowSource]:
    """Return the fast and the slow source on one session.

    `devices` are indexes or UUIDs (empty: every GPU), `nvml` is the module to call (default: pynvml of nvidia-ml-py, loaded at the
    first read). Raises UserError for an interval that NVML cannot serve.
    """
    session = Session(nvml, devices)
    return NvmlSource(session, interval), NvmlSlowSource(session, slow_interval)
