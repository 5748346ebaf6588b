"""The engine source: fetches the page of one engine, and asks for its version when it starts or has restarted."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from heptascope.errors import UserError
from heptascope.model import Reading, Reason
from heptascope.sources.base import SourceError
from heptascope.sources.engine.adapter import Adapter, Question, Told, adapters
from heptascope.sources.engine.answer import parsed
from heptascope.sources.engine.fetch import MAX_PAGE_BYTES, TIMEOUT_SECONDS, Fetched, Fetcher, split_credentials
from heptascope.sources.engine.names import PREFIX
from heptascope.sources.engine.page import Document
from heptascope.sources.engine.probe import ProbeReader, overlay
from heptascope.sources.engine.reader import AUTO, EngineReader

log = logging.getLogger(__name__)

VERSION_RETRY_SECONDS = 60.0
MAX_VERSION_LENGTH = 64
_MOST_QUESTIONS, _MOST_BESIDE = 3, 1
DRAIN_RETRY_SECONDS = 600.0
_draining: dict[str, float] = {}
"""Pages seen to hold TensorRT-LLM's iteration list, which a read takes from other readers, and when one may be looked at again."""

_PROGRESS = PREFIX + "generation_tokens_total"


def engine_name(kind: str, url: str, several: bool) -> str:
    """Return our name for an engine: its kind, with the port if there are several of that kind."""
    return f"{kind}-{port_of(url)}" if several else kind


def port_of(url: str) -> int:
    """Return the port that a URL leads to. Raises UserError if it is no HTTP URL."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    except (ValueError, KeyError):
        raise UserError("not a URL of an engine", where=url, hint="write http://host:port") from None
    if not parts.hostname:
        raise UserError("not a URL of an engine", where=url, hint="write http://host:port")
    return port


class EngineSource:
    """One engine. Reads are made by one thread; `timeout` is the time in seconds after which one counts as hung."""

    kind = "engine"

    def __init__(
        self,
        name: str | None,
        url: str,
        kind: str | Adapter = AUTO,
        interval: float = 1.0,
        timeout: float = TIMEOUT_SECONDS,
        max_page_bytes: int = MAX_PAGE_BYTES,
        settings: Mapping[str, float] | None = None,
        config: Mapping[str, str] | None = None,
        naming: Callable[[str], str] = str,
        fetch: Callable[[str], Fetched] | None = None,
        probe: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
        token_file: Path | None = None,
    ) -> None:
        """`url` is the engine's base or its page; `timeout` bounds one fetch, in seconds.

        `name`, `kind`, `settings`, `config` and `naming` are EngineReader's; without a name the source itself goes by its port.
        `fetch` replaces the HTTP client. `probe` is the folder of the in-engine probe. `token_file` holds what the engine asks for.

        Raises UserError for an unusable URL, kind or setting.
        """
        port = port_of(url)
        url, credentials = split_credentials(url)
        self.name = name or f"engine-{port}"
        self.reader = EngineReader(name, kind, settings, config, url, naming)
        self._base, self._urls = _pages(url, self.reader.adapter)
        self.interval, self.timeout = interval, timeout * (len(self._urls) + 1 + _MOST_QUESTIONS + _MOST_BESIDE) + 1.0
        self._fetcher = Fetcher(timeout, max_page_bytes, token_file=token_file, credentials=credentials)
        self._fetch = fetch or self._fetcher.get
        self._probe = ProbeReader(probe) if probe is not None else None
        self._clock = clock
        self._version = ""
        self._told = Told()
        self._ask_after = -math.inf
        self._beside_after: dict[str, float] = {}
        self._progress = 0.0

    @property
    def refused(self) -> int:
        """Impossible values seen since start."""
        return self.reader.refused

    def read(self, now: float) -> Reading:
        """Fetch and read the page; the reading's time is when the page was there. Raises SourceError."""
        began = self._clock()
        try:
            document, status = self._page()
            took = round(self._clock() - began, 6)
            if not self._version and self._clock() >= self._ask_after:
                self._ask(self.reader.detect(document, self._ask))
            beside = self._beside(self.reader.adapter)
            probed = self._probe.rows(now + took) if self._probe is not None else None
            reading = overlay(self.reader.read_document(document, now + took, self._version, self._told, beside), probed)
        except SourceError:
            self._forget_version()
            raise
        self._watch_progress(reading)
        row: dict[str, Any] = {"t": now, "dt": took, "status": status, "text": document.text}
        told = {key: value for key, value in asdict(self._told).items() if value}
        extra = {"content_type": document.content_type, "version": self._version, "told": told, "beside": beside, "probe": probed}
        return replace(reading, source=self.name, raw=row | {key: known for key, known in extra.items() if known})

    def close(self) -> None:
        """Close the connection."""
        self._fetcher.close()

    def _page(self) -> tuple[Document, int]:
        """Fetch the page; while it is not known where that is, try every place until an engine is recognised."""
        failures: list[SourceError] = []
        for url in self._urls:
            try:
                if self.reader.adapter is None and self._clock() < _draining.get(url, -math.inf):
                    raise _drains(url)
                fetched = self._fetch(url)
                document = Document(url, fetched.text, fetched.content_type)
                if document.text[:1] == "[" and self.reader.adapter is None:
                    _draining[url] = self._clock() + DRAIN_RETRY_SECONDS
                    raise _drains(url)
                if len(self._urls) > 1:
                    self.reader.detect(document, self._ask)
                    self._urls = (url,)
            except SourceError as error:
                failures.append(error)
            else:
                return document, fetched.status
        raise failures[0]

    def _ask(self, adapter: Adapter) -> str:
        """Ask the engine for its version; if it does not tell, not again for a while."""
        self._ask_after = self._clock() + VERSION_RETRY_SECONDS
        self._version = ""
        asked = [Question((adapter.version_path,), _version)] if adapter.version_path else []
        self._told = Told()
        for question in (*asked, *adapter.questions):
            self._told = self._told.also(self._answer(question))
        self._version = self._told.version[:MAX_VERSION_LENGTH]
        self._told = replace(self._told, version="")
        return self._version

    def _answer(self, question: Question) -> Told:
        for path in question.paths:
            try:
                return question.read(parsed(self._fetch(self._base + path).text))
            except (SourceError, ValueError, LookupError, TypeError, AttributeError):
                log.debug("%s%s tells nothing", self._base, path)
        return Told()

    def _beside(self, adapter: Adapter | None) -> dict[str, Any]:
        """Fetch what belongs to every page; a page that does not answer is left alone for a while."""
        found: dict[str, Any] = {}
        for path, read in adapter.beside if adapter is not None else ():
            if self._clock() < self._beside_after.get(path, -math.inf):
                continue
            try:
                found[path] = read(parsed(self._fetch(self._base + path).text))
            except (SourceError, ValueError, LookupError, TypeError, AttributeError):
                log.debug("%s%s tells nothing", self._base, path)
                self._beside_after[path] = self._clock() + VERSION_RETRY_SECONDS
        return found

    def _forget_version(self) -> None:
        self._version, self._told, self._ask_after = "", Told(), -math.inf

    def _watch_progress(self, reading: Reading) -> None:
        """Notice a restart between two reads, which may have brought another version."""
        progress = sum(s.value for s in reading.samples if s.name == _PROGRESS)
        if progress < self._progress:
            self._forget_version()
        self._progress = progress


def _drains(url: str) -> SourceError:
    text = f"{url}: iteration lists of trtllm-serve are not read unasked, since that takes them from other readers"
    return SourceError(Reason.FLAG_OFF, f"{text}; set return_perf_metrics: true there, or engines[].kind: trtllm-json here")


def _version(answer: Any) -> Told:
    return Told(version=str(answer["version"]))


def _pages(url: str, adapter: Adapter | None) -> tuple[str, tuple[str, ...]]:
    """Return the base URL of an engine and where its page may be; a URL with a path is the page itself."""
    parts = urlsplit(url)
    base = f"{parts.scheme}://{parts.netloc}"
    if parts.path not in ("", "/"):
        return base, (url,)
    known = [adapter] if adapter else list(adapters().values())
    return base, tuple(dict.fromkeys(base + path for one in known for path in one.paths))
