"""A tiny real HTTP server on loopback that serves given pages, or misbehaves as told."""

from __future__ import annotations

import gzip
import ssl
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import BinaryIO, NamedTuple, Self

TEXT = "text/plain; version=0.0.4; charset=utf-8"


class Answer(NamedTuple):
    """One answer; `headers` replace the usual ones of the same name."""

    body: bytes
    content_type: str = TEXT
    status: int = 200
    headers: dict[str, str] = {}  # noqa: RUF012  # a NamedTuple's default is never changed


Act = Callable[[BinaryIO, threading.Event], None]
"""Writes raw bytes to the connection; the event is set when the server stops."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Stay silent: readers hang up in the middle, as they are tested to do."""


class EngineServer:
    """Serves from the moment it is made until `stop`. `asked` lists the paths of all requests, `headers` theirs, `clients` their peers."""

    def __init__(self, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self.answers: dict[str, Answer | Act] = {}
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.clients: set[tuple[str, int]] = set()
        self._stopping = threading.Event()
        self._server = _Server(("127.0.0.1", port), self._handler())
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._scheme = "https" if tls else "http"
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def page(self, text: str, path: str = "/metrics", **more: object) -> None:
        self.answers[path] = Answer(text.encode(), **more)  # type: ignore[arg-type]  # the fields of Answer

    def stop(self) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:  # the name that http.server calls
                server.asked.append(self.path)
                server.headers.append(dict(self.headers))
                server.clients.add(self.client_address)
                answer = server.answers.get(self.path, Answer(b"not here", status=404))
                if not isinstance(answer, Answer):
                    self.close_connection = True
                    answer(self.wfile, server._stopping)
                    return
                self.send_response(answer.status)
                headers = {"Content-Type": answer.content_type, "Content-Length": str(len(answer.body)), **answer.headers}
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.body)

            def log_message(self, format: str, *args: object) -> None:
                """Stay silent."""

        return Handler


def hang(wire: BinaryIO, stopping: threading.Event) -> None:
    """Say nothing until the server stops."""
    stopping.wait(60)


def drip(first: bytes, then: bytes, every: float = 0.02) -> Act:
    """Write `first`, then `then` one byte at a time: each byte comes in good time, the whole never."""

    def act(wire: BinaryIO, stopping: threading.Event) -> None:
        _write(wire, first)
        for i in range(len(then)):
            if stopping.wait(every) or not _write(wire, then[i : i + 1]):
                return

    return act


def raw(data: bytes) -> Act:
    """Write `data` and close the connection."""

    def act(wire: BinaryIO, stopping: threading.Event) -> None:
        _write(wire, data)

    return act


def flood(chunk: bytes, times: int, head: bytes = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n") -> Act:
    """Write `chunk` many times without saying how much will come, until the reader hangs up."""

    def act(wire: BinaryIO, stopping: threading.Event) -> None:
        if _write(wire, head):
            for _ in range(times):
                if not _write(wire, chunk):
                    return

    return act


def zipped(text: str) -> Answer:
    """Return the page compressed."""
    return Answer(gzip.compress(text.encode()), headers={"Content-Encoding": "gzip"})


def _write(wire: BinaryIO, data: bytes) -> bool:
    try:
        wire.write(data)
        wire.flush()
    except OSError:
        return False
    return True
