"""uvicorn inside the daemon: a thread of its own, sockets bound before it starts, an end that does not wait for clients."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import threading
import time
from contextlib import suppress
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from heptascope.errors import UserError
from heptascope.surfaces.web.listen import bind, shown

log = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS = 75  # longer than the usual scrape intervals, so that a scraper keeps its connection
MAX_CONNECTIONS = 256  # past that, requests get 503
STOP_SECONDS = 1.0
_ABORT_SECONDS = 0.4  # the end of the time to stop: for connections that have to be cut
_START_SECONDS = 10.0
_START_POLL_SECONDS = 0.005
_TICK_SECONDS = 1.0
_TICKS_A_SECOND = 10  # by which uvicorn counts: at every tenth it renews the Date header


class _Server(uvicorn.Server):
    """uvicorn that wakes up once a second, not ten times: idle, the ten cost as much as all rules. An end does not wait for a tick."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.loop: asyncio.AbstractEventLoop | None = None
        self._wake = asyncio.Event()

    async def main_loop(self) -> None:
        self.loop = asyncio.get_running_loop()
        ticks = 0
        while not await self.on_tick(ticks):
            ticks += _TICKS_A_SECOND
            with suppress(TimeoutError):
                async with asyncio.timeout(_TICK_SECONDS):
                    await self._wake.wait()

    def end(self) -> None:
        """Stop to serve; may be called from any thread."""
        self.should_exit = True
        if self.loop is not None:
            with suppress(RuntimeError):  # it has just ended by itself
                self.loop.call_soon_threadsafe(self._wake.set)


class WebServer:
    """Serves one app on one address, from `start` to `stop`."""

    def __init__(self, app: ASGIApp, host: str, port: int, tls_cert: Path | None = None, tls_key: Path | None = None) -> None:
        """Prepare to serve `app` on `host` ("" means all addresses) and `port` (0 means any free one).

        `tls_cert` (PEM chain) and `tls_key` turn on TLS. Raises UserError if they cannot be used.
        """
        self._host, self._port = host, port
        self._scheme = "https" if tls_cert else "http"
        self._server = _Server(_config(app, tls_cert, tls_key))
        self._thread = threading.Thread(target=self._run, name="web", daemon=True)
        self._sockets: list[socket.socket] = []

    @property
    def port(self) -> int:
        """The port that is served, once started."""
        return self._port

    @property
    def url(self) -> str:
        """The address to show to people."""
        return f"{self._scheme}://{shown(self._host, self._port)}"

    @property
    def running(self) -> bool:
        """Whether requests are answered."""
        return self._server.started and self._thread.is_alive()

    def start(self) -> None:
        """Bind and serve; return when requests are answered. Raises UserError if the address cannot be bound."""
        self._sockets = bind(self._host, self._port)
        self._port = self._sockets[0].getsockname()[1]
        self._thread.start()
        give_up = time.monotonic() + _START_SECONDS
        while not self.running:
            if not self._thread.is_alive() or time.monotonic() > give_up:
                raise RuntimeError("the web server did not start; the log says why")
            time.sleep(_START_POLL_SECONDS)

    def stop(self, timeout: float = STOP_SECONDS) -> bool:
        """End: open requests may finish, what still hangs near the end of `timeout` seconds is cut. Return whether it has ended."""
        if not self._thread.is_alive():
            return True
        self._server.end()
        self._thread.join(max(timeout - _ABORT_SECONDS, 0.0))
        if self._thread.is_alive() and self._server.loop is not None:
            self._server.force_exit = True
            self._server.loop.call_soon_threadsafe(self._cut)
            self._thread.join(_ABORT_SECONDS)
        return not self._thread.is_alive()

    def _cut(self) -> None:
        for connection in list(self._server.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()

    def _run(self) -> None:
        try:
            asyncio.run(self._server.serve(sockets=self._sockets))
        except Exception:
            log.exception("the web server ended by an error")
        finally:
            for sock in self._sockets:
                sock.close()


def _config(app: ASGIApp, tls_cert: Path | None, tls_key: Path | None) -> uvicorn.Config:
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="error",  # port scanners would fill the log with warnings
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        ssl_certfile=tls_cert,
        ssl_keyfile=tls_key,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as exc:  # the library does not say which of the two files it means
        problem = exc.strerror if isinstance(exc, OSError) and not isinstance(exc, ssl.SSLError) else "no PEM certificate with its key"
        where = f"tls {tls_cert}, {tls_key}"
        raise UserError(f"cannot be used: {problem}", where=where, hint="give a PEM certificate chain and its unencrypted key") from exc
    return config
