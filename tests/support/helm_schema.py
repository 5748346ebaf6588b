"""Makes the chart's values.schema.json (draft-07, closed) from values.yaml and from heptascope's own settings."""

from __future__ import annotations

import json
from typing import Any

from heptascope.config import Settings
from heptascope.rules.load import load
from support.helm_values import values

_LABEL = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"
_TEXTS: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "string"}}
_LABEL_KEY = r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
_OBJECT = {"type": "object"}
_TEXT = {"type": "string"}
_BYTES = {"type": ["string", "integer"], "pattern": r"^([0-9]+(\.[0-9]+)?([MGT]i?|Ki|k)|[0-9]{8,})$", "minimum": 10**7}


def _closed(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties, **({"required": list(required)} if required else {})}


def _named(value: dict[str, Any], name: str = _LABEL_KEY) -> dict[str, Any]:
    """Return a mapping with free names. A pattern for names alone would do, but Helm does not tell the place then."""
    return {"type": "object", "additionalProperties": False, "patternProperties": {name: value}}


_QUANTITIES = _closed(
    {
        "cpu": {"type": ["string", "number"], "pattern": r"^[0-9]+(\.[0-9]+|m)?$", "minimum": 0},
        "memory": _BYTES,
        "ephemeral-storage": _BYTES,
    }
)
_DURATION = {"type": "string", "pattern": r"^(\d{1,5}h)?(\d{1,6}m)?(\d{1,8}s)?(\d{1,9}ms)?$", "minLength": 2}
_ALERT_LABELS = _named(_TEXT, "^[a-zA-Z_][a-zA-Z0-9_]*$")
DEFINITIONS: dict[str, Any] = {
    "Labels": _named({"type": "string", "maxLength": 63, "pattern": _LABEL}),
    "LabelKey": {"type": "string", "pattern": _LABEL_KEY},
    "Annotations": _named(_TEXT),
    "Name": {"type": "string", "maxLength": 63, "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$"},
    "ObjectName": {"type": "string", "maxLength": 253, "pattern": r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$"},
    "Port": {"type": "integer", "minimum": 1024, "maximum": 65535},
    "Url": {"type": "string", "pattern": r"^https?://[^\s/]+(/\S*)?$"},
    "Address": {"type": "string", "pattern": r"^[^\s/]+$"},
    "Duration": _DURATION,
    "ScrapeDuration": {"type": "string", "pattern": r"^(\d{1,5}h)?(\d{1,6}m)?(\d{1,8}s)?$", "minLength": 2},
    "EnvironmentVariable": _closed(
        {"name": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_.-]*$"}, "value": {"type": ["string", "null"]}, "valueFrom": _OBJECT},
        "name",
    ),
    "Volume": {
        "type": "object",
        "required": ["name"],
        "minProperties": 2,
        "maxProperties": 2,
        "patternProperties": {"^name$": {"$ref": "#/definitions/VolumeName"}, "^[^n]|^n[^a]": _OBJECT},
        "additionalProperties": False,
    },
    "VolumeName": {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"},
    "VolumeMount": _closed(
        {
            "name": {"$ref": "#/definitions/VolumeName"},
            "mountPath": {"type": "string", "pattern": "^/[^:]*[^:/][^:]*$"},
            "subPath": _TEXT,
            "subPathExpr": _TEXT,
            "readOnly": {"type": "boolean"},
            "recursiveReadOnly": {"enum": ["Disabled", "IfPossible", "Enabled"]},
            "mountPropagation": {"enum": ["None", "HostToContainer", "Bidirectional"]},
        },
        "name",
        "mountPath",
    ),
    "Toleration": _closed(
        {
            "key": _TEXT,
            "operator": {"enum": ["Exists", "Equal", "Lt", "Gt"]},
            "value": _TEXT,
            "effect": {"enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
            "tolerationSeconds": {"type": "integer"},
        }
    ),
    "Relabeling": _closed(
        {
            "sourceLabels": {"type": "array", "items": _TEXT},
            "separator": _TEXT,
            "targetLabel": _TEXT,
            "regex": _TEXT,
            "modulus": {"type": "integer", "minimum": 1},
            "replacement": _TEXT,
            "action": {"type": "string", "pattern": "^[A-Za-z]+$"},
        }
    ),
    "Peer": _closed({"ipBlock": _OBJECT, "namespaceSelector": _OBJECT, "podSelector": _OBJECT}) | {"minProperties": 1},
    "AlertLabels": _ALERT_LABELS,
    "Resources": {
        "type": "object",
        "description": "CPU and memory; no device may be asked for, as it would be taken from the server.",
        "additionalProperties": False,
        "properties": {"requests": _QUANTITIES, "limits": _QUANTITIES},
    },
    "SecretName": _closed(
        {"name": {"allOf": [{"$ref": "#/definitions/ObjectName"}], "minLength": 1, "description": "Name of the Secret."}}, "name"
    ),
    "LabelSelector": _closed(
        {
            "matchLabels": {"$ref": "#/definitions/Labels"},
            "matchExpressions": {
                "type": "array",
                "items": _closed(
                    {
                        "key": {"$ref": "#/definitions/LabelKey"},
                        "operator": {"enum": ["In", "NotIn", "Exists", "DoesNotExist"]},
                        "values": {"type": "array", "items": _TEXT},
                    },
                    "key",
                    "operator",
                ),
            },
        }
    ),
    "NamespaceSelector": _closed(
        {
            "any": {"type": "boolean"},
            "matchNames": {"type": "array", "items": {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"}},
        }
    ),
    "AlertOverride": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "severity": {"enum": ["critical", "warning", "info", "none"], "description": "Who is told."},
            "for": {"$ref": "#/definitions/Duration", "description": "How long the condition holds before the alert fires."},
            "keep_firing_for": {"$ref": "#/definitions/Duration", "description": "How long the alert outlives its condition."},
            "labels": _ALERT_LABELS | {"description": "Further labels."},
            "annotations": _TEXTS | {"description": "Further annotations, or others in their place."},
        },
    },
}


def schema() -> dict[str, Any]:
    """Return the schema of the chart's values."""
    root = _object("Values of the heptascope chart.")
    for value in values():
        section = root
        for key in value.path[:-1]:
            section = section["properties"].setdefault(key, _object(f"Settings of {key}."))
        section["properties"][value.path[-1]] = _leaf(value.type, value.schema, value.description)
    _require_all(root)
    return {"$schema": "http://json-schema.org/draft-07/schema#"} | root | {"definitions": _settings() | DEFINITIONS}


def text() -> str:
    """Return the schema as the file holds it."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _object(description: str) -> dict[str, Any]:
    return {"type": "object", "description": description, "additionalProperties": False, "properties": {}}


def _require_all(section: dict[str, Any]) -> None:
    """Every value has a default; who sets one to null removes it, and is told so in place of an error in a template."""
    section["required"] = list(section["properties"])
    for inner in section["properties"].values():
        if "properties" in inner:
            _require_all(inner)


def _leaf(kind: str, narrow: dict[str, Any], description: str) -> dict[str, Any]:
    if "$ref" in narrow:  # in draft-07, what stands beside a reference does not count
        return {"description": description, "allOf": [narrow]}
    return {"description": description} | ({} if "anyOf" in narrow else {"type": kind}) | narrow


def _settings() -> dict[str, Any]:
    """Return heptascope's settings as definitions of draft-07; of pydantic's later draft only the place of definitions differs."""
    own = Settings.model_json_schema()
    definitions = own.pop("$defs")
    moved = json.loads(json.dumps(definitions | {"Settings": own}).replace("#/$defs/", "#/definitions/"))
    moved["RulesSettings"]["properties"]["overrides"]["propertyNames"] = {"enum": sorted(rule.name for rule in load())}
    return {name: _plain(part) for name, part in sorted(moved.items())}


def _plain(part: Any) -> Any:
    """Leave out titles and formats, which say nothing; keep a property that is called so."""
    if isinstance(part, list):
        return [_plain(item) for item in part]
    if not isinstance(part, dict):
        return part
    return {
        key: {name: _plain(item) for name, item in value.items()} if key == "properties" else _plain(value)
        for key, value in part.items()
        if key == "properties" or key not in ("title", "format")
    }
