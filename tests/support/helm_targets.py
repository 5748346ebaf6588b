"""What Prometheus makes of discovered targets by a PodMonitor's relabelings: `promtool check service-discovery`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from support.prometheus import promtool

SECONDS = "1s"
"""How long promtool collects targets; static ones are there at once."""


def relabelled(
    discovered: Mapping[str, Mapping[str, str]], relabelings: Sequence[Mapping[str, Any]], folder: Path
) -> dict[str, dict[str, str]]:
    """Return the labels of each target after relabeling, by the name under which it is in `discovered`."""
    targets = [{"targets": [f"{name}:17007"], "labels": {**labels, "name": name}} for name, labels in discovered.items()]
    rules = [{_snake(key): value for key, value in rule.items()} for rule in relabelings]
    config = folder / "discovery.yaml"
    config.write_text(
        yaml.safe_dump({"scrape_configs": [{"job_name": "podMonitor/llm/x/0", "static_configs": targets, "relabel_configs": rules}]}),
        encoding="utf-8",
    )
    done = promtool("check", "service-discovery", f"--timeout={SECONDS}", config, "podMonitor/llm/x/0")
    assert 0 == done.returncode, done.stdout + done.stderr
    return {found["labels"]["name"]: found["labels"] for found in json.loads(done.stdout)}


def _snake(key: str) -> str:
    """Return the name of a key in Prometheus's own configuration."""
    return re.sub("([A-Z])", lambda match: f"_{match[1].lower()}", key)
