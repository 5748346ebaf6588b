"""The host source on a fixture's files, and what its readings say."""

from __future__ import annotations

from heptascope.model import Reading, Reason
from heptascope.sources.host.source import HostSource
from support.procfs import FakeRoot

PROCESS = "heptascope_host_process_"


def source(fake: FakeRoot, *engines: tuple[str, int]) -> HostSource:
    """Return a source that watches `engines` on the fixture."""
    return HostSource(lambda: engines or (("vllm", 8000),), root=str(fake.root))


def values(reading: Reading, name: str, key: str = "process") -> dict[str, float]:
    """Return the values of one signal by one of its labels."""
    return {dict(s.labels).get(key, ""): s.value for s in reading.samples if s.name == name}


def infos(reading: Reading) -> dict[str, tuple[str, str, str]]:
    """Return engine, role and process name by pid."""
    found = [dict(s.labels) for s in reading.samples if s.name == PROCESS + "info"]
    return {p["pid"]: (p.get("engine", ""), p["role"], p["process"]) for p in found}


def reasons(reading: Reading) -> dict[str, Reason]:
    """Return the reason of each missing signal."""
    return {m.signal: m.reason for m in reading.missing}
