"""The chart's values: what is made from them is current, the schema is closed, and bad values are refused in one line."""

from __future__ import annotations

import json
import re
from typing import Any

import helm_python
import jsonschema
import pytest
import yaml

from heptascope import __version__
from heptascope.config_load import load
from support.helm_reference import files, surplus
from support.helm_render import texts
from support.helm_schema import schema
from support.helm_values import CHART, values


def test_everything_made_from_the_chart_is_current() -> None:
    """Schema, README, packed rules and dashboards, components, patches and examples are what `make reference` writes."""
    assert [] == [path for path, text in files().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    assert [] == surplus()


def test_the_schema_is_draft_07_and_closed() -> None:
    """The schema follows its draft, refuses unknown keys in all of the chart's own objects, and asks the network for nothing."""
    made = schema()
    jsonschema.Draft7Validator.check_schema(made)
    assert "http://json-schema.org/draft-07/schema#" == made["$schema"]
    assert [] == [path for path, part in _parts(made) if "properties" in part and part.get("additionalProperties") is not False]
    assert {"#"} == {part["$ref"][0] for _, part in _parts(made) if "$ref" in part}


def test_every_value_is_described_and_takes_its_default() -> None:
    """Each value has a description in the schema; the defaults are valid."""
    made = schema()
    assert [] == [".".join(v.path) for v in values() if not v.description.endswith((".", ")"))]
    jsonschema.validate(yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8")), made, jsonschema.Draft7Validator)
    told = [part for path, part in _parts(made["properties"], ".properties") if path.split(".")[-2] == "properties"]
    assert [] == [part for part in told if "description" not in part]


def test_every_value_is_read() -> None:
    """Each value has its name in a template: one that changes nothing would be a silent promise."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in (CHART / "templates").rglob("*") if path.is_file())
    words = set(re.findall(r"\w+", text))
    assert ["global"] == [".".join(value.path) for value in values() if value.path[-1] not in words]


def test_the_chart_has_the_version_of_the_package() -> None:
    """`appVersion`, which is the image's default tag, and the image that Artifact Hub is told are the package's version."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    images = yaml.safe_load(chart["annotations"]["artifacthub.io/images"])
    assert (__version__, f"ghcr.io/heptascope/heptascope:{__version__}") == (chart["appVersion"], images[0]["image"])


BAD: dict[str, tuple[dict[str, Any], str]] = {
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


@pytest.mark.parametrize("case", BAD)
def test_bad_values_are_refused(case: str) -> None:
    """Helm stops with a message that names the value and what is wrong with it."""
    given, message = BAD[case]
    with pytest.raises(helm_python.HelmError) as refused:
        texts(given)
    assert message in str(refused.value)


def test_a_configuration_in_values_is_one_for_heptascope(tmp_path: Any) -> None:
    """Whatever the schema lets pass as `config` in the examples, heptascope reads from the ConfigMap as it was meant."""
    given = yaml.safe_load((CHART / "ci" / "config-values.yaml").read_text(encoding="utf-8"))
    config_map = yaml.safe_load(texts(given)["templates/configmap.yaml"])
    path = tmp_path / "heptascope.yaml"
    path.write_text(config_map["data"]["heptascope.yaml"], encoding="utf-8")
    settings = load(path).settings
    assert (("0", "1"), 0.5, 2.5, 2**28) == (
        settings.gpu.devices,
        settings.gpu.interval,
        settings.slo.time_to_first_token,
        settings.record.max_bytes,
    )
    assert ["chat", "embed"] == [engine.name for engine in settings.engines]
    assert given["config"]["rules"]["overrides"] == json.loads(json.dumps(dict(settings.rules.overrides)))


def _parts(part: Any, path: str = "") -> list[tuple[str, dict[str, Any]]]:
    """Return every object inside a schema, with its place."""
    if isinstance(part, list):
        return [found for i, item in enumerate(part) for found in _parts(item, f"{path}.{i}")]
    if not isinstance(part, dict):
        return []
    inner = [found for key, item in part.items() for found in _parts(item, f"{path}.{key}")]
    return [(path, part), *inner]
