"""The whole program with GPUs behind a dcgm-exporter and behind a DCGM host engine."""

from __future__ import annotations

import gzip
import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from heptascope.sources.recording import Recording
from heptascope.sources.replay import replay_readings
from support.dcgm_pages import page
from support.engine_server import EngineServer
from support.heptascope_process import Running, heptascope, running, until

TESTS = Path(__file__).parents[1]
OF_GPU = '{gpu="0",uuid="GPU-0"}'
NO_ENGINE = ("--engine", "http://127.0.0.1:1")

STRUCTS = """
import os, time
from support.fake_dcgm import DCGMError, HostEngine, Modules
ENGINE = HostEngine("h200", time.time, phase="copy")
MODULES = Modules(ENGINE)
c_dcgmConnectV3Params_v1 = c_dcgmConnectV2Params_v2 = c_dcgmGroupEntityPair_t = MODULES.c_dcgmConnectV3Params_v1
def _dcgmInit(folder=None):
    pass
"""
AGENT = """
import os
from dcgm_structs import ENGINE, MODULES
def dcgmInit():
    pass
for name in dir(MODULES):
    if name.startswith("dcgm"):
        globals()[name] = getattr(MODULES, name)
def dcgmDisconnect(handle):
    MODULES.dcgmDisconnect(handle)
    with open(os.environ["FAKE_DCGM_LOG"], "w") as file:
        file.write(f"{ENGINE.calls.count('dcgmUnwatchFields')} {len(ENGINE.watches)} {len(ENGINE.connections)}")
"""


@pytest.fixture
def exporter() -> Iterator[EngineServer]:
    """Return a dcgm-exporter with one GPU."""
    with EngineServer() as server:
        server.page(page("legacy"))
        yield server


@pytest.fixture
def host_engine() -> Iterator[str]:
    """Return the address of something that listens, as a host engine does."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def environment(folder: Path, address: str) -> dict[str, str]:
    """Write a folder of bindings whose host engine is the tests' own, and return the settings that use it."""
    bindings = folder / "bindings"
    bindings.mkdir()
    (bindings / "dcgm_structs.py").write_text(STRUCTS)
    (bindings / "dcgm_agent.py").write_text(AGENT)
    return {
        "HEPTASCOPE_GPU_DCGM_BINDINGS": str(bindings),
        "HEPTASCOPE_GPU_DCGM_ADDRESS": address,
        "FAKE_DCGM_LOG": str(folder / "released"),
        "PYTHONPATH": str(TESTS),
        "HEPTASCOPE_LISTEN": "127.0.0.1:0",
    }


def metric(daemon: Running, name: str) -> float:
    """Return a value of the GPU once it is there."""
    return until(lambda: daemon.metric(f"heptascope_gpu_{name}{OF_GPU}"))


def test_an_exporter_serves_and_is_served_again(exporter: EngineServer, tmp_path: Path) -> None:
    """The page of a dcgm-exporter becomes our series, and under `--compat` its own again, with the same numbers."""
    env = {"HEPTASCOPE_GPU_DCGM_EXPORTER_URLS": exporter.url, "HEPTASCOPE_LISTEN": "127.0.0.1:0", "NODE_NAME": "n1"}
    with running("serve", "--gpu", "dcgm-exporter", "--compat", "dcgm-exporter", *NO_ENGINE, folder=tmp_path, env=env) as daemon:
        assert 690.697 == metric(daemon, "power_watts")
        found = {series.partition("{")[0]: value for series, value in daemon.metrics().items() if "DCGM_FI" in series}
        expected = {"DCGM_FI_DEV_POWER_USAGE": 690.697, "DCGM_FI_DEV_SM_CLOCK": 1455.0, "DCGM_FI_PROF_DRAM_ACTIVE": 0.15966}
        assert expected == pytest.approx({name: found[name] for name in expected})
        assert 1.0 == daemon.metric("heptascope_gpus_visible")


def test_auto_explains_its_choice(exporter: EngineServer) -> None:
    """On a machine without DCGM and driver a configured exporter is taken, and the report says why not the others."""
    env = {"HEPTASCOPE_GPU_DCGM_EXPORTER_URLS": exporter.url, "HEPTASCOPE_GPU_DCGM_BINDINGS": "/nowhere"}
    report = json.loads(heptascope("check", *NO_ENGINE, "--format", "json", env=env).stdout)
    choice = report["gpus"]["choice"]
    assert choice.startswith("dcgm_exporter; before it: DCGM: no Python bindings in /nowhere")
    assert "libnvidia-ml.so.1" in choice
    assert report["gpus"]["scope"].startswith("node: ")


def test_a_host_engine_is_read_and_released_on_sigterm(host_engine: str, tmp_path: Path) -> None:
    """Found by `auto`; SIGTERM gives every watch back before the connection ends."""
    with running("serve", *NO_ENGINE, folder=tmp_path, env=environment(tmp_path, host_engine)) as daemon:
        assert 474.052 == metric(daemon, "power_watts")
        assert 0.8902 == pytest.approx(metric(daemon, "dram_active_ratio"), abs=1e-4)
        assert 1.0 == daemon.metric('heptascope_source_info{kind="gpu",quality="approximate",source="dcgm"}')
        daemon.process.send_signal(signal.SIGTERM)
        assert 0 == daemon.process.wait(10)
    assert "3 0 0" == (tmp_path / "released").read_text()
    assert "Traceback" not in daemon.log()


def test_a_recording_of_dcgm_replays(host_engine: str, tmp_path: Path) -> None:
    """What was read through DCGM is recorded, and replays under its source's name."""
    env = environment(tmp_path, host_engine)
    recorded = heptascope("record", "--gpu", "dcgm", *NO_ENGINE, "--out", tmp_path / "rec", "--for", "4s", env=env)
    assert 0 == recorded.returncode, recorded.stderr
    rows = [json.loads(line) for path in (tmp_path / "rec").rglob("gpu.jsonl*") for line in _lines(path)]
    assert {"header", "gpu", "slow"} <= {row["kind"] for row in rows}
    assert {"dcgm"} == {row["source"] for row in rows if row["kind"] == "header" and row.get("gpus")}
    (folder,) = {path.parent for path in (tmp_path / "rec").rglob("gpu.jsonl*")}
    assert {"dcgm", "dcgm_slow"} <= {found.source for found in replay_readings(Recording.open(folder))}


def _lines(path: Path) -> list[str]:
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    return text.splitlines()
