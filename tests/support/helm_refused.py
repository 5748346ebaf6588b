"""Values that the chart refuses by their name, kind or place, or because they contradict each other, and what it says."""

from __future__ import annotations

from typing import Any

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "unknown value": ({"podMonitors": {}}, "at '': additional properties 'podMonitors' not allowed"),
    "unknown value inside": ({"gpu": {"mod": "cdi"}}, "at '/gpu': additional properties 'mod' not allowed"),
    "unknown GPU mode": ({"gpu": {"mode": "env"}}, "at '/gpu/mode': value must be one of 'none', 'runtimeEnv', 'cdi', 'dra'"),
    "a setting that heptascope does not know": (
        {"config": {"gpu": {"sourc": "nvml"}}},
        "at '/config/gpu': additional properties 'sourc' not",
    ),
    "a number for a tag": ({"image": {"tag": 1.0}}, "at '/image/tag': got number, want string"),
    "a short digest": ({"image": {"digest": "sha256:0"}}, "at '/image/digest': 'sha256:0' does not match"),
    "a port that is none": ({"port": 70000}, "at '/port': maximum: got 70,000, want 65,535"),
    "an interval without a unit": ({"podMonitor": {"interval": "15"}}, "at '/podMonitor/interval': '15' does not match"),
    "a GPU for the sidecar": (
        {"resources": {"limits": {"nvidia.com/gpu": 1}}},
        "at '/resources/limits': additional properties 'nvidia.com/gpu' not",
    ),
    "an unknown severity": (
        {"prometheusRule": {"overrides": {"GpuLost": {"severity": "page"}}}},
        "at '/prometheusRule/overrides/GpuLost/severity': value must be one of",
    ),
    "a threshold as an override": (
        {"prometheusRule": {"overrides": {"Overload": {"threshold": 1}}}},
        "additional properties 'threshold' not allowed",
    ),
    "an alert that is none, left out": (
        {"prometheusRule": {"enabled": True, "disabled": ["GpuLots"]}},
        "there is no alert GpuLots; alerts/README.md lists them",
    ),
    "an alert that is none, changed": (
        {"prometheusRule": {"enabled": True, "overrides": {"GpuLots": {"for": "1m"}}}},
        "there is no alert GpuLots; alerts/README.md lists them",
    ),
    "a label that inhibition asks for": (
        {"prometheusRule": {"alertLabels": {"component": "llm"}}},
        "prometheusRule.alertLabels: component is a label of the alerts' own; routes and inhibition ask for it; choose another name",
    ),
    "a label that Prometheus does not take": (
        {"prometheusRule": {"alertLabels": {"a-b": "x"}}},
        "at '/prometheusRule/alertLabels': additional properties 'a-b' not",
    ),
    "such a label for one alert": (
        {"prometheusRule": {"overrides": {"Overload": {"labels": {"a b": "x"}}}}},
        "at '/prometheusRule/overrides/Overload/labels': additional properties 'a b' not allowed",
    ),
    "an alert without a name": ({"prometheusRule": {"disabled": [""]}}, "at '/prometheusRule/disabled/0': minLength: got 0, want 1"),
    "a secret in capitals": ({"web": {"token": {"existingSecret": "Token"}}}, "at '/web/token/existingSecret': 'Token' does not match"),
    "an exporter without a host": ({"gpu": {"none": {"dcgmExporterUrl": "http://"}}}, "at '/gpu/none/dcgmExporterUrl': 'http://' does not"),
    "one severity for all alerts": (
        {"prometheusRule": {"alertLabels": {"severity": "warning"}}},
        "prometheusRule.alertLabels: severity is a label of the alerts' own; set severity of a single alert instead",
    ),
    "another kind for one alert": (
        {"prometheusRule": {"overrides": {"Overload": {"labels": {"kind": "x"}}}}},
        "prometheusRule.overrides.Overload.labels: kind is a label of the alerts' own",
    ),
    "a volume that the chart has": (
        {"extraVolumes": [{"name": "heptascope-tls", "emptyDir": {}}]},
        "extraVolumes: heptascope-tls is a name of the chart's own; choose one that does not begin with heptascope-",
    ),
    "a registry with a scheme": (
        {"image": {"registry": "https://registry.example"}},
        "at '/image/registry': 'https://registry.example' does",
    ),
    "an address to listen on": (
        {"config": {"listen": ":9000"}},
        "config.listen: the probe and the PodMonitor need to know the port; set port",
    ),
    "a token in the ConfigMap": (
        {"config": {"web": {"token": "12345678"}}},
        "a ConfigMap is no place for a secret; set web.token.existingSecret",
    ),
    "TLS files beside the chart's": ({"config": {"web": {"tls_cert": "a", "tls_key": "b"}}}, "set web.tls.existingSecret instead"),
    "a duration that is none": ({"config": {"slo": {"e2e_latency": "5 bananas"}}}, "'5 bananas' does not match pattern"),
    "an engine without a scheme": (
        {"config": {"engines": [{"url": "localhost:8000"}]}},
        "at '/config/engines/0/url': 'localhost:8000' does not",
    ),
    "a rule that is none": ({"config": {"rules": {"overrides": {"Overlaod": {}}}}}, "invalid propertyName 'Overlaod'"),
    "a value that is taken away": ({"gpu": None}, "at '': missing property 'gpu'"),
    "no repository": ({"image": {"repository": ""}}, "at '/image/repository': '' does not match"),
    "a name in capitals": ({"fullnameOverride": "Scope"}, "at '/fullnameOverride': 'Scope' does not match"),
    "a label with a blank": ({"commonLabels": {"a": "b c"}}, "'b c' does not match"),
    "an address as an argument": ({"extraArgs": ["--listen=:9"]}, "extraArgs: --listen=:9 would be set twice; use port or config"),
    "a variable that the chart sets": ({"extraEnv": [{"name": "POD_NAME", "value": "x"}]}, "extraEnv: POD_NAME is set twice"),
    "a long name in an annotation": (
        {"gpu": {"mode": "cdi"}, "containerName": "x" * 54},
        "an annotation, which has room for 53 characters",
    ),
    "scrapes too far apart": (
        {"podMonitor": {"enabled": True, "interval": "1m16s"}, "prometheusRule": {"enabled": True}},
        "have to hold four scrapes; 1m16s is more than 75s",
    ),
    "a scrape longer than the interval": (
        {"podMonitor": {"interval": "15s", "scrapeTimeout": "1m"}},
        "podMonitor.scrapeTimeout: 1m is longer than the interval, 15s",
    ),
    "a claim for a DaemonSet": ({"daemonSet": {"enabled": True}, "gpu": {"mode": "dra"}}, "a DaemonSet has none; choose another gpu.mode"),
    "a policy that cuts servers off": ({"networkPolicy": {"enabled": True}}, "list their ports in networkPolicy.enginePorts"),
    "the own port as the server's": ({"networkPolicy": {"enginePorts": [8000, 17007]}}, "enginePorts: 17007 is heptascope's own port"),
}
