"""The SM clock as the SM itself counts it: cycles beside nanoseconds, on one SM, beside other work of the same process.

Uses the driver's own library and a kernel in PTX, so that nothing else has to be installed.
"""

from __future__ import annotations

import ctypes

WINDOW_NANOSECONDS = 2_000_000
"""Short, because a kernel that fills the card may have to wait for it; the time has a resolution of one microsecond."""
_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING: does not wait for the default stream, nor the default stream for it
PTX = b"""
.version 6.0
.target sm_70
.address_size 64
.visible .entry ticks(.param .u64 out, .param .u64 span)
{
    .reg .pred %again;
    .reg .b64 %out, %span, %t0, %t1, %c0, %c1, %passed;
    ld.param.u64 %out, [out];
    ld.param.u64 %span, [span];
    cvta.to.global.u64 %out, %out;
    mov.u64 %t0, %globaltimer;
    mov.u64 %c0, %clock64;
wait:
    mov.u64 %t1, %globaltimer;
    mov.u64 %c1, %clock64;
    sub.u64 %passed, %t1, %t0;
    setp.lt.u64 %again, %passed, %span;
    @%again bra wait;
    sub.u64 %c1, %c1, %c0;
    st.global.u64 [%out], %passed;
    st.global.u64 [%out+8], %c1;
    ret;
}
"""


class Ticks:
    """Measures on the first GPU, in the context that the process already uses."""

    def __init__(self) -> None:
        """Load the kernel. Raises RuntimeError for what the driver refuses."""
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self._kernel, self._stream, self._out = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
        device, self._context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        self._do("cuInit", 0)
        self._do("cuDeviceGet", ctypes.byref(device), 0)
        self._do("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), device)
        self._do("cuCtxSetCurrent", self._context)
        self._do("cuModuleLoadData", ctypes.byref(module), PTX)
        self._do("cuModuleGetFunction", ctypes.byref(self._kernel), module, b"ticks")
        self._do("cuStreamCreate", ctypes.byref(self._stream), _NON_BLOCKING)
        self._do("cuMemAlloc_v2", ctypes.byref(self._out), ctypes.c_size_t(16))

    def hertz(self) -> float:
        """Return cycles a second over one window; may be called in any one thread."""
        self._do("cuCtxSetCurrent", self._context)
        span = ctypes.c_uint64(WINDOW_NANOSECONDS)
        arguments = (ctypes.c_void_p * 2)(*(ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in (self._out, span)))
        self._do("cuLaunchKernel", self._kernel, 1, 1, 1, 1, 1, 1, 0, self._stream, arguments, None)
        self._do("cuStreamSynchronize", self._stream)
        found = (ctypes.c_uint64 * 2)()
        self._do("cuMemcpyDtoHAsync_v2", found, self._out, ctypes.c_size_t(16), self._stream)
        self._do("cuStreamSynchronize", self._stream)
        return 1e9 * found[1] / found[0]

    def _do(self, function: str, *args: object) -> None:
        code = getattr(self._cuda, function)(*args)
        if code:
            raise RuntimeError(f"{function}: CUDA error {code}")
