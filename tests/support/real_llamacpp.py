"""Builds and serves the real llama.cpp on this machine's CPU, with a small model."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support import real_server
from support.prometheus import free_port
from support.real_server import Server

ROOT = Path(__file__).parents[2]
ENVIRONMENT = ROOT / ".venv-llamacpp"
MODEL = "cycle"


def install() -> None:
    """Build the server, unless that was done before."""
    subprocess.run([ROOT / "tests/engines/install-llamacpp", ENVIRONMENT], check=True, timeout=3000)


def make_model(folder: Path) -> Path:
    """Write the model; return its file."""
    target = folder / f"{MODEL}.gguf"
    subprocess.run([ENVIRONMENT / "bin/python", ROOT / "tests/engines/cycle_gguf.py", target], check=True, timeout=300)
    return target


@contextmanager
def serving(model: Path, *flags: str, log: Path) -> Iterator[Server]:
    """Serve the model on a free loopback port with one thread, which is fastest where cores are shared; end it on leaving."""
    port = free_port()
    command = [str(ENVIRONMENT / "bin/llama-server"), "-m", str(model), "--alias", MODEL, "--host", "127.0.0.1", "--port", str(port)]
    with real_server.serving([*command, "--metrics", "--threads", "1", *flags], port, log, {}) as server:
        yield server
