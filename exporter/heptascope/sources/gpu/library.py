"""The library behind the NVML sources: finding the right Python module, starting it, and when to try again."""

from __future__ import annotations

import importlib
from typing import Any

from heptascope.model import Reason
from heptascope.sources.base import SourceError
from heptascope.sources.gpu import calls

_REMEDIES = {
    calls.LIBRARY_NOT_FOUND: (
        Reason.NOT_SUPPORTED,
        "libnvidia-ml.so.1 is not there: install the NVIDIA driver, or give the container the driver capability `utility`",
    ),
    calls.DRIVER_NOT_LOADED: (Reason.SOURCE_DOWN, "the NVIDIA driver is not loaded"),
    calls.VERSION_MISMATCH: (Reason.SOURCE_DOWN, "the NVIDIA driver was replaced while this process ran: restart the container"),
    calls.NO_PERMISSION: (Reason.NO_PERMISSION, "NVML may not be used here: give the process access to /dev/nvidiactl and /dev/nvidia*"),
}


def load() -> Any:
    """Return the module pynvml of nvidia-ml-py. Raises SourceError if it is missing or not the right one."""
    try:
        module = importlib.import_module("pynvml")
    except ImportError as exc:
        raise SourceError(Reason.NOT_SUPPORTED, f"the Python module pynvml cannot be loaded ({exc}): pip install nvidia-ml-py") from exc
    return checked(module)


def checked(module: Any) -> Any:
    """Return `module` if it is nvidia-ml-py: a deprecated package of the name pynvml may stand before it. Raises SourceError."""
    if hasattr(module, "nvmlGpmMetricsGet") and hasattr(module, "NVMLError"):
        return module
    where = getattr(module, "__file__", module)
    message = f"{where} is not a current nvidia-ml-py (it has no GPM): pip uninstall pynvml; pip install --upgrade nvidia-ml-py"
    raise SourceError(Reason.NOT_SUPPORTED, message)


def start(nvml: Any) -> None:
    """Initialise NVML. Raises SourceError with what to do."""
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as exc:
        raise SourceError(*_REMEDIES.get(exc.value, (calls.reason_of_code(exc.value), f"NVML cannot be initialised: {exc}"))) from exc


def text(value: Any) -> str:
    """Return a string of NVML as str: some releases of nvidia-ml-py give bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def ask(nvml: Any, function: str) -> str | None:
    """Return what a call without arguments says, None if it fails."""
    try:
        return text(getattr(nvml, function)())
    except nvml.NVMLError:
        return None
