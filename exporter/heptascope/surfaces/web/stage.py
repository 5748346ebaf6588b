"""The picker of a demo: which recording plays, and what a right verdict says of it."""

from __future__ import annotations

from typing import Any, Protocol

from fastapi import APIRouter, HTTPException, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from heptascope.surfaces.web.models import Error
from heptascope.surfaces.web.state import State

PATH = "/api/v1/demo"
SETTLING = "settling"
"""The match while the rules' window is not yet full of what plays."""


class Stage(Protocol):
    """What plays recordings: the demo."""

    def playing(self) -> str:
        """Return the name of what plays now."""
        ...

    def labels(self) -> dict[str, dict[str, Any]]:
        """Return the label of every recording by name: `state`, `limiter`, `fault`, `why`; empty where there is none."""
        ...

    def match(self, verdict: Any) -> str:
        """Return how a verdict compares with the label of what plays; "" without a label, `SETTLING` soon after the change to it."""
        ...

    def play(self, name: str) -> None:
        """Play another recording. Raises KeyError if there is none of that name."""
        ...


class Scene(BaseModel):
    """One recording that can be played."""

    model_config = ConfigDict(extra="forbid")
    state: list[str] = Field(description="States that a right verdict may have.")
    limiter: list[str]
    fault: list[str]
    why: str


class Demo(BaseModel):
    """What plays, and what could."""

    model_config = ConfigDict(extra="forbid")
    playing: str
    match: str = Field(description="right, wrong-page, missed, cannot-tell, settling; empty without a label or a verdict.")
    scenarios: dict[str, Scene]


_BLANK: dict[str, Any] = {"state": [], "limiter": [], "fault": [], "why": ""}
_UNKNOWN: dict[int | str, dict[str, Any]] = {"4XX": {"model": Error, "description": "No such recording (404), or not asked as JSON (415)."}}


def stage_routes(state: State, stage: Stage) -> APIRouter:
    """Return the route of the picker."""
    router = APIRouter(tags=["demo"])

    @router.get(PATH, response_model=Demo, summary="What plays")
    async def demo() -> Response:
        """Return the recordings with their labels, which one plays, and whether the verdict agrees with its label."""
        return _answer(state, stage)

    @router.post(PATH, response_model=Demo, responses=_UNKNOWN, summary="Play another recording")
    async def play(request: Request, scenario: str = Query(description="The name of a recording.")) -> Response:
        """Play another recording. Pages of other origins cannot ask for that: the request must be of type application/json."""
        if request.headers.get("content-type", "") != "application/json":
            raise HTTPException(415, "send content-type: application/json")
        try:
            await run_in_threadpool(stage.play, scenario)
        except KeyError:
            raise HTTPException(404, f"there is no recording {scenario[:100]!r}") from None
        return _answer(state, stage)

    return router


def _answer(state: State, stage: Stage) -> Response:
    verdict = state.verdict()
    scenes = {name: {**_BLANK, **{k: v for k, v in label.items() if k in _BLANK}} for name, label in stage.labels().items()}
    return JSONResponse({"playing": stage.playing(), "match": "" if verdict is None else stage.match(verdict), "scenarios": scenes})
