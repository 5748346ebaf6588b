"""The GPU signals once more under dcgm-exporter's names, labels and units, so that boards and alerts made for it keep working.

Off by default (`web.compat: dcgm-exporter`). The names are those of the 4.x releases before 4.9, which public boards use. Left out is
what heptascope does not know: `device`, the label pod and its kind (they belong to service discovery), and values without a source.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from heptascope.model import Labels
from heptascope.signals.snapshot import Snapshot
from heptascope.surfaces.prometheus import label_dict, number_text

DCGM_EXPORTER = "dcgm-exporter"
_GPU = "heptascope_gpu_"
_MIB, _MEGA = 2.0**20, 1e6
_SHORTEST_RATE_SECONDS = 0.5


class Twin(NamedTuple):
    """One family: its name, type and help as dcgm-exporter has them, our signal, the factor to its unit, and labels that pick series."""

    name: str
    type: str
    help: str
    signal: str
    factor: float = 1.0
    picked: Labels = ()
    rate: bool = False  # our counter is its gauge of bytes a second


def _twin(name: str, type: str, help: str, signal: str, factor: float = 1.0, rate: bool = False, **picked: str) -> Twin:
    return Twin(name, type, help, _GPU + signal, factor, tuple(sorted(picked.items())), rate)


_SHARES = {
    "GR_ENGINE_ACTIVE": "graphics_engine_active",
    "SM_ACTIVE": "sm_active",
    "SM_OCCUPANCY": "sm_occupancy",
    "PIPE_TENSOR_ACTIVE": "tensor_active",
    "DRAM_ACTIVE": "dram_active",
    "PIPE_FP64_ACTIVE": "fp64_active",
    "PIPE_FP32_ACTIVE": "fp32_active",
    "PIPE_FP16_ACTIVE": "fp16_active",
    "PIPE_INT_ACTIVE": "int_active",
}

TWINS: tuple[Twin, ...] = (
    _twin("DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock (MHz).", "sm_clock_hertz", 1 / _MEGA),
    _twin("DCGM_FI_DEV_MEM_CLOCK", "gauge", "Memory clock (MHz).", "memory_clock_hertz", 1 / _MEGA),
    _twin("DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature (C).", "temperature_celsius"),
    _twin("DCGM_FI_DEV_MEMORY_TEMP", "gauge", "Memory temperature (C).", "memory_temperature_celsius"),
    _twin("DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw (W).", "power_watts"),
    _twin("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "gauge", "Power limit in force (W).", "power_limit_watts"),
    _twin("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", "Energy since the driver was loaded (mJ).", "energy_joules_total", 1e3),
    _twin("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", "PCIe replays.", "pcie_replays_total"),
    _twin("DCGM_FI_DEV_GPU_UTIL", "gauge", "GPU utilization (%).", "utilization_ratio", 100.0),
    _twin("DCGM_FI_DEV_FB_USED", "gauge", "Frame buffer in use (MiB).", "memory_used_bytes", 1 / _MIB),
    _twin("DCGM_FI_DEV_FB_RESERVED", "gauge", "Frame buffer kept by the driver (MiB).", "memory_reserved_bytes", 1 / _MIB),
    _twin("DCGM_FI_DEV_FB_TOTAL", "gauge", "Frame buffer of the card (MiB).", "memory_total_bytes", 1 / _MIB),
    _twin("DCGM_FI_DEV_POWER_VIOLATION", "counter", "Time at the power cap (ns).", "throttle_seconds_total", 1e9, reason="power_cap"),
    _twin(
        "DCGM_FI_DEV_SYNC_BOOST_VIOLATION", "counter", "Time held by sync boost (ns).", "throttle_seconds_total", 1e9, reason="sync_boost"
    ),
    _twin("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "counter", "Corrected ECC errors.", "ecc_errors_total", kind="corrected"),
    _twin("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "counter", "Uncorrected ECC errors.", "ecc_errors_total", kind="uncorrected"),
    _twin("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "counter", "Rows remapped.", "remapped_rows_total", kind="corrected"),
    _twin("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "counter", "Rows remapped after errors.", "remapped_rows_total", kind="uncorrected"),
    _twin("DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", "Whether a remap failed.", "row_remap_failure"),
    _twin("DCGM_FI_DEV_ROW_REMAP_PENDING", "gauge", "Whether a remap waits for a reset.", "row_remap_pending"),
    _twin("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "counter", "NVLink flit CRC errors.", "nvlink_errors_total", kind="crc_flit"),
    _twin("DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", "counter", "NVLink data CRC errors.", "nvlink_errors_total", kind="crc_data"),
    _twin("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "counter", "NVLink replays.", "nvlink_errors_total", kind="replay"),
    _twin("DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "counter", "NVLink recoveries.", "nvlink_errors_total", kind="recovery"),
    *(_twin(f"DCGM_FI_PROF_{name}", "gauge", f"Ratio 0 to 1: {what}.", f"{what}_ratio") for name, what in _SHARES.items()),
    _twin("DCGM_FI_PROF_PCIE_TX_BYTES", "gauge", "PCIe bytes a second from the GPU.", "pcie_transmit_bytes_total", rate=True),
    _twin("DCGM_FI_PROF_PCIE_RX_BYTES", "gauge", "PCIe bytes a second to the GPU.", "pcie_receive_bytes_total", rate=True),
    _twin("DCGM_FI_PROF_NVLINK_TX_BYTES", "gauge", "NVLink bytes a second from the GPU.", "nvlink_transmit_bytes_total", rate=True),
    _twin("DCGM_FI_PROF_NVLINK_RX_BYTES", "gauge", "NVLink bytes a second to the GPU.", "nvlink_receive_bytes_total", rate=True),
)
"""Every family that is made from one signal. FB_FREE and XID_ERRORS are made from several."""

_FREE = "DCGM_FI_DEV_FB_FREE"
_XID = "DCGM_FI_DEV_XID_ERRORS"
_OF_INSTANCE = {_GPU + f"{what}_ratio": _GPU + f"instance_{what}_ratio" for what in _SHARES.values()} | {
    _GPU + "memory_used_bytes": _GPU + "instance_memory_used_bytes",
    _GPU + "memory_total_bytes": _GPU + "instance_memory_total_bytes",
}


class Compat:
    """Writes the families. Remembers the last counters, to show them as rates. Used from one thread."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        """Take the node's name from NODE_NAME, else from this machine."""
        self._host = environ.get("NODE_NAME") or socket.gethostname()
        self._version = -1
        self._counted: dict[tuple[str, Labels], tuple[float, float]] = {}
        self._rates: dict[tuple[str, Labels], float] = {}

    def text(self, snapshot: Snapshot, openmetrics: bool) -> str:
        """Return the lines of all families. OpenMetrics allows no counter without `_total`: there such a family is `unknown`."""
        self._count(snapshot)
        boards = _Boards(snapshot, self._host)
        parts = []
        for twin in TWINS:
            lines = [f"{twin.name}{pairs} {number_text(value)}\n" for pairs, value in self._values(twin, snapshot, boards)]
            parts += _family(twin.name, twin.type, twin.help, lines, openmetrics)
        parts += _family(_FREE, "gauge", "Frame buffer that is free (MiB).", _free(snapshot, boards), openmetrics)
        parts += _family(_XID, "gauge", "Code of the last XID error, 0 before the first.", _last_xid(snapshot, boards), openmetrics)
        return "".join(parts)

    def _values(self, twin: Twin, snapshot: Snapshot, boards: _Boards) -> Iterator[tuple[str, float]]:
        wanted = set(twin.picked)
        for pairs, value in snapshot.values.get(twin.signal, ()):
            if wanted <= set(pairs):
                shown = self._rates.get((twin.signal, pairs)) if twin.rate else value * twin.factor
                if shown is not None:
                    yield boards.pairs(pairs), shown
        for pairs, value in snapshot.values.get(_OF_INSTANCE.get(twin.signal, ""), ()):
            yield boards.pairs(pairs), value * twin.factor

    def _count(self, snapshot: Snapshot) -> None:
        """Take the counters of a new snapshot; a fall is a restart, which has no rate."""
        if snapshot.version == self._version:
            return
        self._version = snapshot.version
        counted = {}
        for name in {twin.signal for twin in TWINS if twin.rate}:
            for pairs, value in snapshot.values.get(name, ()):
                key = (name, pairs)
                t, before = self._counted.get(key, (snapshot.t, value))
                if snapshot.t - t >= _SHORTEST_RATE_SECONDS:
                    self._rates.pop(key, None)
                    if value >= before:
                        self._rates[key] = (value - before) / (snapshot.t - t)
                    t, before = snapshot.t, value
                counted[key] = (t, before)
        self._counted = counted
        self._rates = {key: rate for key, rate in self._rates.items() if key in counted}


class _Boards:
    """The labels of each board and instance, as dcgm-exporter writes them."""

    def __init__(self, snapshot: Snapshot, host: str) -> None:
        self._host = host
        self._infos = {_key(pairs): dict(pairs) for pairs, _ in snapshot.values.get(_GPU + "info", ())}
        parts = (dict(pairs) for pairs, _ in snapshot.values.get(_GPU + "instance_info", ()))
        self._profiles = {(p.get("uuid", ""), p["instance"]): p.get("profile", "") for p in parts if "compute_instance" not in p}

    def pairs(self, pairs: Labels) -> str:
        """Return the label part of a line."""
        told, info = dict(pairs), self._infos.get(_key(pairs), {})
        uuid, instance = told.get("uuid", ""), told.get("instance", "")
        out = {
            "gpu": told.get("gpu", ""),
            "UUID": uuid,
            "pci_bus_id": _long_bus_id(info.get("pci_bus_id", "")),
            "modelName": info.get("model", ""),
            "GPU_I_PROFILE": self._profiles.get((uuid, instance), ""),
            "GPU_I_ID": instance,
            "Hostname": self._host,
            "DCGM_FI_DRIVER_VERSION": info.get("driver", ""),
        }
        clean = label_dict(tuple((key, value) for key, value in out.items() if value))
        return "{" + ",".join(f'{key}="{_escaped(value)}"' for key, value in clean.items()) + "}"


def _free(snapshot: Snapshot, boards: _Boards) -> list[str]:
    """Return what is neither used nor reserved; without one of the three nothing is said."""
    used, reserved = (dict(snapshot.values.get(_GPU + f"memory_{what}_bytes", ())) for what in ("used", "reserved"))
    lines = []
    for pairs, total in snapshot.values.get(_GPU + "memory_total_bytes", ()):
        if pairs in used and pairs in reserved:
            lines.append(f"{_FREE}{boards.pairs(pairs)} {number_text((total - used[pairs] - reserved[pairs]) / _MIB)}\n")
    return lines


def _last_xid(snapshot: Snapshot, boards: _Boards) -> list[str]:
    """Return the code of the newest XID error of each board that counts them."""
    newest: dict[Labels, tuple[float, int]] = {}
    for pairs, _ in snapshot.values.get(_GPU + "xid_errors_total", ()):
        newest.setdefault(_key(pairs), (0.0, 0))
    for pairs, t in snapshot.values.get(_GPU + "xid_error_last_timestamp_seconds", ()):
        newest[_key(pairs)] = max(newest.get(_key(pairs), (0.0, 0)), (t, int(dict(pairs)["xid"])))
    return [f"{_XID}{boards.pairs(pairs)} {number_text(float(code))}\n" for pairs, (_, code) in sorted(newest.items())]


def _family(name: str, type: str, help: str, lines: Iterable[str], openmetrics: bool) -> list[str]:
    shown = "unknown" if openmetrics and type == "counter" else type
    rows = list(lines)
    return [f"# HELP {name} {help}\n# TYPE {name} {shown}\n", *rows] if rows else []


def _key(pairs: Labels) -> Labels:
    return tuple(pair for pair in pairs if pair[0] in ("gpu", "uuid"))


def _long_bus_id(short: str) -> str:
    """Return a PCI id with eight digits of domain, in capitals, as NVML writes it."""
    return f"0000{short.upper()}" if short else ""


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
