"""What the signal table and the rule files know: names, units, titles, meanings. Boards write none of these themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

from heptascope.rules.load import load
from heptascope.signals.schema import SCHEMA, signal_of
from heptascope.signals.schema_row import Kind, Signal
from heptascope.surfaces.alerts.render import rule_files
from heptascope.surfaces.alerts.settings import RenderSettings

METRIC: Final = re.compile(r"(?:[a-z_]+:)?heptascope_[a-z0-9_]+(?::[a-z0-9_]+)?")
"""Names of ours inside PromQL: a series of the exporter, or one that a recording rule makes (level:metric:operations)."""

UNITS: Final = {
    "": "short",
    "ratio": "percentunit",
    "seconds": "s",
    "bytes": "bytes",
    "watts": "watt",
    "joules": "joule",
    "hertz": "hertz",
    "celsius": "celsius",
    "tokens": "short",
}
"""Grafana's unit for each unit of the signal table."""

RATES: Final = {"": "count:/s", "seconds": "percentunit", "bytes": "Bps", "joules": "watt", "tokens": "count:tokens/s"}
"""Grafana's unit for the rate of a counter: seconds per second are a share of time, joules per second watts."""

_PER_SECOND: Final = (("_bytes_per_second", "Bps"), ("_flops_per_second", "flops"), ("_tokens_per_second", "count:tokens/s"))
_NAMED: Final = re.compile(r"^heptascope_(?:gpu_|engine_|host_|)")
_UNIT_SUFFIXES: Final = (
    "_total",
    "_ratio",
    "_seconds",
    "_bytes",
    "_watts",
    "_joules",
    "_hertz",
    "_celsius",
    "_tokens",
    "_bytes_per_second",
)
_SPELT: Final = {
    "sm": "SM",
    "kv": "KV",
    "gpu": "GPU",
    "cpu": "CPU",
    "dram": "DRAM",
    "pcie": "PCIe",
    "nvlink": "NVLink",
    "xid": "XID",
    "ecc": "ECC",
    "http": "HTTP",
    "e2e": "end-to-end",
    "spec": "speculative",
    "cgroup": "control group",
}


def signal(name: str) -> Signal:
    """Return the row of a series. Raises KeyError for a name that the signal table does not have."""
    row = signal_of(name)
    if row is None:
        raise KeyError(f"{name} is not in the signal table")
    return row


def title(name: str) -> str:
    """Return the title of a panel about one signal: its name in words, without prefix and unit."""
    words = _NAMED.sub("", signal(name).name)
    for suffix in _UNIT_SUFFIXES:
        words = words.removesuffix(suffix)
    text = " ".join(_SPELT.get(word, word) for word in words.split("_"))
    return text[0].upper() + text[1:]


def unit(name: str) -> str:
    """Return Grafana's unit for the values of a gauge or of a histogram's observations."""
    row = signal(name)
    return next((short for suffix, short in _PER_SECOND if name.endswith(suffix)), UNITS[row.unit])


def rate_unit(name: str) -> str:
    """Return Grafana's unit for the rate of a counter."""
    return RATES[signal(name).unit]


@cache
def recorded() -> frozenset[str]:
    """Return the names that the rule files record."""
    files = rule_files(load(), RenderSettings())
    return frozenset(rule.name for file in files for rule in file.recordings)


def metrics(expr: str) -> list[str]:
    """Return the series that an expression reads, each once."""
    return list(dict.fromkeys(METRIC.findall(expr)))


def check_names(expr: str) -> None:
    """Raise KeyError if an expression reads a series that neither the exporter nor a recording rule makes."""
    for name in metrics(expr):
        if ":" not in name:
            signal(name)
        elif name not in recorded():
            raise KeyError(f"{name} is recorded by no rule")


def meanings(exprs: Iterable[str]) -> Iterator[str]:
    """Yield one line for each signal behind the expressions: its name and what the signal table says about it."""
    seen = set()
    for name in (name for expr in exprs for name in metrics(expr)):
        if ":" in name:
            row_name, text = name, "Recorded by the rules in `alerts/rules`."
        else:
            row = signal(name)
            row_name, text = row.name, _ratio_of().get(row.name, row).help.replace("the last sampling window", "each step")
            if row.kind is Kind.INFO or row_name.endswith("_sampled_seconds_total"):
                continue
        if row_name not in seen:
            seen.add(row_name)
            yield f"`{row_name}`: {text}"


@cache
def _ratio_of() -> dict[str, Signal]:
    """Return, for each counter that integrates a ratio, the ratio: it says in fewer words what both mean."""
    return {row.integral: row for row in SCHEMA.values() if row.integral}


def has(name: str, label: str) -> bool:
    """Whether a signal has a label of its own."""
    return label in SCHEMA[signal(name).name].labels
