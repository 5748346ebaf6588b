"""The `/metrics` page: negotiated, rendered from memory, kept until the next snapshot.

The client library writes each line once. What it wrote is kept as a template per family, and later snapshots only fill in
the numbers: a page of 700 lines then costs a tenth of a full encoding, byte for byte the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, choose_encoder, generate_latest
from prometheus_client.registry import Collector

from heptascope.model import Labels
from heptascope.signals.schema import SCHEMA
from heptascope.signals.schema_row import Kind, Signal
from heptascope.signals.snapshot import Snapshot
from heptascope.surfaces.compat import Compat
from heptascope.surfaces.kept import Body, Kept
from heptascope.surfaces.own import own_values
from heptascope.surfaces.prometheus import family, number_text, restricted

Encoder = Callable[[Collector], bytes]

# What may be answered. Any other version or escaping that a client asks for gets the plain text format, which all read.
# Our names need no escaping, so the escaping schemes listed here give the same bytes.
_OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_PLAIN_1 = "text/plain; version=1.0.0; charset=utf-8"
_ANSWERS = frozenset(
    {_OPENMETRICS, CONTENT_TYPE_PLAIN_0_0_4}
    | {f"{kind}; escaping={escaping}" for kind in (_OPENMETRICS, _PLAIN_1) for escaping in ("underscores", "allow-utf-8")}
)
_EOF = "# EOF\n"
_RENDER_STAGE = (("stage", "render"),)
_STAGES = "heptascope_pass_duration_seconds"


class Format(NamedTuple):
    """One exposition format and its content type."""

    content_type: str
    encode: Encoder


def negotiate(accept: str) -> Format:
    """Return the format for an Accept header, as the client library chooses it; text 0.0.4 for what cannot be served."""
    try:
        encode, content_type = choose_encoder(accept)
    except TypeError:  # the library compares version parts as they come, and a word does not compare with a number
        return Format(CONTENT_TYPE_PLAIN_0_0_4, generate_latest)
    if content_type not in _ANSWERS:
        return Format(CONTENT_TYPE_PLAIN_0_0_4, generate_latest)
    return Format(content_type, encode)


class Exposition:
    """Renders snapshots as pages. Used from one thread.

    A page is kept until the next snapshot, and for one second at most, so that source ages are right to a second.
    """

    def __init__(self, compat: Compat | None = None) -> None:
        """Start with nothing rendered; `compat` adds the GPU signals under other names to whole pages."""
        self._compat = compat
        self._kept = Kept()
        self._writers: dict[str, _Writer] = {}
        self._render_seconds: float | None = None

    def page(self, snapshot: Snapshot, now: float, format: Format, names: Sequence[str] = ()) -> Body:
        """Return the page of `snapshot` at `now` (the snapshot's clock); `names` restricts it to these series."""
        if names:
            return Body(format.encode(restricted(self._complete(snapshot, now), names)))
        return self._kept.get(format.content_type, snapshot.version, now, lambda: self._render(snapshot, now, format))

    def _render(self, snapshot: Snapshot, now: float, format: Format) -> Body:
        begin = time.perf_counter()
        writer = self._writers.get(format.content_type)
        if writer is None:
            writer = self._writers[format.content_type] = _Writer(format)
        openmetrics = format.content_type.startswith(_OPENMETRICS)
        more = "" if self._compat is None else self._compat.text(snapshot, openmetrics)
        body = Body(writer.write(self._complete(snapshot, now), more))
        self._render_seconds = time.perf_counter() - begin
        return body

    def _complete(self, snapshot: Snapshot, now: float) -> Snapshot:
        full = snapshot.with_values(own_values(snapshot, now))
        if self._render_seconds is None:
            return full
        return full.with_values({_STAGES: (*full.values.get(_STAGES, ()), (_RENDER_STAGE, self._render_seconds))})


class _OneFamily(Collector):
    """A single family for an encoder."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterable[Metric]:
        return (self._metric,)


class _Template(NamedTuple):
    """The lines of one family without their numbers; good while the family has the same series (`shape`)."""

    shape: Hashable
    head: str
    lines: list[str]


class _Writer:
    """Writes pages of one format."""

    def __init__(self, format: Format) -> None:
        self._encode = format.encode
        self._templates: dict[str, _Template] = {}
        self._tail = _EOF if format.content_type.startswith(_OPENMETRICS) else ""

    def write(self, snapshot: Snapshot, more: str = "") -> bytes:
        parts: list[str] = []
        for name, signal in SCHEMA.items():
            shape = _shape(signal, snapshot)
            if not shape:
                continue
            template = self._templates.get(name)
            if template is None or template.shape != shape:
                template = self._templates[name] = self._template(signal, snapshot, shape)
            parts.append(template.head)
            parts += [f"{line}{number_text(value)}\n" for line, value in zip(template.lines, _numbers(signal, snapshot), strict=True)]
        parts += (more, self._tail)
        return "".join(parts).encode()

    def _template(self, signal: Signal, snapshot: Snapshot, shape: Hashable) -> _Template:
        written = self._encode(_OneFamily(family(signal, snapshot))).decode().removesuffix(_EOF).rstrip("\n").split("\n")
        head = "".join(f"{line}\n" for line in written if line.startswith("#"))
        return _Template(shape, head, [line.rpartition(" ")[0] + " " for line in written if not line.startswith("#")])


def _shape(signal: Signal, snapshot: Snapshot) -> tuple[Labels | tuple[Labels, tuple[float, ...]], ...]:
    if signal.kind is Kind.HISTOGRAM:
        return tuple((histogram.labels, histogram.bounds) for histogram in snapshot.histograms.get(signal.name, ()))
    return tuple(pairs for pairs, _ in snapshot.values.get(signal.name, ()))


def _numbers(signal: Signal, snapshot: Snapshot) -> Iterator[float]:
    if signal.kind is not Kind.HISTOGRAM:
        yield from (value for _, value in snapshot.values[signal.name])
        return
    for histogram in snapshot.histograms[signal.name]:
        yield from histogram.counts
        yield histogram.counts[-1]
        yield histogram.sum
