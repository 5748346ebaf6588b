"""Everything between an engine and a person, for real: daemons on recordings, Prometheus, Alertmanager, a webhook."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heptascope.rules.load import load
from heptascope.surfaces.alerts.render import render
from heptascope.surfaces.alerts.settings import load_settings
from support.alertmanager import Alertmanager, Webhook, running_alertmanager
from support.heptascope_process import Running, environment, running
from support.prometheus import Prometheus, running_prometheus
from support.recordings import all_recordings

SUPPORT = Path(__file__).parent
INTERVAL_SECONDS = 2.0
WINDOW_SECONDS, HOLD_SECONDS = 10.0, 3.0
"""Window and hold of the rules in-process (heptascope's own defaults)."""

_CONFIG = """
global: {{scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 2s}}
rule_files: ['{rules}/*.yaml']
alerting: {{alertmanagers: [{{static_configs: [{{targets: ['127.0.0.1:{alertmanager}']}}]}}]}}
scrape_configs:
  - job_name: heptascope
    static_configs: {targets}
"""


@contextmanager
def playing(*names: str, folder: Path) -> Iterator[Running]:
    """Run a daemon that plays these recordings, the next one at each SIGUSR1."""
    log = folder / "playing.log"
    known = all_recordings()
    command = [sys.executable, str(SUPPORT / "playing.py"), *(str(known[name]) for name in names), "--listen", "127.0.0.1:0"]
    with log.open("wb") as stderr:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr, env=environment(None))
        try:
            yield Running(process, log)
        finally:
            process.terminate()
            process.wait(timeout=20)


def go_on(daemon: Running) -> float:
    """Let the next recording play; return when (Unix seconds)."""
    os.kill(daemon.process.pid, signal.SIGUSR1)
    return time.time()


def demo(scenario: str, folder: Path) -> Any:
    """Run `heptascope demo` on one scenario."""
    folder.mkdir(parents=True, exist_ok=True)
    return running("demo", "--scenario", scenario, folder=folder)


@dataclass
class World:
    """What runs: the daemons by pod name, and what watches them."""

    daemons: Mapping[str, Running]
    prometheus: Prometheus
    alertmanager: Alertmanager
    webhook: Webhook

    def values(self, query: str) -> dict[tuple[tuple[str, str], ...], float]:
        """Return the answer to an instant query now, by labels."""
        found = self.prometheus.query(query, time.time())["data"]["result"]
        return {tuple(sorted(item["metric"].items())): float(item["value"][1]) for item in found}

    def history(self, query: str, since: float) -> list[tuple[dict[str, str], list[tuple[float, float]]]]:
        """Return the answer to a range query from `since` to now, second by second."""
        reply = self.prometheus.api("/api/v1/query_range", query=query, start=f"{since:.3f}", end=f"{time.time():.3f}", step="1")
        return [(item["metric"], [(float(t), float(v)) for t, v in item["values"]]) for item in reply["data"]["result"]]


def rendered(folder: Path, webhook: Webhook, changes: Sequence[str] = ()) -> str:
    """Write the rules with the in-process window and hold to `folder`; return Alertmanager's configuration."""
    receivers = [f"receivers.{name}={webhook.url}/{name}" for name in ("page", "ticket", "context")]
    times = [f"window={WINDOW_SECONDS:g}s", f"hold={HOLD_SECONDS:g}s", "HeptascopeDown.for=8s"]
    texts = render(load(), load_settings(None, [*times, *receivers, *changes]))
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return texts[Path("alertmanager.yaml")]


@contextmanager
def world(folder: Path, daemons: Mapping[str, Running]) -> Iterator[World]:
    """Watch these daemons, each as a pod of its own, with one Prometheus and one Alertmanager."""
    with ExitStack() as stack:
        webhook = stack.enter_context(Webhook())
        manager = stack.enter_context(running_alertmanager(folder, rendered(folder, webhook)))
        targets = [
            {
                "targets": [daemon.url.removeprefix("http://")],
                "labels": {"cluster": "test", "namespace": "llm", "workload": pod, "pod": f"{pod}-0"},
            }
            for pod, daemon in daemons.items()
        ]
        config = _CONFIG.format(rules=folder / "rules", alertmanager=manager.port, targets=json.dumps(targets))
        prometheus = stack.enter_context(running_prometheus(folder, config=config))
        yield World(daemons, prometheus, manager, webhook)
