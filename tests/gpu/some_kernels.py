"""A few kernels of each kind for Nsight Compute: a matrix product, a large copy, a tiny addition. Needs PyTorch and a GPU."""

from __future__ import annotations

import torch

a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
b = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
large = torch.randn(1 << 28, device="cuda")
small = torch.zeros(64, device="cuda")
torch.cuda.synchronize()
torch.cuda.profiler.start()
a @ b
large + 1
small + 1
torch.cuda.synchronize()
torch.cuda.profiler.stop()
