"""Known work on a real GPU, by a process of its own: `python gpu_load.py KIND`; the kinds are in WORK, and `skew`.

Prints one JSON line after each piece of work: `t` (Unix seconds at which it was done), `done` (bytes, operations, cycles or steps
since the start) and for some kinds `hz` (the SM clock as an SM counts it). Ends when its standard input is closed. Needs torch.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from gpu_clock import Ticks

GIB = 2**30
PIECE_SECONDS = 0.04
CLOCK_SECONDS = 0.1  # between two looks at the clock
SIDE = 8192  # of the square matrices
SPIN_CYCLES = 2_000_000
SMALL_CYCLES = 2_000  # a kernel of one microsecond
GRAPH_KERNELS = 1000
SKEW_MATMULS = 8  # of the first rank in one step; the second has twice as many
SKEW_BYTES = 256 * 2**20

Work = Callable[[Any], tuple[Callable[[], Any], float]]


def copy(torch: Any) -> tuple[Any, float]:
    """Copy 4 GiB from device to device: each byte is read and written."""
    source = torch.empty(4 * GIB, dtype=torch.uint8, device="cuda:0")
    target = torch.empty_like(source)
    return lambda: target.copy_(source), 2.0 * source.numel()


def _matmul(torch: Any, dtype: Any, side: int = SIDE) -> tuple[Any, float]:
    a, b = (torch.randn(side, side, dtype=dtype, device="cuda") for _ in range(2))
    out = torch.empty_like(a)
    return lambda: torch.matmul(a, b, out=out), 2.0 * side**3


def matmul(torch: Any) -> tuple[Any, float]:
    """Multiply two random 8192 x 8192 bf16 matrices: 2 n^3 operations."""
    return _matmul(torch, torch.bfloat16)


def fp32(torch: Any) -> tuple[Any, float]:
    """Multiply in fp32, without tensor cores."""
    return _matmul(torch, torch.float32)


def fp8(torch: Any) -> tuple[Any, float]:
    """Multiply two random 8192 x 8192 fp8 matrices (e4m3) into bf16."""
    a, b = (torch.randn(SIDE, SIDE, device="cuda").to(torch.float8_e4m3fn) for _ in range(2))
    one = torch.ones((), device="cuda")
    return lambda: torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16), 2.0 * SIDE**3


def spin(torch: Any) -> tuple[Any, float]:
    """Keep one warp on one SM for a known number of cycles."""
    return lambda: torch.cuda._sleep(SPIN_CYCLES), float(SPIN_CYCLES)


def storm(torch: Any) -> tuple[Any, float]:
    """Launch kernels of one microsecond on one SM, one by one."""
    return lambda: torch.cuda._sleep(SMALL_CYCLES), float(SMALL_CYCLES)


def storm_graph(torch: Any) -> tuple[Any, float]:
    """Launch the same kernels, 1000 to a CUDA graph."""
    graph = torch.cuda.CUDAGraph()
    torch.cuda._sleep(SMALL_CYCLES)
    with torch.cuda.graph(graph):
        for _ in range(GRAPH_KERNELS):
            torch.cuda._sleep(SMALL_CYCLES)
    return graph.replay, float(GRAPH_KERNELS * SMALL_CYCLES)


def _from_host(torch: Any, pinned: bool) -> tuple[Any, float]:
    source = torch.zeros(GIB, dtype=torch.uint8, pin_memory=pinned)
    target = torch.empty(GIB, dtype=torch.uint8, device="cuda:0")
    return lambda: target.copy_(source, non_blocking=True), float(GIB)


def h2d(torch: Any) -> tuple[Any, float]:
    """Copy 1 GiB from pinned host memory to the device."""
    return _from_host(torch, True)


def h2d_pageable(torch: Any) -> tuple[Any, float]:
    """Copy 1 GiB from ordinary host memory, which the driver copies into its own pinned buffers first."""
    return _from_host(torch, False)


def p2p(torch: Any) -> tuple[Any, float]:
    """Copy 1 GiB from the first GPU to the second."""
    source = torch.empty(GIB, dtype=torch.uint8, device="cuda:0")
    target = torch.empty(GIB, dtype=torch.uint8, device="cuda:1")
    return lambda: target.copy_(source), float(GIB)


WORK: dict[str, Work] = {
    "copy": copy, "matmul": matmul, "matmul_half": matmul, "bursts": copy, "fp8": fp8, "fp32": fp32, "spin": spin, "storm": storm,
    "storm_graph": storm_graph, "h2d": h2d, "h2d_pageable": h2d_pageable, "p2p": p2p,
}  # fmt: skip
CLOCKED = ("matmul", "matmul_half", "fp8", "fp32")


def _synchronise(torch: Any) -> None:
    """Wait for the work, not for the kernel that counts cycles."""
    for device in range(torch.cuda.device_count()):
        torch.cuda.current_stream(device).synchronize()


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


def _until_stdin_ends() -> threading.Event:
    ended = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    return ended


def _tell(**what: float) -> None:
    print(json.dumps({"t": time.time(), **what}), flush=True)


def _count_cycles(ended: threading.Event, found: list[float]) -> None:
    ticks = Ticks()
    while not ended.wait(CLOCK_SECONDS):
        found[:] = [ticks.hertz()]


def work(kind: str) -> None:
    """Work on one GPU until standard input ends."""
    import torch

    once, amount = WORK[kind](torch)
    batch = _batch(torch, once)
    ended = _until_stdin_ends()
    hertz: list[float] = []
    if kind in CLOCKED:
        threading.Thread(target=_count_cycles, args=(ended, hertz), daemon=True).start()
    done, pieces = 0.0, 0
    while not ended.is_set():
        begin = time.perf_counter()
        for _ in range(batch):
            once()
        _synchronise(torch)
        done, pieces = done + batch * amount, pieces + 1
        _tell(done=done, **({"hz": hertz.pop()} if hertz else {}))
        if kind == "bursts":  # uneven pauses, so that no schedule of reads stays in step with them
            time.sleep(0.013 * (1 + pieces % 7))
        elif kind == "matmul_half":
            time.sleep(time.perf_counter() - begin)


def _rank(rank: int, meeting: str, ended: Any) -> None:
    """Work as one of two ranks: the second multiplies twice as much in a step, then both add a tensor up over NVLink."""
    import torch
    import torch.distributed as dist

    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"file://{meeting}", rank=rank, world_size=2)
    once, _ = _matmul(torch, torch.bfloat16, SIDE // 2)
    shared = torch.zeros(SKEW_BYTES // 2, dtype=torch.bfloat16, device="cuda")
    steps = 0
    while True:
        for _ in range(SKEW_MATMULS * (1 + rank)):
            once()
        shared[0] = float(ended.is_set())
        dist.all_reduce(shared)
        if shared[0].item():
            break
        steps += 1
        if rank == 0:
            _tell(done=float(steps))
    dist.destroy_process_group()


def skew() -> None:
    """Work on two GPUs, unevenly, until standard input ends."""
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")  # plain transfers between the two, so that the bytes are known
    import torch.multiprocessing as mp

    context = mp.get_context("spawn")
    stop = context.Event()
    with tempfile.TemporaryDirectory() as folder:
        ranks = [context.Process(target=_rank, args=(rank, f"{folder}/meeting", stop)) for rank in range(2)]
        for process in ranks:
            process.start()
        _until_stdin_ends().wait()
        stop.set()
        for process in ranks:
            process.join(30)


if __name__ == "__main__":
    if sys.argv[1] == "skew":
        skew()
    else:
        work(sys.argv[1])
