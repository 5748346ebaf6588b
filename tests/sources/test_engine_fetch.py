"""Fetching one page: bounded in time and size, every failure one clear line."""

from __future__ import annotations

import base64
import gzip
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from heptascope.model import Reason
from heptascope.sources.base import SourceError
from heptascope.sources.engine.fetch import Fetcher
from heptascope.sources.engine.source import EngineSource
from support.engine_pages import VLLM_032, capture
from support.engine_server import Answer, EngineServer, drip, flood, hang, raw, zipped

DEADLINE = 0.2
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"


@pytest.fixture
def server() -> Iterator[EngineServer]:
    """Run a server that misbehaves as the test says."""
    with EngineServer() as running:
        yield running


@pytest.fixture
def fetcher() -> Iterator[Fetcher]:
    """Make a patient fetcher with a small cap."""
    made = Fetcher(timeout=30.0, max_bytes=2**20)
    yield made
    made.close()


def failure(fetcher: Fetcher, url: str) -> SourceError:
    """Return the failure of a fetch: one line that begins with the URL."""
    with pytest.raises(SourceError) as caught:
        fetcher.get(url)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(url)
    return caught.value


def test_a_page_comes_with_status_and_content_type(server: EngineServer, fetcher: Fetcher) -> None:
    """A real page arrives as it was served."""
    page = capture(VLLM_032, "steady_16")
    server.page(page)
    fetched = fetcher.get(server.url + "/metrics")
    assert (200, "text/plain; version=0.0.4; charset=utf-8", page) == fetched


def test_one_connection_serves_many_reads(server: EngineServer, fetcher: Fetcher) -> None:
    """The connection is kept alive between reads."""
    server.page("a 1\n")
    for _ in range(3):
        fetcher.get(server.url + "/metrics")
    assert 1 == len(server.clients)


def test_proxies_of_the_environment_are_not_used(server: EngineServer, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sidecar talks to its neighbour, never through a proxy."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    server.page("a 1\n")
    assert "a 1\n" == fetcher.get(server.url + "/metrics").text


def test_bytes_that_are_no_utf8_are_replaced(server: EngineServer, fetcher: Fetcher) -> None:
    """One broken character does not cost the page."""
    server.answers["/metrics"] = Answer(b'a{b="\xff"} 1\n')
    assert 'a{b="�"} 1\n' == fetcher.get(server.url + "/metrics").text


def test_nothing_listens(fetcher: Fetcher) -> None:
    """A refused connection says so and what to check."""
    with EngineServer() as gone:
        url = gone.url + "/metrics"
    error = failure(fetcher, url)
    assert Reason.SOURCE_DOWN is error.reason
    assert f"{url}: Connection refused; check that the engine runs and listens there" == str(error)


@pytest.mark.parametrize("host", ["a..b", "x" * 300], ids=["dots", "long"])
def test_a_name_that_no_host_has(fetcher: Fetcher, host: str) -> None:
    """It is told like a server that is not there."""
    error = failure(fetcher, f"http://{host}:8000/metrics")
    assert (Reason.SOURCE_DOWN, "no host can have this name; check the URL") == (error.reason, str(error).partition("/metrics: ")[2])


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(hang, id="silent"),
        pytest.param(drip(b"", HEAD * 9), id="headers drip"),
        pytest.param(drip(HEAD + b"\r\n", b"a 1\n" * 99), id="body drips"),
        pytest.param(drip(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n" * 99), id="chunks drip"),
    ],
)
def test_the_deadline_bounds_the_whole_exchange(server: EngineServer, act: object) -> None:
    """However a server stretches its answer, the read ends in time."""
    server.answers["/metrics"] = act  # type: ignore[assignment]  # one of the acts above
    began = time.monotonic()
    error = failure(Fetcher(timeout=DEADLINE), server.url + "/metrics")
    assert time.monotonic() - began < 5.0
    assert Reason.SOURCE_DOWN is error.reason
    assert "no complete answer within 0.2 s" in str(error)


def test_a_fetcher_recovers_after_a_hang(server: EngineServer) -> None:
    """The next read uses a new connection."""
    fetcher = Fetcher(timeout=1.0)
    server.answers["/metrics"] = hang
    failure(fetcher, server.url + "/metrics")
    server.page("a 1\n")
    assert "a 1\n" == fetcher.get(server.url + "/metrics").text


@pytest.mark.parametrize(
    ("status", "headers", "reason", "words"),
    [
        (302, {"Location": "/metrics/"}, Reason.SOURCE_DOWN, "HTTP 302 to /metrics/; redirects are not followed, use that URL"),
        (401, {}, Reason.NO_PERMISSION, "HTTP 401; this page needs a key"),
        (404, {}, Reason.SOURCE_DOWN, "HTTP 404; check the path, and that the engine's metrics are switched on"),
        (501, {}, Reason.FLAG_OFF, "HTTP 501; the server runs with its metrics switched off"),
        (503, {}, Reason.SOURCE_DOWN, "HTTP 503; the server is not well; see its log"),
    ],
)
def test_other_statuses(server: EngineServer, fetcher: Fetcher, status: int, headers: dict[str, str], reason: Reason, words: str) -> None:
    """Each status that is not 200 is a failure that says what to do; redirects are not followed."""
    server.page("a 1\n", status=status, headers=headers)
    error = failure(fetcher, server.url + "/metrics")
    assert (reason, f"{server.url}/metrics: {words}") == (error.reason, str(error))
    assert ["/metrics"] == server.asked


LINE = b"vllm:num_requests_running 1\n"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(raw(HEAD + b"Content-Length: 52428800\r\n\r\n" + LINE), id="announced"),
        pytest.param(flood(LINE * 1000, 2000), id="50 MB"),
        pytest.param(Answer(gzip.compress(LINE * 100_000), headers={"Content-Encoding": "gzip"}), id="after decompression"),
    ],
)
def test_a_page_that_is_too_large_is_not_read(server: EngineServer, answer: object) -> None:
    """The cap holds while the page streams in, and for what it unpacks to."""
    server.answers["/metrics"] = answer  # type: ignore[assignment]  # an Answer or an act
    fetcher = Fetcher(timeout=20.0, max_bytes=2**20)
    error = failure(fetcher, server.url + "/metrics")
    fetcher.close()
    assert Reason.INVALID is error.reason
    assert "the page is larger than 1 MiB" in str(error)


def test_a_compressed_page_is_unpacked(server: EngineServer, fetcher: Fetcher) -> None:
    """A server that compresses unasked is understood."""
    page = capture(VLLM_032, "idle_fresh")
    server.answers["/metrics"] = zipped(page)
    assert page == fetcher.get(server.url + "/metrics").text


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param(raw(HEAD + b"Content-Length: 100\r\n\r\nhalf a page"), "incomplete page", id="less than announced"),
        pytest.param(raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\na 1\nb\r\n"), "incomplete page", id="no last chunk"),
        pytest.param(
            Answer(gzip.compress(LINE * 99)[:-20], headers={"Content-Encoding": "gzip"}), "the compressed body ends early", id="gzip cut"
        ),
        pytest.param(Answer(b"not gzip", headers={"Content-Encoding": "gzip"}), "broken compression", id="not gzip"),
        pytest.param(Answer(b"?", headers={"Content-Encoding": "br"}), "compressed as 'br'", id="other compression"),
        pytest.param(raw(b"SSH-2.0-OpenSSH_9.2\r\n"), "incomplete page", id="no HTTP"),
        pytest.param(raw(b""), "incomplete page", id="hangs up"),
    ],
)
def test_half_and_broken_answers(server: EngineServer, fetcher: Fetcher, answer: object, words: str) -> None:
    """What is not a whole HTTP answer is a failure, never half a page."""
    server.answers["/metrics"] = answer  # type: ignore[assignment]  # an Answer or an act
    assert words in str(failure(fetcher, server.url + "/metrics"))


def test_tls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A server whose certificate is trusted is read; one whose is not is refused with the reason."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with EngineServer(tls=context) as server:
        server.page("a 1\n")
        assert "certificate verify failed" in str(failure(Fetcher(timeout=30.0), server.url + "/metrics"))
        authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        assert "a 1\n" == Fetcher(timeout=30.0).get(server.url + "/metrics").text


def test_no_time_is_left_for_the_next_byte(server: EngineServer) -> None:
    """A deadline that passes between two waits is a deadline that has passed."""
    server.page("a 1\n")
    moments = iter([0.0, 1.0, 2.0, 99.0])
    fetcher = Fetcher(timeout=30.0, clock=lambda: next(moments, 99.0))
    assert "no complete answer within 30 s" in str(failure(fetcher, server.url + "/metrics"))


def test_a_wait_is_no_longer_than_what_is_left(server: EngineServer) -> None:
    """A server that falls silent shortly before the deadline does not win a whole timeout."""
    server.answers["/metrics"] = hang
    moments = iter([0.0])
    fetcher = Fetcher(timeout=30.0, clock=lambda: next(moments, 29.9))
    began = time.monotonic()
    failure(fetcher, server.url + "/metrics")
    assert time.monotonic() - began < 5.0


def test_a_scheme_that_is_not_http(fetcher: Fetcher) -> None:
    """Only HTTP is spoken."""
    assert Reason.SOURCE_DOWN is failure(fetcher, "ftp://127.0.0.1/metrics").reason


def shown(server: EngineServer) -> list[str]:
    """Return the keys that were shown to a server, in order."""
    return [headers.get("Authorization", "") for headers in server.headers]


def test_a_token_is_read_anew_for_each_page(server: EngineServer, tmp_path: Path) -> None:
    """What the file holds is the bearer token, also after it was renewed."""
    server.page("a 1\n")
    token = tmp_path / "token"
    fetcher = Fetcher(timeout=30.0, token_file=token)
    for text in ("first\n", "second"):
        token.write_text(text, encoding="ascii")
        fetcher.get(server.url + "/metrics")
    assert ["Bearer first", "Bearer second"] == shown(server)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read: No such file"),
        (b"", "does not hold one token"),
        (b"a b", "does not hold one token"),
        (b"\xff", "not plain text"),
    ],
    ids=["absent", "empty", "two", "binary"],
)
def test_a_token_that_cannot_be_shown_is_no_permission(server: EngineServer, tmp_path: Path, content: bytes | None, words: str) -> None:
    """Nothing is asked without the token; the message names the file, and nothing of what it holds."""
    token = tmp_path / "token"
    if content is not None:
        token.write_bytes(content)
    error = failure(Fetcher(timeout=30.0, token_file=token), server.url + "/metrics")
    assert (Reason.NO_PERMISSION, []) == (error.reason, server.asked)
    assert words in str(error)


def test_credentials_in_a_url_are_shown_to_the_server_alone(server: EngineServer) -> None:
    """They go into the header, and into no message, of the fetcher or of the source."""
    server.page("a 1\n")
    url = server.url.replace("//", "//some:pass%20word@")
    Fetcher(timeout=30.0).get(url + "/metrics")
    assert ["Basic " + base64.b64encode(b"some:pass word").decode()] == shown(server)
    server.stop()
    with pytest.raises(SourceError) as caught:
        Fetcher(timeout=30.0).get(url + "/metrics")
    assert str(caught.value).startswith(server.url)
    with pytest.raises(SourceError) as caught:
        EngineSource("vllm", url).read(0.0)
    assert "pass" not in str(caught.value)
