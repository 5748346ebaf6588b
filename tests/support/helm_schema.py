"""Makes the chart's values.schema.json (draft-07, closed) from values.yaml and from heptascope's own settings."""

from __future__ import annotations

import json
from typing import Any

from heptascope.config import Settings
from heptascope.rules.load import load
from support.helm_values import values

_LABEL = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"
_TEXTS: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "string"}}
_QUANTITIES: dict[str, Any] = {
    "type": "object",
    "additionalProperties": {"type": ["string", "number"]},
    "propertyNames": {"pattern": "^(cpu|memory|ephemeral-storage)$"},
}
_DURATION = {"type": "string", "pattern": r"^(\d+h)?(\d+m)?(\d+s)?(\d+ms)?$", "minLength": 2}
_ALERT_LABELS = {
    "type": "object",
    "additionalProperties": False,
    "patternProperties": {"^[a-zA-Z_][a-zA-Z0-9_]*$": {"type": "string"}},  # a pattern for names alone: Helm would not tell the place
}
DEFINITIONS: dict[str, Any] = {
    "Labels": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 63, "pattern": _LABEL}},
    "Name": {"type": "string", "maxLength": 63, "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$"},
    "Duration": _DURATION,
    "AlertLabels": _ALERT_LABELS,
    "Resources": {
        "type": "object",
        "description": "CPU and memory; no device may be asked for, as it would be taken from the server.",
        "additionalProperties": False,
        "properties": {"requests": _QUANTITIES, "limits": _QUANTITIES},
    },
    "SecretName": {
        "type": "object",
        "additionalProperties": False,
        "required": ["name"],
        "properties": {"name": {"type": "string", "description": "Name of the Secret."}},
    },
    "LabelSelector": {
        "type": "object",
        "additionalProperties": False,
        "properties": {"matchLabels": _TEXTS, "matchExpressions": {"type": "array", "items": {"type": "object"}}},
    },
    "NamespaceSelector": {
        "type": "object",
        "additionalProperties": False,
        "properties": {"any": {"type": "boolean"}, "matchNames": {"type": "array", "items": {"type": "string"}}},
    },
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
