"""Installs and serves the real vLLM on this machine's CPU, with a tiny model."""

from __future__ import annotations

import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.prometheus import free_port

ROOT = Path(__file__).parents[2]
ENVIRONMENT = ROOT / ".venv-vllm"
VERSION = "0.32.0"
MODEL = "cycle"
START_SECONDS = 400.0
_SETTINGS = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}


@dataclass(frozen=True)
class Vllm:
    """A running server: its address and what it wrote."""

    url: str
    port: int
    process: subprocess.Popen[bytes]
    log: Path


def install(environment: Path = ENVIRONMENT, version: str = VERSION) -> None:
    """Install the engine, unless that was done before."""
    subprocess.run([ROOT / "tests/engines/install-vllm", environment, version], check=True, timeout=1800)


def make_model(folder: Path) -> Path:
    """Write the model that counts round a cycle; return its folder."""
    target = folder / MODEL
    subprocess.run([ENVIRONMENT / "bin/python", ROOT / "tests/engines/cycle_model.py", target], check=True, timeout=300)
    return target


@contextmanager
def serving(model: Path, *flags: str, log: Path, environment: Path = ENVIRONMENT, env: Mapping[str, str] | None = None) -> Iterator[Vllm]:
    """Serve the model on a free loopback port without compiling; end it on leaving."""
    port = free_port()
    command = [str(environment / "bin/vllm"), "serve", str(model), "--served-model-name", MODEL, "--host", "127.0.0.1"]
    command += ["--port", str(port), "--enforce-eager", *flags]
    settings = {**os.environ, **_SETTINGS, **(env or {})}
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=settings, start_new_session=True)
        try:
            server = Vllm(f"http://127.0.0.1:{port}", port, process, log)
            _wait(server)
            yield server
        finally:
            process.terminate()
            process.wait(timeout=60)


def _wait(server: Vllm) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert server.process.poll() is None, server.log.read_text(encoding="utf-8", errors="replace")[-4000:]
        try:
            with urllib.request.urlopen(f"{server.url}/health", timeout=2):  # noqa: S310  # our own URL
                return
        except (urllib.error.URLError, OSError):
            time.sleep(1)
    raise AssertionError(f"not ready: {server.log.read_text(encoding='utf-8', errors='replace')[-4000:]}")
