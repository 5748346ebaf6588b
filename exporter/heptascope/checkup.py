"""What can be read on this machine: one look at every source, for `heptascope check`."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from heptascope.config import Settings
from heptascope.model import Missing, Reading, Reason, SourceStatus
from heptascope.service import Live
from heptascope.signals.schema import SCHEMA
from heptascope.signals.snapshot import Snapshot

FIRST_READS_SECONDS = 25.0  # the longest timeout of a source, and a little
SECOND_READS_SECONDS = 2.5  # what needs two reads (window ratios, rates) has its second one by then
POLL_SECONDS = 0.05


@dataclass
class Report:
    """What a look found. `supplied` maps a source to the names of the signals that it gave."""

    statuses: tuple[SourceStatus, ...]
    supplied: Mapping[str, list[str]]
    snapshot: Snapshot
    failed: list[str] = field(default_factory=list)
    gpu_choice: str = ""  # which way to read GPUs was chosen, and why not those before it
    gpu_scope: str = ""  # whose GPUs are shown, and how that was told

    @property
    def ok(self) -> bool:
        """Whether everything that is configured could be read."""
        return not self.failed

    @property
    def unavailable(self) -> dict[tuple[str, str], list[str]]:
        """Signals without a value, by reason and detail, in the order of the signal table."""
        order = {name: i for i, name in enumerate(SCHEMA)}
        grouped: dict[tuple[str, str], list[str]] = {}
        for gap in sorted(self.snapshot.missing, key=lambda gap: order.get(gap.signal, len(order))):
            names = grouped.setdefault((gap.reason.value, _shown(gap)), [])
            if gap.signal not in names:
                names.append(gap.signal)
        return grouped


class _Collector:
    """Remembers which signals each source gave."""

    def __init__(self) -> None:
        self.supplied: dict[str, set[str]] = {}

    def write(self, reading: Reading) -> None:
        names = {sample.name for sample in reading.samples} | {histogram.name for histogram in reading.histograms}
        self.supplied[reading.source] = self.supplied.get(reading.source, set()) | names

    def write_failure(self, status: SourceStatus, row: Mapping[str, Any]) -> None:
        """Take one failed read: the status has it."""


def look(settings: Settings, stopped: threading.Event) -> Report:
    """Read every source until each has answered or failed, and twice where that is needed. Raises UserError for what cannot be built."""
    collector = _Collector()
    live = Live(settings.model_copy(update={"record": settings.record.model_copy(update={"dir": None})}), taps=[collector])
    live.start()
    try:
        for _ in range(int(FIRST_READS_SECONDS / POLL_SECONDS)):
            if stopped.wait(POLL_SECONDS) or all(status.up or status.failures for status in live.daemon.statuses()):
                break
        stopped.wait(SECOND_READS_SECONDS)
        live.daemon.stop()
        live.daemon.step()
    finally:
        live.stop()
    statuses = live.daemon.statuses()
    order = {name: i for i, name in enumerate(SCHEMA)}
    supplied = {name: sorted((s for s in found if s in order), key=order.__getitem__) for name, found in collector.supplied.items()}
    failed = [s.name for s in statuses if not s.up and not _optional(s, settings)]
    return Report(statuses, supplied, live.daemon.snapshot(), failed, live.gpus.explanation, live.gpus.whose)


def _optional(status: SourceStatus, settings: Settings) -> bool:
    """Return whether nobody asked for the source: a GPU under `auto` on a machine that has none."""
    return status.kind == "gpu" and status.reason is Reason.NO_SOURCE and settings.gpu.source == "auto"


def _shown(gap: Missing) -> str:
    where = " ".join(f"{key} {value}" for key, value in gap.labels if key in ("engine", "gpu"))
    return f"{gap.detail} ({where})" if where and gap.detail else gap.detail or where
