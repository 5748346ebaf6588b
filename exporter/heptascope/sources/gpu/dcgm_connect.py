"""Where a DCGM host engine may be, whether one answers there, and the connection to it."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heptascope.model import Reason
from heptascope.sources.base import SourceError
from heptascope.sources.gpu.dcgm_bindings import Bindings
from heptascope.sources.gpu.dcgm_codes import FUNCTION_NOT_FOUND, DcgmCallError, meaning

DEFAULT_PORT = 5555
DEFAULT_SOCKET = Path("/tmp/nv-hostengine")  # noqa: S108  # where `nv-hostengine -d` listens, not a file of ours
PROBE_SECONDS = 1.0
CONNECT_MILLISECONDS = 3000
_PORT = re.compile(r"\d{1,9}", re.ASCII)
_AUTOMATIC = 1  # DCGM_OPERATION_MODE_AUTO: the engine's own threads update the values


@dataclass(frozen=True)
class DcgmOptions:
    """How DCGM is reached: `address` (host:port) or `socket`; neither: the engine's defaults on this machine.

    `embedded` starts an engine inside this process where no host engine answers. `profiling` switches the profiling fields.
    """

    address: str = ""
    socket: Path | None = None
    bindings: Path | None = None
    embedded: bool = False
    profiling: bool = True


@dataclass(frozen=True)
class Target:
    """One place where a host engine may listen: a unix socket, or host and port. Neither: embedded."""

    host: str = ""
    port: int = 0
    path: str = ""

    def __str__(self) -> str:
        """Return it as people write it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.path or (f"{host}:{self.port}" if host else "embedded")


def targets(options: DcgmOptions) -> list[Target]:
    """Return where to look, best first; before an embedded engine also where one would disturb the node's own. Raises SourceError."""
    usual = [Target("127.0.0.1", DEFAULT_PORT), *([Target(path=str(DEFAULT_SOCKET))] if DEFAULT_SOCKET.exists() else [])]
    configured = [Target(path=str(options.socket))] if options.socket is not None else [_parsed(options.address)] if options.address else []
    return [*configured, *usual] if options.embedded else configured or usual


def choose(options: DcgmOptions) -> Target:
    """Return the target to use: the first that answers, or embedded if that was asked for and none does. Raises SourceError."""
    refusals = []
    for target in targets(options):
        refusal = refused(target)
        if not refusal:
            return target
        refusals.append(f"{target}: {refusal}")
    if options.embedded:
        return Target()
    remedy = "start nvidia-dcgm there, or set gpu.dcgm.address or gpu.dcgm.socket"
    raise SourceError(Reason.NO_SOURCE, f"DCGM: no host engine at {', '.join(refusals)}; {remedy}")


def refused(target: Target) -> str:
    """Return why nothing listens at `target`; empty if something does. A plain connection, opened and closed again."""
    family = socket.AF_UNIX if target.path else socket.AF_INET
    try:
        if family == socket.AF_UNIX:
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.settimeout(PROBE_SECONDS)
                probe.connect(target.path)
        else:
            socket.create_connection((target.host, target.port), PROBE_SECONDS).close()
    except OSError as exc:
        return exc.strerror or str(exc) or type(exc).__name__
    except UnicodeError:  # the name has an empty part, or one that is too long
        return "no name of a host"
    return ""


def connect(bindings: Bindings, target: Target) -> Any:
    """Return a handle. Raises DcgmCallError. The engine drops our watches and groups when the connection ends."""
    agent, structs = bindings.agent, bindings.structs
    try:
        if not target.path and not target.host:
            return agent.dcgmStartEmbedded(_AUTOMATIC)
        try:
            return _connect_by_uri(agent, structs, target)
        except structs.DCGMError as exc:
            if exc.value != FUNCTION_NOT_FOUND:
                raise
            return _connect_by_address(agent, structs, target)
    except structs.DCGMError as exc:
        raise DcgmCallError(exc.value, f"{target}: {meaning(exc.value).text}") from exc


def disconnect(bindings: Bindings, target: Target, handle: Any) -> None:
    """End the connection, or the embedded engine. Raises nothing: there is nothing left to do about an error."""
    try:
        if target.path or target.host:
            bindings.agent.dcgmDisconnect(handle)
        else:
            bindings.agent.dcgmStopEmbedded(handle)
    except bindings.structs.DCGMError:
        return


def _connect_by_uri(agent: Any, structs: Any, target: Target) -> Any:
    """Connect as DCGM 4.5 and later do; older bindings have no such call."""
    if not hasattr(agent, "dcgmConnect_v3"):
        return _connect_by_address(agent, structs, target)
    parameters = structs.c_dcgmConnectV3Params_v1()
    parameters.timeoutMs, parameters.persistAfterDisconnect = CONNECT_MILLISECONDS, 0
    return agent.dcgmConnect_v3(f"unix://{target.path}" if target.path else f"tcp://{target}", parameters)


def _connect_by_address(agent: Any, structs: Any, target: Target) -> Any:
    parameters = structs.c_dcgmConnectV2Params_v2()
    parameters.timeoutMs, parameters.persistAfterDisconnect = CONNECT_MILLISECONDS, 0
    parameters.addressIsUnixSocket = int(bool(target.path))
    return agent.dcgmConnect_v2(str(target), parameters)


def _parsed(address: str) -> Target:
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not host or not _PORT.fullmatch(port) or (":" in host and not bracketed):  # no port was given
        host, port = address.removeprefix("tcp://"), str(DEFAULT_PORT)
    host = host.removeprefix("[").removesuffix("]")
    if not host or "/" in host or not 0 < int(port) < 2**16:
        raise SourceError(Reason.NO_SOURCE, f"DCGM: {address!r} is no address; write host:port in gpu.dcgm.address")
    return Target(host, int(port))
