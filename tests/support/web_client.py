"""An HTTP client for an app without a server: httpx over ASGI."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
from starlette.types import ASGIApp


class Client:
    """Sends requests to `app`, one event loop each; an exception in the app becomes its 500 answer, as from the real server."""

    def __init__(self, app: ASGIApp) -> None:
        """Talk to `app`."""
        self._transport = httpx.ASGITransport(app, raise_app_exceptions=False)

    def get(self, path: str, **options: Any) -> httpx.Response:
        """Send GET."""
        return self.request("GET", path, **options)

    def head(self, path: str) -> httpx.Response:
        """Send HEAD."""
        return self.request("HEAD", path)

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send any request; `options` are those of httpx."""
        return asyncio.run(self._request(method, path, **options))

    async def _request(self, method: str, path: str, **options: Any) -> httpx.Response:
        async with httpx.AsyncClient(transport=self._transport, base_url="http://heptascope") as client:
            return await client.request(method, path, **options)

    def raw(self, path: str, **options: Any) -> tuple[httpx.Headers, bytes]:
        """Send GET; return the headers and the body as it came over the wire, compressed or not."""
        return asyncio.run(self._raw(path, **options))

    async def _raw(self, path: str, **options: Any) -> tuple[httpx.Headers, bytes]:
        async with (
            httpx.AsyncClient(transport=self._transport, base_url="http://heptascope") as client,
            client.stream("GET", path, **options) as answer,
        ):
            return answer.headers, b"".join([part async for part in answer.aiter_raw()])
