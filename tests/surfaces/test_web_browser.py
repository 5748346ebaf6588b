"""The page in a real browser: what its script does."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from heptascope.signals.snapshot import Snapshot
from heptascope.surfaces.web.app import create_app
from heptascope.surfaces.web.server import WebServer
from support.prometheus import program
from support.snapshots import busy, failing
from support.web_state import MemoryState

BUDGET_MS = 7000  # of the browser's own time: the first answer and three more


class Changing(MemoryState):
    """A state whose snapshot is made anew at each look, from the number of the look."""

    def __init__(self, make: Callable[[int], Snapshot]) -> None:
        """Show what `make` returns for 1, 2, 3 and so on."""
        super().__init__(busy())
        self._make, self.looks = make, 0

    def snapshot(self) -> Snapshot:
        """Return the next snapshot."""
        self.looks += 1
        return replace(self._make(self.looks), version=self.looks)


@pytest.fixture
def browse(tmp_path: object) -> Iterator[Callable[[MemoryState], str]]:
    """Return a function that opens the page of a state and returns what the browser shows in the end."""
    servers: list[WebServer] = []

    def open_page(state: MemoryState) -> str:
        server = WebServer(create_app(state), "127.0.0.1", 0)
        servers.append(server)
        server.start()
        command = [program("chromium"), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile"]
        command += [f"--virtual-time-budget={BUDGET_MS}", "--dump-dom", server.url]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=90).stdout

    yield open_page
    for server in servers:
        server.stop()


def state_of(dom: str) -> str:
    """Return what the page says about its own freshness."""
    found = re.search(r'<p id="state" role="status">(.*?)</p>', dom)
    assert found is not None
    return found[1]


def test_numbers_are_renewed(browse: Callable[[MemoryState], str]) -> None:
    """The script puts the API's newest texts into the cells."""

    def power(look: int) -> Snapshot:
        whole = busy()
        pairs = whole.values["heptascope_gpu_power_watts"][0][0]
        return whole.with_values({"heptascope_gpu_power_watts": ((pairs, 100.0 + look),)})

    state = Changing(power)
    dom = browse(state)
    shown = re.search(r'data-k="heptascope_gpu_power_watts\{[^"]*" title="([^"]*)">([^<]*)<', dom)
    assert shown is not None
    assert f"{100 + state.looks} W" == shown[2]
    assert state.looks >= 3
    assert state_of(dom).startswith("Updated ")


def test_lost_series_change_the_page(browse: Callable[[MemoryState], str]) -> None:
    """When the engine is lost the page is built anew: its signals go, its source shows down."""
    dom = browse(Changing(lambda look: busy() if look < 3 else failing()))
    assert 1 == dom.count('class="n down"')
    assert "heptascope_engine_steps_total" not in dom
    assert state_of(dom).startswith("Updated ")


def test_a_stuck_pipeline_is_told(browse: Callable[[MemoryState], str]) -> None:
    """Readings that stand still are not shown as fresh."""
    state = MemoryState(busy())
    state.time += 60
    dom = browse(state)
    assert state_of(dom).startswith("Readings stand still since ")
    assert '<body class="stale">' in dom


def test_an_api_that_fails_is_told(browse: Callable[[MemoryState], str]) -> None:
    """The numbers stay and are marked as stale."""

    def break_down(look: int) -> Snapshot:
        if look > 2:
            raise OSError("gone")
        return busy()

    dom = browse(Changing(break_down))
    assert state_of(dom).startswith("Stale: heptascope answers 500; last update ")
    assert '<body class="stale">' in dom
