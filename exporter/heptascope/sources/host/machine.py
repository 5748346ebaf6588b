"""The machine as a whole: processors, load, CPU time, pressure."""

from __future__ import annotations

from typing import Any

from heptascope.model import Reason
from heptascope.sources.host.procfs import TICKS_PER_SECOND, ProcFs, count_cpus
from heptascope.sources.host.row import Collected

RESOURCES = ("cpu", "memory", "io")
_COUNTED_FIELDS = 8  # user to steal: guest time, which follows, is already in user
_IDLE, _IOWAIT = 3, 4


class MachineCollector:
    """Reads /proc/loadavg, /proc/stat, /proc/pressure and the list of CPUs."""

    def __init__(self, files: ProcFs) -> None:
        """Read through `files`."""
        self._files = files

    def collect(self) -> Collected:
        """Return `cpus`, `load1`, `cpu_total_s`, `cpu_idle_s` and `psi_<resource>_some_us`; what cannot be read is left out."""
        found = Collected()
        found.fields |= self._cpus() | self._load() | self._cpu_time()
        for resource in RESOURCES:
            total = self._pressure(resource)
            if total is not None:
                found.fields[f"psi_{resource}_some_us"] = total
            else:
                detail = "the kernel has no pressure information (CONFIG_PSI, or psi=0 at boot)"
                found.lacks("heptascope_host_pressure_waiting_seconds_total", Reason.NOT_SUPPORTED, detail, resource=resource)
        return found

    def _cpus(self) -> dict[str, Any]:
        text = self._files.text("sys/devices/system/cpu/online")
        cpus = count_cpus(text) if text else None
        return {} if cpus is None else {"cpus": cpus}

    def _load(self) -> dict[str, Any]:
        words = (self._files.text("proc/loadavg") or "").split()
        try:
            return {"load1": float(words[0])}
        except (ValueError, IndexError):
            return {}

    def _cpu_time(self) -> dict[str, Any]:
        words = (self._files.text("proc/stat") or "").partition("\n")[0].split()
        try:
            ticks = [int(word) for word in words[1 : 1 + _COUNTED_FIELDS]]
            idle = ticks[_IDLE] + ticks[_IOWAIT]
        except (ValueError, IndexError):
            return {}
        return {"cpu_total_s": sum(ticks) / TICKS_PER_SECOND, "cpu_idle_s": idle / TICKS_PER_SECOND}

    def _pressure(self, resource: str) -> int | None:
        line = (self._files.text("proc/pressure", resource) or "").partition("\n")[0]
        share, _, total = line.rpartition("total=")
        return int(total) if share.startswith("some ") and total.isdigit() else None
