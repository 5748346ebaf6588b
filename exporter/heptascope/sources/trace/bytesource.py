"""Reads a file, compressed or not, piece by piece, and keeps what a broken gzip still gives."""

from __future__ import annotations

import zlib
from typing import BinaryIO

GZIP = b"\x1f\x8b"
_PIECE = 1 << 20
_BITE = 64  # bytes fed at a time to find the place of damage
_GZIP_WINDOW = zlib.MAX_WBITS | 16  # zlib's own code for "a gzip header comes first"


class ByteSource:
    """A file as decompressed bytes. `problem` says what was wrong with the compression (empty: nothing)."""

    def __init__(self, file: BinaryIO) -> None:
        """Look at the first bytes to know whether `file` is gzip."""
        self._file = file
        self.compressed = file.read(2) == GZIP
        file.seek(0)
        self._inflate = zlib.decompressobj(_GZIP_WINDOW) if self.compressed else None
        self._kept = b""
        self.problem = ""

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes, fewer only at the end."""
        if self._inflate is None:
            return self._file.read(size)
        pieces = []
        while size > 0 and (piece := self._next(size)):
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def _next(self, size: int) -> bytes:
        """Inflate until there is something to return; empty at the end or where the compression breaks."""
        while not self.problem:
            if self._inflate is None or (self._inflate.eof and not self._reopen()):
                return b""
            raw = self._kept or self._file.read(_PIECE)
            if not raw:
                self.problem = "the gzip data ends early"
                return self._inflate.flush()
            before = self._inflate.copy()
            try:
                piece = self._inflate.decompress(raw, size)
            except zlib.error:
                self.problem = "the gzip data is damaged"
                return _salvage(before, raw, size)
            self._kept = self._inflate.unconsumed_tail
            if piece:
                return piece
        return b""

    def _reopen(self) -> bool:
        """Begin the next member of a file made of several gzip members."""
        if self._inflate is None:
            return False
        rest = self._inflate.unused_data or self._file.read(_PIECE)
        if rest[:2] != GZIP:
            return False
        self._inflate, self._kept = zlib.decompressobj(_GZIP_WINDOW), rest
        return True


def _salvage(inflate: zlib._Decompress, raw: bytes, size: int) -> bytes:
    """Return what comes before the damage: a call that fails returns nothing, so the damaged piece is fed in small bites."""
    found = b""
    for at in range(0, len(raw), _BITE):
        try:
            found += inflate.decompress(raw[at : at + _BITE], size)
        except zlib.error:
            break
        if len(found) >= size:
            break
    return found[:size]
