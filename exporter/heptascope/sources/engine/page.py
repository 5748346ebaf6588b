"""Reads a metrics page: only the wanted families, and each series' name and labels only once.

Between two pages of one engine only the values change. The client library's parser, which takes about 15 us a line, therefore sees
each series when it first appears; from then on the text before the value leads to what the parser made of it. And where a whole page
has the lines of the page before it, nothing but the values is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from prometheus_client.parser import text_string_to_metric_families

from heptascope.model import Reason
from heptascope.sources.base import SourceError

COUNTER = ("", "_total")
GAUGE = ("",)
HISTOGRAM = ("_bucket", "_sum", "_count")
SUMMARY = ("", "_sum", "_count")
TOTALS = ("_sum", "_count")
"""The sample suffixes of a family that a reader may want; TOTALS leaves a histogram's buckets out."""

MAX_KNOWN_SERIES = 50_000
_MOST_LINES = 20_000  # of a longer page the lines are not remembered: an engine's has some 1,000
_EXEMPLAR = re.compile(r" # \{[^{}]*\} \S+( \S+)?$")
_NAME_END = re.compile(r"[{ \t]")


def family_key(name: str) -> str:
    """Return `name` with `:` as `_`: wrappers such as Ray's metrics classes rename `vllm:x` to `vllm_x`."""
    return name.replace(":", "_")


@dataclass(frozen=True)
class Document:
    """One fetched page, before anything is known about it."""

    url: str
    text: str
    content_type: str = ""

    @property
    def openmetrics(self) -> bool:
        """Whether the page says that it is OpenMetrics."""
        return self.content_type.startswith("application/openmetrics-text")

    @property
    def json(self) -> bool:
        """Whether this is JSON, whatever the server calls it."""
        return "json" in self.content_type or self.text[:1] in ('"', "{", "[")

    @cached_property
    def names(self) -> frozenset[str]:
        """The keys of all families that the page declares."""
        return frozenset(family_key(m) for m in re.findall(r"^# TYPE (\S+) ", self.text, re.MULTILINE))

    def check_metrics(self) -> None:
        """Raise SourceError unless this is a whole page of metrics in text form."""
        if self.json:
            raise SourceError(Reason.INVALID, f"{self.url}: this is JSON, not a metrics page; check the path")
        if self.text.lstrip()[:1] == "<":
            raise SourceError(Reason.INVALID, f"{self.url}: this is HTML, not a metrics page; check the port and the path")
        if not self.text.strip():
            raise SourceError(Reason.INVALID, f"{self.url}: the page is empty; check that the engine's metrics are switched on")
        whole = self.text.rstrip().endswith("# EOF") if self.openmetrics else self.text.endswith("\n")
        if not whole:
            raise SourceError(Reason.INVALID, f"{self.url}: incomplete page: it ends in the middle; it is read again")


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """What stays the same about one sample: `suffix` is what its name adds to the family's."""

    family: str
    suffix: str
    labels: Mapping[str, str]


@dataclass(slots=True)
class Page:
    """The wanted part of one page. `refused` holds (family, line) of lines that cannot be read."""

    names: set[str] = field(default_factory=set)
    types: dict[str, str] = field(default_factory=dict)
    helps: dict[str, str] = field(default_factory=dict)
    series: dict[str, list[tuple[Series, float]]] = field(default_factory=dict)
    refused: list[tuple[str, str]] = field(default_factory=list)
    distinct: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def label_values(self, label: str) -> tuple[str, ...]:
        """Return the values that a label has on the page, in order, without the empty one."""
        found = self.distinct.get(label)
        if found is None:
            values = {series.labels.get(label, "") for rows in self.series.values() for series, _ in rows}
            found = self.distinct[label] = tuple(sorted(values - {""}))
        return found

    def of(self, family: str) -> list[tuple[Series, float]]:
        """Return the samples of one family, none if it is absent."""
        return self.series.get(family, [])

    def lines(self, family: str) -> list[str]:
        """Return the refused lines of one family."""
        return [line for name, line in self.refused if name == family]


Part = tuple[str, str, str]
"""A line, cut at its last blank: what stands before the value, the blank, the value."""


class _Layout:
    """The lines of a page whose every series is known: where the next page has the same ones, only its values have to be read."""

    def __init__(self, parts: Sequence[Part], known: Mapping[str, Series], page: Page) -> None:
        self._page = page
        self._heads = [head for head, _, _ in parts]
        self._comments = [i for i, (head, _, _) in enumerate(parts) if head.startswith("#")]
        self._words = [parts[i][2] for i in self._comments]
        self._at: dict[str, list[int]] = {}
        for i, head in enumerate(self._heads):
            if head in known:
                self._at.setdefault(known[head].family, []).append(i)
        self._series = {family: [known[self._heads[i]] for i in at] for family, at in self._at.items()}

    def read(self, parts: Sequence[Part]) -> Page | None:
        """Return the page if its lines are these and every value is a number, else None."""
        if [head for head, _, _ in parts] != self._heads or [parts[i][2] for i in self._comments] != self._words:
            return None
        series: dict[str, list[tuple[Series, float]]] = {}
        for family, at in self._at.items():
            texts = [parts[i][2] for i in at]
            try:
                values = list(map(float, texts))
            except ValueError:
                return None
            if "_" in "".join(texts):
                return None
            series[family] = list(zip(self._series[family], values, strict=True))
        page = self._page
        return Page(page.names, page.types, page.helps, series, distinct=page.distinct)


class PageReader:
    """Reads the pages of one engine."""

    def __init__(self, wanted: Mapping[str, tuple[str, ...]]) -> None:
        """`wanted` maps family keys to the suffixes that are read: COUNTER, GAUGE, HISTOGRAM or TOTALS."""
        self._samples = {key + suffix: (key, suffix) for key, suffixes in wanted.items() for suffix in suffixes}
        self._declared = {key: key for key in wanted} | {key + "_total": key for key, suffixes in wanted.items() if suffixes == COUNTER}
        self._known: dict[str, Series] = {}
        self._unwanted: set[str] = set()
        self._layout: _Layout | None = None

    def read(self, text: str, openmetrics: bool = False) -> Page:
        """Return the wanted families of a page. Lines that cannot be read are kept in `refused`, never raised."""
        lines = text.split("\n")
        if openmetrics or len(lines) > _MOST_LINES:
            self._layout = None
            return self._read((line.rpartition(" ") for line in lines), openmetrics)[0]
        parts = [line.rpartition(" ") for line in lines]
        page = self._layout.read(parts) if self._layout is not None else None
        if page is None:
            page, steady = self._read(parts, openmetrics)
            self._layout = _Layout(parts, self._known, page) if steady else None
        return page

    def _read(self, parts: Iterable[Part], openmetrics: bool) -> tuple[Page, bool]:
        """Return the page, and whether every series on it is known from now on."""
        page, steady = Page(), True
        known = self._known
        for head, blank, tail in parts:
            if (head or tail).startswith("#"):
                self._comment(f"{head}{blank}{tail}", page)
            elif openmetrics and " # " in head:
                self._sample(*_EXEMPLAR.sub("", f"{head}{blank}{tail}").rpartition(" "), page)
            else:
                self._sample(head, blank, tail, page)
                steady = steady and (head in known or head.partition("{")[0] in self._unwanted or not (head or tail))
        return page, steady and not page.refused

    def _sample(self, head: str, blank: str, tail: str, page: Page) -> None:
        series = self._known.get(head)
        if series is None:
            if head.partition("{")[0] not in self._unwanted:
                self._learn(f"{head}{blank}{tail}", head, tail, page)
            return
        value = _number(tail)
        if value is None:
            page.refused.append((series.family, f"{head}{blank}{tail}"))
        else:
            page.series.setdefault(series.family, []).append((series, value))

    def _comment(self, line: str, page: Page) -> None:
        if line.startswith("# TYPE "):
            name, _, kind = line[7:].partition(" ")
            key = family_key(name)
            page.names.add(key)
            if key in self._declared:
                page.types[self._declared[key]] = kind.strip()
        elif line.startswith("# HELP "):
            name, _, text = line[7:].partition(" ")
            family = self._declared.get(family_key(name))
            if family is not None:
                page.helps[family] = text

    def _learn(self, line: str, head: str, tail: str, page: Page) -> None:
        """Let the library parse a line that was not seen before, and remember it."""
        name = _NAME_END.split(line.lstrip(), maxsplit=1)[0]
        found = self._samples.get(family_key(name))
        if found is None:
            if len(self._unwanted) < MAX_KNOWN_SERIES and name:
                self._unwanted.add(name)
            return
        family, suffix = found
        try:
            sample = next(iter(text_string_to_metric_families(line + "\n"))).samples[0]
        except (ValueError, IndexError, StopIteration):
            page.refused.append((family, line))
            return
        series = Series(family, suffix, sample.labels)
        page.series.setdefault(family, []).append((series, float(sample.value)))
        if _number(tail) is not None and sample.timestamp is None and (head.endswith("}") or head == name):
            if len(self._known) >= MAX_KNOWN_SERIES:
                self._known.clear()
            self._known[head] = series


def _number(text: str) -> float | None:
    """Return the value of a sample, or None; unlike float(), no underscores."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None
