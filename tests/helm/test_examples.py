"""The worked examples: valid, labelled, with the chart's own sidecar, and autoscaling on a signal that exists."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import promql_parser
import pytest
import yaml
from cloudcoil.models.keda import v1alpha1 as keda

from heptascope.signals.schema import SCHEMA
from support.helm_reference import ROOT, SELECTOR
from support.lost_keys import lost_keys
from support.pod_security import level

EXAMPLES = ROOT / "helm" / "examples"
LABEL = dict([SELECTOR.split("=")])
SIGNAL = "heptascope_saturation_ratio"


INSIDE = ("metadata", "labels", "podLabels", "initContainers", "containers", "resources", "behavior", "modelFormat")
"""What is not looked into: parts of pods and of the autoscaler, which other tests validate, and what has free keys."""

CHECKED: dict[str, str] = {
    "kserve/inferenceservice.yaml": """
        apiVersion kind metadata spec spec.predictor spec.predictor.labels spec.predictor.minReplicas spec.predictor.initContainers
        spec.predictor.model spec.predictor.model.modelFormat spec.predictor.model.args spec.predictor.model.resources
    """,
    "leaderworkerset/leaderworkerset.yaml": """
        apiVersion kind metadata spec spec.replicas spec.leaderWorkerTemplate spec.leaderWorkerTemplate.size
        spec.leaderWorkerTemplate.leaderTemplate spec.leaderWorkerTemplate.leaderTemplate.metadata
        spec.leaderWorkerTemplate.leaderTemplate.spec spec.leaderWorkerTemplate.leaderTemplate.spec.initContainers
        spec.leaderWorkerTemplate.leaderTemplate.spec.containers spec.leaderWorkerTemplate.workerTemplate
        spec.leaderWorkerTemplate.workerTemplate.metadata spec.leaderWorkerTemplate.workerTemplate.spec
        spec.leaderWorkerTemplate.workerTemplate.spec.initContainers spec.leaderWorkerTemplate.workerTemplate.spec.containers
    """,
    "autoscaling/keda-scaledobject.yaml": """
        apiVersion kind metadata spec spec.scaleTargetRef spec.scaleTargetRef.name spec.minReplicaCount spec.maxReplicaCount
        spec.pollingInterval spec.triggers spec.triggers.type spec.triggers.metricType spec.triggers.metadata spec.advanced
        spec.advanced.horizontalPodAutoscalerConfig spec.advanced.horizontalPodAutoscalerConfig.behavior
    """,
    "autoscaling/prometheus-adapter-values.yaml": """
        rules rules.default rules.custom rules.custom.seriesQuery rules.custom.resources rules.custom.metricsQuery
    """,
    "vllm-production-stack/values.yaml": """
        servingEngineSpec servingEngineSpec.modelSpec servingEngineSpec.modelSpec.name servingEngineSpec.modelSpec.repository
        servingEngineSpec.modelSpec.tag servingEngineSpec.modelSpec.modelURL servingEngineSpec.modelSpec.replicaCount
        servingEngineSpec.modelSpec.requestCPU servingEngineSpec.modelSpec.requestMemory servingEngineSpec.modelSpec.requestGPU
        servingEngineSpec.modelSpec.podLabels
    """,
    "llm-d/values.yaml": """
        modelArtifacts modelArtifacts.name modelArtifacts.uri modelArtifacts.labels routing routing.servicePort routing.proxy
        routing.proxy.enabled routing.proxy.targetPort decode decode.replicas decode.initContainers decode.containers prefill
        prefill.replicas prefill.initContainers prefill.containers
    """,
}
"""Fields that were validated by hand, unknown ones refused, against the definitions and charts that docs/deploy.md names."""


def read(name: str) -> list[dict[str, Any]]:
    """Return the documents of one example."""
    return list(yaml.safe_load_all((EXAMPLES / name).read_text(encoding="utf-8")))


def pods(part: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield every object inside an example that has init containers, with the object around it."""
    for value in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        if isinstance(value, dict) and "initContainers" in value:
            yield part, value
        yield from pods(value)


def fields(part: Any, path: str = "") -> set[str]:
    """Return the places of all fields of an example, down to what `INSIDE` names; entries of a list have the list's place."""
    if isinstance(part, list):
        return {found for item in part for found in fields(item, path)}
    if not isinstance(part, dict):
        return set()
    here = {key: f"{path}.{key}" if path else key for key in part}
    return {*here.values(), *(found for key, at in here.items() if key not in INSIDE for found in fields(part[key], at))}


@pytest.mark.parametrize("name", CHECKED)
def test_fields_are_those_that_were_validated(name: str) -> None:
    """Where no package has the definition of a custom resource, a new field has to be validated by hand, and then be added here."""
    assert set(CHECKED[name].split()) == {field for document in read(name) for field in fields(document)}


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm"])
def test_servers_are_valid(engine: str) -> None:
    """Each server's objects are valid in the oldest and the newest version of Kubernetes."""
    for document in [*read(f"{engine}/deployment.yaml"), *read("kustomize/server.yaml"), *read("autoscaling/hpa.yaml")]:
        for version in ("1.29", "1.37"):
            kubernetes_validate.validate(document, version, strict=True)


@pytest.mark.parametrize(
    "name",
    ["vllm/deployment", "sglang/deployment", "tensorrt-llm/deployment", "kserve/inferenceservice", "leaderworkerset/leaderworkerset"],
)
def test_pods_have_the_sidecar_first_and_the_label(name: str) -> None:
    """The sidecar is the first init container, restarts always, asks for no GPU, and the monitor finds the pod."""
    found = [pair for document in read(f"{name}.yaml") for pair in pods(document)]
    assert found
    for around, spec in found:
        ours = spec["initContainers"][0]
        assert ("heptascope", "Always", {"cpu", "memory"}) == (ours["name"], ours["restartPolicy"], set(ours["resources"]["limits"]))
        assert "restricted" == level({"containers": [ours]})
        labels = around.get("metadata", spec)["labels"]  # KServe's predictor holds both
        assert LABEL.items() <= labels.items()


@pytest.mark.parametrize("name", ["kserve/inferenceservice", "leaderworkerset/leaderworkerset", "llm-d/values"])
def test_pods_inside_other_objects_are_valid(name: str) -> None:
    """What a custom resource or a chart's values hold of a pod is valid as a pod's, in the oldest and the newest version of Kubernetes."""
    found = [pair for document in read(f"{name}.yaml") for pair in pods(document)]
    assert found
    for around, spec in found:
        whole = around.get("spec") is spec and "metadata" in around  # a template of a pod; others mix a pod's fields with their own
        taken = spec if whole else {key: spec[key] for key in ("initContainers", "volumes") if key in spec}
        pod = {"containers": [{"name": "server", "image": "server:1"}], **taken}
        for version in ("1.29", "1.37"):
            kubernetes_validate.validate(
                {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": pod}, version, strict=True
            )


def test_charts_get_the_sidecar_where_they_take_one() -> None:
    """The llm-d chart takes init containers as they are; production-stack's lack restartPolicy, so that its pods are injected."""
    stack, llm_d = read("vllm-production-stack/values.yaml")[0], read("llm-d/values.yaml")[0]
    models = stack["servingEngineSpec"]["modelSpec"]
    assert [LABEL] == [model["podLabels"] for model in models]
    assert not [model for model in models if "initContainer" in model]
    assert "Always" == llm_d["decode"]["initContainers"][0]["restartPolicy"]
    assert LABEL.items() <= llm_d["modelArtifacts"]["labels"].items()
    ports = {"decode": llm_d["routing"]["proxy"]["targetPort"], "prefill": llm_d["routing"]["servicePort"]}
    for role, port in ports.items():
        engine = {variable["name"]: variable.get("value") for variable in llm_d[role]["initContainers"][0]["env"]}["HEPTASCOPE_ENGINE"]
        assert f"http://127.0.0.1:{port}" == engine


def test_the_overlay_uses_a_component_that_is_there() -> None:
    """The Kustomize example names a component, and its server has the label that the component selects."""
    overlay, server = read("kustomize/kustomization.yaml")[0], read("kustomize/server.yaml")[0]
    for component in overlay["components"]:
        assert (Path(EXAMPLES / "kustomize" / component) / "kustomization.yaml").exists()
    assert LABEL.items() <= server["metadata"]["labels"].items()


def test_autoscalers_ask_for_the_saturation() -> None:
    """KEDA's object passes its model; both queries parse and ask for a signal that exists, from 0 to 1, with no labels of its own."""
    scaled = read("autoscaling/keda-scaledobject.yaml")[0]
    model = keda.ScaledObject.model_validate(scaled)
    assert [] == list(lost_keys(scaled, model.model_dump(by_alias=True, exclude_none=True, mode="json")))
    trigger = model.spec.triggers[0]
    adapter = read("autoscaling/prometheus-adapter-values.yaml")[0]["rules"]["custom"][0]
    filled = (
        adapter["metricsQuery"]
        .replace("<<.Series>>", SIGNAL)
        .replace("<<.LabelMatchers>>", 'namespace="llm"')
        .replace("<<.GroupBy>>", "pod")
    )
    assert [{SIGNAL}] * 2 == [_names(query) for query in (trigger.metadata["query"], filled)]
    signal = next(row for row in SCHEMA.values() if row.name == SIGNAL)
    assert ("ratio", ()) == (signal.unit, signal.labels)
    target = read("autoscaling/hpa.yaml")[0]["spec"]["metrics"][0]["pods"]
    assert (SIGNAL, "800m", "0.8") == (target["metric"]["name"], target["target"]["averageValue"], trigger.metadata["threshold"])


def test_keda_s_query_asks_for_few_replicas() -> None:
    """The sum over pods by the threshold: full pods ask for a quarter more, and pods that load count as nothing."""
    trigger = read("autoscaling/keda-scaledobject.yaml")[0]["spec"]["triggers"][0]
    assert "AverageValue" == trigger["metricType"]
    assert trigger["metadata"]["query"].startswith("sum(avg_over_time(")


def _names(query: str) -> set[str]:
    """Return the metric names in a query."""
    found: set[str] = set()

    def visit(node: Any) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            found.add(node.name)
        for child in ("expr", "vector_selector", "lhs", "rhs", "args"):
            value = getattr(node, child, None)
            for one in value if isinstance(value, list) else [value] if value is not None else []:
                visit(one)

    visit(promql_parser.parse(query))
    return found
