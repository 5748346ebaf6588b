"""Compare `heptascope trace` with HolisticTraceAnalysis: speed and memory on a large trace, numbers on the real ones.

Run with `python tests/benchmarks/bench_trace.py [MEGABYTES] [--huge]`. The large trace is a real one repeated to MEGABYTES
(default 130); `--huge` also reads one of 1 GB with heptascope alone. HolisticTraceAnalysis lives in an environment of its own,
.venv-hta, which this makes once from requirements-hta.txt. Exits 1 if a limit is missed or the numbers disagree.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
TRACES = ROOT / "tests" / "traces"
SOURCE = TRACES / "tp2-decode-c64-rank0.json.gz"
HTA = ROOT / ".venv-hta"
TIMES_FASTER = 10.0
MEMORY_RATIO = 2.0
"""Peak memory over the decompressed file."""
AGREEMENT = 0.01
HUGE = 1000
RUNS = 2


def enlarge(target: Path, megabytes: int) -> Path:
    """Write a real trace again and again, one after the other in time, in the profiler's own layout."""
    document = json.loads(gzip.decompress(SOURCE.read_bytes()))
    events = [event for event in document.pop("traceEvents") if event.get("ph") == "X" and event["cat"] != "Trace"]
    times = [event["ts"] for event in events]
    period = max(times) - min(times) + 20_000
    most = max(event.get("args", {}).get("correlation", 0) for event in events) + 1
    with target.open("w", encoding="utf-8") as out:
        out.write(json.dumps(document)[:-1] + ',\n  "traceEvents": [')
        separator, copy = "\n", 0
        while out.tell() < megabytes * 1_000_000:
            for event in events:
                args = dict(event.get("args", {}))
                if "correlation" in args:
                    args["correlation"] += copy * most
                moved = event | {"ts": round(event["ts"] + copy * period, 3), "args": args}
                out.write(f"{separator}  {json.dumps(moved)}")
                separator = ",\n"
            copy += 1
        out.write("\n  ]\n}\n")
    return target


def overlapping(target: Path) -> Path:
    """Write a small trace in which NCCL runs beside compute; HolisticTraceAnalysis knows NCCL's kernels only."""
    events = []
    for i in range(200):
        at = 1000.0 * i
        for name, start, duration, stream in (
            ("gemm", at, 400, 7),
            ("ncclDevKernel_AllReduce", at + 300, 250, 9),
            ("norm", at + 500, 100, 7),
        ):
            args = {"device": 0, "stream": stream, "correlation": 3 * i + stream}
            events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": start, "dur": duration, "args": args})
            call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": start - 20, "dur": 5}
            events.append(call | {"args": {"correlation": 3 * i + stream}})
    head = {"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 1}, "deviceProperties": [{"id": 0, "name": "GPU"}]}
    target.write_text(json.dumps({**head, "traceEvents": events}))
    return target


def environment() -> Path | None:
    """Return the Python that has HolisticTraceAnalysis, making it if needed; None if it cannot be had."""
    python = HTA / "bin" / "python"
    if not python.exists():
        venv.create(HTA, with_pip=True)
        command = [str(python), "-m", "pip", "install", "-qq", "--no-deps", "-r", str(HERE / "requirements-hta.txt")]
        if subprocess.run(command, check=False).returncode:
            return None
    return python


def worker(python: str | Path, script: str, trace: Path) -> dict[str, Any]:
    """Run one analysis in a process of its own."""
    done = subprocess.run([str(python), str(HERE / script), str(trace)], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def best(python: str | Path, script: str, trace: Path, runs: int = RUNS) -> dict[str, Any]:
    """Run several times; return the fastest, with the highest peak."""
    found = [worker(python, script, trace) for _ in range(runs)]
    return min(found, key=lambda one: one["seconds"]) | {"peak_bytes": max(one["peak_bytes"] for one in found)}


def apart(one: float | None, other: float | None) -> float:
    """Return the relative difference; shares below one in a thousand are as good as none."""
    a, b = one or 0.0, other or 0.0
    return abs(a - b) / max(abs(a), abs(b), 1e-3)


def agreement(hta: Path, folder: Path) -> bool:
    """Compare numbers on all real traces and the overlapping one."""
    print(f"\n{'trace':34} {'':10} {'heptascope':>14} {'HTA':>14} {'apart':>8}")
    good = True
    for path in [*sorted(TRACES.glob("*.json.gz")), overlapping(folder / "overlap.json")]:
        ours, theirs = worker(sys.executable, "trace_worker.py", path), worker(hta, "hta_worker.py", path)
        rows = [(what, ours[what], theirs[what]) for what in ("wall", "idle", "overlap")]
        worst = max(ours["kernels"], key=lambda name: apart(ours["kernels"][name], theirs["kernels"].get(name)))
        rows.append(("kernel", ours["kernels"][worst], theirs["kernels"].get(worst)))
        for what, a, b in rows:
            good &= apart(a, b) <= AGREEMENT
            cells = [("–" if value is None else f"{value:.9f}") for value in (a, b)]
            print(f"{path.name:34} {what:10} {cells[0]:>14} {cells[1]:>14} {100 * apart(a, b):7.4f}%")
    return good


def report(name: str, found: dict[str, Any], size: int) -> None:
    """Print one line of the speed table."""
    times = f"{found['load_seconds']:9.2f} {found['seconds']:9.2f}"
    print(f"{name:26} {times} {found['peak_bytes'] / 1e6:10.0f} {found['peak_bytes'] / size:10.2f}")


def main(megabytes: int, huge: bool) -> int:
    """Run everything; return the exit status."""
    good = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trace = enlarge(folder / "large.json", megabytes)
        size = trace.stat().st_size
        print(f"{size / 1e6:.0f} MB of JSON, best of {RUNS} runs\n{'':26} {'load s':>9} {'total s':>9} {'peak MB':>10} {'/ file':>10}")
        ours = best(sys.executable, "trace_worker.py", trace)
        report("heptascope", ours, size)
        hta = environment()
        if hta is None:
            print("HolisticTraceAnalysis cannot be installed here: no comparison")
        else:
            theirs = best(hta, "hta_worker.py", trace)
            report("HolisticTraceAnalysis", theirs, size)
            faster = theirs["seconds"] / ours["seconds"]
            print(f"{faster:.1f} times faster (limit {TIMES_FASTER:g})")
            good &= faster >= TIMES_FASTER
        good &= ours["peak_bytes"] <= MEMORY_RATIO * size
        if huge:
            trace = enlarge(folder / "huge.json", HUGE)
            size = trace.stat().st_size
            large = best(sys.executable, "trace_worker.py", trace, 1)
            report(f"heptascope, {size / 1e6:.0f} MB", large, size)
            good &= large["peak_bytes"] <= MEMORY_RATIO * size
        if hta is not None:
            good &= agreement(hta, folder)
    print("good" if good else "A LIMIT IS MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:] if argument.isdigit()]
    sys.exit(main(numbers[0] if numbers else 130, "--huge" in sys.argv))
