"""Starts the real `prometheus` on loopback and runs the real `promtool`, in temporary folders."""

from __future__ import annotations

import http.client
import json
import math
import shutil
import socket
import subprocess
import time
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from heptascope.model import Labels

START_SECONDS = 30.0
Samples = Mapping[tuple[str, Labels], Sequence[tuple[float, float]]]
"""Metric name and labels to points: Unix time in whole milliseconds, value."""


def program(name: str) -> str:
    """Return the path of an installed program, or say which package has it."""
    path = shutil.which(name)
    assert path is not None, f"{name} is not installed: apt-get install --no-install-recommends prometheus prometheus-alertmanager"
    return path


def promtool(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run promtool and return what it said; the exit status is for the caller to judge."""
    return subprocess.run([program("promtool"), *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False, timeout=60)


def free_port() -> int:
    """Return a loopback port that was free a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def openmetrics(samples: Samples) -> str:
    """Return the samples as OpenMetrics text with their times."""
    lines = []
    for (name, pairs), points in samples.items():
        labels = ",".join(f"{label}={json.dumps(value)}" for label, value in pairs)
        lines += [f"{name}{{{labels}}} {_number(value)} {t:.3f}" for t, value in points]
    return "\n".join([*lines, "# EOF", ""])


def _number(value: float) -> str:
    return repr(value) if math.isfinite(value) else f"{value:+}".replace("inf", "Inf").replace("nan", "NaN")


def backfill(samples: Samples, folder: Path) -> Path:
    """Write the samples as storage blocks below `folder`; return the storage folder."""
    source, storage = folder / "samples.om", folder / "storage"
    source.write_text(openmetrics(samples), encoding="utf-8")
    done = promtool("tsdb", "create-blocks-from", "openmetrics", source, storage)
    assert done.returncode == 0, done.stdout + done.stderr
    return storage


class Prometheus:
    """A running server: its address, and queries over one kept connection."""

    def __init__(self, port: int) -> None:
        """Talk to the server on this loopback port."""
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def api(self, path: str, **parameters: str) -> dict[str, Any]:
        """Return the JSON answer of an API path such as /api/v1/query, errors included."""
        body = urllib.parse.urlencode(parameters)
        method = "POST" if parameters else "GET"
        self._connection.request(method, path, body or None, {"Content-Type": "application/x-www-form-urlencoded"})
        answer: dict[str, Any] = json.loads(self._connection.getresponse().read())
        return answer

    def query(self, expression: str, t: float) -> dict[str, Any]:
        """Return the answer to an instant query."""
        return self.api("/api/v1/query", query=expression, time=f"{t:.3f}")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


@contextmanager
def running_prometheus(folder: Path, *, config: str = "", storage: Path | None = None, flags: Sequence[str] = ()) -> Iterator[Prometheus]:
    """Run a server on a free loopback port, with this configuration text and storage; stop it on leaving."""
    settings = folder / "prometheus.yml"
    settings.write_text(config or "global: {}\n", encoding="utf-8")
    port = free_port()
    arguments = [
        f"--config.file={settings}",
        f"--storage.tsdb.path={storage or folder / 'storage'}",
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
        *flags,
    ]
    with (folder / "prometheus.log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen([program("prometheus"), *arguments], stdout=log, stderr=subprocess.STDOUT, cwd=folder)
        server = Prometheus(port)
        try:
            _wait_until_ready(server, process, folder / "prometheus.log")
            yield server
        finally:
            server.close()
            process.terminate()
            process.wait(timeout=30)


def _wait_until_ready(server: Prometheus, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", server.port), timeout=1):
                pass
            if server.api("/api/v1/query", query="1", time="0").get("status") == "success":
                return
        except (OSError, http.client.HTTPException, ValueError):
            server.close()
        time.sleep(0.05)
    raise AssertionError(f"prometheus did not become ready:\n{log.read_text(encoding='utf-8')}")
