"""The fields of a panel: the series of its queries, each with its name and its options, overrides applied."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from heptascope.sources.prometheus_api import Series
from heptascope.surfaces.dashboards.board import Panel, Target
from support import dashboard_units as units

Json = Mapping[str, Any]
_REDUCE = {
    "lastNotNull": ("Last *", lambda values: values[-1]),
    "last": ("Last", lambda values: values[-1]),
    "firstNotNull": ("First *", lambda values: values[0]),
    "max": ("Max", max),
    "min": ("Min", min),
    "mean": ("Mean", lambda values: sum(values) / len(values)),
    "sum": ("Total", sum),
    "count": ("Count", len),
}


@dataclass(frozen=True)
class Field:
    """One series or column: its name, its options (flat, as in overrides: custom.lineWidth), its points."""

    name: str
    options: Json
    points: tuple[tuple[float, float], ...]
    index: int

    def __getitem__(self, key: str) -> Any:
        return self.options.get(key)

    @property
    def unit(self) -> str:
        """Grafana's unit."""
        return str(self["unit"] or "short")

    def text(self, value: float) -> str:
        """Return a value as it is shown: what a mapping makes of it, or the number with its unit."""
        mapped = self._mapped(value)
        return str(mapped["text"]) if mapped is not None and mapped.get("text") else units.text(value, self.unit, self["decimals"])

    def colour(self, value: float) -> str:
        """Return the colour of a value: a mapping's, a fixed one, that of the thresholds, or that of the series."""
        mapped = self._mapped(value)
        if mapped is not None and mapped.get("color"):
            return units.colour(mapped["color"])
        mode = (self["color"] or {}).get("mode", "thresholds")
        if mode == "fixed":
            return units.colour(self["color"].get("fixedColor", "text"))
        if mode.startswith("palette"):
            return units.PALETTE[self.index % len(units.PALETTE)]
        steps = (self["thresholds"] or {}).get("steps") or [{"color": "green"}]
        reached = [step for step in steps if step.get("value") is None or value >= step["value"]]
        return units.colour((reached or steps)[-1]["color"])

    @property
    def line_colour(self) -> str:
        """Return the colour of the series' line."""
        return self.colour(self.points[-1][1]) if self.points else "#888"

    def _mapped(self, value: float) -> Json | None:
        for mapping in self["mappings"] or ():
            options = mapping["options"]
            if mapping["type"] == "value" and (f"{value:g}" in options):
                return dict(options[f"{value:g}"])
            if mapping["type"] == "range":
                low, high = options.get("from"), options.get("to")
                if (low is None or value >= low) and (high is None or value <= high):
                    return dict(options["result"])
        return None


def reduced(calc: str, points: Iterable[tuple[float, float]]) -> tuple[str, float | None]:
    """Return the heading and the value of one of Grafana's calculations."""
    title, function = _REDUCE.get(calc, (calc, lambda values: values[-1]))
    values = [value for _, value in points if value == value]
    return title, float(function(values)) if values else None


def fields(panel: Panel, found: Iterable[tuple[Target, list[Series]]]) -> list[Field]:
    """Return the fields of a panel in the order of its queries; series of one query in the order of their names."""
    rows = [(target, name_of(target, one), one) for target, series in found for one in series]
    rows.sort(key=lambda row: (row[0].ref, row[1]))
    made = []
    for index, (target, name, one) in enumerate(rows):
        options = options_of(panel, name, target.ref)
        made.append(Field(_renamed(options, name, one.labels), options, one.points, index))
    return made


def options_of(panel: Panel, name: str, ref: str, kind: str = "number") -> dict[str, Any]:
    """Return the options of a field: the panel's defaults, then what overrides say."""
    config = panel.raw.get("fieldConfig", {})
    defaults = dict(config.get("defaults", {}))
    custom = defaults.pop("custom", {})
    options = {**defaults, **{f"custom.{key}": value for key, value in custom.items()}}
    for override in config.get("overrides", ()):
        if _matches(override["matcher"], name, ref, kind):
            options |= {one["id"]: one.get("value") for one in override["properties"]}
    return options


def _matches(matcher: Json, name: str, ref: str, kind: str) -> bool:
    what = matcher.get("options")
    if matcher["id"] == "byName":
        return bool(what == name)
    if matcher["id"] == "byFrameRefID":
        return bool(what == ref)
    if matcher["id"] == "byType":
        return bool(what == kind)
    if matcher["id"] == "byRegexp":
        return re.search(str(what).strip("/"), name) is not None
    raise AssertionError(f"the preview does not know the matcher {matcher['id']}")


def _renamed(options: Json, name: str, labels: Mapping[str, str]) -> str:
    given = options.get("displayName")
    return name if not given else re.sub(r"\$\{__field\.labels\.(\w+)\}", lambda found: labels.get(found[1], ""), given)


def name_of(target: Target, series: Series) -> str:
    """Return a series' name as the legend format makes it."""
    if target.legend and target.legend != "__auto":
        return " ".join(re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda found: series.labels.get(found[1], ""), target.legend).split())
    pairs = ", ".join(f'{key}="{value}"' for key, value in series.labels.items() if key != "__name__")
    return series.labels.get("__name__", "") + (f"{{{pairs}}}" if pairs else "") or target.expr
