"""The chart's values: what is made from them is current, the schema is closed, and a configuration is one for heptascope."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
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
