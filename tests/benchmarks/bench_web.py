"""Measure the web surface: memory, and the latency of /metrics for eight scrapers that keep their connections.

Run with `python tests/benchmarks/bench_web.py [SECONDS]` on a machine with nothing else to do; prints one table and exits 1
above a limit. The page has about 500 series and 10 histograms and changes every second. The scrapers are a process of their
own, so that they do not share the server's interpreter.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
SCRAPERS = 8
SCRAPE_EVERY = 0.25
ACCEPT = "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"  # Prometheus asks like this
P99_LIMIT_MS, RSS_LIMIT_MIB = 5.0, 80.0


def scrape(port: int, seconds: float, number: int, out: list[float]) -> None:
    """Fetch the page every SCRAPE_EVERY seconds over one connection; append each latency in seconds."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    end = time.monotonic() + seconds
    due = time.monotonic() + SCRAPE_EVERY * number / SCRAPERS
    while time.monotonic() < end:
        time.sleep(max(0.0, due - time.monotonic()))
        begin = time.perf_counter()
        connection.request("GET", "/metrics", headers={"Accept": ACCEPT, "Accept-Encoding": "gzip"})
        response = connection.getresponse()
        response.read()
        if response.status == 200:
            out.append(time.perf_counter() - begin)
        due += SCRAPE_EVERY * 1.03  # drifts through every phase of the server's second


def scrapers(port: int, seconds: float) -> None:
    """Run all scrapers and print their latencies as JSON."""
    latencies: list[float] = []
    threads = [threading.Thread(target=scrape, args=(port, seconds, i, latencies)) for i in range(SCRAPERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps(latencies))


def measure(seconds: float) -> bool:
    """Serve changing snapshots, have them scraped, print the table; return whether all limits are kept."""
    sys.path.insert(0, str(TESTS))
    bare = resident_mib()
    from heptascope.surfaces.web.app import create_app
    from heptascope.surfaces.web.server import WebServer
    from support.snapshots import T0, busy, series_count
    from support.web_state import MemoryState

    imported = resident_mib()
    state = MemoryState(busy(T0 + 60, 1, gpus=10))
    server = WebServer(create_app(state), "127.0.0.1", 0)
    server.start()
    command = [sys.executable, __file__, "--scrapers", str(server.port), str(seconds)]
    cpu = time.process_time()
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    begin, version = time.monotonic(), 1
    while child.poll() is None and time.monotonic() < begin + seconds + 5:
        time.sleep(1.0)
        version += 1
        state.current = busy(T0 + 60 + version, version, gpus=10)
        state.time = state.current.t
    output, _ = child.communicate()
    cpu = time.process_time() - cpu
    took = sorted(json.loads(output))
    series, histograms = series_count(state.current), len(state.current.histograms)
    server.stop()
    rows = [
        (f"/metrics p50, {SCRAPERS} scrapers ({len(took)} pages)", took[len(took) // 2] * 1e3, "ms", None),
        ("/metrics p99", took[int(len(took) * 0.99)] * 1e3, "ms", P99_LIMIT_MS),
        ("/metrics worst", took[-1] * 1e3, "ms", None),
        ("CPU per page, building the snapshots included", cpu / len(took) * 1e3, "ms", None),
        ("memory before imports", bare, "MiB", None),
        ("memory after imports", imported, "MiB", None),
        ("memory after the run", resident_mib(), "MiB", RSS_LIMIT_MIB),
    ]
    print(f"web surface: {series} series and {histograms} histograms, new every second")
    for name, value, unit, limit in rows:
        verdict = "" if limit is None else f"  limit {limit:g} {unit}: {'ok' if value <= limit else 'OVER'}"
        print(f"  {name:<48} {value:8.2f} {unit}{verdict}")
    return all(limit is None or value <= limit for _, value, _, limit in rows)


def resident_mib() -> float:
    """Return the resident memory of this process, in MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    """Measure, or be the scrapers of a measurement."""
    if sys.argv[1:2] == ["--scrapers"]:
        scrapers(int(sys.argv[2]), float(sys.argv[3]))
    else:
        sys.exit(not measure(float(sys.argv[1]) if len(sys.argv) > 1 else 20.0))


if __name__ == "__main__":
    main()
