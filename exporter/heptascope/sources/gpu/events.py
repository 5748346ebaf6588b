"""XID errors of one GPU, from NVML's event set."""

from __future__ import annotations

from typing import Any

from heptascope.model import Reason
from heptascope.sources.gpu import calls
from heptascope.sources.gpu.calls import Calls
from heptascope.sources.gpu.page import Why

XID_EVENT = 0x8  # nvmlEventTypeXidCriticalError
MOST_EVENTS = 256
"""Events taken in one read; a storm longer than this waits for the next."""


class XidWatch:
    """Counts XID events, polled without waiting. Each GPU has its own event set, so that a lost GPU cannot silence the others.

    NVML reports only what happens after the registration. `refused` says why there are no events here (None: there are).
    """

    def __init__(self, call: Calls) -> None:
        """Register for the XID events of the GPU of `call`."""
        self._nvml = call.nvml
        self._set: Any = None
        self.refused = self._register(call)

    def poll(self, counts: dict[str, int]) -> None:
        """Add the events since the last poll to `counts`, by code."""
        if self._set is None:
            return
        for _ in range(MOST_EVENTS):
            try:
                event = self._nvml.nvmlEventSetWait_v2(self._set, 0)
            except self._nvml.NVMLError:  # a time-out: nothing more; any other error shows in the calls that follow
                return
            if event.eventType & XID_EVENT:
                code = str(event.eventData)
                counts[code] = counts.get(code, 0) + 1

    def close(self) -> None:
        """Give the event set back to the library."""
        events, self._set = self._set, None
        if events is not None:
            try:
                self._nvml.nvmlEventSetFree(events)
            except self._nvml.NVMLError:  # the driver is gone, and the set with it
                return

    def _register(self, call: Calls) -> Why | None:
        types = call.get("xid", "nvmlDeviceGetSupportedEventTypes")
        if types is None:
            reason, detail = call.missing["xid"]
            return Reason(reason), detail
        if not types & XID_EVENT:
            return Reason.NOT_SUPPORTED, "this card or driver reports no XID events"
        try:
            self._set = self._nvml.nvmlEventSetCreate()
            self._nvml.nvmlDeviceRegisterEvents(call.gpu.handle, XID_EVENT, self._set)
        except self._nvml.NVMLError as exc:
            self.close()
            return calls.reason_of_code(exc.value), f"XID events: {exc}"
        return None
