"""The routes that the page is drawn from: the page as an object, its stream, charts, rules, findings, and what can be taken away."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from heptascope.model import Layer
from heptascope.surfaces.web import desk_models as models
from heptascope.surfaces.web.desk import Desk
from heptascope.surfaces.web.edge import HEAD
from heptascope.surfaces.web.models import Error
from heptascope.surfaces.web.site import Site
from heptascope.surfaces.web.stream import MOST_CLIENTS
from heptascope.surfaces.web.ticket import ticket

At = Annotated[
    float | None,
    Query(gt=0, allow_inf_nan=False, description="What was said at this time (Unix seconds, the last ten minutes) instead of now."),
]
Layers = Annotated[list[Layer], Query(description="Only rules of these layers; repeatable.")]
RuleName = Annotated[str, Query(description="A rule of the catalogue.")]

_NOTHING: dict[int | str, dict[str, Any]] = {"4XX": {"model": Error, "description": "A wrong time (400), or nothing was said then (404)."}}
_NO_RULE: dict[int | str, dict[str, Any]] = {"4XX": {"model": Error, "description": "No such rule (404), or a wrong parameter (400)."}}
_FULL: dict[int | str, dict[str, Any]] = {503: {"model": Error, "description": "Too many streams are open."}}


def desk_routes(site: Site, desk: Desk) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/api/v1", tags=["page"])

    @router.get("/page", response_model=models.Page, responses=_NOTHING, summary="The page as one object")
    async def page(at: At = None) -> Response:
        """Return what the page at `/` shows: verdicts, layers, claims, engines, GPUs, sources, the findings of the last ten minutes.

        There is no verdict in it where nothing is kept of the time asked for.
        """
        return _json(desk.page(at))

    @router.get("/stream", response_class=EventStream, responses=_FULL, summary="The page as it changes")
    async def stream(request: Request) -> Response:
        """Send server-sent events.

        `page` (once) is the object of `/api/v1/page`; `patch` what changed in it (JSON Merge Patch, RFC 7396); `points` the charts'
        values of one more second, as `{"t", "charts": {chart: {line: value}}}`; `beat` the age of the newest snapshot in seconds.
        """
        if request.scope.get(HEAD):
            return Response(media_type=EventStream.media_type)
        if desk.broadcaster.clients >= MOST_CLIENTS:
            raise HTTPException(503, f"{MOST_CLIENTS} streams are open; close one, or ask for /api/v1/page from time to time")
        return EventStream(desk.broadcaster.listen())

    @router.get("/charts", response_model=models.Charts, summary="The charts of the page")
    async def charts(request: Request) -> Response:
        """Return every line that the page draws: one value a second over ten minutes, null where there was none."""
        return site.json(request, "charts", lambda _: desk.charts())

    _add_rules(router, site, desk)
    _add_exports(router, desk)
    return router


def _add_rules(router: APIRouter, site: Site, desk: Desk) -> None:
    @router.get("/rules", response_model=models.Rules, responses=_NO_RULE, summary="The catalogue")
    async def rules(request: Request, layer: Layers = []) -> Response:  # noqa: B006  # FastAPI copies defaults
        """Return the rules with their PromQL, thresholds, next steps for every engine, edges, and runbook text."""
        return site.json(request, ("rules", tuple(layer)), lambda _: {"rules": desk.rules(layer)})

    @router.get("/findings", response_model=models.Findings, responses=_NO_RULE, summary="Every rule's state")
    async def findings(request: Request, layer: Layers = [], at: At = None) -> Response:  # noqa: B006  # FastAPI copies defaults
        """Return the state of every rule for every engine and GPU, the values that it looks at, and what it lacks.

        The list is empty where nothing is kept of the time asked for.
        """
        key = ("findings", tuple(layer), at)
        return site.json(request, key, lambda full: {"t": at or full.t, "findings": desk.findings(layer, at)})

    @router.get("/trends", response_model=models.Trends, responses=_NO_RULE, summary="The recent past of what a rule looks at")
    async def trends(request: Request, rule: RuleName) -> Response:
        """Return ten minutes of each of the rule's signals, with the thresholds; counters as rates, histograms as means of ten seconds."""
        found = desk.rule(rule)
        if found is None:
            raise HTTPException(404, f"there is no rule {rule[:100]!r}; /api/v1/rules lists them")
        return site.json(request, ("trends", rule), lambda _: desk.trends(found))


def _add_exports(router: APIRouter, desk: Desk) -> None:
    @router.get("/export/ticket", response_class=PlainTextResponse, responses=_NOTHING, summary="The verdict for a ticket")
    async def export_ticket() -> Response:
        """Return the verdict as Markdown: state, faults with evidence and next steps, limiter, what could not be judged."""
        verdict = desk.state.verdict()
        if verdict is None:
            raise HTTPException(404, "there is no verdict yet")
        return Response(ticket(verdict, desk.page()), media_type="text/markdown; charset=utf-8")

    @router.get("/export/recording", response_class=Tar, summary="The last ten minutes as a recording")
    def export_recording() -> Response:
        """Return a tar archive of one folder that `heptascope replay` reads: what the sources read in the last ten minutes."""
        now = desk.state.now()
        name = f"heptascope-{datetime.fromtimestamp(now, UTC):%Y%m%d-%H%M%SZ}.tar"
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Tar(desk.lookback.tar(desk.state.header(), now), headers=headers)


class EventStream(StreamingResponse):
    """Server-sent events."""

    media_type = "text/event-stream"


class Tar(Response):
    """A tar archive."""

    media_type = "application/x-tar"


def _json(content: Any) -> Response:
    return Response(json.dumps(content, separators=(",", ":")), media_type="application/json")
