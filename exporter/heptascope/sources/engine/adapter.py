"""What an engine adapter is, what it is given, and where it puts what it found.

A new engine is one new file in this package: it defines an Adapter (mostly a table, see table.py) and registers it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import isfinite
from typing import Any, NamedTuple, Protocol, TypeVar

from heptascope.model import Histogram, Labels, Missing, Quality, Reading, Reason, Sample, labels
from heptascope.sources.engine.cmdline import CommandTable
from heptascope.sources.engine.names import OPTIONAL, PREFIX, SETTINGS, SIGNALS
from heptascope.sources.engine.page import Document


class Absence(NamedTuple):
    """Why a signal has no value."""

    reason: Reason
    detail: str = ""


@dataclass(frozen=True)
class Told:
    """What an engine's information pages say beside its version: model, start settings (keys of names.SETTINGS), others as text.

    `signals` holds values that are signals of their own, such as `kv_cache_capacity_tokens`.
    """

    version: str = ""
    model: str = ""
    settings: Mapping[str, float] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    signals: Mapping[str, float] = field(default_factory=dict)

    def also(self, other: Told) -> Told:
        """Return both; where they differ, this one holds."""
        return Told(
            self.version or other.version,
            self.model or other.model,
            {**other.settings, **self.settings},
            {**other.config, **self.config},
            {**other.signals, **self.signals},
        )


class Question(NamedTuple):
    """Something to ask an engine when it starts: the first of `paths` that answers JSON is read."""

    paths: tuple[str, ...]
    read: Callable[[Any], Told]


class Beside(NamedTuple):
    """A page in JSON that is fetched with every metrics page; a recording keeps only what `read` takes from it, which is small."""

    path: str
    read: Callable[[Any], Any]


@dataclass(frozen=True)
class Context:
    """What is known beside the page: what the engine said its version is, and its start settings (keys of names.SETTINGS).

    `beside` holds what was taken from the pages beside it, by their paths; one that did not answer is not there.
    """

    engine: str
    stated_version: str = ""
    settings: Mapping[str, float] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    told: Told = Told()
    beside: Mapping[str, Any] = field(default_factory=dict)


@lru_cache(maxsize=4096)
def _pairs(engine: str, rank: str, extra: tuple[tuple[str, str], ...]) -> Labels:
    return labels(engine=engine, rank=rank, **dict(extra))


class Collector:
    """Takes the findings of one page. Signal names are given without PREFIX."""

    def __init__(self, engine: str) -> None:
        """`engine` becomes the label of that name."""
        self.engine = engine
        self.samples: list[Sample] = []
        self.histograms: list[Histogram] = []
        self.quality: dict[tuple[str, Labels], Quality] = {}
        self.refused = 0
        self.given: set[str] = set()
        self._missing: dict[tuple[str, Labels], Missing] = {}

    def pairs(self, rank: str, extra: Mapping[str, str] | None = None) -> Labels:
        """Return the labels of a series of one rank."""
        return _pairs(self.engine, rank, tuple(extra.items()) if extra else ())

    def sample(self, signal: str, pairs: Labels, value: float, part: str = "") -> None:
        """Add one value; what is no number, or less than nothing, is refused, wherever it was computed."""
        if not isfinite(value) or value < 0:
            self.refuse(signal, f"it comes to {value:g}", dict(pairs).get("rank", ""))
            return
        self.given.add(signal)
        self.samples.append(Sample(PREFIX + signal, pairs, value, part=part))

    def histogram(self, signal: str, found: Histogram) -> None:
        """Add one histogram; its name is set here. One that holds what is no number is refused."""
        numbers = (*found.counts, found.sum)
        if not (isfinite(sum(numbers)) and min(numbers) >= 0):
            self.refuse(signal, "its sum or a bucket is no number", dict(found.labels).get("rank", ""))
            return
        self.given.add(signal)
        self.histograms.append(found._replace(name=PREFIX + signal))

    def mark(self, signal: str, rank: str, quality: Quality) -> None:
        """Say how the signal was obtained, unless it is exact."""
        if quality is not Quality.EXACT:
            self.quality[PREFIX + signal, self.pairs(rank)] = quality

    def lack(self, signal: str, absence: Absence, rank: str = "") -> None:
        """Say why a signal has no value, on one rank or (without `rank`) on the whole engine. The first reason stands.

        Optional signals need none.
        """
        if signal in OPTIONAL and absence.reason is not Reason.INVALID:
            return
        pairs = self.pairs(rank)
        self._missing.setdefault((signal, pairs), Missing(PREFIX + signal, *absence, pairs))

    def refuse(self, signal: str, detail: str, rank: str = "") -> None:
        """Count an impossible value and name it."""
        self.refused += 1
        self.lack(signal, Absence(Reason.INVALID, detail), rank)

    def settings(self, context: Context, ranks: Iterable[str]) -> None:
        """Add the start settings that were given by hand, command line or information page, where the metrics did not tell them."""
        ranks = tuple(ranks)
        for setting, signal in SETTINGS.items():
            if signal in self.given:
                continue
            if setting in context.settings:
                for rank in ranks:
                    self.sample(signal, self.pairs(rank), float(context.settings[setting]))
            else:
                self.lack(signal, Absence(Reason.ENGINE, f"not on the page; set engines[].settings.{setting}, or show the command line"))
        for setting, value in context.config.items():
            for rank in ranks:
                self.sample("config_info", self.pairs(rank, {"setting": setting, "value": value}), 1.0)

    def reading(self, source: str, t: float) -> Reading:
        """Return everything, with a reason for each signal that nobody spoke of."""
        spoken = self.given | {signal for signal, _ in self._missing}
        for signal in SIGNALS:
            if signal not in spoken:
                self.lack(signal, Absence(Reason.ENGINE, "this engine does not export it"))
        missing = [m for (signal, _), m in self._missing.items() if signal not in self.given or m.reason is Reason.INVALID]
        return Reading(source, t, self.samples, self.histograms, missing, self.quality)


class Session(Protocol):
    """The reader of one engine's pages; it may keep state between them."""

    def parse(self, document: Document, context: Context, out: Collector) -> None:
        """Put everything that the page holds into `out`. Raises SourceError if the page as a whole cannot be read."""
        ...


class Adapter(Protocol):
    """One kind of engine. `paths` come best first; `version_path` answers JSON with a `version` ("": none)."""

    @property
    def kind(self) -> str:
        """Its name."""
        ...

    @property
    def paths(self) -> tuple[str, ...]:
        """Where its page may be."""
        ...

    @property
    def ports(self) -> tuple[int, ...]:
        """Its usual ports."""
        ...

    @property
    def version_path(self) -> str:
        """Where it tells its version."""
        ...

    @property
    def questions(self) -> tuple[Question, ...]:
        """What it is asked when it starts."""
        ...

    @property
    def beside(self) -> tuple[Beside, ...]:
        """What is fetched with every page."""
        ...

    @property
    def command(self) -> CommandTable | None:
        """How its command line is read; None if it has none of its own."""
        ...

    def fingerprint(self, document: Document) -> bool:
        """Whether the page is surely this engine's."""
        ...

    def bare(self, document: Document) -> bool:
        """Whether the page may be this engine's with its own families switched off; its version page decides."""
        ...

    def open(self) -> Session:
        """Return a new session, for one engine."""
        ...


_A = TypeVar("_A", bound=Adapter)
_registry: dict[str, Adapter] = {}


def register(adapter: _A) -> _A:
    """Make an adapter known. Raises ValueError if its kind is taken."""
    if adapter.kind in _registry:
        raise ValueError(f"two adapters are named {adapter.kind}")
    _registry[adapter.kind] = adapter
    return adapter


def adapters() -> dict[str, Adapter]:
    """Return every adapter by kind, in alphabetical order; importing the package's modules registers them."""
    package = importlib.import_module(__package__ or "")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(sorted(_registry.items()))
