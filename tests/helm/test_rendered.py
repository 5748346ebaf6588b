"""Every values file of helm/heptascope/ci, rendered once: valid objects, nothing asked of the GPU, no rights, no stray text."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import helm_python
import kubernetes_validate
import pytest
import yaml
from yamllint import linter
from yamllint.config import YamlLintConfig

from support import pod_security
from support.helm_render import NAMESPACE, documents, of_kind, texts
from support.helm_values import CHART

ROOT = CHART.parents[1]
OLDEST, MIDDLE, NEWEST = "1.29", "1.33", "1.37"
SINCE = {"admissionregistration.k8s.io/v1beta1": "1.34", "admissionregistration.k8s.io/v1": "1.36"}
CASES = ["default", *(path.name.removesuffix("-values.yaml") for path in sorted((CHART / "ci").glob("*-values.yaml")))]
LEVELS = {  # what docs/deploy.md says of the pods that are the chart's own
    "daemonset-pod-resources": "privileged",
    "daemonset-host-network": "privileged",
    "daemonset-host-pid": "privileged",
}


class Case(NamedTuple):
    """One values file and what it renders to."""

    name: str
    values: dict[str, Any]
    texts: dict[str, str]
    objects: list[dict[str, Any]]

    @property
    def pods(self) -> list[dict[str, Any]]:
        """Pod specs of the chart's own pods."""
        daemons = [d["spec"]["template"]["spec"] for d in of_kind(self.objects, "DaemonSet")]
        return daemons + [pod["spec"] for pod in of_kind(self.objects, "Pod")]


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    """Render one values file."""
    path = CHART / "ci" / f"{request.param}-values.yaml"
    values = yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else {}
    return Case(request.param, values, texts(values), documents(values))


def test_lint_is_silent(case: Case) -> None:
    """`helm lint --strict` has nothing to say."""
    found = helm_python.lint(str(CHART), case.values, strict=True, namespace=NAMESPACE)
    assert ([], []) == (found["messages"], found["errors"])


def test_objects_are_valid(case: Case) -> None:
    """Each object of Kubernetes' own is valid, without unknown keys, in the oldest supported, a middle and the newest version."""
    for document in case.objects:
        since = SINCE.get(document["apiVersion"], OLDEST)
        if document["apiVersion"].startswith("monitoring.coreos.com/"):
            continue  # test_monitoring.py
        for version in dict.fromkeys((max(OLDEST, since), max(MIDDLE, since), NEWEST)):
            kubernetes_validate.validate(document, version, strict=True)


def test_objects_have_distinct_names_and_the_usual_labels(case: Case) -> None:
    """No two objects of a kind share a name, no name is too long, and all carry the labels that tools look for."""
    own = [d for d in case.objects if d["metadata"].get("labels")]
    names = [(d["kind"], d["metadata"].get("namespace"), d["metadata"]["name"]) for d in case.objects]
    assert len(names) == len(set(names))
    assert [] == [d["metadata"]["name"] for d in own if len(d["metadata"]["name"]) > 63 and "." not in d["metadata"]["name"]]
    usual = {
        "app.kubernetes.io/name",
        "app.kubernetes.io/instance",
        "app.kubernetes.io/version",
        "app.kubernetes.io/managed-by",
        "helm.sh/chart",
    }
    assert [] == [d["metadata"]["name"] for d in own if not usual <= set(d["metadata"]["labels"])]


def test_nothing_asks_for_a_gpu(case: Case) -> None:
    """No container has a device among its resources: it would be taken from a server."""
    kinds = {
        key for pod in case.pods for c in pod_security.containers(pod) for part in ("requests", "limits") for key in c["resources"][part]
    }
    assert kinds <= {"cpu", "memory"}
    assert "nvidia.com/gpu:" not in "".join(case.texts.values())


def test_pods_keep_the_level_that_they_claim(case: Case) -> None:
    """The chart's own pods pass level restricted, but for those that need the node's folders, processes or network."""
    assert {LEVELS.get(case.name, "restricted")} >= {pod_security.level(pod) for pod in case.pods if "nodeSelector" in pod}
    asked = {key for key in ("hostNetwork", "hostPID") if case.values.get("daemonSet", {}).get(key)}
    assert asked == {key for pod in case.pods for key in ("hostNetwork", "hostPID", "hostIPC") if pod.get(key)}
    assert {"restricted"} >= {pod_security.level(pod) for pod in case.pods if "nodeSelector" not in pod}


def test_containers_leave_a_guaranteed_pod_guaranteed(case: Case) -> None:
    """Requests equal limits for CPU and memory, and the CPU is a fraction, which keeps out of the pinned ones."""
    for container in (c for pod in case.pods for c in pod_security.containers(pod)):
        assert container["resources"]["requests"] == container["resources"]["limits"]
        assert container["resources"]["limits"]["cpu"].endswith("m")


def test_nothing_holds_up_a_server(case: Case) -> None:
    """No container has a readiness or a startup probe; liveness waits for minutes."""
    for container in (c for pod in case.pods for c in pod_security.containers(pod)):
        assert not {"readinessProbe", "startupProbe"} & set(container)
        probe = container.get("livenessProbe")
        assert probe is None or probe["periodSeconds"] * probe["failureThreshold"] >= 120


def test_nobody_gets_rights(case: Case) -> None:
    """There is no role of any kind, and no pod mounts a token of the API server."""
    assert [] == [d["kind"] for d in case.objects if "Role" in d["kind"]]
    assert [] == [pod for pod in case.pods if pod.get("automountServiceAccountToken") is not False]


def test_selectors_hold_only_what_never_changes(case: Case) -> None:
    """A DaemonSet's selector is immutable, so that it names neither version nor chart; and no other pod of ours has its labels."""
    for daemon in of_kind(case.objects, "DaemonSet"):
        selector = daemon["spec"]["selector"]["matchLabels"]
        assert {"app.kubernetes.io/name", "app.kubernetes.io/instance"} == set(selector)
        assert selector.items() <= daemon["spec"]["template"]["metadata"]["labels"].items()
        assert [] == [
            pod["metadata"]["name"] for pod in of_kind(case.objects, "Pod") if selector.items() <= pod["metadata"]["labels"].items()
        ]


def test_the_notes_tell_the_next_command(case: Case) -> None:
    """NOTES.txt has commands for this release, and no template is left in it but the one to include."""
    notes = case.texts["templates/NOTES.txt"].replace('{{ include "heptascope.sidecar" .Subcharts.heptascope | nindent 8 }}', "")
    assert "kubectl -n " in notes
    assert "{{" not in notes
    assert "<no value>" not in notes


def test_volumes_and_mounts_fit(case: Case) -> None:
    """Each mount has its volume, each volume is mounted, and environment variables are set once."""
    for pod in case.pods:
        mounted = {mount["name"] for c in pod_security.containers(pod) for mount in c.get("volumeMounts", ())}
        assert mounted == {volume["name"] for volume in pod.get("volumes", ())}
        for container in pod_security.containers(pod):
            names = [variable["name"] for variable in container.get("env", ())]
            assert len(names) == len(set(names))


def test_yaml_is_clean() -> None:
    """The linter of YAML finds nothing in the files that people write and read."""
    config = YamlLintConfig(file=str(ROOT / ".yamllint.yaml"))
    paths = [
        CHART / "Chart.yaml",
        CHART / "values.yaml",
        *(CHART / "ci").glob("*.yaml"),
        *_below("examples", "kustomize"),
        *(ROOT / "helm" / "patches").glob("*.yaml"),
    ]
    found = {path.name: [str(problem) for problem in linter.run(path.read_text(encoding="utf-8"), config)] for path in paths}
    assert {} == {name: problems for name, problems in found.items() if problems}


def _below(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / "helm" / folder).glob("*/*.yaml"))]
