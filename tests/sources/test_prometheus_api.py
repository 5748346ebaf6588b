"""Questions to a Prometheus, and to what is none."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from heptascope.errors import UserError
from heptascope.sources.prometheus_api import PrometheusApi, QueryError, Series
from support.prometheus import backfill, running_prometheus

T = 1_795_970_000.0


class _Other(BaseHTTPRequestHandler):
    """A server that is no Prometheus: the first part of the path says how it answers."""

    def do_POST(self) -> None:
        """Answer."""
        how = self.path.split("/")[1]
        if how == "slow":
            time.sleep(0.6)
        self.send_response(int(how) if how.isdigit() else 200)
        if how == "302":
            self.send_header("Location", "/login")
        self.end_headers()
        body = {
            "json": b'{"hello": 1}',
            "list": b"[]",
            "user": b'{"status":"success","data":{"resultType":"vector","result":[]}}',
            "nothing": b'{"status":"success"}',
            "streams": b'{"status":"success","data":{"resultType":"streams","result":[{"stream":{}}]}}',
        }
        if how != "user" or self.headers.get("Authorization") == "Basic dTpwOnc=":
            self.wfile.write(body.get(how, b"<html>"))

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def other() -> Iterator[str]:
    """Run the other server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Other)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("401", "wants a password (HTTP 401); write the address as http://USER:PASSWORD@HOST:PORT"),
        ("403", "forbids the question (HTTP 403); write the address as http://USER:PASSWORD@HOST:PORT"),
        ("404", "is not a Prometheus (HTTP 404); give the address at which /api/v1/query answers"),
        ("html", "is not a Prometheus (HTTP 200); give the address at which /api/v1/query answers"),
        ("json", "is not a Prometheus (HTTP 200); give the address at which /api/v1/query answers"),
        ("list", "is not a Prometheus (HTTP 200); give the address at which /api/v1/query answers"),
        ("nothing", "is not a Prometheus (HTTP 200); give the address at which /api/v1/query answers"),
        ("streams", "is not a Prometheus (HTTP 200); give the address at which /api/v1/query answers"),
        ("302", "sends elsewhere, to /login (HTTP 302); give the address of Prometheus itself, behind any login"),
        ("503", "cannot answer (HTTP 503); check that Prometheus runs behind it, and has started"),
        ("slow", "no answer within 0.2 s; ask a Prometheus that has less to do"),
    ],
)
def test_what_is_no_prometheus_is_told_in_one_line(path: str, line: str, other: str) -> None:
    """A refused, foreign, or slow answer says what it was and what to do, without the password."""
    with PrometheusApi(f"http://me:secret@{other}/{path}", timeout=0.2) as api, pytest.raises(UserError) as caught:
        api.instant("up", T)
    assert f"http://{other}/{path}: {line}" == str(caught.value)


def test_a_password_is_sent(other: str) -> None:
    """User and password in the address become basic authentication."""
    with PrometheusApi(f"http://u:p%3Aw@{other}/user/") as api:
        assert [] == api.instant("up", T)


@pytest.mark.parametrize("url", ["", "prometheus:9090", "ftp://host", "http://", "http://host:99999", "http://[::1"])
def test_what_is_no_address_is_refused(url: str) -> None:
    """An address needs a scheme and a host."""
    with pytest.raises(UserError, match="not the address of a Prometheus"):
        PrometheusApi(url)


def test_answers_of_a_real_one(tmp_path: Path) -> None:
    """Instant and range queries, scalars, label values and errors come back as they are."""
    storage = backfill({("up", (("pod", "a"),)): [(T + i * 15, 1.0 + i) for i in range(4)]}, tmp_path)
    with running_prometheus(tmp_path, storage=storage) as server, PrometheusApi(server.url + "/") as api:
        assert [Series({"__name__": "up", "pod": "a"}, ((T + 50, 4.0),))] == api.instant("up", T + 50)
        assert [((T, 1.0), (T + 30, 3.0))] == [one.points for one in api.range("up", T, T + 45, 30)]
        assert [Series({}, ((T, 2.0),))] == api.instant("1 + 1", T)
        assert (["a"], []) == (api.label_values("pod", "up", T, T + 60), api.label_values("pod", "down", T, T + 60))
        with pytest.raises(QueryError, match="parse error"):
            api.instant("up{", T)
