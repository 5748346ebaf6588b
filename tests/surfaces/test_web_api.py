"""The routes for machines."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from pydantic import BaseModel

from heptascope.model import Layer
from heptascope.surfaces.web import models
from heptascope.surfaces.web.app import create_app
from support.snapshots import T0, busy, complete, failing, remember
from support.web_client import Client
from support.web_state import MemoryState


def client_of(state: MemoryState) -> Client:
    """Return a client of the app that shows `state`."""
    return Client(create_app(state))


@pytest.fixture
def state() -> MemoryState:
    """Return a state with a busy engine and ten seconds of history."""
    made = MemoryState(busy())
    for second in range(10):
        remember(made.window, busy(T0 + 51 + second))
    return made


@pytest.fixture
def client(state: MemoryState) -> Client:
    """Return a client of the app."""
    return client_of(state)


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/api/v1/signals", models.Signals),
        ("/api/v1/signals?name=heptascope_engine_queue_time_seconds&name=heptascope_gpu_info", models.Signals),
        ("/api/v1/sources", models.Sources),
        ("/api/v1/unavailable", models.Unavailable),
        ("/api/v1/history?signal=heptascope_engine_steps_total", models.History),
        ("/readyz", models.Readiness),
        ("/healthz", models.Liveness),
    ],
)
@pytest.mark.parametrize("snapshot", [busy(), failing(), complete()], ids=["busy", "failing", "complete"])
def test_answers_have_the_documented_shape(state: MemoryState, path: str, model: type[BaseModel], snapshot: Any) -> None:
    """What is sent is what OpenAPI promises: every field, and no other."""
    state.current = snapshot
    answer = client_of(state).get(path)
    assert (200, "application/json") == (answer.status_code, answer.headers["content-type"])
    model.model_validate_json(answer.content)


def test_openapi_describes_every_route(client: Client) -> None:
    """Each path has a summary, a description and a schema of its answer; none of the answers is a stranger."""
    spec = client.get("/api/openapi.json").json()
    documented = {"/metrics", "/healthz", "/readyz"} | {
        f"/api/v1/{name}"
        for name in (
            *("signals", "sources", "unavailable", "verdict", "history", "page", "stream", "charts"),
            *("rules", "findings", "trends", "export/ticket", "export/recording"),
        )
    }
    assert documented == set(spec["paths"])
    for path, methods in spec["paths"].items():
        assert {"get"} == set(methods), path
        assert methods["get"]["summary"], path
        assert methods["get"]["description"], path
        assert "HTTPValidationError" not in json.dumps(methods), path


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/openapi.json"])
def test_no_interactive_documentation(client: Client, path: str) -> None:
    """The pages that load scripts from elsewhere are off."""
    assert 404 == client.get(path).status_code


def test_signals_by_name(client: Client) -> None:
    """Names select signals; a histogram's series leads to the histogram."""
    answer = client.get(
        "/api/v1/signals", params={"name": ["heptascope_engine_queue_time_seconds_bucket", "heptascope_engine_steps_total"]}
    )
    assert ["heptascope_engine_steps_total", "heptascope_engine_queue_time_seconds"] == [row["name"] for row in answer.json()["signals"]]


def test_signals_by_layer(client: Client) -> None:
    """Layers select signals."""
    answer = client.get("/api/v1/signals", params={"layer": ["memory", "speculative"]})
    assert {"memory"} == {row["layer"] for row in answer.json()["signals"]}


def test_own_signals_are_listed(client: Client) -> None:
    """Series about heptascope itself are signals like the others."""
    row = client.get("/api/v1/signals", params={"name": "heptascope_source_up"}).json()["signals"][0]
    assert [1.0, 1.0, 1.0] == [value["value"] for value in row["values"]]


@pytest.mark.parametrize("path", ["/api/v1/signals?name=nonsense", "/api/v1/history?signal=nonsense"])
def test_unknown_signal(client: Client, path: str) -> None:
    """A wrong name is an error that says where the right ones are."""
    answer = client.get(path)
    assert 404 == answer.status_code
    assert "there is no signal 'nonsense'" in models.Error.model_validate_json(answer.content).error


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/api/v1/signals?layer=engine", "layer: Input should be 'hardware', 'operator'"),
        ("/api/v1/history", "signal: Field required"),
        ("/api/v1/history?signal=heptascope_gpu_up&seconds=x", "seconds: Input should be a valid number"),
        ("/api/v1/history?signal=heptascope_gpu_up&seconds=0", "seconds: Input should be greater than 0"),
        ("/api/v1/history?signal=heptascope_gpu_up&seconds=nan", "seconds: "),
        ("/api/v1/findings?at=inf", "at: Input should be a finite number"),
        ("/api/v1/findings?at=1e999", "at: Input should be a finite number"),
        ("/api/v1/page?at=nan", "at: "),
        ("/api/v1/page?at=-1", "at: Input should be greater than 0"),
        ("/api/v1/trends", "rule: Field required"),
    ],
)
def test_wrong_parameters(client: Client, path: str, words: str) -> None:
    """One line names the parameter and what is allowed."""
    answer = client.get(path)
    assert 400 == answer.status_code
    assert words in models.Error.model_validate_json(answer.content).error


def test_history(client: Client) -> None:
    """The points of the last seconds, oldest first."""
    answer = client.get("/api/v1/history", params={"signal": "heptascope_gpu_power_watts", "seconds": 3})
    assert [[T0 + 58, 598.2], [T0 + 59, 598.2], [T0 + 60, 598.2]] == answer.json()["series"][0]["points"]


def test_verdict(state: MemoryState, client: Client) -> None:
    """Before the first verdict a clear error, then the verdict as it is."""
    answer = client.get("/api/v1/verdict")
    assert (404, "there is no verdict yet; the first one comes with the first pass of the rules") == (
        answer.status_code,
        answer.json()["error"],
    )
    state.found = {"state": "idle", "limiter": None, "faults": []}
    assert state.found == client.get("/api/v1/verdict").json()


def test_readiness() -> None:
    """Not ready before the first snapshot; then ready, whatever the sources are."""
    state = MemoryState()
    client = client_of(state)
    answer = client.get("/readyz")
    assert (503, {"ready": False, "sources": {}}) == (answer.status_code, answer.json())
    state.current = failing()
    answer = client.get("/readyz")
    assert (200, {"up": False, "reason": "source_down"}) == (answer.status_code, answer.json()["sources"]["vllm"])


def test_liveness(state: MemoryState, client: Client) -> None:
    """Alive while the pipeline's loop runs."""
    assert (200, {"alive": True}) == ((answer := client.get("/healthz")).status_code, answer.json())
    state.loop_runs = False
    assert (503, {"alive": False}) == ((answer := client.get("/healthz")).status_code, answer.json())


def test_metrics_by_accept(client: Client) -> None:
    """Text for people and old scrapers, OpenMetrics for Prometheus; caches are told what it depends on."""
    plain = client.get("/metrics")
    assert "text/plain; version=0.0.4; charset=utf-8" == plain.headers["content-type"]
    assert "accept, accept-encoding" == plain.headers["vary"]
    openmetrics = client.get("/metrics", headers={"accept": "application/openmetrics-text;version=1.0.0"})
    assert openmetrics.text.endswith("# EOF\n")


def test_metrics_by_name(client: Client) -> None:
    """`name[]` restricts the page."""
    page = client.get("/metrics", params={"name[]": ["heptascope_gpu_power_watts", "heptascope_source_up"]}).text
    assert 4 == sum(not line.startswith("#") for line in page.splitlines())


@pytest.mark.parametrize("path", ["/metrics", "/", "/api/v1/signals", "/static/page.css"])
def test_compression_by_accept_encoding(client: Client, path: str) -> None:
    """Who takes gzip gets it, who does not gets plain bytes: the same content."""
    client.get(path, headers={"accept-encoding": "identity"})
    headers, raw = client.raw(path, headers={"accept-encoding": "gzip"})
    plain = client.get(path, headers={"accept-encoding": "identity"})
    assert ("gzip", None) == (headers["content-encoding"], plain.headers.get("content-encoding"))
    assert plain.content == gzip.decompress(raw)
    assert len(raw) < len(plain.content) / 2


def test_a_new_snapshot_is_seen_everywhere(state: MemoryState, client: Client) -> None:
    """Nothing that is kept outlives its snapshot."""
    path = "/api/v1/signals?name=heptascope_engine_steps_total"
    before = client.get(path).json()["signals"][0]["values"][0]["value"]
    state.current = busy(T0 + 61, 2)
    state.time = T0 + 61
    after = client.get(path).json()["signals"][0]["values"][0]["value"]
    assert (7440.0, 7564.0) == (before, after)


@pytest.mark.parametrize(
    "path", ["/nope", "/metrics/", "/api", "/api/v1/signals/", "/static/page.html", "/static/../app.py", "/static/%2e%2e/app.py"]
)
def test_unknown_path(client: Client, path: str) -> None:
    """A short error as JSON, and nothing from outside the few files of the page."""
    answer = client.get(path)
    assert (404, {"error": "there is nothing here; try /, /metrics or /api/openapi.json"}) == (answer.status_code, answer.json())


def test_a_bug_does_not_show_its_traceback(state: MemoryState, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unexpected exception is a short error; the details stay in the log."""
    monkeypatch.setattr(state, "snapshot", lambda: 1 / 0)
    for path in ("/metrics", "/", "/api/v1/sources"):
        answer = client.get(path)
        assert (500, {"error": "heptascope made a mistake; its log says which"}) == (answer.status_code, answer.json())


def test_every_layer_can_be_asked_for(client: Client) -> None:
    """The closed list of layers is the model's."""
    assert {200} == {client.get("/api/v1/signals", params={"layer": layer.value}).status_code for layer in Layer}
