"""The pressure on each resource of an engine, on one scale: 1 is all that can be had from it."""

from __future__ import annotations

from heptascope.model import Reason
from heptascope.signals.ceilings import ACHIEVABLE
from heptascope.signals.derive_gpu import Card
from heptascope.signals.engine_context import PREFIX, WHICH_GPU, Collector, Context, average

_INPUTS = {
    "dram": "heptascope_gpu_dram_active_ratio",
    "tensor": "heptascope_gpu_tensor_active_ratio",
    "pcie": "heptascope_gpu_pcie_receive_bytes_total",
    "link": "heptascope_gpu_nvlink_receive_bytes_total",
    "host": PREFIX + "step_host_gap_ratio",
}
"""What each resource's pressure is made from."""

_PROFILED = "heptascope_gpu_graphics_engine_active_ratio"
"""Without it the host gap may be known, but nothing that it could be compared with."""


def derive_pressure(c: Context, gap: float | None, work: bool | None, out: Collector) -> None:
    """Put each resource on one scale: 1 is all that can be had from it."""
    name = PREFIX + "resource_pressure_ratio"
    found = _pressures(c, gap) if work else {}
    for resource, signal in _INPUTS.items():
        pairs = tuple(sorted((*c.pairs, ("resource", resource))))
        if found.get(resource) is not None:
            out.add(name, pairs, found[resource])
        elif work is False:
            out.lack(name, pairs, Reason.IDLE, "no requests are running")
        elif resource == "link" and len(c.cards) == 1:
            out.lack(name, pairs, Reason.NOT_CONFIGURED, "one GPU serves this rank")
        elif c.ambiguous:
            out.lack(name, pairs, Reason.AMBIGUOUS, WHICH_GPU)
        else:
            out.lack(name, pairs, *out.reason(signal, c.pairs) or c.reason(_PROFILED if resource == "host" else signal))


def _pressures(c: Context, gap: float | None) -> dict[str, float | None]:
    dram, tensor = average(c, "gpu_dram_active_ratio"), average(c, "gpu_tensor_active_ratio")
    pcie = [_share(card, "pcie", card.pcie_usable) for card in c.cards]
    link = [_share(card, "nvlink", card.nvlink_bandwidth and card.nvlink_bandwidth * ACHIEVABLE.nvlink) for card in c.cards]
    return {
        "dram": None if dram is None else dram / ACHIEVABLE.dram,
        "tensor": None if tensor is None else tensor / ACHIEVABLE.tensor,
        "pcie": max((share for share in pcie if share is not None), default=None),
        "link": max((share for share in link if share is not None), default=None),
        "host": gap,
    }


def _share(card: Card, link: str, usable: float | None) -> float | None:
    """Return the busier direction of a link as a share of what it can carry."""
    rates = [card.rates.get(f"{link}_{way}") for way in ("receive", "transmit")]
    return max(rate for rate in rates if rate is not None) / usable if usable and None not in rates else None
