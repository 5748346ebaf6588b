"""The named template in another chart, and what is made from it: the same container everywhere, and one that heptascope can run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from heptascope.config import Settings
from heptascope.config_load import CONFIG_VARIABLE, load
from support import dcgm_pages, pod_security
from support.engine_pages import VLLM_032, capture
from support.engine_server import EngineServer
from support.helm_reference import MODES, ROOT, SELECTOR
from support.helm_render import documents, included, of_kind
from support.heptascope_process import running, until
from support.kubernetes_env import POD, environment
from support.strategic_merge import merged

SCENARIO = "saturated_queue"
LABEL = dict([SELECTOR.split("=")])
SERVER: dict[str, Any] = yaml.safe_load("""
apiVersion: apps/v1
kind: Deployment
metadata: {name: server}
spec:
  selector: {matchLabels: {app: server}}
  template:
    metadata: {labels: {app: server}}
    spec: {containers: [{name: server, image: "server:1"}]}
""")


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make room for a chart that has this one as a dependency."""
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module", params=MODES.items(), ids=list(MODES))
def mode(request: pytest.FixtureRequest, parent: Path) -> tuple[str, dict[str, Any]]:
    """Render the server's Deployment with the sidecar, once for each GPU mode."""
    name, gpu_mode = request.param
    return name, included({"gpu": {"mode": gpu_mode}}, parent)


def sidecar(deployment: dict[str, Any]) -> dict[str, Any]:
    """Return the sidecar of a Deployment."""
    found: dict[str, Any] = deployment["spec"]["template"]["spec"]["initContainers"][0]
    return found


def test_the_patch_makes_what_the_template_makes(mode: tuple[str, dict[str, Any]]) -> None:
    """The plain patch on a Deployment gives the Deployment of a chart that includes the template."""
    patch = yaml.safe_load((ROOT / "helm" / "patches" / f"{mode[0]}.yaml").read_text(encoding="utf-8"))
    assert mode[1] == merged(SERVER, patch)


def test_the_component_makes_what_the_template_makes(mode: tuple[str, dict[str, Any]]) -> None:
    """The Kustomize component patches labelled Deployments and StatefulSets, with the same content."""
    folder = ROOT / "helm" / "kustomize" / mode[0]
    component = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))
    target = {"kind": "Deployment|StatefulSet", "labelSelector": SELECTOR}
    assert ("Component", [{"path": "sidecar.yaml", "target": target}]) == (component["kind"], component["patches"])
    patch = yaml.safe_load((folder / "sidecar.yaml").read_text(encoding="utf-8"))
    assert mode[1] == merged(SERVER, {"spec": patch["spec"]})


def test_it_is_a_native_sidecar_at_level_restricted(mode: tuple[str, dict[str, Any]]) -> None:
    """It restarts always, has a liveness probe and no other, takes no device, and passes level restricted."""
    name, deployment = mode
    container = sidecar(deployment)
    assert ("Always", {"livenessProbe"}) == (container["restartPolicy"], {key for key in container if key.endswith("Probe")})
    assert container["resources"]["requests"] == container["resources"]["limits"]
    assert {"cpu", "memory"} == set(container["resources"]["limits"])
    assert ("claims" in container["resources"]) == (name == "dra")
    assert "restricted" == pod_security.level({"containers": [container]})
    assert LABEL.items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
    for version in ("1.29", "1.33", "1.37"):
        kubernetes_validate.validate(deployment, version, strict=True)


def gpu(settings: Settings) -> tuple[str, tuple[str, ...], str | None, str]:
    """Return what a GPU mode is about."""
    return settings.gpu.source, settings.gpu.dcgm_exporter.urls, settings.gpu.dcgm.address, settings.gpu.scope


NODE = "http://10.0.0.7:9400/metrics"
READS: dict[str, tuple[dict[str, Any], tuple[str, tuple[str, ...], str | None, str]]] = {
    "the node's dcgm-exporter": ({}, ("dcgm-exporter", (NODE,), None, "auto")),
    "the node's host engine": ({"none": {"source": "dcgm"}}, ("dcgm", (), "10.0.0.7:5555", "auto")),
    "nothing": ({"none": {"source": "nothing"}}, ("none", (), None, "auto")),
    "what the runtime shows": ({"mode": "runtimeEnv"}, ("auto", (), None, "auto")),
    "what the device shows": ({"mode": "cdi"}, ("auto", (), None, "auto")),
    "what the claim shows": ({"mode": "dra"}, ("auto", (), None, "pod")),
}


@pytest.mark.parametrize("case", READS)
def test_heptascope_reads_gpus_as_the_mode_says(case: str, parent: Path) -> None:
    """The container's environment is one that heptascope takes, and means what the mode promises."""
    values, expected = READS[case]
    settings = load(environ=environment(sidecar(included({"gpu": values}, parent)))).settings
    assert (expected, ("", 17007)) == (gpu(settings), settings.address)


def test_the_configuration_goes_before_the_mode(parent: Path, tmp_path: Path) -> None:
    """What `config` says of GPUs is not overridden by the environment of the mode."""
    values = {"config": {"gpu": {"source": "dcgm-exporter", "dcgm_exporter": {"urls": ["http://exporter.gpu:9400"]}}}}
    deployment = included(values, parent)
    path = tmp_path / "heptascope.yaml"
    path.write_text(yaml.safe_dump(values["config"]), encoding="utf-8")
    settings = load(path, environment(sidecar(deployment))).settings
    assert ("dcgm-exporter", ("http://exporter.gpu:9400/metrics",), None, "auto") == gpu(settings)
    volume = {"name": "heptascope-config", "configMap": {"name": "vllm-heptascope"}}
    assert [volume] == deployment["spec"]["template"]["spec"]["volumes"]
    assert "/etc/heptascope/heptascope.yaml" == environment(sidecar(deployment))[CONFIG_VARIABLE]


def test_only_its_own_settings_change_a_server_s_pod(parent: Path) -> None:
    """Monitors, rules, DaemonSet and names of the chart leave the pod template of a server alone: no rollout for them."""
    plain = included({}, parent)
    others = {
        "podMonitor": {"enabled": True, "interval": "30s"},
        "prometheusRule": {"enabled": True},
        "daemonSet": {"enabled": True},
        "commonLabels": {"owner": "x"},
    }
    assert plain == included(others, parent)
    assert plain != included({"config": {"log": {"format": "json"}}}, parent)


@pytest.fixture(scope="module")
def beside_a_server(parent: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Run the sidecar's command with its environment: vLLM's page on localhost, the node's dcgm-exporter with two pods' GPUs."""
    mine, other = dcgm_pages.Gpu(0, pod=POD, namespace="llm"), dcgm_pages.Gpu(1, pod="other", namespace="llm")
    with EngineServer() as engine, EngineServer() as exporter:
        engine.page(capture(VLLM_032, SCENARIO))
        exporter.page(dcgm_pages.page("legacy", mine, other))
        values = {
            "gpu": {"none": {"dcgmExporterUrl": f"http://$(HOST_IP):{exporter.port}/metrics"}},
            "extraEnv": [{"name": "HEPTASCOPE_ENGINE", "value": engine.url}],
        }
        container = sidecar(included(values, parent))
        folder = tmp_path_factory.mktemp("sidecar")
        with running(*container["command"][1:], folder=folder, env=environment(container, host="127.0.0.1")) as process:
            yield process


def test_it_shows_the_engine_and_the_pod_s_own_gpu(beside_a_server: Any) -> None:
    """With no GPU of its own it reads the engine by localhost and, of the node's GPUs, those that the pod has."""

    def told() -> list[str]:
        series = beside_a_server.metrics()
        gpus = [name for name in series if name.startswith("heptascope_gpu_info{")]
        return gpus if any(name.startswith("heptascope_engine_info{") for name in series) else []

    found = until(told)
    assert [True] == ['scope="pod"' in series and 'uuid="GPU-0"' in series for series in found]


def test_helm_test_tells_heptascope_from_others(beside_a_server: Any) -> None:
    """The script of the test pod passes beside heptascope; another server's page is refused."""
    pod = of_kind(documents({}), "Pod")[0]
    script = pod["spec"]["containers"][0]["command"][2]
    assert (0, "lines of metrics") == _scrape(script, beside_a_server.url + "/metrics")
    with EngineServer() as other:
        other.page("up 1\n")
        assert (1, "this is not heptascope") == _scrape(script, other.url + "/metrics")


def _scrape(script: str, url: str) -> tuple[int, str]:
    """Run the test pod's script; return its status and the words of its last line that do not change."""
    done = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | {"URL": url}, capture_output=True, text=True, check=False, timeout=60
    )
    said = (done.stdout + done.stderr).splitlines()
    assert said
    words = {"lines of metrics", "this is not heptascope"}
    return done.returncode, next((word for line in said for word in words if word in line), said[-1])
