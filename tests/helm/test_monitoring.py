"""PodMonitor, PrometheusRules and dashboards: valid for the operator, equal to their sources, and joined with each other."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from cloudcoil.models.prometheus_operator import v1

from heptascope.rules.load import load
from heptascope.surfaces.alerts.render import render
from heptascope.surfaces.alerts.settings import RenderSettings
from support.helm_render import documents, of_kind, texts
from support.helm_targets import relabelled
from support.helm_values import CHART
from support.lost_keys import lost_keys
from support.prometheus import promtool

ROOT = CHART.parents[1]
EVERYTHING = {"podMonitor": {"enabled": True}, "prometheusRule": {"enabled": True}, "dashboards": {"enabled": True}}
MEBIBYTE = 2**20


@pytest.fixture(scope="module")
def everything() -> list[dict[str, Any]]:
    """Render all shared objects with their defaults."""
    return documents(EVERYTHING)


def ci(name: str) -> list[dict[str, Any]]:
    """Render one values file."""
    return documents(yaml.safe_load((CHART / "ci" / f"{name}-values.yaml").read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", ["monitoring", "rules", "rules-sidecar", "token-tls", "names"])
def test_the_operator_knows_every_key(name: str) -> None:
    """The operator's own models take the objects, and give back every key that was put in."""
    models = {"PodMonitor": v1.PodMonitor, "PrometheusRule": v1.PrometheusRule}
    found = [document for document in ci(name) if document["kind"] in models]
    assert found
    for document in found:
        read = models[document["kind"]].model_validate(document).model_dump(by_alias=True, exclude_none=True, mode="json")
        assert [] == list(lost_keys(document, read))


def test_rules_equal_their_sources(everything: list[dict[str, Any]]) -> None:
    """There is one PrometheusRule for each rendered file, and its groups are the file's."""
    sources = {
        f"heptascope-{path.stem}": yaml.safe_load(path.read_text(encoding="utf-8")) for path in (ROOT / "alerts" / "rules").glob("*.yaml")
    }
    rendered = {rule["metadata"]["name"]: rule["spec"] for rule in of_kind(everything, "PrometheusRule")}
    assert sources == rendered


def test_the_sidecars_can_judge() -> None:
    """With `judge: sidecar` the rules are those that `heptascope rules render --set judge=sidecar` writes."""
    written = render(load(), RenderSettings(judge="sidecar"))
    sources = {f"heptascope-{path.stem}": yaml.safe_load(text) for path, text in written.items() if path.parent.name == "rules"}
    assert sources == {rule["metadata"]["name"]: rule["spec"] for rule in of_kind(ci("rules-sidecar"), "PrometheusRule")}


def test_changed_rules_are_what_was_asked_for(tmp_path: Path) -> None:
    """Left-out alerts are gone, changed ones changed, all others as they were but for job, labels and runbooks; promtool takes them."""
    rules = {rule["alert"]: rule for rule in _rules(ci("rules")) if "alert" in rule}
    sources = {rule["alert"]: rule for rule in _rules(documents(EVERYTHING)) if "alert" in rule}
    assert {"EvictionChurn", "HeptascopeEngineAbsent"} == set(sources) - set(rules)
    changed, source = rules["KVCachePreemption"], sources["KVCachePreemption"]
    assert (
        source
        | {
            "for": "5m",
            "keep_firing_for": "10m",
            "labels": {**source["labels"], "severity": "critical", "team": "inference", "cluster_tier": "gold"},
            "annotations": {
                **source["annotations"],
                "note": "See the capacity plan.",
                "runbook_url": "https://wiki.example/runbooks/KVCachePreemption.md",
            },
        }
        == changed
    )
    assert 'up{job="llm-sidecar"} == 0' == rules["HeptascopeDown"]["expr"]
    assert [] == [name for name, rule in rules.items() if 'job="heptascope"' in rule["expr"] or rule["labels"]["cluster_tier"] != "gold"]
    for number, document in enumerate(of_kind(ci("rules"), "PrometheusRule")):
        (tmp_path / f"{number}.yaml").write_text(yaml.safe_dump(document["spec"]), encoding="utf-8")
    done = promtool("check", "rules", *sorted(tmp_path.glob("*.yaml")))
    assert 0 == done.returncode, done.stdout + done.stderr


def test_a_file_without_rules_makes_no_object() -> None:
    """Where all alerts of a file are left out, there is no empty PrometheusRule."""
    source = yaml.safe_load((ROOT / "alerts" / "rules" / "speculative.yaml").read_text(encoding="utf-8"))
    names = [rule["alert"] for group in source["groups"] for rule in group["rules"]]
    rendered = of_kind(documents({"prometheusRule": {"enabled": True, "disabled": names}}), "PrometheusRule")
    assert {"heptascope-speculative"} == {rule["metadata"]["name"] for rule in of_kind(documents(EVERYTHING), "PrometheusRule")} - {
        rule["metadata"]["name"] for rule in rendered
    }


TARGETS = {
    "deployment": ({"controller_kind": "ReplicaSet", "controller_name": "vllm-7d9c8b6f5"}, "vllm"),
    "statefulset": ({"controller_kind": "StatefulSet", "controller_name": "vllm-main"}, "vllm-main"),
    "bare": ({}, ""),
    "leaderworkerset": (
        {"controller_kind": "StatefulSet", "controller_name": "big-0", "label_leaderworkerset_sigs_k8s_io_name": "big"},
        "big",
    ),
    "kserve": (
        {"controller_kind": "ReplicaSet", "controller_name": "qwen3-predictor-5c4", "label_serving_kserve_io_inferenceservice": "qwen3"},
        "qwen3",
    ),
    "both": ({"label_ray_io_cluster": "ray", "label_leaderworkerset_sigs_k8s_io_name": "big"}, "big"),
}


def test_targets_get_the_labels_that_the_alerts_join_by(everything: list[dict[str, Any]], tmp_path: Path) -> None:
    """A real Prometheus gives job and workload to pods of a Deployment, a StatefulSet, none, and of what a label names."""
    endpoint = of_kind(everything, "PodMonitor")[0]["spec"]["podMetricsEndpoints"][0]
    discovered = {name: {f"__meta_kubernetes_pod_{key}": value for key, value in labels.items()} for name, (labels, _) in TARGETS.items()}
    found = relabelled(discovered, endpoint["relabelings"], tmp_path)
    assert {name: ("heptascope", workload) for name, (_, workload) in TARGETS.items()} == {
        name: (labels["job"], labels.get("workload", "")) for name, labels in found.items()
    }


def test_the_monitor_finds_every_pod_of_ours() -> None:
    """It selects by the label and the port that the sidecar and the DaemonSet have, in all namespaces."""
    objects = documents({"podMonitor": {"enabled": True}, "daemonSet": {"enabled": True}})
    spec, pod = of_kind(objects, "PodMonitor")[0]["spec"], of_kind(objects, "DaemonSet")[0]["spec"]["template"]
    assert spec["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert spec["podMetricsEndpoints"][0]["port"] == pod["spec"]["containers"][0]["ports"][0]["name"]
    assert {"any": True} == spec["namespaceSelector"]


def test_dashboards_are_packed_whole(everything: list[dict[str, Any]]) -> None:
    """Each dashboard is one ConfigMap with the label and folder that Grafana's sidecar looks for, unchanged, far below 1 MiB."""
    found = {}
    for config_map in of_kind(everything, "ConfigMap"):
        assert {"grafana_dashboard": "1"}.items() <= config_map["metadata"]["labels"].items()
        assert {"grafana_folder": "heptascope"} == config_map["metadata"]["annotations"]
        found |= config_map["data"]
        assert len(json.dumps(config_map)) < MEBIBYTE / 2
    assert {path.name: path.read_text(encoding="utf-8") for path in (CHART / "files" / "dashboards").iterdir()} == found
    assert len(found) >= 7


def test_a_release_fits_into_its_secret() -> None:
    """Helm keeps chart and manifest, compressed, in a Secret of at most 1 MiB; there is room for dashboards to grow."""
    chart = {
        str(path): base64.b64encode(path.read_bytes()).decode() for path in CHART.rglob("*") if path.is_file() and "ci" not in path.parts
    }
    release = gzip.compress(json.dumps({"chart": chart, "manifest": texts(EVERYTHING)}).encode())
    assert len(base64.b64encode(release)) < MEBIBYTE * 0.6


def _rules(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [rule for document in of_kind(objects, "PrometheusRule") for group in document["spec"]["groups"] for rule in group["rules"]]
