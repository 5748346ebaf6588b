"""The page for people. Its script draws it; what the server renders into it is for browsers without scripts."""

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

_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_NOT_PRELOADED = ("app.js", "theme.js")


def page_routes(site: Site, *, demo: bool = False) -> APIRouter:
    """Return `/` and `/static/…`; in a `demo` the page shows its picker."""
    router = APIRouter(include_in_schema=False)
    folder = files("heptascope.surfaces.web") / "static"
    assets = {file.name: Body(file.read_bytes()) for file in folder.iterdir() if _suffix(file.name) in _TYPES}
    modules = sorted(name for name in assets if name.endswith(".js") and not name.startswith("words-") and name not in _NOT_PRELOADED)
    preload = "\n".join(f'<link rel="modulepreload" href="static/{name}">' for name in modules)
    text_of_page = (folder / "page.html").read_text(encoding="utf-8")
    template = Template(Template(text_of_page).safe_substitute(preload=preload, demo=" data-demo" if demo else ""))

    @router.get("/", response_class=HTMLResponse)
    async def page(request: Request) -> Response:
        return site.kept(request, "page", lambda full: _page(site, full, template), "text/html; charset=utf-8")

    @router.get("/static/{name}")
    async def static(request: Request, name: str) -> Response:
        if name not in assets:
            raise HTTPException(404)
        return answer(request, assets[name], _TYPES[_suffix(name)])

    return router


def _suffix(name: str) -> str:
    return name[name.rfind(".") :]


def _page(site: Site, full: Snapshot, template: Template) -> bytes:
    verdict, now = site.state.verdict(), site.state.now()
    state = f"{verdict['state']} · " if verdict and "state" in verdict else ""
    filled = template.substitute(
        title=text(f"{state}heptascope"),
        updated=text(f"Updated {datetime.fromtimestamp(full.t, UTC):%H:%M:%S} UTC" if full.version else "Waiting for the first readings"),
        main=main(views.signals(full, site.state.window, now), views.sources(full, now), views.unavailable(full), verdict),
        version=text(__version__),
    )
    return filled.encode("utf-8", "replace")
