"""Finding engines at well-known ports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from heptascope.sources.engine import discover as module
from heptascope.sources.engine.adapter import adapters
from heptascope.sources.engine.discover import Found, discover, discover_more, listening, well_known_ports
from support.engine_pages import VLLM_032, capture
from support.engine_server import EngineServer, hang


def test_engines_are_found_among_other_servers() -> None:
    """A real page is recognised; another exporter, a silent port, and a closed one are passed over."""
    with EngineServer() as vllm, EngineServer() as other, EngineServer() as silent:
        vllm.page(capture(VLLM_032, "idle_fresh"))
        other.page("# TYPE node_load1 gauge\nnode_load1 1\n")
        silent.answers["/metrics"] = hang
        with EngineServer() as gone:
            closed = gone.port
        ports = [closed, other.port, vllm.port, silent.port]
        assert [Found(vllm.url, "vllm")] == discover(ports, timeout=1.0)


def test_the_well_known_ports_are_those_of_all_engines() -> None:
    """Each adapter's usual ports are among them, none twice."""
    ports = well_known_ports()
    assert {8000, 30000, 8002, 8080, 23333, 3000, 80} <= set(ports)
    assert {port for adapter in adapters().values() for port in adapter.ports} <= set(ports)
    assert len(ports) == len(set(ports))


def test_no_ports_no_engines() -> None:
    """An empty list is allowed."""
    assert [] == discover([])


@contextmanager
def servers(count: int) -> Iterator[list[EngineServer]]:
    """Serve a real page at so many ports that follow one another."""
    while True:
        with ExitStack() as stack:
            found = [stack.enter_context(EngineServer())]
            try:
                found += [stack.enter_context(EngineServer(found[0].port + n)) for n in range(1, count)]
            except OSError:  # another program has one of them
                continue
            for server in found:
                server.page(capture(VLLM_032, "idle_fresh"))
            yield found
            return


def test_the_ports_that_follow_an_engine_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three ranks on three ports are found from the first; the next one that is free ends it."""
    with servers(3) as ranks:
        monkeypatch.setattr(module, "well_known_ports", lambda: (ranks[0].port,))
        assert [Found(rank.url, "vllm") for rank in ranks] == discover_more()
        assert [Found(ranks[2].url, "vllm")] == discover_more(known={ranks[0].port, ranks[1].port})
        assert [Found(ranks[0].url, "vllm")] == discover_more(without={ranks[1].port})
        assert [] == discover_more(known={rank.port for rank in ranks})


def test_only_what_listens_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A port where nothing listens gets no request; the one after the last is none."""
    with EngineServer() as server, EngineServer() as gone:
        closed = gone.port
        assert [server.port] == listening([server.port, 65536])
    asked: list[list[int]] = []
    monkeypatch.setattr(module, "well_known_ports", lambda: (closed,))
    monkeypatch.setattr(module, "discover", lambda ports: asked.append(ports) or [])
    assert [] == discover_more()
    assert [[]] == asked
