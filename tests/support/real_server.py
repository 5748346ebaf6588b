"""Runs a real engine's server as a process of its own, until it answers that it is healthy, and ends it."""

from __future__ import annotations

import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

START_SECONDS = 400.0


@dataclass(frozen=True)
class Server:
    """A running server: its address and what it wrote."""

    url: str
    port: int
    process: subprocess.Popen[bytes]
    log: Path


@contextmanager
def serving(command: Sequence[str], port: int, log: Path, env: Mapping[str, str]) -> Iterator[Server]:
    """Run a server that listens on a loopback port; end it on leaving."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **env}, start_new_session=True)
        try:
            server = Server(f"http://127.0.0.1:{port}", port, process, log)
            _wait(server)
            yield server
        finally:
            process.terminate()
            process.wait(timeout=60)


def _wait(server: Server) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert server.process.poll() is None, server.log.read_text(encoding="utf-8", errors="replace")[-4000:]
        try:
            with urllib.request.urlopen(f"{server.url}/health", timeout=2):  # noqa: S310  # our own URL
                return
        except (urllib.error.URLError, OSError):
            time.sleep(1)
    raise AssertionError(f"not ready: {server.log.read_text(encoding='utf-8', errors='replace')[-4000:]}")
