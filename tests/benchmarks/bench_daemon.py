"""Measure the whole daemon: processor time and memory beside a real engine page and GPUs, rules included.

The GPUs are those of this machine, or, where there are none, replayed ones. Run with `python tests/benchmarks/bench_daemon.py
[SECONDS]`; prints one table. The engine's page comes over HTTP from this process, the daemon is a process of its own, and one scraper
reads /metrics every 5 s. What the NVML calls themselves cost is in bench_gpu.py.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))  # the helpers of the tests

SCENARIO = "decode-c64"
PAGE = TESTS / "captures" / "vllm-0.32.0" / "dp2_steady" / "t1.prom"
WARM_UP_SECONDS = 12.0  # until the window of the rules is full
SCRAPE_SECONDS = 5.0
RSS_LIMIT_MIB = 80.0
CASES = (
    ("1 GPU at 1 Hz, 1 engine page at 1 Hz", 1, 1.0, 2.0),
    ("1 GPU at 10 Hz, 1 engine page at 1 Hz", 1, 0.1, 4.0),
    ("8 GPUs at 1 Hz, 1 engine page at 1 Hz", 8, 1.0, 5.0),
)
"""Name, replayed GPUs, GPU interval in seconds, limit in percent of a core."""
REAL_CASES = (
    ("this machine's GPU 0 at 1 Hz, 1 engine page", 0, 1.0, 1.5),
    ("this machine's GPU 0 at 10 Hz, 1 engine page", 0, 0.1, 4.0),
)


class ManyGpus:
    """A replayed GPU source that shows its GPU several times, under other indexes."""

    kind, timeout = "gpu", 10.0

    def __init__(self, source: Any, count: int, interval: float) -> None:
        self.name, self.interval = source.name, interval if source.name == "nvml" else max(interval, 1.0)
        self._source, self._count = source, count

    def read(self, now: float) -> Any:
        reading = self._source.read(now)
        samples = [
            s._replace(labels=tuple(sorted({**dict(s.labels), "gpu": str(i)}.items()))) for s in reading.samples for i in range(self._count)
        ]
        return replace(reading, samples=samples)

    def close(self) -> None:
        self._source.close()


def work(url: str, gpus: int, interval: float, seconds: float) -> None:
    """Run one daemon; print its share of a core and its memory as JSON."""
    from heptascope.config import Settings
    from heptascope.daemon import Daemon
    from heptascope.demo.scenarios import FOLDER
    from heptascope.service import be_cheap
    from heptascope.sources.engine.source import EngineSource
    from heptascope.sources.gpu.nvml import nvml_sources
    from heptascope.sources.host.source import HostSource
    from heptascope.sources.playback import replay_sources
    from heptascope.sources.recording import Recording
    from heptascope.surfaces.own import resident_bytes
    from heptascope.surfaces.web.app import create_app
    from heptascope.surfaces.web.server import WebServer
    from heptascope.wiring import build_pipeline

    daemon = Daemon(build_pipeline(Settings(), {}))
    server = WebServer(create_app(daemon), "127.0.0.1", 0)
    folder = TemporaryDirectory()
    if gpus:
        for name in ("gpu.jsonl.gz", "label.json"):  # without its pages: what those cost is not the daemon's
            shutil.copy(FOLDER / SCENARIO / name, folder.name)
        replayed = [source for source in replay_sources(Recording.open(Path(folder.name))) if source.kind == "gpu"]
        daemon.add([ManyGpus(source, gpus, interval) for source in replayed])
    else:
        daemon.add(nvml_sources(interval, devices=("0",)))
    daemon.add([EngineSource("vllm", url), HostSource(list)])
    be_cheap()
    daemon.start()
    server.start()
    stop = threading.Event()
    threading.Thread(target=_scrape, args=(server.url, stop), daemon=True).start()
    time.sleep(WARM_UP_SECONDS)
    began, cpu = time.monotonic(), time.process_time()
    time.sleep(seconds)
    percent = 100 * (time.process_time() - cpu) / (time.monotonic() - began)
    stop.set()
    found = {"percent": percent, "mib": resident_bytes() / 2**20, "series": sum(map(len, daemon.snapshot().values.values()))}
    server.stop()
    daemon.stop()
    print(json.dumps(found))


def _scrape(url: str, stop: threading.Event) -> None:
    while not stop.wait(SCRAPE_SECONDS):
        with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:  # noqa: S310  # our own URL
            answer.read()


def main(seconds: float) -> None:
    """Run each case in a process of its own and print the table."""
    from bench_gpu import real_module

    from support.engine_server import Answer, EngineServer

    text = PAGE.read_text(encoding="utf-8")
    title = f"the whole daemon, page of {len(text.splitlines())} lines"
    print(f"{title:<42} {'% of a core':>12} {'limit':>6} {'RSS MiB':>8} {'limit':>6} {'series':>7}")
    with EngineServer() as engine:
        engine.page(text)
        engine.answers["/version"] = Answer(b'{"version":"0.32.0"}', "application/json")
        for name, gpus, interval, limit in CASES if real_module() is None else REAL_CASES:
            command = [sys.executable, __file__, "--work", engine.url, str(gpus), str(interval), str(seconds)]
            found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
            print(f"{name:<42} {found['percent']:12.2f} {limit:6.1f} {found['mib']:8.1f} {RSS_LIMIT_MIB:6.1f} {found['series']:7d}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5]))
    else:
        main(float(sys.argv[1]) if len(sys.argv) > 1 else 20.0)
