"""Renders the chart as `helm template` does, with the Helm library that helm-python-sdk embeds."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import helm_python
import yaml

from support.helm_values import CHART

NAMESPACE = "llm"


def texts(values: Mapping[str, Any], chart: Path = CHART, release: str = "heptascope") -> dict[str, str]:
    """Return what each template gives, by its path inside the chart. Raises helm_python.HelmError where Helm refuses."""
    with helm_python.Chart.load(str(chart)) as loaded:
        rendered: dict[str, str] = loaded.render(dict(values), name=release, namespace=NAMESPACE)
    return {path.partition("/")[2]: text for path, text in rendered.items()}


def documents(values: Mapping[str, Any], chart: Path = CHART, release: str = "heptascope") -> list[dict[str, Any]]:
    """Return all Kubernetes objects. Raises helm_python.HelmError where Helm refuses."""
    found = texts(values, chart, release)
    return [document for path, text in found.items() if not path.endswith("NOTES.txt") for document in yaml.safe_load_all(text) if document]


def of_kind(objects: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Return the objects of one kind."""
    return [document for document in objects if document["kind"] == kind]


def included(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the Deployment of a chart in `folder` that has this chart as a dependency and includes its sidecar.

    `values` are this chart's; a parent's own stand beside them in its values file.
    """
    _parent(folder)
    dependency = folder / "charts" / "heptascope"
    if not dependency.exists():
        shutil.copytree(CHART, dependency, ignore=shutil.ignore_patterns("files", "ci"))
    return of_kind(documents({"heptascope": dict(values)}, folder, release="vllm"), "Deployment")[0]


def _parent(folder: Path) -> None:
    """Write the parent chart: what docs/deploy.md tells to add to a server's chart."""
    (folder / "templates").mkdir(parents=True, exist_ok=True)
    (folder / "Chart.yaml").write_text(PARENT_CHART, encoding="utf-8")
    (folder / "templates" / "deployment.yaml").write_text(PARENT_DEPLOYMENT, encoding="utf-8")


PARENT_CHART = """\
apiVersion: v2
name: server
version: 0.1.0
dependencies:
  - name: heptascope
    version: 0.x
"""
PARENT_DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: server
spec:
  selector:
    matchLabels: {app: server}
  template:
    metadata:
      labels:
        app: server
        {{- include "heptascope.podLabels" .Subcharts.heptascope | nindent 8 }}
      {{- with include "heptascope.podAnnotations" .Subcharts.heptascope }}
      annotations:
        {{- . | nindent 8 }}
      {{- end }}
    spec:
      initContainers:
        {{- include "heptascope.sidecar" .Subcharts.heptascope | nindent 8 }}
      containers:
        - name: server
          image: server:1
      {{- with include "heptascope.volumes" .Subcharts.heptascope }}
      volumes:
        {{- . | nindent 8 }}
      {{- end }}
"""
