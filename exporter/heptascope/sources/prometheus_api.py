"""Questions to somebody's Prometheus (or Thanos, Mimir, VictoriaMetrics: whatever speaks its HTTP API)."""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Final, NamedTuple, Self, TypeVar
from urllib.parse import urlsplit, urlunsplit

import httpx

from heptascope.errors import UserError
from heptascope.sources.urls import is_http

CONNECT_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 30.0
_UNAUTHORIZED, _FORBIDDEN, _SERVER_ERROR = 401, 403, 500
_T = TypeVar("_T")
_SHOWN: Final = 160
_ERRNO: Final = re.compile(r"^\[Errno -?\d+\] ")


class Series(NamedTuple):
    """One series of an answer: labels with `__name__`, points as Unix seconds and value."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]


class QueryError(UserError):
    """The server has read the query and refuses it, or cannot work it out."""


class PrometheusApi:
    """A Prometheus at a URL; user:password@ in it is sent as basic authentication."""

    def __init__(self, url: str, timeout: float = ANSWER_SECONDS) -> None:
        """Talk to the server at `url`. Raises UserError if that is no URL."""
        if not is_http(url):
            raise UserError("not the address of a Prometheus", where=url, hint="write it as http://HOST:PORT")
        parts = urlsplit(url)
        self.url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="")).rstrip("/")
        """The address without the password, for messages."""
        self._timeout = timeout
        self._client = httpx.Client(
            base_url=url.rstrip("/") + "/api/v1/",
            timeout=httpx.Timeout(timeout, connect=CONNECT_SECONDS),
            verify=ssl.create_default_context(),
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._client.close()

    def instant(self, expr: str, t: float) -> list[Series]:
        """Return the answer to an instant query. Raises UserError."""
        return self._ask(_series, "query", query=expr, time=f"{t:.3f}")

    def range(self, expr: str, start: float, end: float, step: float) -> list[Series]:
        """Return the answer to a range query. Raises UserError."""
        return self._ask(_series, "query_range", query=expr, start=f"{start:.3f}", end=f"{end:.3f}", step=f"{step:g}")

    def label_values(self, label: str, match: str, start: float, end: float) -> list[str]:
        """Return the values of a label, of series that match a selector ("": all). Raises UserError."""
        times = {"start": f"{start:.3f}", "end": f"{end:.3f}"}
        only = {"match[]": match} if match else {}
        return self._ask(_texts, f"label/{label}/values", "GET", **times, **only)

    def _ask(self, read: Callable[[Any], list[_T]], path: str, method: str = "POST", **parameters: str) -> list[_T]:
        where = {"params" if method == "GET" else "data": parameters}
        try:
            reply = self._client.request(method, path, **where)  # type: ignore[arg-type]  # two names, one kind of value
        except httpx.ConnectTimeout:
            raise self._error(f"no connection within {CONNECT_SECONDS:g} s", "check the address") from None
        except httpx.TimeoutException:
            raise self._error(f"no answer within {self._timeout:g} s", "ask a Prometheus that has less to do") from None
        except httpx.HTTPError as error:
            raise self._error(_one_line(str(error)) or type(error).__name__, "check the address, and that Prometheus runs there") from None
        return self._content(reply, read)

    def _content(self, reply: httpx.Response, read: Callable[[Any], list[_T]]) -> list[_T]:
        if reply.status_code in (_UNAUTHORIZED, _FORBIDDEN):
            what = "wants a password" if reply.status_code == _UNAUTHORIZED else "forbids the question"
            raise self._error(f"{what} (HTTP {reply.status_code})", "write the address as http://USER:PASSWORD@HOST:PORT")
        if reply.has_redirect_location:
            to = _one_line(reply.headers["location"])
            raise self._error(
                f"sends elsewhere, to {to} (HTTP {reply.status_code})", "give the address of Prometheus itself, behind any login"
            )
        try:
            answer = reply.json()
            if answer["status"] == "success":
                return read(answer["data"])
            why = str(answer.get("error", "it does not say why"))
        except (ValueError, TypeError, KeyError, IndexError, AttributeError):
            raise self._foreign(reply.status_code) from None
        raise QueryError(_one_line(why), where=self.url)

    def _foreign(self, status: int) -> UserError:
        if status >= _SERVER_ERROR:
            return self._error(f"cannot answer (HTTP {status})", "check that Prometheus runs behind it, and has started")
        return self._error(f"is not a Prometheus (HTTP {status})", "give the address at which /api/v1/query answers")

    def _error(self, message: str, hint: str) -> UserError:
        return UserError(message, where=self.url, hint=hint)


def _texts(data: Iterable[Any]) -> list[str]:
    return [str(value) for value in data]


def _series(data: Mapping[str, Any]) -> list[Series]:
    if data["resultType"] in ("scalar", "string"):
        return [Series({}, _points([data["result"]]))]
    return [Series(item["metric"], _points(item.get("values") or [item["value"]])) for item in data["result"]]


def _points(pairs: Iterable[tuple[float, str]]) -> tuple[tuple[float, float], ...]:
    return tuple((float(t), float(value)) for t, value in pairs)


def _one_line(text: str) -> str:
    line = _ERRNO.sub("", " ".join(text.split()))
    return line if len(line) <= _SHOWN else line[:_SHOWN] + "…"
