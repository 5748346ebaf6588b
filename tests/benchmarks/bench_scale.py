"""Measure what the rules cost a Prometheus that watches a thousand pods.

Run with `python tests/benchmarks/bench_scale.py [PODS] [MINUTES]`. Two demos give real pages; a load generator serves them, varied, as
PODS pods on one loopback port; the real Prometheus scrapes all of them every 15 s and evaluates every rendered rule file. Every twentieth
pod preempts. Beside the committed rules it evaluates the layers' files of `judge=sidecar`, which take the place of theirs in a large fleet.
Prints one table after MINUTES (more than the rules' window of five). Groups are evaluated beside each other, so the slowest says how late
an alert can be; the sums say how much of a core they use. Exits 1 if that of `judge=sidecar` is over the limit.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from heptascope.rules.load import load
from heptascope.surfaces.alerts.catalogue import layer_files
from heptascope.surfaces.alerts.settings import RenderSettings
from heptascope.surfaces.alerts.yaml_text import to_yaml

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from support.alert_world import demo  # noqa: E402  # the path is set above
from support.heptascope_process import Running  # noqa: E402
from support.prometheus import Prometheus, free_port, running_prometheus  # noqa: E402

LIMIT_SECONDS = 1.0
COUNTED = "(counted)"
KINDS = {"good": "decode-c64", "bad": "kv-severe"}
BAD_EVERY, PODS_PER_WORKLOAD = 20, 25
WARM_SECONDS, APART_SECONDS = 20.0, 10.0
INTERVAL_SECONDS = 15
CONFIG = """
global: {{scrape_interval: {interval}s, scrape_timeout: 10s, evaluation_interval: {interval}s}}
rule_files: ['{rules}/*.yaml', '{counted}/*.yaml']
scrape_configs:
  - {{job_name: heptascope, file_sd_configs: [{{files: ['{targets}']}}]}}
"""


def take_pages(folder: Path) -> None:
    """Write two pages of each kind of server, and the seconds between them."""
    times = {}
    for kind, scenario in KINDS.items():
        with demo(scenario, folder / kind) as daemon:
            time.sleep(WARM_SECONDS)
            times[kind] = _two_pages(daemon, folder / kind)
    (folder / "times.json").write_text(json.dumps(times), encoding="utf-8")


def _two_pages(daemon: Running, stem: Path) -> float:
    begin = time.monotonic()
    stem.with_suffix(".0").write_text(daemon.get("/metrics"), encoding="utf-8")
    time.sleep(APART_SECONDS)
    stem.with_suffix(".1").write_text(daemon.get("/metrics"), encoding="utf-8")
    return time.monotonic() - begin


def targets(pods: int, port: int) -> str:
    """Return the pods as a file of targets."""
    rows = []
    for number in range(pods):
        kind = "bad" if number % BAD_EVERY == 0 else "good"
        workload = f"model-{number // PODS_PER_WORKLOAD}"
        labels = {"__metrics_path__": f"/{kind}/{number}", "instance": f"10.0.{number // 250}.{number % 250}:17007"}
        labels |= {"cluster": "bench", "namespace": "llm", "workload": workload, "pod": f"{workload}-{number}"}
        rows.append({"targets": [f"127.0.0.1:{port}"], "labels": labels})
    return json.dumps(rows)


def write_counted(folder: Path) -> Path:
    """Write the layers' rules as they are where the sidecars judge; return the folder."""
    folder.mkdir()
    for file in layer_files(load(), RenderSettings(judge="sidecar")):
        (folder / f"{file.name}.yaml").write_text(to_yaml(file.as_dict(), f"# {file.about}"), encoding="utf-8")
    return folder


def own_metrics(server: Prometheus) -> dict[str, float]:
    """Return what Prometheus says about itself."""
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=60) as answer:  # noqa: S310  # our own URL
        lines = answer.read().decode().splitlines()
    return {series: float(value) for series, _, value in (line.rpartition(" ") for line in lines if line and line[0] != "#")}


def of_groups(metrics: dict[str, float], name: str) -> dict[str, float]:
    """Return what Prometheus says of each rule group by this metric; the groups of `judge=sidecar` are marked."""
    found = {}
    for series, value in metrics.items():
        if series.startswith(f"prometheus_rule_group_{name}{{"):
            path, _, group = series.rstrip('"}').rpartition(";")
            found[f"{group} {COUNTED}" if "/counted/" in path else group] = value
    return found


def measure(pods: int, minutes: float) -> bool:
    """Run, print, and return whether the limit holds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        take_pages(folder)
        port = free_port()
        generator = subprocess.Popen([sys.executable, str(TESTS / "support" / "pod_pages.py"), str(port), str(folder)])
        try:
            (folder / "targets.json").write_text(targets(pods, port), encoding="utf-8")
            rules = TESTS.parent / "alerts" / "rules"
            counted = write_counted(folder / "counted")
            config = CONFIG.format(interval=INTERVAL_SECONDS, rules=rules, counted=counted, targets=folder / "targets.json")
            with running_prometheus(folder, config=config) as server:
                worst = _watch(server, minutes)
                return _report(server, pods, worst)
        finally:
            generator.terminate()
            generator.wait(timeout=10)


def _watch(server: Prometheus, minutes: float) -> dict[str, list[float]]:
    """Collect the durations of groups once an interval, after the window of the rules is full."""
    found: dict[str, list[float]] = {}
    end = time.monotonic() + minutes * 60
    while time.monotonic() < end:
        time.sleep(INTERVAL_SECONDS)
        if end - time.monotonic() < (minutes - 5.5) * 60:
            for group, seconds in of_groups(own_metrics(server), "last_duration_seconds").items():
                found.setdefault(group, []).append(seconds)
    return found


def _report(server: Prometheus, pods: int, worst: dict[str, list[float]]) -> bool:
    metrics = own_metrics(server)
    server.close()  # Prometheus has hung up on a connection that was idle for so long
    now = time.time()

    def value(query: str) -> float:
        found = server.query(query, now)["data"]["result"]
        return float(found[0]["value"][1]) if found else 0.0

    means = {group: sum(seconds) / len(seconds) for group, seconds in worst.items()}
    layers = {group.removesuffix(f" {COUNTED}") for group in means if group.endswith(COUNTED)}
    every = of_groups(metrics, "interval_seconds")
    share = {group: seconds * INTERVAL_SECONDS / every[group] for group, seconds in means.items()}
    whole = sum(seconds for group, seconds in share.items() if not group.endswith(COUNTED))
    counted = sum(seconds for group, seconds in share.items() if group.removesuffix("-histograms") not in layers)
    up, missed = value("sum(up)"), metrics.get("prometheus_rule_group_iterations_missed_total", 0.0)
    per_pod = value('sum(scrape_samples_scraped{job="heptascope"})') / max(up, 1.0)
    recorded, firing = value('count({__name__=~".+:.+"})'), value('count(ALERTS{alertstate="firing"})')
    memory = metrics["process_resident_memory_bytes"] / 2**20
    print(f"{up:.0f} of {pods} pods up, {per_pod:.0f} series per pod, {metrics['prometheus_tsdb_head_series']:.0f} series in memory")
    print(f"{recorded:.0f} recorded series, {value('count(ALERTS)'):.0f} alerts, {firing:.0f} firing; {missed:.0f} evaluations missed")
    print(f"Prometheus uses {memory:.0f} MiB, {memory * 1000 / max(up, 1.0):.0f} MiB for 1,000 pods")
    for group, seconds in sorted(means.items(), key=lambda row: -row[1]):
        print(f"  {group:<34} {seconds * 1000:7.1f} ms mean, {max(worst[group]) * 1000:7.1f} ms at most, every {every[group]:.0f} s")
    print(f"slowest group {max(means.values()):.3f} s; all groups together, in each {INTERVAL_SECONDS} s:")
    print(f"  {whole:.3f} s with every expression evaluated, {counted:.3f} s with judge=sidecar (limit {LIMIT_SECONDS:g} s)")
    return counted <= LIMIT_SECONDS


def main() -> None:
    """Measure and print."""
    pods = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    minutes = float(sys.argv[2]) if len(sys.argv) > 2 else 7.0
    sys.exit(not measure(pods, minutes))


if __name__ == "__main__":
    main()
