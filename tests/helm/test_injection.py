"""The MutatingAdmissionPolicy: its CEL, evaluated on pods, adds what the template would."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from heptascope.config_load import CONFIG_VARIABLE, load
from support.admission import admit
from support.helm_render import documents, included, of_kind
from support.helm_values import CHART
from support.kubernetes_env import environment

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "vllm-0"},
    "spec": {"containers": [{"name": "vllm", "image": "vllm:1"}]},
}


def policy(values: dict[str, Any]) -> dict[str, Any]:
    """Return the policy that values render to."""
    return of_kind(documents({"injection": {"enabled": True}} | values), "MutatingAdmissionPolicy")[0]


def ci(name: str) -> dict[str, Any]:
    """Return one values file."""
    values: dict[str, Any] = yaml.safe_load((CHART / "ci" / f"{name}-values.yaml").read_text(encoding="utf-8"))
    return values


@pytest.mark.parametrize("mode", ["none", "runtimeEnv", "cdi", "dra"])
def test_it_adds_what_the_template_makes(mode: str, tmp_path: Path) -> None:
    """A pod without init containers gets the very container of the template, and its annotation."""
    values = {"gpu": {"mode": mode}}
    pod = copy.deepcopy(POD)
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "one"}]
    template = included(values, tmp_path)["spec"]["template"]
    changed = admit(policy(values), pod)
    assert template["spec"]["initContainers"] == changed["spec"]["initContainers"]
    assert template["metadata"].get("annotations") == changed["metadata"].get("annotations")
    kubernetes_validate.validate(changed, "1.36", strict=True)


def test_it_leaves_what_a_pod_has() -> None:
    """Other init containers, volumes and annotations stay, behind ours."""
    pod = copy.deepcopy(POD)
    pod["metadata"]["annotations"] = {"note": "kept"}
    pod["spec"] |= {"initContainers": [{"name": "download", "image": "d:1"}], "volumes": [{"name": "models", "emptyDir": {}}]}
    changed = admit(policy(ci("injection")), pod)
    assert ["heptascope", "download"] == [container["name"] for container in changed["spec"]["initContainers"]]
    assert ["models", "heptascope-tls", "maps"] == [volume["name"] for volume in changed["spec"]["volumes"]]
    assert {"note", "nvidia.cdi.k8s.io/container.heptascope"} == set(changed["metadata"]["annotations"])
    kubernetes_validate.validate(changed, "1.36", strict=True)


def test_the_configuration_goes_into_the_environment(tmp_path: Path) -> None:
    """An injected sidecar, which cannot mount the chart's ConfigMap, is configured as one that can."""
    values = ci("injection")
    path = tmp_path / "heptascope.yaml"
    path.write_text(yaml.safe_dump(values["config"]), encoding="utf-8")
    injected = admit(policy(values), POD)["spec"]["initContainers"][0]
    mounted = included(values, tmp_path / "server")["spec"]["template"]["spec"]["initContainers"][0]
    assert load(path, environment(mounted)).settings == load(environ=environment(injected)).settings
    assert CONFIG_VARIABLE not in environment(injected)


def test_volumes_and_variables_may_be_of_any_kind() -> None:
    """Labels with slashes, what is null, and text with quotes and line ends reach the pod as they were meant."""
    claim = {"metadata": {"labels": {"a": "b"}, "annotations": {"x.y/z": "w"}}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    odd = "a\"b\\n'é<>&\n"
    values = {
        "extraVolumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": claim}}, {"name": "maps", "emptyDir": {"medium": None}}],
        "extraEnv": [{"name": "ODD", "value": odd}, {"name": "NONE", "value": None}],
    }
    changed = admit(policy(values), POD)["spec"]
    assert [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": claim}}, {"name": "maps", "emptyDir": {}}] == changed["volumes"]
    assert [{"name": "ODD", "value": odd}, {"name": "NONE"}] == changed["initContainers"][0]["env"][-2:]


@pytest.mark.parametrize("where", ["initContainers", "containers"])
def test_a_pod_that_has_the_container_stays_as_it_is(where: str) -> None:
    """A pod whose chart or patch brought the sidecar gets no second one."""
    pod = copy.deepcopy(POD)
    pod["spec"].setdefault(where, []).append({"name": "heptascope", "image": "h:1"})
    assert pod == admit(policy({}), pod)


def test_a_pod_without_the_claim_stays_as_it_is() -> None:
    """With dra, a container that names a claim which the pod lacks would make the pod invalid."""
    assert POD == admit(policy(ci("injection-beta")), POD)


def test_it_takes_labelled_pods_in_chosen_namespaces_and_never_blocks() -> None:
    """Policy and binding belong together; without other values, a failing policy lets the pod in."""
    objects = documents(ci("injection"))
    made, binding = of_kind(objects, "MutatingAdmissionPolicy")[0], of_kind(objects, "MutatingAdmissionPolicyBinding")[0]
    assert made["metadata"]["name"] == binding["spec"]["policyName"]
    assert {"matchLabels": {"heptascope.github.io/sidecar": "enabled"}} == made["spec"]["matchConstraints"]["objectSelector"]
    assert {"matchLabels": {"llm": "true"}} == binding["spec"]["matchResources"]["namespaceSelector"]
    assert "Ignore" == made["spec"]["failurePolicy"]
