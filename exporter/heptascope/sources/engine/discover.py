"""Looks for engines at their well-known ports on this machine, and at the ports that follow an engine's.

Containers of a pod share one network, so that a sidecar finds there what its neighbours serve. No other port is tried: what listens on
them (collectives, key-value stores, gRPC) may take a request amiss.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from heptascope.sources.base import SourceError
from heptascope.sources.engine.adapter import adapters
from heptascope.sources.engine.fetch import Fetched
from heptascope.sources.engine.source import EngineSource, port_of

PROBE_TIMEOUT_SECONDS = 2.0
"""An overloaded engine takes a few tenths of a second to answer; ports where nothing listens refuse at once."""

CONNECT_TIMEOUT_SECONDS = 0.5
MOST_ENGINES = 64
"""More in one pod are not looked for: eight ranks on each of eight GPUs."""

WELL_KNOWN_PORTS = (8000, 30000, 8002, 8080, 23333, 3000, 80)
"""vLLM, trtllm-serve and Dynamo; SGLang; Triton; llama.cpp; LMDeploy; TGI by its launcher and in its container."""


class Found(NamedTuple):
    """An engine that answers."""

    url: str
    kind: str


def well_known_ports() -> tuple[int, ...]:
    """Return the ports above and those that adapters name, without repetition."""
    return tuple(dict.fromkeys((*WELL_KNOWN_PORTS, *(port for adapter in adapters().values() for port in adapter.ports))))


def discover(
    ports: Iterable[int] | None = None,
    host: str = "127.0.0.1",
    timeout: float = PROBE_TIMEOUT_SECONDS,
    fetch: Callable[[str], Fetched] | None = None,
) -> list[Found]:
    """Return the engines found at `ports` (by default the well-known ones) of `host`, in the order of the ports.

    Each port is asked for at most one page per place where an engine may have one; `timeout` bounds each fetch, in seconds.
    """
    urls = [f"http://{host}:{port}" for port in (well_known_ports() if ports is None else ports)]
    if not urls:
        return []
    with ThreadPoolExecutor(len(urls), thread_name_prefix="discover") as pool:
        kinds = list(pool.map(lambda url: _kind_at(url, timeout, fetch), urls))
    return [Found(url, kind) for url, kind in zip(urls, kinds, strict=True) if kind]


def discover_more(known: Collection[int] = (), without: Collection[int] = ()) -> list[Found]:
    """Return the engines at the well-known ports and at those that follow an engine's, but for the ports `known` and `without`.

    vLLM's `--data-parallel-multi-port-external-lb`, and what launches one server per rank, number the ports of the ranks onwards.
    """
    found: list[Found] = []
    tried = {*known, *without}
    while len(found) < MOST_ENGINES:
        follow = [port + 1 for port in (*known, *(port_of(engine.url) for engine in found))]
        ports = [port for port in dict.fromkeys((*well_known_ports(), *follow)) if port not in tried]
        tried |= {*ports}
        more = discover(listening(ports))
        if not more:
            break
        found += more
    return sorted(found, key=lambda engine: port_of(engine.url))


def listening(ports: Iterable[int], host: str = "127.0.0.1") -> list[int]:
    """Return those of `ports` where something accepts connections; nothing is sent."""
    return [port for port in ports if _accepts(host, port)]


def _accepts(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), CONNECT_TIMEOUT_SECONDS):
            return True
    except (OSError, OverflowError):  # the port after 65535 is none
        return False


def _kind_at(url: str, timeout: float, fetch: Callable[[str], Fetched] | None) -> str:
    """Return the kind of the engine at `url`, "" if there is none that is known."""
    source = EngineSource(None, url, timeout=timeout, fetch=fetch)
    try:
        source.read(0.0)
    except SourceError:
        return ""
    finally:
        source.close()
    return source.reader.kind or ""
