"""Fetches one page over HTTP, bounded in time and in size; redirects are not followed, proxies not used.

The client is httpx on a transport of our own: httpcore, which lies below it, takes a network backend, the only place where one
deadline can bound a whole exchange, headers included.
"""

from __future__ import annotations

import base64
import math
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

import httpcore

from heptascope.model import Reason
from heptascope.sources.base import SourceError

sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None keeps a module out: httpx's own command line costs 3 MiB
import httpx  # noqa: E402  # after the line above

TIMEOUT_SECONDS = 5.0
CONNECT_TIMEOUT_SECONDS = 2.0
MAX_PAGE_BYTES = 16 * 2**20
KEEP_ALIVE_SECONDS = 3.0
"""Idle connections are dropped before servers drop them: uvicorn and cpp-httplib both do so after 5 s by default."""

_HEADERS = {"Accept": "text/plain, application/json;q=0.5", "Accept-Encoding": "identity"}
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_HTTP_OK = 200
_HINTS = {
    401: (Reason.NO_PERMISSION, "this page needs a key"),
    403: (Reason.NO_PERMISSION, "this page needs a key"),
    404: (Reason.SOURCE_DOWN, "check the path, and that the engine's metrics are switched on"),
    501: (Reason.FLAG_OFF, "the server runs with its metrics switched off"),
}


class Fetched(NamedTuple):
    """One answer: `text` is the whole body, decoded."""

    status: int
    content_type: str
    text: str


class _Deadline:
    """The moment by which an exchange must be over."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._at = math.inf

    def start(self, seconds: float) -> None:
        self._at = self._clock() + seconds

    def left(self, timeout: float | None) -> float:
        left = self._at - self._clock()
        if left <= 0:
            raise httpcore.ReadTimeout("the deadline has passed")
        return left if timeout is None else min(left, timeout)


class _Stream(httpcore.NetworkStream):
    """A connection whose every wait ends at the deadline, so that a dripping server cannot stretch it."""

    def __init__(self, inner: httpcore.NetworkStream, deadline: _Deadline) -> None:
        self._inner, self._deadline = inner, deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, self._deadline.left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, self._deadline.left(timeout))

    def start_tls(self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None) -> httpcore.NetworkStream:
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, self._deadline.left(timeout)), self._deadline)

    def close(self) -> None:
        self._inner.close()

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _Backend(httpcore.NetworkBackend):
    """Opens connections that keep the deadline."""

    def __init__(self, deadline: _Deadline) -> None:
        self._deadline = deadline
        self._real = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        stream = self._real.connect_tcp(host, port, self._deadline.left(timeout), local_address, socket_options)
        return _Stream(stream, self._deadline)


class _Body(httpx.SyncByteStream):
    """The body of an answer on its way from httpcore to httpx."""

    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        return self._response.iter_stream()

    def close(self) -> None:
        self._response.close()


class _Transport(httpx.BaseTransport):
    """One kept-alive connection that keeps the deadline."""

    def __init__(self, deadline: _Deadline) -> None:
        backend = _Backend(deadline)
        self._pool = httpcore.ConnectionPool(max_connections=1, keepalive_expiry=KEEP_ALIVE_SECONDS, network_backend=backend)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        where = request.url
        url = httpcore.URL(scheme=where.raw_scheme, host=where.raw_host, port=where.port, target=where.raw_path)
        asked = httpcore.Request(request.method, url, headers=request.headers.raw, extensions=request.extensions)
        response = self._pool.handle_request(asked)
        return httpx.Response(response.status, headers=response.headers, stream=_Body(response), extensions=response.extensions)

    def close(self) -> None:
        self._pool.close()


class Fetcher:
    """Gets pages from one server over a connection that is kept alive. Used by one thread."""

    def __init__(
        self,
        timeout: float = TIMEOUT_SECONDS,
        max_bytes: int = MAX_PAGE_BYTES,
        clock: Callable[[], float] = time.monotonic,
        token_file: Path | None = None,
        credentials: str = "",
    ) -> None:
        """`timeout` bounds the whole exchange, in seconds; `max_bytes` the body, before and after decompression.

        What `token_file` holds is shown as a bearer token; it is read for each page, as tokens may be renewed. `credentials` are
        `user:password`, where a URL has none of its own.
        """
        self._timeout, self._max_bytes = timeout, max_bytes
        self._deadline = _Deadline(clock)
        self._token_file, self._credentials = token_file, credentials
        limits = httpx.Timeout(timeout, connect=min(CONNECT_TIMEOUT_SECONDS, timeout))
        self._client = httpx.Client(transport=_Transport(self._deadline), timeout=limits, headers=_HEADERS, trust_env=False)

    def get(self, url: str) -> Fetched:
        """Return the page at `url`. Raises SourceError with one line that names the URL, without credentials, and what to do."""
        self._deadline.start(self._timeout)
        url, credentials = split_credentials(url)
        keys = _authorization(url, self._token_file, credentials or self._credentials)
        try:
            with self._client.stream("GET", url, headers=keys) as response:
                if response.status_code != _HTTP_OK:
                    raise _status_error(url, response.status_code, response.headers)
                body = self._body(url, response.iter_raw(), response.headers)
        except httpcore.TimeoutException as error:
            text = f"{url}: no complete answer within {self._timeout:g} s; the server is overloaded or hangs"
            raise SourceError(Reason.SOURCE_DOWN, text) from error
        except (httpcore.ConnectError, httpcore.UnsupportedProtocol, httpx.InvalidURL) as error:
            text = f"{url}: {_why(error)}; check that the engine runs and listens there"
            raise SourceError(Reason.SOURCE_DOWN, text) from error
        except UnicodeError as error:  # a part of the name is empty or too long
            raise SourceError(Reason.SOURCE_DOWN, f"{url}: no host can have this name; check the URL") from error
        except (httpcore.ProtocolError, httpcore.NetworkError) as error:
            raise SourceError(Reason.SOURCE_DOWN, f"{url}: incomplete page: {_why(error)}; it is read again") from error
        return Fetched(response.status_code, response.headers.get("content-type", ""), body.decode("utf-8", "replace"))

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _body(self, url: str, chunks: Iterable[bytes], headers: Mapping[str, str]) -> bytes:
        unpack = _unpacker(url, headers.get("content-encoding", "identity"))
        body = bytearray()
        if int(headers.get("content-length", "0")) > self._max_bytes:
            raise self._too_large(url)
        try:
            for chunk in chunks:
                body += unpack.decompress(chunk, self._max_bytes + 1 - len(body)) if unpack else chunk
                if len(body) > self._max_bytes:
                    raise self._too_large(url)
        except zlib.error as error:
            raise SourceError(Reason.INVALID, f"{url}: broken compression ({error}); no page can be read") from error
        if unpack and not unpack.eof:
            raise SourceError(Reason.SOURCE_DOWN, f"{url}: incomplete page: the compressed body ends early; it is read again")
        return bytes(body)

    def _too_large(self, url: str) -> SourceError:
        limit = self._max_bytes / 2**20
        return SourceError(Reason.INVALID, f"{url}: the page is larger than {limit:g} MiB; check the URL, or raise poll.max_page_bytes")


def split_credentials(url: str) -> tuple[str, str]:
    """Return a URL without its `user:password`, and those, so that no message and no page shows them."""
    parts = urlsplit(url)
    credentials, at, place = parts.netloc.rpartition("@")
    return (urlunsplit(parts._replace(netloc=place)), unquote(credentials)) if at else (url, "")


def _authorization(url: str, token_file: Path | None, credentials: str) -> dict[str, str]:
    if token_file is None:
        return {"Authorization": f"Basic {base64.b64encode(credentials.encode()).decode()}"} if credentials else {}
    try:
        token = token_file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not plain text"
        raise SourceError(Reason.NO_PERMISSION, f"{url}: the token in {token_file} cannot be read: {why}") from error
    if not token or any(char.isspace() or not char.isprintable() for char in token):
        raise SourceError(Reason.NO_PERMISSION, f"{url}: {token_file} does not hold one token alone")
    return {"Authorization": f"Bearer {token}"}


def _unpacker(url: str, encoding: str) -> zlib._Decompress | None:
    if encoding in ("", "identity"):
        return None
    if encoding in ("gzip", "deflate"):
        return zlib.decompressobj(_GZIP_OR_ZLIB)
    raise SourceError(Reason.INVALID, f"{url}: the page is compressed as {encoding!r}, which was not asked for; check the URL")


def _status_error(url: str, status: int, headers: Mapping[str, str]) -> SourceError:
    if status in range(300, 400) and "location" in headers:
        return SourceError(Reason.SOURCE_DOWN, f"{url}: HTTP {status} to {headers['location']}; redirects are not followed, use that URL")
    reason, hint = _HINTS.get(status, (Reason.SOURCE_DOWN, "the server is not well; see its log"))
    return SourceError(reason, f"{url}: HTTP {status}; {hint}")


def _why(error: Exception) -> str:
    """Return what the system said, without its error number."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text.partition("] ")[2] or text
