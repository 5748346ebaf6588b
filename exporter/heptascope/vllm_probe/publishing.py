"""Hands the probe's numbers out: a thread of its own writes them down, and nobody in the engine waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from heptascope.vllm_probe.counting import Fail
from heptascope.vllm_probe.layout import Writer

PUBLISH_SECONDS = 0.5


class Publisher:
    """Writes the numbers down twice a second, from a thread of its own, whether the engine works or waits."""

    def __init__(self, values: Callable[[], Sequence[int]], writer: Writer, fail: Fail) -> None:
        """Start to write what `values` returns."""
        self._values, self._writer, self._fail = values, writer, fail
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heptascope-probe", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread and remove the file."""
        self._ended.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=2 * PUBLISH_SECONDS)
        self._writer.close()

    def _run(self) -> None:
        try:
            while True:
                self._writer.write(self._values())
                if self._ended.wait(PUBLISH_SECONDS):
                    return
        except Exception as error:  # noqa: BLE001  # a full disk or the like must not reach the engine
            self._fail(error)
