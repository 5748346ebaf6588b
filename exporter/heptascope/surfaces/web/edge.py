"""What happens to every request before the app sees it: method, token, security headers."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from collections.abc import Collection
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

OPEN_PATHS = frozenset({"/healthz"})
"""Paths that need no token: a liveness probe has none."""
METHODS = ("GET", "HEAD")
HEAD = "heptascope.head"
"""Set in the scope of a HEAD request, which the app sees as GET: an answer without end must know."""

_CSP = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
SECURITY_HEADERS: tuple[tuple[bytes, bytes], ...] = tuple(
    (name.encode(), value.encode())
    for name, value in {
        "content-security-policy": _CSP,
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "cache-control": "no-store",
    }.items()
)
# Prometheus sends the token as a bearer token; a browser can only ask for a user and a password, so the token passes as that too.
_CHALLENGES = ((b"www-authenticate", b'Bearer realm="heptascope"'), (b"www-authenticate", b'Basic realm="heptascope", charset="UTF-8"'))


class Edge:
    """ASGI middleware around the whole app."""

    def __init__(self, app: ASGIApp, token: str = "", posts: Collection[str] = ()) -> None:
        """Guard `app`; every path but OPEN_PATHS needs `token` unless that is empty. The paths `posts` take POST too."""
        self._app, self._posts = app, posts
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what may not pass, and pass on the rest; WebSockets get no answer."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        if scope["type"] != "http":
            return
        reply = _Reply(send, scope["method"])
        if scope["method"] not in METHODS and not (scope["method"] == "POST" and scope["path"] in self._posts):
            await reply.error(405, "only GET and HEAD are served", ((b"allow", b", ".join(m.encode() for m in METHODS)),))
        elif self._token and scope["path"] not in OPEN_PATHS and not self._admits(scope):
            await reply.error(401, "a token is needed: Authorization: Bearer <token>", _CHALLENGES)
        else:
            method = "GET" if scope["method"] == "HEAD" else scope["method"]
            await self._app({**scope, "method": method, HEAD: scope["method"] == "HEAD"}, receive, reply.send)

    def _admits(self, scope: Scope) -> bool:
        shown = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        scheme, _, credentials = shown.partition(b" ")
        token = credentials.strip()
        if scheme.lower() == b"basic":
            try:
                token = base64.b64decode(token, validate=True).partition(b":")[2]
            except binascii.Error:
                return False
        elif scheme.lower() != b"bearer":
            return False
        return hmac.compare_digest(token, self._token)


class _Reply:
    """Adds the security headers to an answer, and drops its body if the request was HEAD."""

    def __init__(self, send: Send, method: str) -> None:
        self._send = send
        self._head = method == "HEAD"

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *SECURITY_HEADERS]}
        elif message["type"] == "http.response.body" and self._head:
            message = {**message, "body": b""}
        await self._send(message)

    async def error(self, status: int, text: str, headers: tuple[tuple[bytes, bytes], ...]) -> None:
        body = error_body(text)
        plain: list[Any] = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await self.send({"type": "http.response.start", "status": status, "headers": [*plain, *headers]})
        await self.send({"type": "http.response.body", "body": body})


def error_body(text: str) -> bytes:
    """Return the one shape of an error: `{"error": text}`."""
    return json.dumps({"error": text}).encode()
