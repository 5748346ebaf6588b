"""Pages of dcgm-exporter in the spellings of its generations, written from its field lists and release notes."""

from __future__ import annotations

from collections.abc import Mapping


class Gpu:
    """One GPU's labels and values; `extra` are label pairs of every series (pod, GPU_I_ID, …)."""

    def __init__(self, index: int = 0, uuid: str | None = None, **extra: str) -> None:
        """Be an H200 with the values of a recorded bf16 matmul."""
        self.index, self.extra = index, extra
        self.uuid = f"GPU-{index}" if uuid is None else uuid
        self.values: dict[str, float] = {}

    def lines(self, generation: str, values: Mapping[str, float]) -> list[str]:
        """Return the lines of one generation."""
        style = STYLES[generation]
        pairs = {"gpu": str(self.index), style["uuid"]: self.uuid, "modelName": "NVIDIA H200", style["host"]: "node-1"}
        if style.get("driver"):
            pairs[style["driver"]] = "580.159.04"
        if generation != "1.x":
            pairs |= {"device": f"nvidia{self.index}", "pci_bus_id": f"00000000:{self.index + 6:02X}:00.0"}
        pairs |= self.extra
        text = ",".join(f'{key}="{value}"' for key, value in pairs.items() if value)
        return [f"{name}{{{text}}} {value}" for name, value in {**values, **self.values}.items()]


STYLES = {
    "1.x": {"uuid": "uuid", "host": "Hostname"},
    "legacy": {"uuid": "UUID", "host": "Hostname", "driver": "DCGM_FI_DRIVER_VERSION"},
    "4.9": {"uuid": "UUID", "host": "hostname", "driver": "DCGM_FI_SYSTEM_DRIVER_VERSION"},
}

VALUES: dict[str, dict[str, float]] = {
    "1.x": {
        "dcgm_sm_clock": 1455, "dcgm_memory_clock": 3201, "dcgm_gpu_temp": 53, "dcgm_power_usage": 690.697,
        "dcgm_total_energy_consumption": 9663200, "dcgm_gpu_util": 99, "dcgm_fb_free": 134437, "dcgm_fb_used": 8718, "dcgm_xid_errors": 0,
    },
    "legacy": {
        "DCGM_FI_DEV_SM_CLOCK": 1455, "DCGM_FI_DEV_MEM_CLOCK": 3201, "DCGM_FI_DEV_GPU_TEMP": 53, "DCGM_FI_DEV_MEMORY_TEMP": 45,
        "DCGM_FI_DEV_POWER_USAGE": 690.697, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": 9663200, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": 1,
        "DCGM_FI_DEV_GPU_UTIL": 99, "DCGM_FI_DEV_MEM_COPY_UTIL": 30, "DCGM_FI_DEV_XID_ERRORS": 0, "DCGM_FI_DEV_FB_FREE": 134437,
        "DCGM_FI_DEV_FB_USED": 8718, "DCGM_FI_DEV_FB_RESERVED": 615, "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL": 66228,
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": 0, "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": 2, "DCGM_FI_DEV_ROW_REMAP_FAILURE": 0,
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE": 0.990510, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 0.928180, "DCGM_FI_PROF_DRAM_ACTIVE": 0.159660,
        "DCGM_FI_PROF_PCIE_TX_BYTES": 4211081, "DCGM_FI_PROF_PCIE_RX_BYTES": 11613020,
    },
    "4.9": {
        "DCGM_FI_DEV_SM_CLOCK_HERTZ": 1.455e9, "DCGM_FI_DEV_MEM_CLOCK_HERTZ": 3.201e9, "DCGM_FI_DEV_GPU_TEMP_CELSIUS": 53,
        "DCGM_FI_DEV_BOARD_POWER_WATTS": 690.697, "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL": 9663.2, "DCGM_FI_DEV_GPU_UTIL_RATIO": 0.99,
        "DCGM_FI_DEV_FB_USED_BYTES": 8718 * 2**20, "DCGM_FI_DEV_FB_CAPACITY_BYTES": 143771 * 2**20, "DCGM_FI_DEV_XID_ERROR": 0,
        "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO": 0.990510, "DCGM_FI_PROF_TENSOR_UTIL_RATIO": 0.928180, "DCGM_FI_PROF_DRAM_UTIL_RATIO": 0.159660,
        "DCGM_FI_PROF_PCIE_RX_BYTES": 11613020,
    },
}  # fmt: skip


def page(generation: str, *gpus: Gpu, **changes: float) -> str:
    """Return a page; `changes` replace values of every GPU by name."""
    values = VALUES[generation] | changes
    lines = [line for gpu in gpus or (Gpu(),) for line in gpu.lines(generation, values)]
    names = dict.fromkeys(line.partition("{")[0] for line in lines)
    out = []
    for name in names:
        kind = "counter" if name.endswith("TOTAL") or "TOTAL_ENERGY" in name else "gauge"
        out += [f"# HELP {name} Of the exporter.", f"# TYPE {name} {kind}", *(line for line in lines if line.startswith(name + "{"))]
    return "\n".join(out) + "\n"
