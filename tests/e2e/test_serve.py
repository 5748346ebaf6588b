"""The daemon as a process of its own, beside a server of real engine pages."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from heptascope.sources.recording import Recording
from support.engine_pages import VLLM_032, capture
from support.engine_server import Answer, EngineServer, flood, hang, raw
from support.heptascope_process import Running, heptascope, running, until
from support.prometheus import program, running_prometheus

RUNNING = 'heptascope_engine_requests_running{engine="vllm",rank="0"}'
PAGE = capture(VLLM_032, "saturated_queue")
FAST = {"HEPTASCOPE_POLL_INTERVAL": "100ms"}


@pytest.fixture
def engine() -> Iterator[EngineServer]:
    """Serve what vLLM 0.32 answered under a full queue."""
    with EngineServer() as server:
        answer_well(server)
        yield server


@pytest.fixture
def daemon(engine: EngineServer, tmp_path: Path) -> Iterator[Running]:
    """Heptascope beside that server, without a GPU."""
    with running("serve", "--gpu", "none", "--engine", engine.url, folder=tmp_path, env=FAST) as process:
        yield process


def answer_well(server: EngineServer) -> None:
    """Serve the captured page and the version."""
    server.page(PAGE)
    server.answers["/version"] = Answer(b'{"version":"0.32.0"}', "application/json")


def with_data(daemon: Running) -> dict[str, float]:
    """Return the page once it has the engine's values."""
    return until(lambda: page if RUNNING in (page := daemon.metrics()) else {})


def test_metrics_hold_what_the_engine_says(daemon: Running) -> None:
    """The values of the engine's page stand under our names; what is missing has its reason; both sources are up."""
    page = with_data(daemon)
    assert (4.0, 28.0) == (page[RUNNING], page[RUNNING.replace("running", "waiting")])
    assert ["0.32.0"] == [s.split('version="')[1].split('"')[0] for s in page if s.startswith("heptascope_engine_info{")]
    assert 1.0 == page['heptascope_signal_unavailable{reason="no_source",signal="heptascope_gpu_power_watts"}']
    assert {1.0} == {page[f'heptascope_source_up{{source="{name}"}}'] for name in (f"engine-{daemon_port(daemon)}", "host")}


def daemon_port(daemon: Running) -> str:
    """Return the port of the engine that the daemon watches."""
    names = [source["name"] for source in daemon.json("/api/v1/sources")["sources"] if source["kind"] == "engine"]
    return str(names[0].rpartition("-")[2])


def test_the_page_is_clean_for_promtool(daemon: Running) -> None:
    """`promtool check metrics` has nothing to say about a page with engine, host and own series."""
    with_data(daemon)
    page = daemon.get("/metrics").encode()
    done = subprocess.run([program("promtool"), "check", "metrics"], input=page, capture_output=True, check=False, timeout=60)
    assert (0, b"", b"") == (done.returncode, done.stdout, done.stderr)


def test_a_real_prometheus_scrapes_it(daemon: Running, tmp_path: Path) -> None:
    """Prometheus finds the target healthy and has the engine's value; the target gives no exported_ labels."""
    with_data(daemon)
    target = daemon.url.removeprefix("http://")
    job = f"{{job_name: heptascope, scrape_interval: 1s, static_configs: [{{targets: ['{target}']}}]}}"
    with running_prometheus(tmp_path, config=f"scrape_configs: [{job}]\n") as prometheus:

        def value(query: str) -> str:
            found = prometheus.query(query, time.time())["data"]["result"]
            return str(found[0]["value"][1]) if found else ""

        assert "4" == until(lambda: value('heptascope_engine_requests_running{engine="vllm"}'))
        assert "1" == value('up{job="heptascope"}')
        assert "" == value('count({exported_instance=~".+"})')


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_within_two_seconds(daemon: Running, number: int) -> None:
    """With a scraper's connection open, the end is quick, clean and leaves two log lines: it served, it stops."""
    with_data(daemon)
    host, _, port = daemon.url.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port))):
        status, took = daemon.stop(number)
    assert 0 == status
    assert took < 2.0
    assert [" serves ", "stopping"] == [word for line in daemon.log().splitlines() for word in (" serves ", "stopping") if word in line]
    assert "Traceback" not in daemon.log()


def test_a_hung_engine_does_not_hold_up_the_end(engine: EngineServer, daemon: Running) -> None:
    """A fetch that waits for its answer is left behind, and the log says so."""
    with_data(daemon)
    engine.answers["/metrics"] = hang
    asked = len(engine.asked)
    until(lambda: len(engine.asked) > asked)
    status, took = daemon.stop()
    assert 0 == status
    assert took < 2.0
    assert "left behind" in daemon.log()


def test_an_engine_that_comes_goes_and_comes_back(tmp_path: Path) -> None:
    """Down at the start, up, gone, back: values come and go with it, and each change is one log line."""
    with EngineServer() as server:
        url, port = server.url, server.port
    name = f"engine-{port}"
    with running("serve", "--gpu", "none", "--engine", url, folder=tmp_path, env=FAST) as daemon:
        until(lambda: daemon.source(name).get("failures", 0) >= 3)
        assert ("source_down", False) == (daemon.source(name)["reason"], RUNNING in daemon.metrics())
        assert 1.0 == daemon.metric('heptascope_signal_unavailable{reason="source_down",signal="heptascope_engine_requests_running"}')
        for _ in range(2):
            with EngineServer(port) as server:
                answer_well(server)
                with_data(daemon)
                server.answers["/metrics"] = raw(b"")  # ends the connection that is kept open
                until(lambda: RUNNING not in daemon.metrics())
        lines = [line.partition(f"source {name} ")[2] for line in daemon.log().splitlines() if f"source {name} " in line]
        assert ["is down:", "answers after"] * 2 + ["is down:"] == [" ".join(line.split()[:2]) for line in lines]


HALF = PAGE[: len(PAGE) // 2]
BAD_PAGES = {
    "HTML": (Answer(b"<html><body>hello</body></html>", "text/html"), "HTML"),
    "JSON": (Answer(b'{"detail": "x"}', "application/json"), "JSON"),
    "empty": (Answer(b""), "empty"),
    "half": (Answer(HALF.rstrip().encode()), "incomplete page"),
    "50 MB": (flood(b"x" * 2**20, 50), "larger than"),
    "error": (Answer(b"oops", status=500), "HTTP 500"),
    "elsewhere": (Answer(b"", status=302, headers={"Location": "http://127.0.0.1:1/"}), "redirects are not followed"),
}


def test_bad_pages_are_named_and_outlived(engine: EngineServer, daemon: Running) -> None:
    """Whatever the engine serves, its source says what is wrong, /metrics goes on without it, and a good page brings it back."""
    for what, (answer, words) in BAD_PAGES.items():
        with_data(daemon)
        engine.answers["/metrics"] = answer
        message = until(lambda: next((s["message"] for s in daemon.json("/api/v1/sources")["sources"] if s["kind"] == "engine"), ""))
        assert words in message, what
        assert 1.0 == until(lambda: daemon.metric('heptascope_source_up{source="host"}')), what
        until(lambda: RUNNING not in daemon.metrics())
        answer_well(engine)
    with_data(daemon)
    assert "Traceback" not in daemon.log()


def test_impossible_values_cost_only_themselves(engine: EngineServer, daemon: Running) -> None:
    """NaN and negative counters on a page are absent with the reason `invalid`; the rest of the page is read."""
    spoilt = "\n".join(
        f"{line.rpartition(' ')[0]} NaN" if line.startswith("vllm:num_requests_waiting{") else
        f"{line.rpartition(' ')[0]} -5.0" if line.startswith("vllm:num_preemptions_total{") else line
        for line in PAGE.split("\n")
    )  # fmt: skip
    with_data(daemon)
    engine.page(spoilt)
    gap = 'heptascope_signal_unavailable{reason="invalid",signal="heptascope_engine_requests_waiting"}'
    page = until(lambda: page if gap in (page := daemon.metrics()) else {})
    assert (4.0, None) == (page.get(RUNNING), page.get(RUNNING.replace("running", "waiting")))
    assert 1.0 == page[gap.replace("requests_waiting", "preemptions_total")]


def test_two_engines_have_two_names(engine: EngineServer, tmp_path: Path) -> None:
    """Two engines of one kind are told apart by their ports, in the series and in the files of a recording."""
    with EngineServer() as second:
        answer_well(second)
        engines = ("--engine", engine.url, "--engine", second.url)
        with running("serve", "--gpu", "none", *engines, "--record", tmp_path / "rec", folder=tmp_path, env=FAST) as daemon:
            names = {f"vllm-{server.port}" for server in (engine, second)}
            wanted = {RUNNING.replace('"vllm"', f'"{name}"') for name in names}
            until(lambda: wanted <= daemon.metrics().keys())
            assert 0 == daemon.stop()[0]
    (segment,) = (tmp_path / "rec").iterdir()
    assert names == set(Recording.open(segment).engines)


def test_a_token_guards_the_pages(engine: EngineServer, tmp_path: Path) -> None:
    """With a token from the environment only the liveness path is open; neither log nor page shows the token."""
    env = {**FAST, "HEPTASCOPE_WEB_TOKEN": "correct-horse-battery"}
    with running("serve", "--gpu", "none", "--engine", engine.url, folder=tmp_path, env=env) as daemon:
        with pytest.raises(OSError, match="401"):
            daemon.get("/metrics")
        assert "heptascope_build_info" in daemon.get("/metrics", Authorization="Bearer correct-horse-battery")
        assert daemon.get("/healthz")
        assert "correct-horse" not in daemon.log()


def test_the_log_can_be_json(tmp_path: Path) -> None:
    """With `--log-format json` every line is one object with time, level and message."""
    with running("serve", "--gpu", "none", "--engine", "http://127.0.0.1:1", "--log-format", "json", folder=tmp_path) as daemon:
        until(lambda: "engine-1" in daemon.log())
        daemon.stop()
        lines = [json.loads(line) for line in daemon.log().splitlines()]
    assert {"info", "warning"} == {line["level"] for line in lines}
    assert all(line["time"].endswith("Z") and line["message"] for line in lines)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--gpu", "rocm"), "heptascope: flag --gpu: gpu.source = rocm: must be 'auto', 'dcgm', 'nvml', 'dcgm-exporter' or 'none'"),
        (("--listen", "nowhere"), "heptascope: flag --listen: listen = nowhere: not an address to listen on; write host:port"),
        (("--engine", "a:8000"), "heptascope: flag --engine: engines[0].url = a:8000: not a URL of an engine; write http://host:port"),
        (
            ("--engine", "http://a:8000", "--engine", "http://b:8000"),
            "heptascope: engines: two engines listen on port 8000 and have no name; give each a name",
        ),
        (("--config", "/nowhere.yaml"), "heptascope: /nowhere.yaml: cannot read the file: No such file or directory"),
        (("--record", "/proc/nowhere"), "heptascope: /proc/nowhere: cannot be used for a recording"),
    ],
)
def test_what_cannot_be_served_is_one_line_and_status_2(arguments: tuple[str, ...], expected: str) -> None:
    """A mistake ends the daemon before it serves, with one line and no traceback."""
    done = heptascope("serve", *arguments)
    assert (2, "", 1) == (done.returncode, done.stdout, done.stderr.count("\n"))
    assert done.stderr.startswith(expected)


def test_a_port_in_use_is_one_line_and_status_2() -> None:
    """Two daemons on one port: the second says so and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = heptascope("serve", "--gpu", "none", "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert (2, 1) == (done.returncode, done.stderr.count("\n"))
    assert "the port is in use; stop the program that holds it, or choose another with --listen" in done.stderr
