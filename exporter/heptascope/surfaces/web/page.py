"""The page for people, complete as the server sends it; the script only keeps it fresh."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.resources import files
from string import Template

from fastapi import APIRouter, HTTPException, Request
from starlette.responses import HTMLResponse, Response

from heptascope import __version__
from heptascope.signals.snapshot import Snapshot
from heptascope.surfaces import views
from heptascope.surfaces.kept import Body
from heptascope.surfaces.web.html import main, text
from heptascope.surfaces.web.site import Site, answer

_TYPES = {"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"}


def page_routes(site: Site) -> APIRouter:
    """Return `/` and `/static/…`."""
    router = APIRouter(include_in_schema=False)
    folder = files("heptascope.surfaces.web") / "static"
    template = Template((folder / "page.html").read_text(encoding="utf-8"))
    assets = {name: Body((folder / name).read_bytes()) for name in _TYPES}

    @router.get("/", response_class=HTMLResponse)
    async def page(request: Request) -> Response:
        return site.kept(request, "page", lambda full: _page(site, full, template), "text/html; charset=utf-8")

    @router.get("/static/{name}")
    async def static(request: Request, name: str) -> Response:
        if name not in assets:
            raise HTTPException(404)
        return answer(request, assets[name], _TYPES[name])

    return router


def _page(site: Site, full: Snapshot, template: Template) -> bytes:
    verdict, now = site.state.verdict(), site.state.now()
    state = f"{verdict['state']} · " if verdict and "state" in verdict else ""
    filled = template.substitute(
        title=text(f"{state}heptascope"),
        updated=text(f"Updated {datetime.fromtimestamp(full.t, UTC):%H:%M:%S} UTC" if full.version else "Waiting for the first readings"),
        shape=views.shape(full),
        main=main(views.signals(full, site.state.window, now), views.sources(full, now), views.unavailable(full), verdict),
        version=text(__version__),
    )
    return filled.encode("utf-8", "replace")
