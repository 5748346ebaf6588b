"""The real program as a process of its own, and waiting for what it does."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
WAIT_SECONDS = 30.0
POLL_SECONDS = 0.05
_SERVES = re.compile(r"serves (https?://\S+)")


def until(look: Callable[[], T], seconds: float = WAIT_SECONDS) -> T:
    """Return what `look` returns as soon as that is true; fail after `seconds` with what it returned last."""
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {seconds} s: {found!r}"
        time.sleep(POLL_SECONDS)


def heptascope(*arguments: str | Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(_command(*arguments), capture_output=True, text=True, timeout=60, check=False, env=environment(env))


class Running:
    """A running daemon."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        """Wait for the address in its log."""
        self.process, self._log = process, log
        self.url = until(self._address)

    def log(self) -> str:
        """Return what it wrote to stderr so far."""
        return self._log.read_text(encoding="utf-8")

    def get(self, path: str, **headers: str) -> str:
        """Return the body of a page."""
        with urllib.request.urlopen(urllib.request.Request(self.url + path, headers=headers), timeout=10) as answer:  # noqa: S310  # our own URL
            body: bytes = answer.read()
        return body.decode()

    def json(self, path: str) -> Any:
        """Return an answer of the API."""
        return json.loads(self.get(path))

    def metrics(self) -> dict[str, float]:
        """Return the values on /metrics by series as written there."""
        lines = [line for line in self.get("/metrics").splitlines() if line and not line.startswith("#")]
        return {series: float(value) for series, _, value in (line.rpartition(" ") for line in lines)}

    def metric(self, series: str) -> float | None:
        """Return one value on /metrics, None if the series is not there."""
        return self.metrics().get(series)

    def source(self, name: str) -> dict[str, Any]:
        """Return the state of a source, an empty one if there is none."""
        return next((source for source in self.json("/api/v1/sources")["sources"] if source["name"] == name), {})

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, float]:
        """Send a signal; return the exit status and the seconds that the end took."""
        began = time.monotonic()
        self.process.send_signal(number)
        status = self.process.wait(timeout=20)
        return status, time.monotonic() - began

    def _address(self) -> str:
        found = _SERVES.search(self.log())
        assert found or self.process.poll() is None, self.log()
        return found[1] if found else ""


@contextmanager
def running(*arguments: str | Path, folder: Path, env: Mapping[str, str] | None = None) -> Iterator[Running]:
    """Run `heptascope ARGUMENTS` on a free loopback port, its log in `folder`; end it on leaving."""
    log = folder / "heptascope.log"
    command = _command(*arguments, "--listen", "127.0.0.1:0")
    with log.open("wb") as stderr:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, env=environment(env))
        try:
            yield Running(process, log)
        finally:
            process.terminate()
            process.communicate(timeout=20)


def environment(more: Mapping[str, str] | None) -> dict[str, str]:
    """Return this process's environment without settings of heptascope, and with `more`."""
    return {key: value for key, value in os.environ.items() if not key.startswith("HEPTASCOPE_")} | dict(more or {})


def refuses(url: str) -> int:
    """Return the HTTP status of an answer that is an error."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310  # our own URL
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def _command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "heptascope", *map(str, arguments)]
