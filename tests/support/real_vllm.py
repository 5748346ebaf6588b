"""Installs and serves the real vLLM on this machine's CPU, with a small model."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from support import real_server
from support.prometheus import free_port
from support.real_server import Server as Vllm

ROOT = Path(__file__).parents[2]
ENVIRONMENT = ROOT / ".venv-vllm"
VERSION = "0.32.0"
MODEL = "cycle"
_SETTINGS = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
__all__ = ["ENVIRONMENT", "MODEL", "ROOT", "VERSION", "Vllm", "install", "make_model", "serving"]


def install(environment: Path = ENVIRONMENT, version: str = VERSION) -> None:
    """Install the engine, unless that was done before."""
    subprocess.run([ROOT / "tests/engines/install-vllm", environment, version], check=True, timeout=1800)


def make_model(folder: Path, doubt: float = 1.0) -> Path:
    """Write the model that counts round a cycle, more or less surely; return its folder."""
    target = folder / MODEL
    subprocess.run([ENVIRONMENT / "bin/python", ROOT / "tests/engines/cycle_model.py", target, str(doubt)], check=True, timeout=300)
    return target


@contextmanager
def serving(model: Path, *flags: str, log: Path, environment: Path = ENVIRONMENT, env: Mapping[str, str] | None = None) -> Iterator[Vllm]:
    """Serve the model on a free loopback port without compiling; end it on leaving."""
    port = free_port()
    command = [str(environment / "bin/vllm"), "serve", str(model), "--served-model-name", MODEL, "--host", "127.0.0.1"]
    command += ["--port", str(port), "--enforce-eager", *flags]
    with real_server.serving(command, port, log, {**_SETTINGS, **(env or {})}) as server:
        yield server
