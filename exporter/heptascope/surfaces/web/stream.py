"""Server-sent events: the page once, then what changes. One task makes the messages for all clients, and rests while there are none."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from heptascope.surfaces.web.patch import merge_patch

Object = dict[str, Any]
POLL_SECONDS = 0.2
"""How often the task looks for a new snapshot: what a client waits for it on average is half of that."""
BEAT_SECONDS = 2.0
"""Without news a client hears so often how old the snapshot is; without that it knows that the line is dead."""
MOST_WAITING = 30
"""Messages that may wait for a slow client; past that it is cut off, connects anew and gets the page as it is then."""
MOST_CLIENTS = 64


class Broadcaster:
    """Makes the messages. Used by the server's event loop alone."""

    def __init__(
        self, version: Callable[[], int], age: Callable[[], float], page: Callable[[], Object], points: Callable[[], list[Object]]
    ):
        """Look at `version` for news; `page` and `points` make them, `age` is that of the newest snapshot in seconds."""
        self._version, self._age, self._page, self._points = version, age, page, points
        self._clients: set[asyncio.Queue[bytes | None]] = set()
        self._task: asyncio.Task[None] | None = None
        self._sent: dict[str, Any] = {}
        self._seen = -1
        self._anew = False

    @property
    def clients(self) -> int:
        """How many listen."""
        return len(self._clients)

    def begin_anew(self) -> None:
        """Send the whole page next time: what it shows has no past any more. May be called from any thread."""
        self._anew = True

    async def listen(self) -> AsyncIterator[bytes]:
        """Yield the messages for one client until it goes away or is too slow."""
        waiting: asyncio.Queue[bytes | None] = asyncio.Queue()
        if not self._clients:
            self._look()
        self._clients.add(waiting)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())
        try:
            yield message("page", self._sent) + self._beat()
            while (item := await waiting.get()) is not None:
                yield item
        finally:
            self._clients.discard(waiting)

    async def _run(self) -> None:
        quiet = 0.0
        while self._clients:
            await asyncio.sleep(POLL_SECONDS)
            quiet += POLL_SECONDS
            news = self._look() if self._version() != self._seen else b""
            if news or quiet >= BEAT_SECONDS:
                quiet = 0.0
                self._send(news or self._beat())

    def _look(self) -> bytes:
        """Take in the newest snapshot; return what changed since the last one."""
        self._seen = self._version()
        anew, self._anew = self._anew, False
        before, self._sent = self._sent, self._page()
        patch = merge_patch(before, self._sent) if before else {}
        parts = [message("page", self._sent)] if anew else [message("patch", patch)] if patch else []
        parts += [message("points", point) for point in self._points()]
        return b"".join(parts)

    def _beat(self) -> bytes:
        return message("beat", {"age": round(self._age(), 1)})

    def _send(self, body: bytes) -> None:
        for client in list(self._clients):
            if client.qsize() < MOST_WAITING:
                client.put_nowait(body)
            else:
                self._clients.discard(client)
                client.put_nowait(None)


def message(event: str, data: Any) -> bytes:
    """Return one server-sent event with `data` as JSON on one line."""
    return f"event: {event}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()
