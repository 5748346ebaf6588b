"""Fills the configuration from a YAML file, the environment and flags, and knows where each value came from.

Environment variables are `HEPTASCOPE_` plus the key in capitals with `_` between its parts (`gpu.interval` is
`HEPTASCOPE_GPU_INTERVAL`). Lists are separated by commas, `HEPTASCOPE_ENGINE` is a list of URLs, and a value that begins
with `{` or `[` is read as YAML. `HEPTASCOPE_CONFIG` names the file.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_origin

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from heptascope.config import Settings
from heptascope.errors import UserError
from heptascope.yaml_marks import KeyPath, read_yaml

PREFIX = "HEPTASCOPE_"
CONFIG_VARIABLE = "HEPTASCOPE_CONFIG"
ENGINE_VARIABLE = "HEPTASCOPE_ENGINE"
# Kubernetes gives every pod such variables for a service named heptascope or heptascope-something.
_SERVICE_LINK = re.compile(r"HEPTASCOPE_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_\w+)?)?)")


@dataclass(frozen=True, slots=True)
class Configuration:
    """The settings, and where each value that is not a default came from."""

    settings: Settings
    origins: Mapping[KeyPath, str]

    def origin(self, path: KeyPath) -> str:
        """Return where the value at `path` came from; `default` if nobody set it."""
        return self.origins.get(path, "default")


def load(
    config_file: Path | None = None, environ: Mapping[str, str] | None = None, flags: Mapping[str, tuple[KeyPath, Any]] | None = None
) -> Configuration:
    """Merge defaults, the file, the environment and flags, in this order.

    `flags` maps a flag as typed (`--listen`) to the key it sets and its value. Raises UserError: one line with place, key and remedy.
    """
    environ = environ or {}
    merged: dict[str, Any] = {}
    origins: dict[KeyPath, str] = {}
    if config_file is None and environ.get(CONFIG_VARIABLE):
        config_file = Path(environ[CONFIG_VARIABLE])
    if config_file is not None:
        marked = read_yaml(config_file)
        merged = marked.value
        origins = {path: f"{config_file}:{line}" for path, line in marked.lines.items()}
    for name, path, value in _from_environment(environ):
        _set(merged, origins, path, value, f"environment variable {name}")
    for flag, (path, value) in (flags or {}).items():
        _set(merged, origins, path, value, f"flag {flag}")
    try:
        return Configuration(Settings.model_validate(merged), origins)
    except ValidationError as exc:
        raise _one_line(exc, merged, origins) from exc


def environment_variables(model: type[BaseModel] = Settings, at: KeyPath = ()) -> dict[str, KeyPath]:
    """Return every environment variable and the key it sets."""
    names: dict[str, KeyPath] = {}
    for key, field in model.model_fields.items():
        path = (*at, key)
        if path == ("engines",):
            names[ENGINE_VARIABLE] = path
        elif isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            names |= environment_variables(field.annotation, path)
        else:
            names[PREFIX + "_".join(str(part) for part in path).upper()] = path
    return names


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, KeyPath, Any]]:
    known = environment_variables()
    for name, text in sorted(environ.items()):
        if not name.startswith(PREFIX) or name == CONFIG_VARIABLE or not text.strip() or _SERVICE_LINK.fullmatch(name):
            continue
        if name not in known:
            raise UserError("no such setting", where=f"environment variable {name}", hint=_suggest(name, list(known)))
        yield name, known[name], _decode(name, known[name], text.strip())


def _decode(name: str, path: KeyPath, text: str) -> Any:
    if text[0] in "{[":
        try:
            return yaml.safe_load(text)
        except yaml.YAMLError as exc:
            raise UserError(f"not valid YAML: {text}", where=f"environment variable {name}") from exc
    if path == ("engines",):
        return [{"url": url.strip()} for url in text.split(",") if url.strip()]
    return [item.strip() for item in text.split(",") if item.strip()] if _is_list(path) else text


def _is_list(path: KeyPath) -> bool:
    model: type[BaseModel] = Settings
    for part in path[:-1]:
        model = model.model_fields[str(part)].annotation  # type: ignore[assignment]  # environment_variables descends only into models
    return get_origin(model.model_fields[str(path[-1])].annotation) is tuple


def _set(merged: dict[str, Any], origins: dict[KeyPath, str], path: KeyPath, value: Any, origin: str) -> None:
    """Set one value; what stood there before, and all below it, is forgotten."""
    section: Any = merged
    for part in path[:-1]:
        if not isinstance(section.get(part), dict):
            section[part] = {}
        section = section[part]
    section[path[-1]] = value
    for old in [p for p in origins if p[: len(path)] == path]:
        del origins[old]
    origins |= dict.fromkeys(_paths(value, path), origin)


def _paths(value: Any, at: KeyPath) -> Iterator[KeyPath]:
    """Yield the path of `value` and of everything inside it."""
    yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield from _paths(child, (*at, key))


def _one_line(exc: ValidationError, merged: dict[str, Any], origins: Mapping[KeyPath, str]) -> UserError:
    errors = exc.errors(include_url=False)
    first, more = errors[0], len(errors) - 1
    path: KeyPath = first["loc"]
    where = next((origins[path[:n]] for n in range(len(path), 0, -1) if path[:n] in origins), "configuration")
    message, hint = _explain(first, path, _value_at(merged, path))
    if more:
        hint = f"{hint}; and {more} more" if hint else f"and {more} more"
    return UserError(message, where=where, hint=hint)


def _explain(error: ErrorDetails, path: KeyPath, given: Any) -> tuple[str, str]:
    """Return what is wrong with which value, and what is allowed."""
    key = dotted(path)
    if error["type"] == "extra_forbidden":
        return f"unknown key {key!r}", _suggest(str(path[-1]), _keys_at(path[:-1]))
    if error["type"] == "missing":
        return f"{key} is missing", ""
    if error["type"] == "model_type":
        return f"{key} is not a section", f"allowed below it: {', '.join(_keys_at(path))}"
    if error["type"] == "too_short":
        return f"{key} is too short: at least {error['ctx']['min_length']} characters", ""
    text, _, hint = error["msg"].removeprefix("Value error, ").partition("; ")
    text = text.replace("Input should be", "must be").replace("a valid tuple", "a list")
    if isinstance(error["input"], float) and isinstance(given, str):  # a duration: limits are in seconds
        text += " s"
    return f"{key}{_shown(given, path)}: {text}", hint


def _shown(value: Any, path: KeyPath) -> str:
    """Return the faulty value for the message; secrets and whole sections are left out."""
    return f" = {value}" if isinstance(value, str | int | float) and path != ("web", "token") else ""


def _value_at(merged: Any, path: KeyPath) -> Any:
    """Return the value as it was given, before any conversion; None if there is none."""
    for part in path:
        try:
            merged = merged[part]
        except (KeyError, IndexError, TypeError):
            return None
    return merged


def _keys_at(path: KeyPath) -> list[str]:
    model: Any = Settings
    for part in path:
        if isinstance(model, type) and issubclass(model, BaseModel):
            model = model.model_fields[str(part)].annotation
        else:  # an element of a list or mapping of models
            model = next((arg for arg in getattr(model, "__args__", ()) if isinstance(arg, type) and issubclass(arg, BaseModel)), None)
    return list(model.model_fields) if isinstance(model, type) and issubclass(model, BaseModel) else []


def _suggest(word: str, allowed: list[str]) -> str:
    close = difflib.get_close_matches(word, allowed, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]}?"
    return f"allowed: {', '.join(allowed)}"


def dotted(path: KeyPath) -> str:
    """Return `engines[0].url` for ("engines", 0, "url")."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
