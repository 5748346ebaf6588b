"""`heptascope capture`: where the engine is told to write."""

from __future__ import annotations

import tempfile

import httpx
import pytest

from heptascope.errors import UserError
from heptascope.sources.trace.profiler import Engine
from heptascope.surfaces import capture_command
from support.engine_server import EngineServer


@pytest.mark.parametrize("seconds", [60.1, float("nan"), float("inf")])
def test_an_end_that_never_comes_is_refused(seconds: float) -> None:
    """Neither too long nor what is no number: a profiler that nobody stops would run on."""
    with pytest.raises(UserError, match="is too long; at most 60"):
        capture_command.wanted(None, seconds)


def test_without_a_folder_to_write_to_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container with a read-only root and no /tmp, one line says which flag helps."""

    def nowhere(prefix: str) -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "mkdtemp", nowhere)
    with EngineServer() as server, httpx.Client() as client:
        server.page('{"model_path": "llm"}', "/model_info", content_type="application/json")
        engine = Engine(server.url, client)
        with pytest.raises(UserError) as caught:
            capture_command._folder(engine)
    assert ("there is no folder for the trace here", server.url) == (caught.value.message, caught.value.where)
    assert "--trace-dir" in str(caught.value)
