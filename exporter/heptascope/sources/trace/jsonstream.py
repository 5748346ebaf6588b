"""Cuts the `traceEvents` array of a Chrome trace into pieces of whole events, without holding the file.

A cut is tried at a `}` `,` `{` from the back of what was read. The piece before it either parses as a list or the
place was inside a string or a nested value: an unclosed bracket or quote never parses. So a piece that parses was cut
between two events, whatever the file's layout.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from heptascope.errors import UserError
from heptascope.sources.trace.bytesource import ByteSource

CHUNK = 512 << 10
"""Bytes parsed at a time: its objects still fit the processor's cache, which larger pieces do not (measured: docs/trace.md)."""
_LARGEST_EVENT = 64 << 20  # more bytes than this without a cut are damage, not an event
_LARGEST_TAIL = 256 << 10  # what may stand behind the array
_LONGEST_BLANK = 256  # white space that may stand between the last event and the array's end
_TRIES = 16  # places tried before more is read
_BLANK = b"\xef\xbb\xbf \t\r\n"  # a byte order mark, and white space
_BETWEEN = re.compile(rb"\}\s*,\s*\{")
_ARRAY = re.compile(rb'"traceEvents"\s*:\s*\[')
_BARE = re.compile(rb"(?<=[:\[,])\s*-?(?:nan|NaN|inf|Infinity)(?=\s*[,}\]])")
_POSITION = re.compile(r"\(byte (\d+)\)")

Decode = Callable[[bytes], list[Any]]


class _Parsed(NamedTuple):
    """A parsed value, or None and where it stopped being JSON (None: it only lacks its end)."""

    value: Any = None
    broken_at: int | None = None
    closed: bool = False  # a whole value came before `broken_at`


class EventStream:
    """The events of one trace file. `head` and `tail` hold what stands around the array, once it was read.

    `problem` says why reading stopped before the end (empty: it did not).
    """

    def __init__(self, source: ByteSource, where: str) -> None:
        """Read up to the array. Raises UserError if this is not a Chrome trace."""
        self._source, self._where = source, where
        self.head: dict[str, Any] = {}
        self.tail: dict[str, Any] = {}
        self.problem = ""
        self._closed = self._broken = False
        self._buffer = self._open()

    def pieces(self, decode: Decode) -> Iterator[list[Any]]:
        """Yield lists of decoded events; `decode` takes a JSON array and raises msgspec.DecodeError if it is not one."""
        while not self.problem and (more := self._source.read(max(CHUNK, len(self._buffer)))):
            self._buffer += more
            piece = None if self._closed else self._cut(decode)
            if piece is not None:
                yield piece
            elif len(self._buffer) > _LARGEST_EVENT:
                self.problem = "the JSON is damaged"
        yield from self._finish(decode)

    def _open(self) -> bytes:
        buffer = self._source.read(CHUNK).lstrip(_BLANK)
        if buffer[:1] == b"[":
            return buffer[1:]
        while True:
            for found in _ARRAY.finditer(buffer):
                head = _parse(msgspec.json.decode, buffer[: found.end()] + b"]}").value
                if head is not None:
                    self.head = head
                    return buffer[found.end() :]
            more = self._source.read(CHUNK)
            if not more or len(buffer) > _LARGEST_EVENT:
                raise UserError("JSON without traceEvents", where=self._where, hint="give a trace that the PyTorch profiler exported")
            buffer += more

    def _cut(self, decode: Decode) -> list[Any] | None:
        """Take whole events off the front of the buffer; None if more must be read, or none will come (`problem`)."""
        limit, parsed = len(self._buffer), _Parsed()
        for _ in range(_TRIES):
            place = _last_place(self._buffer, limit)
            if place is None:
                break
            end, begin = place
            parsed = _parse(decode, b"[" + self._buffer[:end] + b"]")
            if parsed.value is not None:
                self._buffer = self._buffer[begin:]
                return list(parsed.value)
            self._broken |= parsed.broken_at is not None and not parsed.closed
            limit = end - 1 if parsed.broken_at is None else min(parsed.broken_at, end - 1)
        if parsed.broken_at is not None:
            self._closed = parsed.closed
            self.problem = "" if parsed.closed else "the JSON is damaged"
        return None

    def _finish(self, decode: Decode) -> Iterator[list[Any]]:
        """Parse what is left: the last events and the tail, or as many events as a file without an end still holds."""
        for end in _closings(self._buffer):
            if self.problem:
                break
            tail = _parse(msgspec.json.decode, b'{"":0' + self._buffer[end + 1 :].rstrip().removesuffix(b"}") + b"}").value
            piece = None if tail is None else _parse(decode, b"[" + self._buffer[:end] + b"]").value
            if piece is not None:
                self.tail, self.problem = tail, self._source.problem
                yield piece
                return
        piece = self._cut(decode)
        self.problem = self._source.problem or self.problem or ("the JSON is damaged" if self._broken else "the JSON ends early")
        yield piece or []


def _closings(buffer: bytes) -> Iterator[int]:
    """Yield places that can be the end of the array, from the back: a `]` behind an event or the array's begin."""
    end, stop = len(buffer), max(len(buffer) - _LARGEST_TAIL, 0)
    while (end := buffer.rfind(b"]", stop, end)) >= 0:
        if buffer[max(end - _LONGEST_BLANK, 0) : end].rstrip()[-1:] in (b"}", b""):
            yield end


def _last_place(buffer: bytes, limit: int) -> tuple[int, int] | None:
    """Return (end of the event before, start of the event after) for the last possible cut before `limit`."""
    at = limit
    while (at := buffer.rfind(b"}", 0, at)) >= 0:
        found = _BETWEEN.match(buffer, at)
        if found:
            return at + 1, found.end() - 1
    return None


def _parse(decode: Callable[[bytes], Any], text: bytes) -> _Parsed:
    """Decode; what a strict parser refuses but profilers write (bare NaN, stray bytes) is mended first."""
    try:
        return _Parsed(decode(text))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        first = str(error)
    except RecursionError:  # no profiler nests a thousand levels deep
        return _Parsed(None, 0)
    if "truncated" in first:
        return _Parsed()
    mended = _BARE.sub(b"null", text.decode("utf-8", "replace").encode())
    try:
        return _Parsed(decode(mended))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        found = _POSITION.search(str(error))
        return _Parsed(None, int(found[1]) if found and mended == text else None, "trailing characters" in str(error))
