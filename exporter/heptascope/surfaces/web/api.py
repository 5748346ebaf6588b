"""The routes for machines: health, metrics, and the JSON API."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request
from starlette.responses import PlainTextResponse, Response

from heptascope.model import Layer
from heptascope.signals.schema import signal_of
from heptascope.signals.schema_row import Signal
from heptascope.surfaces import views
from heptascope.surfaces.web import models
from heptascope.surfaces.web.site import Site

Names = Annotated[list[str], Query(description="Only these signals, with or without values; repeatable.")]
Layers = Annotated[list[Layer], Query(description="Only signals of these layers; repeatable.")]
SignalName = Annotated[str, Query(description="A signal, or a series of a histogram.")]
Seconds = Annotated[float, Query(gt=0, le=3600, description="How far back; the history itself holds ten minutes by default.")]

_WRONG: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": models.Error, "description": "A wrong parameter (400) or an unknown signal (404)."}
}
_NONE_YET: dict[int | str, dict[str, Any]] = {404: {"model": models.Error, "description": "There is no verdict yet."}}
_NOT_NOW: dict[int | str, dict[str, Any]] = {503: {"model": models.Readiness, "description": "No snapshot yet."}}
_DEAD: dict[int | str, dict[str, Any]] = {503: {"model": models.Liveness, "description": "The pipeline's loop has ended or hangs."}}


def health_routes(site: Site) -> APIRouter:
    """Return `/metrics`, `/healthz` and `/readyz`."""
    router = APIRouter(tags=["operations"])

    @router.get("/metrics", response_class=PlainTextResponse, summary="All series for Prometheus")
    async def metrics(request: Request) -> Response:
        """Return text 0.0.4 or OpenMetrics 1.0 by Accept; `name[]` restricts the page to some series."""
        return site.metrics(request)

    @router.get("/healthz", response_model=models.Liveness, responses=_DEAD, summary="Liveness")
    async def healthz() -> Response:
        """Answer 200 while the pipeline's loop runs. Depends on no GPU and no engine, and needs no token."""
        alive = site.state.alive()
        return _json({"alive": alive}, 200 if alive else 503)

    @router.get("/readyz", response_model=models.Readiness, responses=_NOT_NOW, summary="Readiness")
    async def readyz() -> Response:
        """Answer 200 after the first snapshot; the body says which sources are up. Not meant for the readiness probe of a shared pod."""
        ready = site.state.ready()
        up = {source.name: {"up": source.up, "reason": source.reason} for source in site.state.snapshot().sources}
        return _json({"ready": ready, "sources": up}, 200 if ready else 503)

    return router


def api_routes(site: Site) -> APIRouter:
    """Return the routes below `/api/v1`."""
    router = APIRouter(prefix="/api/v1", tags=["signals"])

    @router.get("/signals", response_model=models.Signals, responses=_WRONG, summary="Current values")
    async def signals(request: Request, name: Names = [], layer: Layers = []) -> Response:  # noqa: B006  # FastAPI copies defaults
        """Return every signal that has values now, with texts for people. Signals without values stand in `/api/v1/unavailable`."""
        names = tuple(dict.fromkeys(_signal(one).name for one in name))
        layers = tuple(layer)
        window, now = site.state.window, site.state.now()
        return site.json(request, ("signals", names, layers), lambda full: views.signals(full, window, now, names, layers))

    @router.get("/sources", response_model=models.Sources, summary="Sources and their health")
    async def sources(request: Request) -> Response:
        """Return every source: whether it is up, how old its last good reading is, how long a read takes, why it is down."""
        now = site.state.now()
        return site.json(request, "sources", lambda full: views.sources(full, now))

    @router.get("/unavailable", response_model=models.Unavailable, summary="What cannot be had, and why")
    async def unavailable(request: Request) -> Response:
        """Return every signal that has no value on some engine or GPU, with the reason."""
        return site.json(request, "unavailable", views.unavailable)

    @router.get("/history", response_model=models.History, responses=_WRONG, summary="The recent past of one signal")
    async def history(request: Request, signal: SignalName, seconds: Seconds = 60.0) -> Response:
        """Return the points of every series of a signal, from the history in memory."""
        found, window, now = _signal(signal), site.state.window, site.state.now()
        return site.json(request, ("history", found.name, seconds), lambda _: views.past(window, found, now, seconds))

    @router.get("/verdict", response_model=models.Verdict, responses=_NONE_YET, summary="The verdict")
    async def verdict() -> Response:
        """Return the state, what bounds the engine, the faults with evidence and next steps, and what could not be judged."""
        found = site.state.verdict()
        if found is None:
            raise HTTPException(404, "there is no verdict yet; the first one comes with the first pass of the rules")
        return _json(found)

    return router


def _json(content: Any, status: int = 200) -> Response:
    return Response(json.dumps(content), status, media_type="application/json")


def _signal(name: str) -> Signal:
    found = signal_of(name)
    if found is None:
        raise HTTPException(404, f"there is no signal {name[:100]!r}; /api/v1/signals lists those with values, docs/metrics.md all")
    return found
