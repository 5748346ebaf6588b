"""Known work on a real GPU, by a process of its own: `python gpu_load.py copy|matmul|bursts|h2d|p2p`.

Prints one JSON line after each piece of work: `t` (Unix seconds at which it was done) and `done` (bytes moved or operations, since
the start). Ends when its standard input is closed. Needs torch.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

GIB = 2**30
PIECE_SECONDS = 0.04


def copy(torch: Any) -> tuple[Any, float]:
    """Copy 4 GiB from device to device: each byte is read and written."""
    source = torch.empty(4 * GIB, dtype=torch.uint8, device="cuda:0")
    target = torch.empty_like(source)
    return lambda: target.copy_(source), 2.0 * source.numel()


def matmul(torch: Any) -> tuple[Any, float]:
    """Multiply two random 8192 x 8192 bf16 matrices: 2 n^3 operations."""
    n = 8192
    a, b = (torch.randn(n, n, dtype=torch.bfloat16, device="cuda:0") for _ in range(2))
    out = torch.empty_like(a)
    return lambda: torch.matmul(a, b, out=out), 2.0 * n**3


def h2d(torch: Any) -> tuple[Any, float]:
    """Copy 1 GiB from pinned host memory to the device."""
    source = torch.empty(GIB, dtype=torch.uint8, pin_memory=True)
    target = torch.empty(GIB, dtype=torch.uint8, device="cuda:0")
    return lambda: target.copy_(source, non_blocking=True), float(GIB)


def p2p(torch: Any) -> tuple[Any, float]:
    """Copy 1 GiB from the first GPU to the second."""
    source = torch.empty(GIB, dtype=torch.uint8, device="cuda:0")
    target = torch.empty(GIB, dtype=torch.uint8, device="cuda:1")
    return lambda: target.copy_(source), float(GIB)


WORK = {"copy": copy, "matmul": matmul, "bursts": copy, "h2d": h2d, "p2p": p2p}


def _synchronise(torch: Any) -> None:
    for device in range(torch.cuda.device_count()):
        torch.cuda.synchronize(device)


def _batch(torch: Any, once: Any) -> int:
    """Return how many calls take about PIECE_SECONDS, after warming up."""
    for _ in range(5):
        once()
    _synchronise(torch)
    begin = time.perf_counter()
    for _ in range(5):
        once()
    _synchronise(torch)
    return max(1, round(PIECE_SECONDS / ((time.perf_counter() - begin) / 5)))


def main() -> None:
    """Work until standard input ends."""
    import torch

    kind = sys.argv[1]
    once, amount = WORK[kind](torch)
    batch = _batch(torch, once)
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    done, pieces = 0.0, 0
    while not ended.is_set():
        for _ in range(batch):
            once()
        _synchronise(torch)
        done, pieces = done + batch * amount, pieces + 1
        print(json.dumps({"t": time.time(), "done": done}), flush=True)
        if kind == "bursts":  # uneven pauses, so that no schedule of reads stays in step with them
            time.sleep(0.013 * (1 + pieces % 7))


if __name__ == "__main__":
    main()
