"""A thousand pods on one loopback port: real pages of heptascope, varied, whose counters go on. `python pod_pages.py PORT FOLDER`.

FOLDER holds two pages of each kind of server, `KIND.0` and `KIND.1`, taken some seconds apart (the times are in `times.json`). What the
path `/KIND/NUMBER` gets is made from them: counters count on at the rate between the two, times a factor of the variant; gauges stay.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from pathlib import Path

VARIANTS = 25
RENEW_SECONDS = 4.0
_COUNTER = re.compile(r"_(total|bucket|count|sum)(\{|$)")
_UUID = re.compile(r"GPU-[0-9a-f-]+")


class Page:
    """The pages of one kind of server."""

    def __init__(self, before: str, after: str, seconds: float) -> None:
        """Learn levels and rates from two pages."""
        first = {line.rpartition(" ")[0]: line for line in before.splitlines() if line and line[0] != "#"}
        self._lines: list[tuple[str, float, float]] = []
        for line in after.splitlines():
            if not line or line[0] == "#":
                continue
            series, _, value = line.rpartition(" ")
            level = float(value)
            old = first.get(series)
            rate = (level - float(old.rpartition(" ")[2])) / seconds if old is not None and _COUNTER.search(series) else 0.0
            self._lines.append((series, level, max(rate, 0.0)))
        self._kept: dict[int, tuple[float, bytes]] = {}
        self._began = time.monotonic()

    def body(self, variant: int) -> bytes:
        """Return the page of a variant as of now."""
        made, body = self._kept.get(variant, (-RENEW_SECONDS, b""))
        now = time.monotonic()
        if now - made < RENEW_SECONDS:
            return body
        seconds, factor = now - self._began, 0.8 + 0.4 * variant / VARIANTS
        lines = [
            f"{series} {level + rate * factor * seconds:.6g}" if rate else f"{series} {level:.9g}" for series, level, rate in self._lines
        ]
        text = _UUID.sub(f"GPU-{variant:08x}", "\n".join(lines)) + "\n"
        self._kept[variant] = (now, text.encode())
        return self._kept[variant][1]


class Pods:
    """Answers for every pod."""

    def __init__(self, folder: Path) -> None:
        """Read the pages."""
        times = json.loads((folder / "times.json").read_text(encoding="utf-8"))
        self._pages = {
            kind: Page((folder / f"{kind}.0").read_text("utf-8"), (folder / f"{kind}.1").read_text("utf-8"), seconds)
            for kind, seconds in times.items()
        }

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until it closes."""
        try:
            while request := await reader.readuntil(b"\r\n\r\n"):
                _, kind, number = request.split(b" ", 2)[1].decode().split("/")
                body = self._pages[kind].body(int(number) % VARIANTS)
                head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {len(body)}\r\n\r\n"
                writer.write(head.encode() + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def serve(port: int, folder: Path) -> None:
    """Serve until killed."""
    server = await asyncio.start_server(Pods(folder).answer, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), Path(sys.argv[2])))
