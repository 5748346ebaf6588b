"""The FastAPI app: routes, one shape of error, and the edge that guards it all."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from heptascope import __version__
from heptascope.config import WebSettings
from heptascope.surfaces.compat import DCGM_EXPORTER, Compat
from heptascope.surfaces.web.api import api_routes, health_routes
from heptascope.surfaces.web.desk import Desk
from heptascope.surfaces.web.desk_api import desk_routes
from heptascope.surfaces.web.edge import Edge, error_body
from heptascope.surfaces.web.page import page_routes
from heptascope.surfaces.web.site import Site
from heptascope.surfaces.web.stage import PATH as STAGE_PATH
from heptascope.surfaces.web.stage import Stage, stage_routes
from heptascope.surfaces.web.state import State
from heptascope.surfaces.web.token import read_token

DESCRIPTION = """\
heptascope tells which of seven layers an LLM server waits on.

All answers come from one snapshot in memory, taken once a second. A value that cannot be had is absent and listed under
`/api/v1/unavailable` with its reason; it is never 0. Errors have the shape `{"error": "…"}`. Only GET and HEAD are served,
but for the picker of `heptascope demo`.
If a token is configured, every path but `/healthz` needs it, as a bearer token or as the password of basic authentication.
"""


def create_app(state: State, settings: WebSettings | None = None, stage: Stage | None = None) -> FastAPI:
    """Return the app that shows `state`; `stage` is what plays recordings. Raises UserError if the configured token cannot be read."""
    app = FastAPI(
        title="heptascope",
        version=__version__,
        description=DESCRIPTION,
        openapi_url="/api/openapi.json",
        docs_url=None,  # the interactive pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )
    settings = settings or WebSettings()
    site = Site(state, Compat() if settings.compat == DCGM_EXPORTER else None)
    routers = [health_routes(site), api_routes(site), desk_routes(site, Desk(site)), page_routes(site, demo=stage is not None)]
    for router in (*routers, *([stage_routes(state, stage)] if stage is not None else [])):
        app.include_router(router)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _bad_request)
    app.add_exception_handler(Exception, _bug)
    app.add_middleware(Edge, token=read_token(settings), posts=(STAGE_PATH,) if stage is not None else ())
    return app


async def _http_error(request: Request, exc: Exception) -> Response:  # noqa: ARG001  # the framework's signature
    assert isinstance(exc, HTTPException)  # noqa: S101  # registered for this type
    text = "there is nothing here; try /, /metrics or /api/openapi.json" if exc.detail == "Not Found" else str(exc.detail)
    return _error(exc.status_code, text)


async def _bad_request(request: Request, exc: Exception) -> Response:  # noqa: ARG001  # the framework's signature
    assert isinstance(exc, RequestValidationError)  # noqa: S101  # registered for this type
    first = exc.errors()[0]
    return _error(400, f"{first['loc'][1] if len(first['loc']) > 1 else 'request'}: {first['msg']}")


async def _bug(request: Request, exc: Exception) -> Response:  # noqa: ARG001  # the framework's signature
    """Answer an unexpected error; the server writes the traceback to the log, never to the client."""
    return _error(500, "heptascope made a mistake; its log says which")


def _error(status: int, text: str) -> Response:
    return Response(error_body(text), status, media_type="application/json")
