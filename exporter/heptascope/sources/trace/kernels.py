"""What GPU kernels are, by their names."""

from __future__ import annotations

import re

from heptascope.sources.trace.kernel_table import TABLE, KernelClass

_PATTERNS = [(kernel_class, re.compile("|".join(words.split()), re.IGNORECASE)) for kernel_class, _, words in TABLE]

# A kernel of these libraries in one of these words sends data from one stage to the next and waits for the other side.
_POINT_TO_POINT = re.compile(r"sendrecv|send_recv|_p2p", re.IGNORECASE)


def classify(name: str) -> KernelClass:
    """Return what the kernel of this name does; `other` if no row of the table fits."""
    return next((kernel_class for kernel_class, pattern in _PATTERNS if pattern.search(name)), KernelClass.OTHER)


def point_to_point(name: str) -> bool:
    """Tell whether a collective kernel only passes data between two ranks."""
    return _POINT_TO_POINT.search(name) is not None


_HEAD = re.compile(r"^(?:void |static |__global__ )+")
_ENABLE_IF = re.compile(r"^std::enable_if<.*?>::type ")
_LONGEST = 72


def short_name(name: str) -> str:
    """Return a kernel's name without return type and arguments, with template arguments cut, for tables."""
    text = _HEAD.sub("", _ENABLE_IF.sub("", name))
    depth, kept = 0, []
    for at, char in enumerate(text):
        depth += char == "<"
        if char == "(" and depth == 0 and at > 0 and text[at : at + 11] != "(anonymous ":
            break
        if depth == 0:
            kept.append(char)
        elif depth == 1 and char == "<":
            kept.append("<…>")
        depth -= char == ">"
    short = "".join(kept).strip() or text
    inner = _inner(text)
    short = f"{short} {inner}" if inner else short
    return short if len(short) <= _LONGEST else f"{short[: _LONGEST - 1]}…"


_INSIDE = re.compile(
    r"flash::\w*?(FlashAttn\w+)|cutlass::gemm::kernel::(\w+)|native::(\w+(?:Functor|Ops|_kernel_cuda))|\w*?(\w+_kernel_cuda)"
)


def _inner(text: str) -> str:
    """Return the telling name inside a wrapper's template arguments (CUTLASS's device_kernel, PyTorch's elementwise_kernel)."""
    if not re.search(r"device_kernel<|elementwise_kernel|reduce_kernel|index_elementwise", text):
        return ""
    found = _INSIDE.search(text, text.find("<") + 1)
    return next((group for group in found.groups() if group), "") if found else ""
