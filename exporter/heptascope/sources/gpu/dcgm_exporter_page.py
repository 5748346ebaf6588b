"""From a dcgm-exporter page to boards: values by uuid, MIG instances apart, and whose pod each is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal

from heptascope.sources.engine.page import GAUGE, Document, Page, PageReader
from heptascope.sources.gpu.dcgm_exporter_table import LABELS, MEANINGS, MODERN_FAMILY, MODERN_LABEL, Meaning, is_blank

Unit = Literal["auto", "ratio", "percent"]
_NUMBER = re.compile(r"\d{1,6}", re.ASCII)


@dataclass
class Part:
    """The values of a board or of an instance, in the units of rows; `torn` are keys of which the page has different values."""

    values: dict[str, float] = field(default_factory=dict)
    torn: set[str] = field(default_factory=set)
    blank: set[str] = field(default_factory=set)

    def put(self, key: str, value: float) -> None:
        """Take a value; a second series with another one makes both useless, as neither can be told to be the board's."""
        if key in self.values and self.values[key] != value:
            self.torn.add(key)
        self.values.setdefault(key, value)

    def take(self) -> dict[str, float]:
        """Return what can be used."""
        return {key: value for key, value in self.values.items() if key not in self.torn}


@dataclass
class Board(Part):
    """One GPU of a page."""

    index: int = 0
    uuid: str = ""
    host: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    instances: dict[str, Part] = field(default_factory=dict)
    profiles: dict[str, str] = field(default_factory=dict)
    pods: set[tuple[str, str, str]] = field(default_factory=set)  # namespace, pod, instance ("" for the board)


class ExporterReader:
    """Reads the pages of one dcgm-exporter."""

    def __init__(self, unit: Unit = "auto") -> None:
        """Take `unit` as what GPU_UTIL_RATIO is; auto: told from the exporter's generation."""
        self._reader = PageReader(dict.fromkeys(MEANINGS, GAUGE))
        self._unit = unit

    def read(self, document: Document) -> dict[str, Board]:
        """Return the boards by uuid (by host and index where the page has no uuid). Raises SourceError for what is no page."""
        document.check_metrics()
        page = self._reader.read(document.text, document.openmetrics)
        share = self._share(page)
        boards: dict[str, Board] = {}
        for family, rows in page.series.items():
            meaning = MEANINGS[family]
            for series, value in rows:
                _take(boards, meaning, _named(series.labels), value, share)
        return boards

    def _share(self, page: Page) -> float:
        """Return the factor of GPU_UTIL_RATIO to percent."""
        if self._unit != "auto":
            return 100.0 if self._unit == "ratio" else 1.0
        modern = MODERN_FAMILY in page.series or any(MODERN_LABEL in s.labels for rows in page.series.values() for s, _ in rows[:1])
        return 100.0 if modern else 1.0


def _take(boards: dict[str, Board], meaning: Meaning, told: dict[str, str], value: float, share: float) -> None:
    index = told.get("gpu", "")
    if not _NUMBER.fullmatch(index) or not _NUMBER.fullmatch(told.get("instance", "0")):  # a link, a switch, a CPU
        return
    uuid = told.get("uuid", "")
    host = told.get("host", "")
    board = boards.setdefault(uuid or f"{host}/{index}", Board(index=int(index), uuid=uuid, host=host))
    board.labels.update({name: text for name, text in told.items() if name in ("model", "driver", "pci_bus_id")})
    instance = told.get("instance", "")
    if told.get("pod"):
        board.pods.add((told.get("namespace", ""), told["pod"], instance))
    part: Part = board
    if instance:
        board.profiles[instance] = told.get("profile", "")
        mine = board.instances.setdefault(instance, Part())
        # a value that only the board has is repeated on each of its instances
        part = mine if meaning.of_instance else board
    if not isfinite(value) or is_blank(value, meaning.key):
        part.blank.add(meaning.key)
    elif meaning.key == "util_ratio":
        part.put("util_gpu", value * share)
    else:
        part.put(meaning.key, value * meaning.factor)


def _named(labels: Mapping[str, str]) -> dict[str, str]:
    """Return a series' labels under our names, whatever their spelling."""
    found = {}
    for name, spellings in LABELS.items():
        text = next((labels[s] for s in spellings if labels.get(s)), "")
        if text:
            found[name] = text
    return found
