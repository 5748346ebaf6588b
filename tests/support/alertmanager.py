"""Starts the real Alertmanager on loopback, and receives what it sends."""

from __future__ import annotations

import json
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from support.prometheus import free_port, program

START_SECONDS = 30.0


class Notice(NamedTuple):
    """One alert of one notification: when it came, to which receiver (the URL's path), firing or resolved, with which labels."""

    t: float
    receiver: str
    status: str
    labels: dict[str, str]
    annotations: dict[str, str]

    @property
    def name(self) -> str:
        """Name of the alert."""
        return self.labels["alertname"]


class Webhook:
    """A real HTTP server that keeps every alert it is told about."""

    def __init__(self) -> None:
        """Serve on a free loopback port from now on."""
        self._notices: list[Notice] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def notices(self, pod: str = "") -> list[Notice]:
        """Return what came so far, of one pod or of all."""
        return [notice for notice in list(self._notices) if not pod or notice.labels.get("pod") == pod]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        notices = self._notices

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                now = time.time()
                for alert in body["alerts"]:
                    notices.append(Notice(now, self.path.strip("/"), alert["status"], alert["labels"], alert["annotations"]))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *arguments: object) -> None:
                """Say nothing."""

        return Handler


class Alertmanager:
    """A running Alertmanager."""

    def __init__(self, port: int) -> None:
        """Talk to the one on this loopback port."""
        self.port, self.url = port, f"http://127.0.0.1:{port}"

    def alerts(self) -> list[dict[str, Any]]:
        """Return the alerts that it knows, each with its status: what silences it, if anything."""
        return self._json("/api/v2/alerts")

    def post(self, alerts: Sequence[dict[str, Any]]) -> None:
        """Tell it about alerts, as Prometheus does."""
        body = json.dumps(alerts).encode()
        request = urllib.request.Request(self.url + "/api/v2/alerts", body, {"Content-Type": "application/json"})  # noqa: S310  # our own URL
        with urllib.request.urlopen(request, timeout=10):  # noqa: S310  # as above
            pass

    def _json(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:  # noqa: S310  # our own URL
            return json.loads(answer.read())


@contextmanager
def running_alertmanager(folder: Path, config: str) -> Iterator[Alertmanager]:
    """Run one with this configuration text on a free loopback port; stop it on leaving."""
    settings, port = folder / "alertmanager.yml", free_port()
    settings.write_text(config, encoding="utf-8")
    arguments = [
        f"--config.file={settings}",
        f"--storage.path={folder / 'alertmanager'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
        "--log.level=warn",
    ]
    with (folder / "alertmanager.log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen([program("prometheus-alertmanager"), *arguments], stdout=log, stderr=subprocess.STDOUT, cwd=folder)
        server = Alertmanager(port)
        try:
            _wait_until_ready(server, process, folder / "alertmanager.log")
            yield server
        finally:
            process.terminate()
            process.wait(timeout=30)


def _wait_until_ready(server: Alertmanager, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            server.alerts()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"alertmanager did not become ready:\n{log.read_text(encoding='utf-8')}")
