"""The engine source against a real HTTP server: bad pages, outages, restarts, versions, and what a recording keeps."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from heptascope.errors import UserError
from heptascope.model import Reading, Reason, labels
from heptascope.sources.base import Source, SourceError
from heptascope.sources.engine import adapter as adapter_room
from heptascope.sources.engine.adapter import Beside, Collector, Context, Question
from heptascope.sources.engine.cmdline import CommandTable
from heptascope.sources.engine.fetch import Fetched, Fetcher
from heptascope.sources.engine.names import PREFIX
from heptascope.sources.engine.page import Document
from heptascope.sources.engine.reader import EngineReader
from heptascope.sources.engine.source import VERSION_RETRY_SECONDS, EngineSource, engine_name, port_of
from support.engine_pages import VLLM_032, capture, missing, reason, value
from support.engine_server import Answer, EngineServer, drip, flood, hang, raw
from support.fakes import ManualClock
from support.vllm_pages import vllm_page

PAGE = capture(VLLM_032, "steady_16")
RUNNING = 'vllm:num_requests_running{engine="0",model_name="tiny"} 14.0'
DEADLINE = 0.2


@pytest.fixture
def server() -> Iterator[EngineServer]:
    """Run a vLLM 0.32 that serves one page."""
    with EngineServer() as running:
        running.page(PAGE)
        running.page('{"version":"0.32.0"}', "/version", content_type="application/json")
        yield running


def source(server: EngineServer, **more: Any) -> EngineSource:
    """Return a patient source for the server."""
    return EngineSource(more.pop("name", None), server.url, timeout=30.0, **more)


def failure(one: EngineSource) -> SourceError:
    """Return the failure of a read."""
    with pytest.raises(SourceError) as caught:
        one.read(1.0)
    assert "\n" not in str(caught.value)
    return caught.value


def version_shown(reading: Reading) -> str:
    """Return the version in the engine's info."""
    return next(dict(s.labels).get("version", "") for s in reading.samples if s.name == PREFIX + "info")


def test_a_read(server: EngineServer) -> None:
    """The kind is told from the page, version and models asked for once, and the engine named by its kind."""
    one: Source = source(server)
    readings = [one.read(t) for t in (10.0, 11.0)]
    assert ["/metrics", "/version", "/v1/models", "/metrics"] == server.asked
    assert f"engine-{server.port}" == readings[0].source
    assert [10.0, 11.0] == pytest.approx([r.t - (r.raw or {})["dt"] for r in readings])
    assert labels(engine="vllm", rank="0", kind="vllm", version="0.32.0", model="tiny") == readings[0].samples[0].labels
    assert 14.0 == value(readings[1], "requests_running")
    one.close()


@pytest.mark.parametrize(
    "models",
    [
        '{"object":"list","data":[]}',
        '{"data":[{"id":"adapter","parent":"base"}]}',
        '{"data":[{"id":"tiny","max_model_len":1e999}]}',
        '{"data":[{"id":"tiny","max_model_len":NaN}]}',
        '{"data":[{"id":"tiny","max_model_len":-1}]}',
        '{"data":[{"id":"tiny","max_model_len":' + "9" * 400 + "}]}",
        "[" * 100_000,
    ],
    ids=["none", "adapters", "infinite", "nan", "negative", "digits", "nested"],
)
def test_an_odd_list_of_models(server: EngineServer, models: str) -> None:
    """Whatever the list of models holds, the page is read; a length that can be none gives way to the one that the page leads to."""
    server.page(models, "/v1/models", content_type="application/json")
    reading = source(server).read(1.0)
    assert (14.0, 2048.0) == (value(reading, "requests_running"), value(reading, "model_length_limit"))


def test_a_given_name_is_label_and_source(server: EngineServer) -> None:
    """A configured name serves for both."""
    reading = source(server, name="chat").read(1.0)
    assert ("chat", {"chat"}) == (reading.source, {dict(s.labels)["engine"] for s in reading.samples})


def test_the_name_can_be_made_once_the_kind_is_known(server: EngineServer) -> None:
    """With several engines of a kind the port tells them apart."""
    one = source(server, naming=lambda kind: engine_name(kind, server.url, several=True))
    assert {f"vllm-{server.port}"} == {dict(s.labels)["engine"] for s in one.read(1.0).samples}
    assert "vllm" == engine_name("vllm", server.url, several=False)


def test_the_row_replays_to_the_same_reading(server: EngineServer) -> None:
    """What is recorded holds time, duration, status, text and what was learnt beside the page; replay shares the code."""
    one = source(server, name="vllm")
    live = one.read(12.5)
    assert live.raw is not None
    assert {"t": 12.5, "status": 200, "text": PAGE, "content_type": "text/plain; version=0.0.4; charset=utf-8", "version": "0.32.0"} == {
        k: v for k, v in live.raw.items() if k != "dt"
    }
    assert 0 < live.raw["dt"] < 30
    assert replace(live, raw=None) == EngineReader("vllm").read_row(live.raw)


def test_a_recorded_failure_is_a_failure_again() -> None:
    """An error row raises what was raised live."""
    with pytest.raises(SourceError, match="Connection refused") as caught:
        EngineReader("vllm").read_row({"t": 1.0, "dt": 0.1, "error": "http://h: Connection refused; check"})
    assert Reason.SOURCE_DOWN is caught.value.reason


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
BAD_PAGES = [
    pytest.param(Answer(b"<html><body>nginx</body></html>", "text/html"), Reason.INVALID, "this is HTML", id="HTML"),
    pytest.param(Answer(b'{"status":"ok"}', "application/json"), Reason.INVALID, "this is JSON", id="JSON"),
    pytest.param(Answer(b""), Reason.INVALID, "the page is empty", id="empty"),
    pytest.param(flood(RUNNING.encode() * 100, 10_000), Reason.INVALID, "larger than 1 MiB", id="50 MB"),
    pytest.param(Answer(PAGE[:20_000].encode()), Reason.INVALID, "incomplete page", id="half page"),
    pytest.param(
        raw(HEAD + f"Content-Length: {len(PAGE)}\r\n\r\n".encode() + PAGE[:20_000].encode()), Reason.SOURCE_DOWN, "incomplete", id="cut"
    ),
    pytest.param(hang, Reason.SOURCE_DOWN, "no complete answer within 0.2 s", id="30 s"),
    pytest.param(drip(HEAD + b"\r\n", PAGE.encode()), Reason.SOURCE_DOWN, "no complete answer within 0.2 s", id="30 s in drips"),
    pytest.param(
        Answer(b"# TYPE node_load1 gauge\nnode_load1 1\n"), Reason.NOT_SUPPORTED, "no known engine's metrics", id="another exporter"
    ),
    pytest.param(Answer(b"starting", status=503), Reason.SOURCE_DOWN, "HTTP 503", id="starting"),
]


@pytest.mark.parametrize(("answer", "why", "words"), BAD_PAGES)
@pytest.mark.parametrize("known", [True, False])
def test_a_bad_page_is_a_failure_and_the_source_recovers(server: EngineServer, answer: Any, why: Reason, words: str, known: bool) -> None:
    """Whatever comes, before the engine was recognised or after: in time, one line with the URL, and the next good page is read."""
    patient, impatient = Fetcher(timeout=30.0), Fetcher(DEADLINE if "no complete answer" in words else 30.0, max_bytes=2**20)
    fetchers = [patient, impatient, patient] if known else [impatient, patient]
    one = EngineSource(None, server.url, fetch=lambda url: fetchers[0].get(url))
    if known:
        one.read(1.0)
        del fetchers[0]
    server.answers["/metrics"] = answer
    began = time.monotonic()
    error = failure(one)
    assert time.monotonic() - began < 5.0
    assert why is error.reason
    assert str(error).startswith(server.url)
    assert words in str(error) or (known and "no vLLM metrics on this page" in str(error))
    del fetchers[0]
    server.page(PAGE)
    assert 14.0 == value(one.read(2.0), "requests_running")


@pytest.mark.parametrize(
    ("wire", "signal", "words"),
    [
        (RUNNING.replace("14.0", "NaN"), "requests_running", "is nan"),
        (RUNNING.replace("14.0", "-1"), "requests_running", "is negative (-1)"),
        (RUNNING.replace("14.0", "many"), "requests_running", "a line cannot be read"),
        ('vllm:generation_tokens_total{engine="0",model_name="tiny"} -5', "generation_tokens_total", "is negative (-5)"),
        ('vllm:kv_cache_usage_perc{engine="0",model_name="tiny"} NaN', "kv_cache_usage_ratio", "is nan"),
        ('vllm:e2e_request_latency_seconds_sum{engine="0",model_name="tiny"} NaN', "e2e_latency_seconds", "has the sum nan"),
    ],
)
def test_one_bad_value_costs_its_own_signal(server: EngineServer, wire: str, signal: str, words: str) -> None:
    """NaN, negative and unreadable values: the signal has the reason, all others stay, and the refusal is counted."""
    series = wire.rpartition(" ")[0]
    server.page("\n".join(wire if line.startswith(series + " ") else line for line in PAGE.split("\n")))
    one = source(server)
    reading = one.read(1.0)
    found = missing(reading, signal)
    assert found is not None
    assert (Reason.INVALID, 1) == (found.reason, one.refused)
    assert words in found.detail
    assert 127739.0 == value(reading, "prompt_tokens_total")


def test_duplicate_series_count_once(server: EngineServer) -> None:
    """The first of two equal series stands."""
    server.page(PAGE + RUNNING.replace("14.0", "99") + "\n")
    one = source(server)
    assert (14.0, 1) == (value(one.read(1.0), "requests_running"), one.refused)


def test_an_engine_that_is_down_at_start_and_comes_up() -> None:
    """Nothing has to be known about it beforehand."""
    with EngineServer() as before:
        port = before.port
    one = EngineSource(None, f"http://127.0.0.1:{port}")
    assert Reason.SOURCE_DOWN is failure(one).reason
    assert one.reader.kind is None
    with EngineServer(port) as server:
        server.page(PAGE)
        assert 14.0 == value(one.read(2.0), "requests_running")
    assert Reason.SOURCE_DOWN is failure(one).reason
    one.close()


def test_an_engine_restarts_with_another_version(server: EngineServer) -> None:
    """After an outage the version is asked for again."""
    one = source(server)
    assert "0.32.0" == version_shown(one.read(1.0))
    server.answers["/metrics"] = Answer(b"", status=503)
    failure(one)
    server.page(vllm_page("0.33.0"))
    server.page('{"version":"0.33.0"}', "/version")
    assert "0.33.0" == version_shown(one.read(3.0))


def test_a_restart_between_two_reads_is_noticed(server: EngineServer) -> None:
    """Counters that fall mean a new process, so the version is asked for at the next read."""
    one = source(server)
    one.read(1.0)
    server.page(vllm_page("0.32.0"))
    server.page('{"version":"0.32.1"}', "/version")
    assert ["0.32.0", "0.32.1", "0.32.1"] == [version_shown(one.read(t)) for t in (2.0, 3.0, 4.0)]
    assert 2 == server.asked.count("/version")


@pytest.mark.parametrize("answer", [Answer(b"no", status=404), Answer(b"<html>"), Answer(b"[1]"), Answer(b'{"v":1}')])
def test_without_a_version_the_page_bounds_it(server: EngineServer, answer: Answer) -> None:
    """An engine that does not tell its version is asked again only after a while."""
    server.answers["/version"] = answer
    clock = ManualClock()
    one = source(server, clock=clock.monotonic)
    assert [">=0.32", ">=0.32"] == [version_shown(one.read(t)) for t in (1.0, 2.0)]
    assert 1 == server.asked.count("/version")
    clock.now += VERSION_RETRY_SECONDS + 1
    one.read(3.0)
    assert 2 == server.asked.count("/version")


def test_log_stats_disabled_is_recognised_by_its_version_page(server: EngineServer) -> None:
    """Only the HTTP families are left: the version page settles it, and the flag is named."""
    server.page(capture(VLLM_032, "log_stats_disabled"))
    reading = source(server).read(1.0)
    assert ("0.32.0", Reason.FLAG_OFF) == (version_shown(reading), reason(reading, "requests_running"))
    assert reading.raw is not None
    assert Reason.FLAG_OFF is reason(EngineReader().read_row(reading.raw), "requests_running")


def test_a_web_server_without_a_version_page_is_no_engine(server: EngineServer) -> None:
    """The same families on another server are not taken for a silent vLLM, unless its kind is configured."""
    server.page(capture(VLLM_032, "log_stats_disabled"))
    del server.answers["/version"]
    assert Reason.NOT_SUPPORTED is failure(source(server)).reason
    assert Reason.FLAG_OFF is reason(source(server, kind="vllm").read(1.0), "requests_running")


def test_a_url_with_a_path_is_the_page(server: EngineServer) -> None:
    """Behind a prefix the page is where the URL says, the version at the server's root."""
    server.page(PAGE, "/engine/metrics")
    one = EngineSource("e", server.url + "/engine/metrics")
    assert "0.32.0" == version_shown(one.read(1.0))
    assert ["/engine/metrics", "/version", "/v1/models"] == server.asked


class JsonEngine:
    """An engine of another kind: JSON at a place of its own, and no version page."""

    kind: str = "json"
    paths: tuple[str, ...] = ("/stats",)
    ports: tuple[int, ...] = (1,)
    version_path: str = ""
    questions: tuple[Question, ...] = ()
    beside: tuple[Beside, ...] = ()
    command: CommandTable | None = None

    def fingerprint(self, document: Document) -> bool:
        """Whether this is its JSON."""
        return document.json and "running" in document.text

    def bare(self, document: Document) -> bool:
        """Return that it has no such page."""
        return False

    def open(self) -> JsonEngine:
        """Return itself: it keeps no state."""
        return self

    def parse(self, document: Document, context: Context, out: Collector) -> None:
        """Read one number."""
        out.sample("requests_running", out.pairs("0"), json.loads(document.text)["running"])


def test_an_adapter_may_read_json_at_another_path(server: EngineServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the engine is unknown each place is tried; then only its own. The interface asks for no table and no metrics text."""
    monkeypatch.setitem(adapter_room._registry, "json", JsonEngine())
    server.answers = {"/stats": Answer(b'{"running":5}', "application/json")}
    one = source(server)
    assert [5.0, 5.0] == [value(one.read(t), "requests_running") for t in (1.0, 2.0)]
    assert "json" == one.reader.kind
    assert ["/stats", "/stats"] == server.asked[-2:]
    assert Reason.ENGINE is reason(one.read(3.0), "requests_waiting")
    server.answers = {}
    assert "HTTP 404" in str(failure(source(server)))


def test_another_engine_takes_the_place(server: EngineServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Told by its page, an engine of another kind on the same port is recognised after one failure."""
    monkeypatch.setitem(adapter_room._registry, "json", JsonEngine())
    one = EngineSource(None, server.url + "/metrics")
    assert "vllm" == (one.read(1.0) and one.reader.kind)
    server.page("# TYPE node_load1 gauge\nnode_load1 1\n")
    assert Reason.NOT_SUPPORTED is failure(one).reason
    server.page('{"running":5}')
    assert (5.0, "json") == (value(one.read(2.0), "requests_running"), one.reader.kind)


def test_settings_reach_the_reading(server: EngineServer) -> None:
    """Start settings that the page does not tell become signals."""
    one = source(server, settings={"max_num_seqs": 128.0}, config={"attention_backend": "FLASH_ATTN"})
    reading = one.read(1.0)
    assert 128.0 == value(reading, "sequence_limit")
    assert 1.0 == value(reading, "config_info", setting="attention_backend", value="FLASH_ATTN")


def test_a_fetch_can_be_injected() -> None:
    """A source needs no network to be tested."""
    asked: list[str] = []

    def fetch(url: str) -> Fetched:
        asked.append(url)
        return Fetched(200, "text/plain", PAGE if url.endswith("/metrics") else '{"version":"0.32.0"}')

    assert 14.0 == value(EngineSource("e", "http://h:1", fetch=fetch).read(1.0), "requests_running")
    assert ["http://h:1/metrics", "http://h:1/version", "http://h:1/v1/models"] == asked


@pytest.mark.parametrize("url", ["localhost:8000", "http://", "ftp://h", "http://h:port", ""])
def test_an_unusable_url_is_the_users_error(url: str) -> None:
    """It says how to write one."""
    with pytest.raises(UserError, match="write http://host:port"):
        EngineSource("e", url)


def test_ports_of_urls() -> None:
    """A URL without a port has its scheme's."""
    assert [8000, 80, 443] == [port_of(u) for u in ("http://h:8000/metrics", "http://h", "https://h")]


@pytest.mark.parametrize(
    ("more", "words"),
    [({"kind": "vlm"}, "there is no engine kind 'vlm'; use one of auto, "), ({"settings": {"seqs": 1.0}}, "setting 'seqs'; use one of")],
)
def test_unknown_kinds_and_settings_are_the_users_error(more: dict[str, Any], words: str) -> None:
    """Each is named with what is allowed."""
    with pytest.raises(UserError, match=words):
        EngineSource("e", "http://h:1", **more)
