"""Numbers for people: base units in, short text out (`1.5 GiB`, `8.03 ms`, `52.1 %`).

Memory sizes are binary (GiB, as nvidia-smi shows them); rates of bytes are decimal (GB/s, as datasheets give them).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_SI = ("", "k", "M", "G", "T", "P", "E")
# (from this many seconds on, seconds per unit, unit)
_TIME = ((172_800.0, 86_400.0, "d"), (7_200.0, 3_600.0, "h"), (120.0, 60.0, "min"), (1.0, 1.0, "s"), (1e-3, 1e-3, "ms"), (0.0, 1e-6, "µs"))
_PER_SECOND = (("_bytes_per_second", "B/s"), ("_flops_per_second", "FLOP/s"), ("_tokens_per_second", "tokens/s"))
_SI_UNITS = {"watts": "W", "joules": "J", "hertz": "Hz", "B/s": "B/s", "FLOP/s": "FLOP/s"}
_EXACT_BELOW = 1e7  # counts up to here are written out in full


def unit_of(name: str, unit: str) -> str:
    """Return the unit that the text of a signal needs: the table's, or the one inside a `…_per_second` name."""
    if unit:
        return unit
    return next((short for suffix, short in _PER_SECOND if name.endswith(suffix)), "")


def text(value: float, unit: str) -> str:
    """Return `value`, given in the base unit `unit`, as short text with its unit; counts have none."""
    if not math.isfinite(value):
        return str(value)
    if unit == "ratio":
        return f"{significant(value * 100)} %"
    if unit == "seconds":
        return _duration(value)
    if unit == "bytes":
        return _scaled(value, 1024.0, _BINARY, "")
    if unit == "celsius":
        return f"{significant(value)} °C"
    if unit in _SI_UNITS:
        return _scaled(value, 1000.0, _SI, _SI_UNITS[unit])
    return f"{_count(value)} {unit}" if unit else _count(value)


def rate_text(per_second: float, unit: str) -> str:
    """Return the rate of a counter as short text; seconds per second are a share of time, joules per second watts."""
    if unit == "seconds":
        return text(per_second, "ratio")
    if unit == "joules":
        return text(per_second, "watts")
    if unit == "bytes":
        return text(per_second, "B/s")
    return f"{_count(per_second)} {unit}/s" if unit else f"{_count(per_second)}/s"


def significant(value: float) -> str:
    """Return `value` with three significant digits at most, without trailing zeros, never in exponent form."""
    size = abs(value)
    if size >= 100 or size == 0:
        return f"{value:.0f}"
    if size < 0.01:
        return "<0.01" if value > 0 else ">-0.01"
    digits = 1 if size >= 10 else 2
    return f"{value:.{digits}f}".rstrip("0").rstrip(".")


def _duration(value: float) -> str:
    if value == 0:
        return "0 s"
    _, size, unit = next(row for row in _TIME if abs(value) >= row[0])
    return f"{significant(value / size)} {unit}"


def _scaled(value: float, base: float, prefixes: Sequence[str], unit: str) -> str:
    power = 0
    while abs(value) >= base and power < len(prefixes) - 1:
        value, power = value / base, power + 1
    return f"{significant(value)} {prefixes[power]}{unit}"


def _count(value: float) -> str:
    if abs(value) >= _EXACT_BELOW:
        return _scaled(value, 1000.0, _SI, "").strip()
    if abs(value) >= 1000 or value == int(value):
        return f"{value:,.0f}"
    return significant(value)
