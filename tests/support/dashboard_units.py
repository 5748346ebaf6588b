"""Numbers and colours as Grafana writes them, as far as our boards use them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime

PALETTE = (
    *("#73BF69", "#F2CC0C", "#8AB8FF", "#FF780A", "#F2495C", "#5794F2", "#B877D9", "#705DA0", "#37872D", "#FADE2A"),
    *("#447EBC", "#C15C17", "#890F02", "#0A437C", "#6D1F62", "#584477", "#B7DBAB", "#F4D598", "#70DBED", "#F9BA8F"),
)
_NAMED = {
    "green": "#73BF69",
    "orange": "#FF9830",
    "red": "#F2495C",
    "blue": "#5794F2",
    "purple": "#B877D9",
    "yellow": "#FADE2A",
    "text": "var(--text)",
}
_SHORT = (("", 1.0), ("K", 1e3), ("Mil", 1e6), ("Bil", 1e9), ("Tri", 1e12))
_SI = (("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15))
_BINARY = (("", 1.0), ("Ki", 2.0**10), ("Mi", 2.0**20), ("Gi", 2.0**30), ("Ti", 2.0**40), ("Pi", 2.0**50))
_UNITS: dict[str, tuple[Sequence[tuple[str, float]], str]] = {
    "short": (_SHORT, ""),
    "none": ((("", 1.0),), ""),
    "bytes": (_BINARY, "B"),
    "decbytes": (_SI, "B"),
    "Bps": (_SI, "B/s"),
    "binBps": (_BINARY, "B/s"),
    "watt": (_SI, "W"),
    "joule": (_SI, "J"),
    "kwatth": ((("", 1.0),), "kWh"),
    "hertz": (_SI, "Hz"),
    "flops": (_SI, "FLOPS"),
    "celsius": ((("", 1.0),), "°C"),
    "percent": ((("", 1.0),), "%"),
    "currencyUSD": (_SHORT, "$"),
    "reqps": (_SHORT, "req/s"),
    "ops": (_SHORT, "ops/s"),
}
_BRIGHT = 120.0
_TIMES = ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms"), (60.0, 1.0, "s"), (3600.0, 1 / 60, "mins"), (86400.0, 1 / 3600, "hours"))


def colour(name: str) -> str:
    """Return a colour of Grafana's for a page."""
    base = name.removeprefix("semi-dark-").removeprefix("dark-").removeprefix("light-").removeprefix("super-light-")
    return _NAMED.get(base, name)


def ink(background: str) -> str:
    """Return a colour that can be read on another one."""
    parts = [int(background[i : i + 2], 16) for i in (1, 3, 5)] if re.fullmatch(r"#[0-9A-Fa-f]{6}", background) else [0, 0, 0]
    bright = sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))
    return "#111217" if bright > _BRIGHT else "#fff"


def text(value: float, unit: str = "short", decimals: int | None = None) -> str:
    """Return a value with its unit."""
    if not math.isfinite(value):
        return str(value)
    if unit == "percentunit":
        return text(100 * value, "percent", decimals)
    if unit == "s":
        return _seconds(value, decimals)
    if unit in ("d", "dtdurations"):
        return f"{_digits(value, decimals)} days" if unit == "d" else _seconds(value, decimals)
    if unit.startswith("dateTime"):
        return datetime.fromtimestamp(value / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    if unit.startswith(("suffix:", "count:", "prefix:")):
        kind, _, word = unit.partition(":")
        number = text(value, "short" if kind == "count" else "none", decimals)
        return f"{word}{number}" if kind == "prefix" else f"{number}{' ' if kind == 'count' else ''}{word}"
    scales, word = _UNITS.get(unit, (((("", 1.0)),), unit))
    prefix, scale = next(((p, s) for p, s in reversed(scales) if abs(value) >= s), scales[0])
    number, tail = _digits(value / scale, decimals), f"{prefix}{word}"
    return f"${number}{prefix}" if word == "$" else f"{number}{'' if tail in ('%', '') else ' '}{tail}"


def _seconds(value: float, decimals: int | None) -> str:
    size = abs(value)
    for below, factor, word in (
        (1e-3, 1e6, "µs"),
        (1.0, 1e3, "ms"),
        (60.0, 1.0, "s"),
        (3600.0, 1 / 60, "mins"),
        (86400.0, 1 / 3600, "hours"),
    ):
        if size < below and (size > 0 or word == "s"):
            return f"{_digits(value * factor, decimals)} {word}"
    return f"{_digits(value / 86400, decimals)} days"


def _digits(value: float, decimals: int | None) -> str:
    if decimals is None:
        size = abs(value)
        decimals = 0 if size >= 100 or value == int(value) else 1 if size >= 10 else 2 if size >= 0.1 else 3
    shown = f"{value:.{decimals}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def ticks(low: float, high: float, count: int, base: float = 10.0) -> list[float]:
    """Return round values between two bounds for an axis."""
    if high <= low:
        return [low]
    rough = (high - low) / max(count, 1)
    power = base ** math.floor(math.log(rough, base))
    step = next((power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough), power * base)
    first = math.ceil(low / step - 1e-9)
    return [step * i for i in range(first, math.floor(high / step + 1e-9) + 1)]
