"""check, record and demo as a user runs them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from heptascope.demo.scenarios import scenarios
from heptascope.sources.recording import Recording
from support.engine_pages import VLLM_032, capture
from support.engine_server import Answer, EngineServer
from support.heptascope_process import environment, heptascope, running, until


@pytest.fixture
def engine() -> Iterator[EngineServer]:
    """Serve what vLLM 0.32 answered at a steady load."""
    with EngineServer() as server:
        server.page(capture(VLLM_032, "steady_16"))
        server.answers["/version"] = Answer(b'{"version":"0.32.0"}', "application/json")
        yield server


def test_check_tells_what_each_source_supplies_and_why_the_rest_is_missing(engine: EngineServer) -> None:
    """Everything configured can be read: status 0; the sources are up with their signals, GPU signals have a reason."""
    done = heptascope("check", "--gpu", "none", "--engine", engine.url, "--format", "json")
    found = json.loads(done.stdout)
    assert (0, "", True, []) == (done.returncode, done.stderr, found["ok"], found["failed"])
    sources = {source["name"]: source for source in found["sources"]}
    assert {f"engine-{engine.port}", "host"} == set(sources)
    assert "heptascope_engine_requests_running" in sources[f"engine-{engine.port}"]["signals"]
    reasons = {gap["signal"]: (gap["reason"], gap["detail"]) for gap in found["unavailable"]}
    assert ("no_source", "gpu.source is none") == reasons["heptascope_gpu_power_watts"]
    assert "flag_off" == reasons["heptascope_engine_estimated_flops_total"][0]


def test_check_says_what_cannot_be_read() -> None:
    """An engine that is down ends `check` with status 1, with the reason and what to do in the report."""
    done = heptascope("check", "--gpu", "none", "--engine", "http://127.0.0.1:1")
    text = " ".join(done.stdout.split())
    assert (1, "") == (done.returncode, done.stderr)
    assert "Connection refused; check that the engine runs and listens there" in text
    assert "Not read: engine-1" in text


def test_a_gpu_that_was_asked_for_and_is_not_there_fails_the_check(engine: EngineServer) -> None:
    """`--gpu nvml` on a machine without a driver is not fine, and the report names the library."""
    done = heptascope("check", "--gpu", "nvml", "--engine", engine.url)
    assert 1 == done.returncode
    assert "Not read: nvml, nvml_slow" in " ".join(done.stdout.split())


def test_record_writes_a_recording_that_can_be_read(engine: EngineServer, tmp_path: Path) -> None:
    """Two seconds of one engine and the host are on disk as a recording, whole pages with them."""
    done = heptascope("record", "--gpu", "none", "--engine", engine.url, "--out", tmp_path / "rec", "--for", "2s")
    assert 0 == done.returncode, done.stderr
    assert f"next: heptascope replay {tmp_path / 'rec'}" in done.stdout
    kinds = [event.kind for event in Recording.open(tmp_path / "rec").events()]
    assert {"header", "engine", "host"} == set(kinds)
    assert kinds.count("engine") >= 2


def test_ctrl_c_ends_a_recording_in_good_order(engine: EngineServer, tmp_path: Path) -> None:
    """Interrupted, the recording is written out and usable."""
    command = [
        sys.executable,
        "-m",
        "heptascope",
        "record",
        "--gpu",
        "none",
        "--engine",
        engine.url,
        "--out",
        str(tmp_path / "rec"),
        "--for",
        "1h",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(None))
    until(lambda: len([path for path in engine.asked if path == "/metrics"]) >= 2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (0, "") == (process.returncode, err)
    assert "rows" in out
    assert any(event.kind == "engine" for event in Recording.open(tmp_path / "rec").events())


def test_recording_nothing_is_an_error(tmp_path: Path) -> None:
    """With everything down there is no empty recording but one line that says why."""
    options = ("--gpu", "none", "--engine", "http://127.0.0.1:1", "--out", tmp_path / "rec", "--for", "1s")
    done = heptascope("record", *options, env={"HEPTASCOPE_HOST_ENABLED": "false"})
    assert 2 == done.returncode
    assert "nothing was read: engine-1: http://127.0.0.1:1/metrics: Connection refused" in done.stderr


def test_demo_serves_true_data_and_says_what_to_look_at(tmp_path: Path) -> None:
    """The default scenario shows GPU, engine and host values of the recording and a verdict; stdout names the page."""
    with running("demo", "--speed", "5", folder=tmp_path) as daemon:
        page = until(lambda: page if 'heptascope_engine_requests_running{engine="vllm",rank="0"}' in (page := daemon.metrics()) else {})
        assert any(series.startswith("heptascope_gpu_dram_active_ratio{") for series in page)
        assert any(series.startswith("heptascope_host_cpu_seconds_total{") for series in page)
        until(lambda: (daemon.json("/api/v1/verdict") or {}).get("state") == "degraded")
        assert 0 == daemon.stop()[0]
        assert daemon.process.stdout is not None
        told = daemon.process.stdout.read().decode()
    assert told.startswith("kv-severe: degraded (memory/preemption")
    assert f"{daemon.url}/metrics" in told
    assert "WARNING" not in daemon.log()


def test_demo_lists_its_scenarios() -> None:
    """An unknown scenario is one line with all names; the help has them too."""
    done = heptascope("demo", "--scenario", "kv-sever")
    assert (2, 1) == (done.returncode, done.stderr.count("\n"))
    assert "did you mean kv-severe?" in done.stderr
    told = heptascope("demo", "--help").stdout
    assert [] == [name for name in scenarios() if name not in done.stderr or name not in told]


@pytest.mark.parametrize("speed", ["0", "1000", "fast"])
def test_demo_refuses_an_impossible_speed(speed: str) -> None:
    """A speed out of bounds, or none at all, is one line with what is allowed."""
    done = heptascope("demo", "--speed", speed)
    assert (2, 1) == (done.returncode, done.stderr.count("\n"))
    assert "--speed" in done.stderr
