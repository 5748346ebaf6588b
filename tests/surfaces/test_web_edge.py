"""Method, token and headers of every request."""

from __future__ import annotations

import asyncio
import base64

import pytest
from starlette.types import Message, Receive, Scope, Send

from heptascope.config import WebSettings
from heptascope.surfaces.web.app import create_app
from heptascope.surfaces.web.edge import SECURITY_HEADERS, Edge
from support.snapshots import busy
from support.web_client import Client
from support.web_state import MemoryState

TOKEN = "correct-horse-battery"  # noqa: S105  # of this test alone
PATHS = ["/", "/metrics", "/healthz", "/readyz", "/api/v1/signals", "/api/openapi.json", "/static/page.js", "/nope"]


def basic(user: str, password: str) -> str:
    """Return the header of basic authentication."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.fixture
def client() -> Client:
    """Return a client of an open app."""
    return Client(create_app(MemoryState(busy())))


@pytest.fixture
def guarded() -> Client:
    """Return a client of an app that wants a token."""
    return Client(create_app(MemoryState(busy()), WebSettings.model_validate({"token": TOKEN})))


@pytest.mark.parametrize("path", PATHS)
def test_security_headers(client: Client, path: str) -> None:
    """Every answer carries them, errors too; nothing may be loaded from elsewhere, framed or run inline."""
    headers = client.get(path).headers
    assert {(name.decode(), value.decode()) for name, value in SECURITY_HEADERS} <= set(headers.items())
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert not any(word in policy for word in ("unsafe", "http", "*", "data:"))


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
def test_only_get_and_head(client: Client, method: str) -> None:
    """Everything else is refused on every path."""
    answer = client.request(method, "/metrics")
    assert (405, "GET, HEAD", {"error": "only GET and HEAD are served"}) == (answer.status_code, answer.headers["allow"], answer.json())


@pytest.mark.parametrize("path", PATHS)
def test_head_is_get_without_a_body(client: Client, path: str) -> None:
    """Status and type of an answer can be asked for without it."""
    head, get = client.head(path), client.get(path)
    assert b"" == head.content
    assert (get.status_code, get.headers["content-type"]) == (head.status_code, head.headers["content-type"])


@pytest.mark.parametrize("path", [path for path in PATHS if path != "/healthz"])
@pytest.mark.parametrize(
    "shown",
    [
        None,
        "",
        TOKEN,
        "Bearer",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Token {TOKEN}",
        basic("any", "wrong"),
        "Basic %%%",
        "Bearer \xe9",
    ],
)
def test_without_the_token(guarded: Client, path: str, shown: str | None) -> None:
    """All paths but the liveness probe are closed, unknown ones too, and the answer says what is wanted."""
    answer = guarded.get(path, headers=None if shown is None else [(b"authorization", shown.encode("latin-1"))])
    assert 401 == answer.status_code
    assert ['Bearer realm="heptascope"', 'Basic realm="heptascope", charset="UTF-8"'] == answer.headers.get_list("www-authenticate")
    assert TOKEN not in answer.text


@pytest.mark.parametrize("shown", [f"Bearer {TOKEN}", f"bearer  {TOKEN} ", basic("prometheus", TOKEN), basic("", TOKEN)])
def test_with_the_token(guarded: Client, shown: str) -> None:
    """Scrapers send it as a bearer token, browsers as a password."""
    assert 200 == guarded.get("/metrics", headers={"authorization": shown}).status_code


def test_the_liveness_probe_needs_no_token(guarded: Client) -> None:
    """A kubelet has none to send."""
    assert 200 == guarded.get("/healthz").status_code


@pytest.mark.parametrize(("kind", "reaches"), [("websocket", False), ("lifespan", True), ("http", True)])
def test_what_reaches_the_app(kind: str, reaches: bool) -> None:
    """No WebSocket passes, with or without a token; a server's start and end do."""
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["type"])

    async def receive() -> Message:
        return {}

    async def send(message: Message) -> None:
        return

    asyncio.run(Edge(app)({"type": kind, "method": "GET", "path": "/", "headers": []}, receive, send))
    assert ([kind] if reaches else []) == seen
