"""Durations, sizes and addresses as people write them, for the configuration."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, None: 1.0}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(B|kB|KiB|MB|MiB|GB|GiB)?")
_LISTEN = re.compile(r"(?:(?:\[([0-9A-Fa-f:.%\w]*)\]|([^\[\]:/]*)):)?(\d{1,5})")
_BYTES = {"B": 1, "kB": 10**3, "KiB": 2**10, "MB": 10**6, "MiB": 2**20, "GB": 10**9, "GiB": 2**30, None: 1}


def parse_duration(value: Any) -> float:
    """Return seconds from `100ms`, `1s`, `5m`, `1h` or a bare number of seconds. Raises ValueError."""
    match = _DURATION.fullmatch(str(value).strip())
    if match is None or isinstance(value, bool):
        raise ValueError("not a duration; write 100ms, 1s, 5m or 1h")
    return float(match[1]) * _SECONDS[match[2]]


def format_duration(seconds: float) -> str:
    """Return the shortest text that `parse_duration` reads back as `seconds`."""
    whole = [u for u in ("h", "m", "s") if seconds >= _SECONDS[u] and seconds % _SECONDS[u] == 0]
    unit = whole[0] if whole else "s" if seconds >= 1 else "ms"
    return f"{seconds / _SECONDS[unit]:g}{unit}"


def prometheus_duration(seconds: float) -> str:
    """Return a duration as Prometheus and Alertmanager read it, to the millisecond: their numbers have no fractions."""
    whole = round(seconds * 1000)
    unit = next((u for u in ("h", "m", "s") if whole and whole % round(_SECONDS[u] * 1000) == 0), "ms")
    return f"{whole // round(_SECONDS[unit] * 1000)}{unit}"


def parse_size(value: Any) -> int:
    """Return bytes from `16MiB`, `1GB`, `512kB` or a bare number of bytes. Raises ValueError."""
    match = _SIZE.fullmatch(str(value).strip())
    if match is None or isinstance(value, bool):
        raise ValueError("not a size; write 16MiB, 1GB or a number of bytes")
    return int(float(match[1]) * _BYTES[match[2]])


def format_size(size: int) -> str:
    """Return the shortest text that `parse_size` reads back as `size`."""
    unit = next((u for u in ("GiB", "MiB", "KiB", "GB", "MB", "kB") if size >= _BYTES[u] and size % _BYTES[u] == 0), "B")
    return f"{size // _BYTES[unit]}{unit}"


def parse_listen(value: str) -> tuple[str, int]:
    """Return host and port of `host:port`, `[::1]:port`, `:port` (all addresses: host "") or `port`. Raises ValueError."""
    match = _LISTEN.fullmatch(str(value).strip())
    if match is None or int(match[3]) > 65535:
        raise ValueError("not an address to listen on; write host:port, [::1]:port or :port")
    return match[1] or match[2] or "", int(match[3])


def _listen(value: Any) -> str:
    host, port = parse_listen(value)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _texts(value: Any) -> Any:
    """Turn numbers in a list into texts: a GPU is named by its index or its UUID."""
    if not isinstance(value, list | tuple):
        return value
    return [str(item) if isinstance(item, int) and not isinstance(item, bool) else item for item in value]


def _schema(*kinds: str, pattern: re.Pattern[str], examples: list[str]) -> WithJsonSchema:
    return WithJsonSchema({"type": list(kinds), "pattern": rf"^\s*{pattern.pattern}\s*$", "examples": examples})


_DURATION_SCHEMA = _schema("string", "number", pattern=_DURATION, examples=["100ms", "1s", "10m"])
_SIZE_SCHEMA = _schema("string", "integer", pattern=_SIZE, examples=["16MiB", "1GB"])
_LISTEN_SCHEMA = _schema("string", "integer", pattern=_LISTEN, examples=[":17007", "127.0.0.1:17007"])
_DEVICES_SCHEMA = WithJsonSchema({"type": "array", "items": {"type": ["string", "integer"]}})

Duration = Annotated[float, BeforeValidator(parse_duration), PlainSerializer(format_duration, when_used="json"), _DURATION_SCHEMA]
Size = Annotated[int, BeforeValidator(parse_size), PlainSerializer(format_size, when_used="json"), _SIZE_SCHEMA]
Listen = Annotated[str, BeforeValidator(_listen), _LISTEN_SCHEMA]
DeviceList = Annotated[tuple[str, ...], BeforeValidator(_texts), _DEVICES_SCHEMA]
