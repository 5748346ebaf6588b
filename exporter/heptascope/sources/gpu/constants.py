"""What never changes while the driver is loaded: maxima, limits, identity, from a header's entry for one GPU."""

from __future__ import annotations

from heptascope.model import Labels, labels
from heptascope.sources.gpu.layout import CONSTANTS, Row
from heptascope.sources.gpu.page import Page

SIGNALS = tuple(field.signal for field in CONSTANTS)

_CORES_PER_SM: dict[tuple[int, ...], int] = {(7, 0): 64, (7, 2): 64, (7, 5): 64, (8, 0): 64}
"""FP32 cores per SM by compute capability (CUDA programming guide); 128 from 8.6 on."""
_MIG = {"0": "disabled", "1": "enabled"}


def put(entry: Row, row: Row, page: Page) -> None:
    """Add the constants of `entry`; a value of the same key in the `slow` row `row` is newer."""
    for field in CONSTANTS:
        page.fields((field,), row if field.key in row else entry)


def info(entry: Row, header: Row) -> Labels:
    """Return the labels of `heptascope_gpu_info` beyond `gpu` and `uuid`."""
    capability = entry.get("compute_capability") or ()
    return labels(
        model=_text(entry, "name"),
        driver=_text(header, "driver"),
        compute_capability=".".join(str(part) for part in capability),
        pci_bus_id=_text(entry, "pci_bus_id"),
        serial=_text(entry, "serial"),
        vbios=_text(entry, "vbios"),
        sm_count=_sm_count(entry.get("num_cores"), tuple(capability)),
        memory_bus_bits=_text(entry, "bus_width_bits"),
        cpus=_text(entry, "cpus"),
        numa_node=_text(entry, "numa_node"),
        mig=_MIG.get(_text(entry, "mig_mode"), ""),
    )


def _text(entry: Row, key: str) -> str:
    value = entry.get(key)
    return "" if value is None else str(value)


def _sm_count(cores: int | None, capability: tuple[int, ...]) -> str:
    """Return cores / cores per SM. A header without compute capability is one of the first recordings, all of Hopper cards: 128."""
    if not cores:
        return ""
    return str(cores // _CORES_PER_SM.get(capability, 128))
