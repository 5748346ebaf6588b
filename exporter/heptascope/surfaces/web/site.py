"""What the routes share: the state, and what was rendered from its newest snapshot."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from typing import Any

from prometheus_client.exposition import gzip_accepted
from starlette.requests import Request
from starlette.responses import Response

from heptascope.signals.snapshot import Snapshot
from heptascope.surfaces.compat import Compat
from heptascope.surfaces.exposition import Exposition, negotiate
from heptascope.surfaces.kept import Body, Kept
from heptascope.surfaces.own import own_values
from heptascope.surfaces.web.state import State


class Site:
    """Renders answers from the state. Used by the server's event loop alone."""

    def __init__(self, state: State, compat: Compat | None = None) -> None:
        """Show `state`; `compat` adds its families to `/metrics`."""
        self.state = state
        self._exposition = Exposition(compat)
        self._kept = Kept()

    def full(self) -> Snapshot:
        """Return the newest snapshot with heptascope's own series."""
        snapshot = self.state.snapshot()
        return snapshot.with_values(own_values(snapshot, self.state.now()))

    def metrics(self, request: Request) -> Response:
        """Return the exposition page that the request asks for."""
        chosen = negotiate(request.headers.get("accept", ""))
        names = request.query_params.getlist("name[]")
        body = self._exposition.page(self.state.snapshot(), self.state.now(), chosen, names)
        return answer(request, body, chosen.content_type)

    def json(self, request: Request, key: Hashable, make: Callable[[Snapshot], Any]) -> Response:
        """Return what `make` builds from the full snapshot, as JSON; kept under `key` until the next snapshot."""
        return self.kept(request, key, lambda full: json.dumps(make(full)).encode(), "application/json")

    def kept(self, request: Request, key: Hashable, make: Callable[[Snapshot], bytes], content_type: str) -> Response:
        """Return the bytes that `make` builds from the full snapshot; kept under `key` until the next snapshot."""
        full = self.full()
        body = self._kept.get((content_type, key), full.version, self.state.now(), lambda: Body(make(full)))
        return answer(request, body, content_type)


def answer(request: Request, body: Body, content_type: str, status: int = 200) -> Response:
    """Return a response, compressed if the client takes that."""
    zipped = gzip_accepted(request.headers.get("accept-encoding", ""))
    headers = {"content-type": content_type, "vary": "accept, accept-encoding", **({"content-encoding": "gzip"} if zipped else {})}
    return Response(body.gzipped if zipped else body.plain, status, headers)
