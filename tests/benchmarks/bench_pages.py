"""Measure what open pages cost the daemon: processor time with none and with five streams, and the size and time of what a page loads.

Run with `python tests/benchmarks/bench_pages.py [SECONDS]`; prints one table and exits 1 above a limit. The daemon plays a recording
in a process of its own; the streams are read by this one, as five browsers would.
"""

from __future__ import annotations

import gzip
import http.client
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

PAGES = 5
CPU_LIMIT_PERCENT = 1.0
SIZE_LIMIT_KB = 150.0
WARM_UP_SECONDS = 15.0
ROUNDS = 3
_TICKS = 100.0  # USER_HZ of Linux


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process so far (proc(5), stat, fields 14 and 15)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def listen(port: int, stop: threading.Event, sizes: list[int]) -> None:
    """Read one stream, after what a page loads first, until `stop`."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    for path in ("/", "/api/v1/charts"):
        connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
        connection.getresponse().read()
    connection.request("GET", "/api/v1/stream")
    answer = connection.getresponse()
    total = 0
    while not stop.is_set():
        total += len(answer.read1(65536))
    sizes.append(total)
    connection.close()


def share(pid: int, seconds: float) -> float:
    """Return the share of a core that a process uses over some seconds, in percent."""
    begin, cpu = time.monotonic(), cpu_seconds(pid)
    time.sleep(seconds)
    return 100 * (cpu_seconds(pid) - cpu) / (time.monotonic() - begin)


def loaded(port: int) -> tuple[float, float]:
    """Return the size of what a page loads, compressed as it is sent, in KB, and the time that fetching it takes, in ms."""
    connection, total, begin = http.client.HTTPConnection("127.0.0.1", port), 0, time.perf_counter()

    def fetch(path: str) -> bytes:
        connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
        return connection.getresponse().read()

    page = fetch("/")
    total += len(page)
    for path in dict.fromkeys(re.findall(r"static/[\w.-]+", gzip.decompress(page).decode())):
        total += len(fetch(f"/{path}"))
    return total / 1000, (time.perf_counter() - begin) * 1e3


def measure(port: int, pid: int, seconds: float) -> bool:
    """Print the table; return whether all limits are kept."""
    kilobytes, took = loaded(port)
    none, five, sizes = [], [], []
    for _ in range(ROUNDS):  # in turn, so that what else runs here weighs on both alike
        none.append(share(pid, seconds))
        stop, got = threading.Event(), []
        threads = [threading.Thread(target=listen, args=(port, stop, got)) for _ in range(PAGES)]
        for thread in threads:
            thread.start()
        time.sleep(2.0)
        five.append(share(pid, seconds))
        stop.set()
        for thread in threads:
            thread.join()
        sizes += got
    more = sorted(b - a for a, b in zip(none, five, strict=True))[ROUNDS // 2]
    rows = (
        ("daemon without pages, mean", sum(none) / ROUNDS, "% of a core", None),
        (f"daemon with {PAGES} pages, mean", sum(five) / ROUNDS, "% of a core", None),
        (f"{PAGES} pages cost, median of {ROUNDS} rounds", more, "% of a core", CPU_LIMIT_PERCENT),
        ("stream of one page", sum(sizes) / len(sizes) / (seconds + 2.0) / 1000, "KB/s", None),
        ("page with scripts and styles, as sent", kilobytes, "KB", SIZE_LIMIT_KB),
        ("fetching it, one after the other", took, "ms", None),
    )
    for name, value, unit, limit in rows:
        verdict = "" if limit is None else f"  limit {limit:g}: {'ok' if value <= limit else 'OVER'}"
        print(f"  {name:<40} {value:8.2f} {unit}{verdict}")
    return all(limit is None or value <= limit for _, value, _, limit in rows)


def main(seconds: float) -> None:
    """Start the daemon and measure it."""
    command = [sys.executable, "-m", "heptascope", "demo", "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    try:
        port = next(int(found[1]) for line in process.stdout if (found := re.search(r"serves http://[\w.]+:(\d+)", line)))
        time.sleep(WARM_UP_SECONDS)
        kept = measure(port, process.pid, seconds)
    finally:
        process.terminate()
        process.wait(10)
    sys.exit(not kept)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 20.0)
