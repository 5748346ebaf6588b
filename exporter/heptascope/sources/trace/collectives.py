"""Communication kernels of one rank: how long they ran, and whether compute ran beside them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heptascope.sources.trace.busy import Busy
from heptascope.sources.trace.events import GpuKind, Mask, Small, Trace
from heptascope.sources.trace.hotspots import CLASSES
from heptascope.sources.trace.intervals import Union, union
from heptascope.sources.trace.kernel_table import KernelClass
from heptascope.sources.trace.kernels import point_to_point
from heptascope.sources.trace.measures import Collectives, seconds

_COLLECTIVE = CLASSES.index(KernelClass.COLLECTIVE)


@dataclass(frozen=True, slots=True)
class Communication:
    """When collectives, point-to-point kernels and all other kernels ran on one GPU."""

    rows: Mask
    point_to_point: Mask
    collective: Union
    compute: Union


def communication(trace: Trace, of_event: Small) -> Communication:
    """Part the kernels of a rank into communication and compute; copies are neither."""
    gpu = trace.gpu
    rows = of_event == _COLLECTIVE
    names, inverse = np.unique(gpu.name[rows], return_inverse=True)
    passing = np.zeros(len(gpu), np.bool_)
    passing[rows] = np.array([point_to_point(trace.names[name]) for name in names.tolist()], np.bool_)[inverse]
    compute = (gpu.kind == GpuKind.KERNEL) & ~rows
    return Communication(rows, passing, union(gpu.start[rows], gpu.end[rows]), union(gpu.start[compute], gpu.end[compute]))


def measure(talk: Communication, work: Busy) -> Collectives | None:
    """Return time and overlap of the communication; None without any."""
    length = talk.collective.length
    if not length or not work.wall:
        return None
    hidden = talk.collective.common(talk.compute)
    ratio, exposed = length / work.wall, (length - hidden) / work.wall
    return Collectives(int(talk.rows.sum()), seconds(length), ratio, hidden / length, exposed)
