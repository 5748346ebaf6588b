"""An engine's profiler endpoints, without an engine: starts and stops are counted, a stop writes a trace."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class FakeEngine:
    """What the server does and what was asked of it."""

    def __init__(self, kind: str = "vllm", folder: Path | None = None, trace: bytes = b"") -> None:
        self.kind, self.folder, self.trace = kind, folder, trace
        self.version = "0.33.0"
        self.start_status = 200
        self.refuse_body = False
        self.steps_per_look: int | None = 5
        self.steps = 1000
        self.url = ""
        self.asked: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.running = False
        self.started, self.stopped = threading.Event(), threading.Event()

    def get(self, path: str) -> tuple[int, str]:
        """Answer a GET."""
        if path == "/get_model_info" and self.kind == "sglang":
            return 200, '{"model_path": "tiny"}'
        if path == "/version" and self.kind == "vllm":
            return 200, json.dumps({"version": self.version})
        if path == "/metrics" and self.steps_per_look is not None:
            self.steps += self.steps_per_look if self.running else 0
            half = self.steps // 2
            line = "vllm:iteration_tokens_total_count"
            return 200, f'{line}{{engine="0"}} {half}.0\n{line}{{engine="1"}} {self.steps - half}.0\n'
        return 404, '{"detail": "Not Found"}'

    def post(self, path: str, body: dict[str, Any]) -> int:
        """Answer a POST."""
        self.asked.append(path)
        if path == "/start_profile":
            self.bodies.append(body)
            if self.refuse_body and body:
                return 422
            if self.start_status == 200:
                self.running = True
                self.started.set()
                if self.kind == "sglang":
                    self.folder = Path(body["output_dir"])
                    self._write()
            return self.start_status
        if self.running and self.kind == "vllm":
            self._write()
        self.running = False
        self.stopped.set()
        return 200

    def _write(self) -> None:
        if self.folder is not None and self.trace:
            (self.folder / "rank0.1.pt.trace.json.gz").write_bytes(self.trace)


@contextmanager
def serving(engine: FakeEngine) -> Iterator[FakeEngine]:
    """Serve an engine on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the library's name
            status, text = engine.get(self.path)
            self._answer(status, text)

        def do_POST(self) -> None:  # the library's name
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self._answer(engine.post(self.path, json.loads(raw) if raw else {}), "{}")

        def _answer(self, status: int, text: str) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    engine.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield engine
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
