"""From a fetched page, or a recorded row of one, to a Reading: the code that live and replay share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from heptascope.errors import UserError
from heptascope.model import Reading, Reason
from heptascope.sources.base import SourceError
from heptascope.sources.engine.adapter import Adapter, Collector, Context, Session, Told, adapters
from heptascope.sources.engine.names import API_SERVERS, SETTINGS
from heptascope.sources.engine.page import Document
from heptascope.sources.engine.probe import overlay

AUTO = "auto"
AskVersion = Callable[[Adapter], str]
"""Asks the engine for its version; "" if it does not answer."""


def adapter_of(kind: str) -> Adapter | None:
    """Return the adapter of a configured kind, None for `auto`. Raises UserError for an unknown kind."""
    if kind == AUTO:
        return None
    known = adapters()
    if kind not in known:
        raise UserError(f"there is no engine kind {kind!r}", where="engines[].kind", hint=f"use one of {', '.join((AUTO, *known))}")
    return known[kind]


def recognise(document: Document, ask: AskVersion) -> Adapter:
    """Return the adapter whose page this is. Raises SourceError if it is none's.

    A page without an engine's own families is settled by asking for the version.
    """
    known = adapters().values()
    found = next((a for a in known if a.fingerprint(document)), None) or next((a for a in known if a.bare(document) and ask(a)), None)
    if found is None:
        document.check_metrics()
        text = f"{document.url}: no known engine's metrics on this page; check the port, or set engines[].kind ({', '.join(adapters())})"
        raise SourceError(Reason.NOT_SUPPORTED, text)
    return found


class EngineReader:
    """Reads the pages of one engine. `name` labels its series and names its readings."""

    def __init__(
        self,
        name: str | None = None,
        kind: str | Adapter = AUTO,
        settings: Mapping[str, float] | None = None,
        config: Mapping[str, str] | None = None,
        url: str = "recording",
        naming: Callable[[str], str] = str,
    ) -> None:
        """Without `name`, `naming` makes it from the kind once that is known.

        `url` is for messages; `kind` may be an adapter of the caller's own.
        `settings` are start settings by the keys of names.SETTINGS, `config` others as text. Raises UserError for unknown keys.
        """
        unknown = sorted(set(settings or {}) - {*SETTINGS, API_SERVERS})
        if unknown:
            raise UserError(f"there is no engine setting {unknown[0]!r}", hint=f"use one of {', '.join((*SETTINGS, API_SERVERS))}")
        self._adapter = adapter_of(kind) if isinstance(kind, str) else kind
        self._auto = kind == AUTO
        self._session: Session | None = None
        self._name, self._url, self._naming = name, url, naming
        self.settings: dict[str, float] = dict(settings or {})
        self.config: dict[str, str] = dict(config or {})
        self.refused = 0

    @property
    def kind(self) -> str | None:
        """The engine's kind, None until its first page was recognised."""
        return self._adapter.kind if self._adapter else None

    @property
    def adapter(self) -> Adapter | None:
        """The adapter, None until the first page was recognised."""
        return self._adapter

    @property
    def name(self) -> str:
        """The given name, else the one made from the kind."""
        return self._name or (self._naming(self.kind) if self.kind else "engine")

    def detect(self, document: Document, ask: AskVersion) -> Adapter:
        """Return the adapter, recognising the page if this is the first. Raises SourceError."""
        if self._adapter is None:
            self._adapter = recognise(document, ask)
        return self._adapter

    def read_page(
        self,
        text: str,
        content_type: str,
        t: float,
        version: str = "",
        told: Told | None = None,
        beside: Mapping[str, Any] | None = None,
    ) -> Reading:
        """Return what a page says; `version`, `told` and `beside` are what the engine states beside it. Raises SourceError."""
        return self.read_document(Document(self._url, text, content_type), t, version, told, beside)

    def read_document(
        self, document: Document, t: float, version: str = "", told: Told | None = None, beside: Mapping[str, Any] | None = None
    ) -> Reading:
        """Return what a page says. Raises SourceError if it is no whole page of a known engine."""
        told = told or Told()
        adapter = self.detect(document, lambda _adapter: version)
        self._session = self._session or adapter.open()
        out = Collector(self.name)
        try:
            settings, config = {**told.settings, **self.settings}, {**told.config, **self.config}
            context = Context(self.name, version or told.version, settings, config, told, beside or {})
            self._session.parse(document, context, out)
        except SourceError as error:
            if self._auto and error.reason is Reason.NOT_SUPPORTED:  # another engine took this one's place
                self._adapter = self._session = None
            raise
        self.refused += out.refused
        return out.reading(self.name, t)

    def read_row(self, row: Mapping[str, Any]) -> Reading:
        """Return the reading of a recorded row. Raises SourceError for a failed fetch, as it was raised live."""
        if "error" in row:
            raise SourceError(Reason.SOURCE_DOWN, str(row["error"]))
        t = row["t"] + row.get("dt", 0.0)  # as live: when the page was there
        told = Told(**row["told"]) if "told" in row else None
        page = self.read_page(row["text"], row.get("content_type", ""), t, row.get("version", ""), told, row.get("beside"))
        return overlay(page, row.get("probe"))
