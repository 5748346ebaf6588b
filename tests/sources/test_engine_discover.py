"""Finding engines at well-known ports."""

from __future__ import annotations

from heptascope.sources.engine.adapter import adapters
from heptascope.sources.engine.discover import Found, discover, well_known_ports
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
