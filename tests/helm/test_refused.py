"""Values that Kubernetes, Prometheus or the pod's other containers would choke on are refused by the chart, in one line."""

from __future__ import annotations

from typing import Any

import helm_python
import pytest

from heptascope.sources.engine.discover import well_known_ports
from support.helm_refused import REFUSED
from support.helm_render import documents, of_kind, texts


def mounts(*paths: str) -> dict[str, Any]:
    """Return values that mount a volume at each path."""
    return {"extraVolumeMounts": [{"name": "data", "mountPath": path} for path in paths]}


def monitor(**values: Any) -> dict[str, Any]:
    """Return values of a PodMonitor that is switched on."""
    return {"podMonitor": {"enabled": True, **values}}


def daemon_set(**values: Any) -> dict[str, Any]:
    """Return values of a DaemonSet that is switched on."""
    return {"daemonSet": {"enabled": True, **values}}


def none_mode(**values: Any) -> dict[str, Any]:
    """Return values of the GPU mode `none`."""
    return {"gpu": {"none": values}}


def variables(*variables: dict[str, Any]) -> dict[str, Any]:
    """Return values with further environment variables."""
    return {"extraEnv": list(variables)}


TIMES: dict[str, tuple[dict[str, Any], str]] = {
    "no time between scrapes": (monitor(interval="0s"), "podMonitor.interval: 0s is no time between two scrapes; at least 1s"),
    "no time in two units": (monitor(interval="0h0m"), "podMonitor.interval: 0h0m is no time between two scrapes"),
    "a part of a second": (monitor(interval="500ms"), "at '/podMonitor/interval': '500ms' does not match"),
    "scrapes a day apart": (monitor(interval="24h"), "podMonitor.interval: Prometheus forgets a series after five minutes"),
    "an interval beyond numbers": (monitor(interval="99999999999999999h"), "at '/podMonitor/interval': '99999999999999999h' does not"),
    "no time for a scrape": (monitor(scrapeTimeout="0s"), "podMonitor.scrapeTimeout: 0s leaves a scrape no time; at least 1s"),
    "a scrape longer than the interval, in another unit": (monitor(scrapeTimeout="30000ms"), "at '/podMonitor/scrapeTimeout': '30000ms'"),
    "an alert that holds for ever": (
        {"prometheusRule": {"overrides": {"Overload": {"for": "99999999999999h"}}}},
        "at '/prometheusRule/overrides/Overload/for': '99999999999999h' does not match",
    ),
    "a probe that outlives its period": (
        {"livenessProbe": {"timeoutSeconds": 60}},
        "livenessProbe.timeoutSeconds: longer than periodSeconds",
    ),
}

PORTS: dict[str, tuple[dict[str, Any], str]] = {
    "the engine's port": (
        {"port": 9000, "config": {"engines": [{"url": "http://localhost:9000"}]}},
        "config.engines: 9000 is heptascope's own port; set port to another one than the server's",
    ),
    "the engine's port, by IPv6": ({"port": 9000, "config": {"engines": [{"url": "http://[::1]:9000/x"}]}}, "config.engines: 9000 is"),
    "the engine's port in a variable": (
        {"port": 9000} | variables({"name": "HEPTASCOPE_ENGINE", "value": "http://127.0.0.1:8000,http://127.0.0.1:9000"}),
        "extraEnv HEPTASCOPE_ENGINE: 9000 is heptascope's own port",
    ),
    "an engine's port that is none": (
        {"config": {"engines": [{"url": "http://localhost:99999"}]}},
        "config.engines: 99999 is no port",
    ),
    "its own page for dcgm-exporter's": (
        none_mode(dcgmExporterUrl="http://localhost:17007/metrics"),
        "gpu.none.dcgmExporterUrl: 17007 is heptascope's own port",
    ),
    "a dcgm-exporter's port that is none": (none_mode(dcgmExporterUrl="http://$(HOST_IP):94000/"), "gpu.none.dcgmExporterUrl: 94000 is no"),
    "a host engine's port that is none": (none_mode(hostEngineAddress="$(HOST_IP):0"), "gpu.none.hostEngineAddress: 0 is no port"),
    "a port for the privileged": ({"port": 443}, "at '/port': minimum: got 443, want 1,024"),
    "the node's port": ({"port": 9400} | daemon_set(hostNetwork=True), "port: with daemonSet.hostNetwork 9400 is the node's"),
}

VOLUMES: dict[str, tuple[dict[str, Any], str]] = {
    "one path twice": (mounts("/data", "/data"), "extraVolumeMounts: /data is mounted twice"),
    "one path twice, with slashes": (mounts("/data", "//data/"), "extraVolumeMounts: /data is mounted twice"),
    "the configuration's path": (mounts("/etc/heptascope"), "/etc/heptascope meets /etc/heptascope, where the chart mounts its own"),
    "a path inside the configuration": (mounts("/etc/heptascope/maps"), "/etc/heptascope/maps meets /etc/heptascope, where"),
    "a path around the configuration": (mounts("/etc"), "extraVolumeMounts: /etc meets /etc/heptascope, where"),
    "the certificate's path": (mounts("/run/secrets/heptascope/tls/"), "meets /run/secrets/heptascope, where the chart mounts its own"),
    "no path": (mounts("maps"), "at '/extraVolumeMounts/0/mountPath': 'maps' does not match"),
    "the root": (mounts("/"), "at '/extraVolumeMounts/0/mountPath': '/' does not match"),
    "a path with a colon": (mounts("/a:b"), "at '/extraVolumeMounts/0/mountPath': '/a:b' does not match"),
    "a mount with a typing error": (
        {"extraVolumeMounts": [{"name": "a", "mountPath": "/x", "readonly": True}]},
        "at '/extraVolumeMounts/0': additional properties 'readonly' not allowed",
    ),
    "one volume twice": ({"extraVolumes": [{"name": "a", "emptyDir": {}}] * 2}, "extraVolumes: a is there twice"),
    "a volume in capitals": ({"extraVolumes": [{"name": "A", "emptyDir": {}}]}, "at '/extraVolumes/0/name': 'A' does not match"),
    "a volume of nothing": ({"extraVolumes": [{"name": "a"}]}, "at '/extraVolumes/0': minProperties: got 1, want 2"),
    "a volume that the DaemonSet lacks": (
        daemon_set() | mounts("/x"),
        "extraVolumeMounts: there is no volume data; the DaemonSet's pod has",
    ),
    "a folder of the node by a detour": (
        daemon_set(podResources={"enabled": True, "hostPath": "/var/../etc"}),
        "daemonSet.podResources.hostPath: Kubernetes takes no path with ..",
    ),
}

PODS: dict[str, tuple[dict[str, Any], str]] = {
    "a variable with a typing error": (variables({"name": "A", "vale": "x"}), "at '/extraEnv/0': additional properties 'vale' not allowed"),
    "a variable that is a number": (variables({"name": "A", "value": 1}), "at '/extraEnv/0/value': got number, want"),
    "a variable with a wrong name": (variables({"name": "A=B"}), "at '/extraEnv/0/name': 'A=B' does not match"),
    "a variable that the DaemonSet sets": (
        daemon_set() | variables({"name": "HEPTASCOPE_GPU_SCOPE", "value": "pod"}),
        "extraEnv: HEPTASCOPE_GPU_SCOPE is set twice",
    ),
    "a variable that the injected configuration sets": (
        {"injection": {"enabled": True}, "config": {"gpu": {"interval": "1s"}}}
        | variables({"name": "HEPTASCOPE_GPU_INTERVAL", "value": "2s"}),
        "extraEnv: HEPTASCOPE_GPU_INTERVAL is set twice",
    ),
    "two arguments in one": ({"extraArgs": ["--log-level debug"]}, "at '/extraArgs/0': '--log-level debug' does not match"),
    "less than no CPU": ({"resources": {"limits": {"cpu": "-1"}}}, "at '/resources/limits/cpu': '-1' does not match"),
    "memory in milli": ({"resources": {"limits": {"memory": "256m"}}}, "at '/resources/limits/memory': '256m' does not match"),
    "memory without a unit": ({"resources": {"limits": {"memory": 256}}}, "at '/resources/limits/memory': minimum: got 256, want"),
    "memory in another unit": ({"resources": {"limits": {"memory": "1GB"}}}, "at '/resources/limits/memory': '1GB' does not match"),
    "less than it asks for": ({"resources": {"limits": {"cpu": "0.1"}}}, "resources.requests.cpu: 200m is more than the limit, 0.1"),
    "less memory than it asks for": (
        {"resources": {"requests": {"memory": "1Gi"}, "limits": {"memory": "1G"}}},
        "resources.requests.memory: 1Gi is more than the limit, 1G",
    ),
    "root that must not be": ({"securityContext": {"runAsUser": 0}}, "securityContext: runAsUser 0 is root, which runAsNonRoot forbids"),
    "a privilege that may not grow": ({"securityContext": {"privileged": True}}, "securityContext: what is privileged or has SYS_ADMIN"),
    "GPUs that are hidden": (
        {"gpu": {"mode": "runtimeEnv", "runtimeEnv": {"visibleDevices": "none"}}},
        "gpu.runtimeEnv.visibleDevices: none hides every GPU",
    ),
    "a device with blanks": ({"gpu": {"cdi": {"device": "a /b= "}}}, "at '/gpu/cdi/device': 'a /b= ' does not match"),
    "a claim with blanks": ({"gpu": {"dra": {"claim": "G P U"}}}, "at '/gpu/dra/claim': 'G P U' does not match"),
    "a runtime with blanks": (
        {"gpu": {"runtimeEnv": {"runtimeClassName": "NV IDIA"}}},
        "at '/gpu/runtimeEnv/runtimeClassName': 'NV IDIA' does not match",
    ),
    "a toleration with a typing error": (
        daemon_set(tolerations=[{"effekt": "NoSchedule"}]),
        "at '/daemonSet/tolerations/0': additional properties 'effekt' not allowed",
    ),
    "a label that finds the pods": (
        daemon_set(podLabels={"app.kubernetes.io/name": "x"}),
        "daemonSet.podLabels: app.kubernetes.io/name is a label of the chart's own",
    ),
}

OBJECTS: dict[str, tuple[dict[str, Any], str]] = {
    "a label of the chart's": (
        {"commonLabels": {"app.kubernetes.io/name": "x"}},
        "commonLabels: app.kubernetes.io/name is a label of the chart's own",
    ),
    "a label's key with a blank": ({"commonLabels": {"a b": "x"}}, "at '/commonLabels': additional properties 'a b' not allowed"),
    "a workload's label with a blank": (monitor(workloadLabels=["a b"]), "at '/podMonitor/workloadLabels/0': 'a b' does not match"),
    "a namespace in capitals": (monitor(namespace="Monitoring"), "at '/podMonitor/namespace': 'Monitoring' does not match"),
    "names of namespaces beside all": (
        monitor(namespaceSelector={"matchNames": ["llm"]}),
        "podMonitor.namespaceSelector: any goes before matchNames, which would change nothing; set any: false",
    ),
    "a selector with an unknown operator": (
        monitor(selector={"matchExpressions": [{"key": "a", "operator": "Is"}]}),
        "at '/podMonitor/selector/matchExpressions/0/operator': value must be one of",
    ),
    "fewer series than a page has": (monitor(sampleLimit=10), "podMonitor.sampleLimit: a page of one GPU and one engine has hundreds"),
    "a relabeling with a typing error": (
        monitor(relabelings=[{"actoin": "drop"}]),
        "at '/podMonitor/relabelings/0': additional properties 'actoin' not allowed",
    ),
    "a reader with a typing error": (
        {"networkPolicy": {"from": [{"podSelektor": {}}]}},
        "at '/networkPolicy/from/0': additional properties 'podSelektor' not allowed",
    ),
    "a token's key with a blank": ({"web": {"token": {"key": "a b"}}}, "at '/web/token/key': 'a b' does not match"),
    "runbooks behind a blank": ({"prometheusRule": {"runbookUrl": "https://a b"}}, "at '/prometheusRule/runbookUrl': 'https://a b' does"),
    "an exporter behind a blank": (none_mode(dcgmExporterUrl="http://a b/"), "at '/gpu/none/dcgmExporterUrl': 'http://a b/' does not"),
    "an account with a blank": ({"serviceAccount": {"name": "A B"}}, "at '/serviceAccount/name': 'A B' does not match"),
    "a label that tells engines apart": (
        {"prometheusRule": {"alertLabels": {"engine": "x"}}},
        "prometheusRule.alertLabels: engine is a label of the alerts' own; routes and inhibition ask for it",
    ),
}
BAD = REFUSED | TIMES | PORTS | VOLUMES | PODS | OBJECTS

GOOD: dict[str, dict[str, Any]] = {
    "the longest interval": monitor(interval="1m15s", scrapeTimeout="1m15s") | {"prometheusRule": {"enabled": True}},
    "the longest interval without alerts": monitor(interval="2m30s"),
    "an engine on another host's port": {"port": 9000, "config": {"engines": [{"url": "http://vllm.llm:9000"}]}},
    "an engine of a URL without a port": {"config": {"engines": [{"url": "http://127.0.0.1/metrics"}]}},
    "a volume of the server's pod": mounts("/data", "/data/more"),
    "a path that begins alike": mounts("/etc/heptascope-maps"),
    "a node's port in a pod's own network": {"port": 9400} | daemon_set(),
    "other units of memory": {"resources": {"requests": {"memory": "256Mi"}, "limits": {"memory": "0.25Gi", "cpu": 1}}},
    "bytes": {"resources": {"requests": {"memory": 268435456}, "limits": {"memory": "268435456"}}},
    "an argument with a blank in its value": {"extraArgs": ["--name=a b", "-v", "value"]},
    "names of namespaces alone": monitor(namespaceSelector={"any": False, "matchNames": ["llm"]}),
    "root where it may be": {"securityContext": {"runAsUser": 0, "runAsNonRoot": False}},
    "the operator's GPU by name": {"gpu": {"mode": "runtimeEnv", "runtimeEnv": {"visibleDevices": "GPU-8a5f0b4c,GPU-1"}}},
    "a Service's page": none_mode(dcgmExporterUrl="https://nvidia-dcgm-exporter.gpu-operator:9400/metrics"),
    "a host engine by IPv6": none_mode(source="dcgm", hostEngineAddress="[fd00::1]:5555"),
    "no limit of series": monitor(sampleLimit=0),
}


@pytest.mark.parametrize("case", BAD)
def test_nonsense_is_refused(case: str) -> None:
    """Helm stops with a message that names the value and what is wrong with it."""
    given, message = BAD[case]
    with pytest.raises(helm_python.HelmError) as refused:
        texts(given)
    assert message in str(refused.value)


@pytest.mark.parametrize("port", well_known_ports())
def test_ports_of_engines_are_refused(port: int) -> None:
    """A sidecar starts before the server: on a port where engines are looked for it would take the server's."""
    with pytest.raises(helm_python.HelmError) as refused:
        texts({"port": port})
    assert ("minimum: got" if port < 1024 else f"port: {port} is a port on which model servers listen") in str(refused.value)


@pytest.mark.parametrize("case", GOOD)
def test_sense_is_taken(case: str) -> None:
    """What is close to nonsense and makes sense is rendered."""
    assert of_kind(documents(GOOD[case]), "Pod")
