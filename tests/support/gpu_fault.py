"""Write to an address that is not mapped, on the first GPU: the driver answers with an XID error and ends this process's context.

Uses the driver's own library and a kernel in PTX, so that nothing else has to be installed.
"""

from __future__ import annotations

import ctypes
import sys

PTX = b"""
.version 6.0
.target sm_70
.address_size 64
.visible .entry fault()
{
    .reg .b64 %address;
    .reg .b32 %value;
    mov.u64 %address, 16;
    mov.u32 %value, 1;
    st.global.u32 [%address], %value;
    ret;
}
"""


def main() -> int:
    """Launch the kernel; return the driver's code of its end (0: it went unnoticed)."""
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context, module, kernel = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    for code in (
        cuda.cuInit(0),
        cuda.cuDeviceGet(ctypes.byref(device), 0),
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
        cuda.cuCtxSetCurrent(context),
        cuda.cuModuleLoadData(ctypes.byref(module), PTX),
        cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"fault"),
        cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None),
    ):
        if code:
            sys.exit(f"the kernel could not be launched: CUDA error {code}")
    return int(cuda.cuCtxSynchronize())


if __name__ == "__main__":
    print(main())
