"""Traces of single kernels: PyTorch profiler files, Nsight Systems exports, Nsight Compute tables."""
