"""The real server on a loopback port."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
import trustme
from starlette.types import ASGIApp, Receive, Scope, Send

from heptascope.config import WebSettings
from heptascope.errors import UserError
from heptascope.surfaces.web.app import create_app
from heptascope.surfaces.web.server import MAX_CONNECTIONS, WebServer
from support.snapshots import T0, busy
from support.web_state import MemoryState

Start = Callable[..., WebServer]
REQUEST = b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.fixture
def start() -> Iterator[Start]:
    """Return a function that starts a server on loopback; it is stopped at the end."""
    servers: list[WebServer] = []

    def starter(app: ASGIApp | None = None, host: str = "127.0.0.1", **options: Path) -> WebServer:
        server = WebServer(app or create_app(MemoryState(busy())), host, 0, **options)
        servers.append(server)
        server.start()
        return server

    yield starter
    for server in servers:
        assert server.stop()


def connected(server: WebServer, sent: bytes) -> socket.socket:
    """Open a raw connection and send something."""
    sock = socket.create_connection(("127.0.0.1", server.port), timeout=5)
    sock.sendall(sent)
    return sock


def test_serves_until_stopped(start: Start) -> None:
    """Requests are answered from the moment `start` returns until `stop`; then the port is free."""
    server = start()
    assert server.running
    assert f"http://127.0.0.1:{server.port}" == server.url
    assert 200 == httpx.get(f"{server.url}/metrics").status_code
    assert server.stop()
    assert not server.running
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{server.url}/metrics")


def test_stopping_twice(start: Start) -> None:
    """A second stop finds nothing to do."""
    server = start()
    assert server.stop()
    assert server.stop()


def test_ipv4_and_ipv6(start: Start) -> None:
    """The default address answers both."""
    server = start(host="")
    for host in ("127.0.0.1", "[::1]"):
        assert 200 == httpx.get(f"http://{host}:{server.port}/healthz").status_code


def test_a_connection_serves_many_requests(start: Start) -> None:
    """Scrapers keep their connection; the page on it follows the snapshot."""
    state = MemoryState(busy())
    server = start(create_app(state))
    with httpx.Client(base_url=server.url) as client:
        first = client.get("/metrics", headers={"accept-encoding": "gzip"})
        state.current, state.time = busy(T0 + 61, 2), T0 + 61
        second = client.get("/metrics", headers={"accept-encoding": "gzip"})
        head = client.head("/metrics")
    assert "gzip" == first.headers["content-encoding"]
    line = 'heptascope_engine_steps_total{engine="vllm",rank="0"}'
    assert f"{line} 7440.0\n" in first.text
    assert f"{line} 7564.0\n" in second.text
    assert (200, b"") == (head.status_code, head.content)
    assert "server" not in first.headers


@pytest.mark.parametrize(
    "sent", [b"", REQUEST, b"GET /metrics HTTP/1.1\r\nhost:", REQUEST * 3], ids=["silent", "kept alive", "half a request", "pipelined"]
)
def test_stop_with_open_connections(start: Start, sent: bytes) -> None:
    """Clients that stay connected do not hold up the end: within a second it is there."""
    server = start()
    with connected(server, sent) as sock:
        if sent.endswith(b"\r\n\r\n"):
            assert sock.recv(12) == b"HTTP/1.1 200"
        assert server.stop(1.0)


def test_stop_while_a_client_does_not_read(start: Start) -> None:
    """An answer that nobody takes is cut."""

    async def large(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": bytes(2**26)})

    server = start(large)
    with connected(server, REQUEST) as sock:
        assert sock.recv(12) == b"HTTP/1.1 200"
        assert server.stop(1.0)


def test_too_many_connections(start: Start) -> None:
    """Past the limit requests get 503 at once; the others are served on."""
    server = start()
    idle = [connected(server, b"") for _ in range(MAX_CONNECTIONS)]
    assert 503 == httpx.get(f"{server.url}/metrics").status_code
    for sock in idle:
        sock.close()


def test_port_in_use(start: Start) -> None:
    """A second server on the port is told at once, in one line."""
    server = start()
    with pytest.raises(UserError, match=f"listen 127.0.0.1:{server.port}: the port is in use"):
        WebServer(create_app(MemoryState()), "127.0.0.1", server.port).start()


def test_token_over_the_wire(start: Start) -> None:
    """Without the token 401 with a challenge, with it the page."""
    server = start(create_app(MemoryState(busy()), WebSettings.model_validate({"token": "correct-horse"})))
    refused = httpx.get(f"{server.url}/metrics")
    assert 401 == refused.status_code
    assert refused.headers["www-authenticate"].startswith("Bearer")
    assert 200 == httpx.get(f"{server.url}/metrics", headers={"authorization": "Bearer correct-horse"}).status_code
    assert 200 == httpx.get(f"{server.url}/metrics", auth=("anyone", "correct-horse")).status_code


@pytest.fixture
def pem(tmp_path: Path) -> tuple[trustme.CA, Path, Path]:
    """Return an authority, and the files of a certificate for localhost and its key."""
    authority = trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    issued.cert_chain_pems[0].write_to_path(cert)
    issued.private_key_pem.write_to_path(key)
    return authority, cert, key


def test_tls(start: Start, pem: tuple[trustme.CA, Path, Path]) -> None:
    """With a certificate the pages are served over TLS, and only so; open connections do not hold up the end."""
    authority, cert, key = pem
    server = start(tls_cert=cert, tls_key=key)
    context = ssl.create_default_context()
    authority.configure_trust(context)
    assert server.url.startswith("https://127.0.0.1:")
    with httpx.Client(verify=context) as client:
        assert 200 == client.get(f"{server.url}/metrics").status_code
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://127.0.0.1:{server.port}/metrics")
        assert server.stop(1.0)


def test_unusable_tls_files(pem: tuple[trustme.CA, Path, Path], tmp_path: Path) -> None:
    """A missing file, or one that is no certificate with its key, is told before anything is served."""
    _, cert, key = pem
    for files, problem in (((tmp_path / "none.pem", key), "No such file"), ((key, cert), "no PEM certificate with its key")):
        with pytest.raises(UserError, match=problem) as caught:
            WebServer(create_app(MemoryState()), "127.0.0.1", 0, *files)
        assert f"tls {files[0]}, {files[1]}" == caught.value.where


def test_a_server_that_cannot_run(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """If the server's thread ends at once, `start` says so instead of waiting, and the log has the cause."""
    server = WebServer(create_app(MemoryState()), "127.0.0.1", 0)

    async def fail(sockets: object = None) -> None:
        raise RuntimeError("no event loop here")

    monkeypatch.setattr(server._server, "serve", fail)
    with pytest.raises(RuntimeError, match="the web server did not start"):
        server.start()
    assert "no event loop here" in caplog.text
