"""Record traces of a real model's decode steps on a GPU, with CUDA events beside the profiler. Needs PyTorch and a GPU.

Run with `python tests/gpu/record_trace.py FOLDER`. For each way to run the same steps (eagerly, with pauses of the host, from
a CUDA graph) it writes the profiler's trace, and to events.json in milliseconds:

- `span`: from before the first to after the last kernel of the profiled run, by CUDA events;
- `work`: the same kernels without any wait for the host: all launches were queued behind a kernel that spins.

1 - work / span is then the gap ratio that no trace is needed for. tests/sources/trace/test_gpu_events.py compares.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile, record_function

LAYERS, HIDDEN, HEADS, CONTEXT, BATCH, STEPS = 8, 2048, 16, 512, 8, 8
PAUSE = 0.004  # seconds
SPIN = 400_000_000  # clock cycles: longer than queueing all launches takes
Step = Callable[[], None]


class Layer(torch.nn.Module):
    """One decoder layer with a key-value cache."""

    def __init__(self) -> None:
        super().__init__()
        make = {"device": "cuda", "dtype": torch.bfloat16}
        self.qkv = torch.nn.Linear(HIDDEN, 3 * HIDDEN, bias=False, **make)
        self.out = torch.nn.Linear(HIDDEN, HIDDEN, bias=False, **make)
        self.up = torch.nn.Linear(HIDDEN, 8 * HIDDEN, bias=False, **make)
        self.down = torch.nn.Linear(4 * HIDDEN, HIDDEN, bias=False, **make)
        self.cache = torch.randn(2, BATCH, HEADS, CONTEXT, HIDDEN // HEADS, **make)
        self.norm = torch.ones(HIDDEN, **make)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attend to the cache, then the gated product."""
        q, _, _ = self.qkv(functional.rms_norm(x, (HIDDEN,), self.norm)).chunk(3, -1)
        q = q.view(BATCH, HEADS, 1, HIDDEN // HEADS)
        attended = functional.scaled_dot_product_attention(q, self.cache[0], self.cache[1])
        x = x + self.out(attended.reshape(BATCH, HIDDEN))
        gate, up = self.up(functional.rms_norm(x, (HIDDEN,), self.norm)).chunk(2, -1)
        return x + self.down(functional.silu(gate) * up)


def span(steps: Step) -> float:
    """Return milliseconds between events before and after."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    steps()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end)


def work(step: Step) -> float:
    """Return milliseconds of all steps' kernels with their launches queued beforehand."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(SPIN)
    begin.record()
    for _ in range(STEPS):
        step()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end)


def named(step: Step, pause: float) -> Step:
    """Return all steps, each in a range of its own, with a pause of the host behind each but the last."""

    def run() -> None:
        for i in range(STEPS):
            with record_function(f"decode_step {i}"):
                step()
            if pause and i < STEPS - 1:
                time.sleep(pause)

    return run


def main(folder: Path) -> None:
    """Record each way."""
    torch.manual_seed(1)
    layers = torch.nn.Sequential(*(Layer() for _ in range(LAYERS)))
    x = torch.randn(BATCH, HIDDEN, device="cuda", dtype=torch.bfloat16)
    logits = torch.randn(HIDDEN, 32_000, device="cuda", dtype=torch.bfloat16)

    def eager() -> None:
        with torch.no_grad():
            (layers(x) @ logits).argmax(-1)

    for _ in range(5):
        eager()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        eager()
    found = {}
    for name, step, pause in (("eager", eager, 0.0), ("paused", eager, PAUSE), ("graph", graph.replay, 0.0)):
        steps = named(step, pause)
        steps()
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]):
            steps()  # the first use of the profiler is slow
            torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as recorded:
            between = span(steps)
        recorded.export_chrome_trace(str(folder / f"{name}.json.gz"))
        found[name] = {"span": between, "work": min(work(step) for _ in range(5)), "steps": STEPS}
    found["device"] = {"name": torch.cuda.get_device_name(), "torch": torch.__version__}
    (folder / "events.json").write_text(json.dumps(found, indent=1))
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
